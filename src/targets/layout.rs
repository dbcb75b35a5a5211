//! Layouts: the heads that share one attention matrix, and the columns each may attend to.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::{TargetError, Visibility};

/// Limit on the heads of a layout, above that of any model's layer.
const MOST_HEADS: usize = 1 << 16;

/// The pairs to which a head may attend, in addition to the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeadKind {
    /// All pairs that the mask allows.
    #[default]
    Global,
    /// A sliding window: i − w < j ≤ i when causal, |i − j| < w when bidirectional.
    Local {
        /// The window length w ≥ 1; a causal row attends to itself and the w − 1 tokens before it.
        window: usize,
    },
}

impl HeadKind {
    /// The window length; `None` for a global head.
    pub fn window(self) -> Option<usize> {
        match self {
            Self::Global => None,
            Self::Local { window } => Some(window),
        }
    }

    /// The columns to which row `row` of `n` may attend through this head under the mask `visibility`.
    pub fn columns(self, row: usize, n: usize, visibility: Visibility) -> Range<usize> {
        let all = visibility.columns(row, n);
        match self.window() {
            None => all,
            Some(window) => {
                let first = (row + 1).saturating_sub(window);
                let last = row.saturating_add(window);
                all.start.max(first)..all.end.min(last)
            }
        }
    }
}

impl fmt::Display for HeadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Local { window } => write!(f, "local:{window}"),
        }
    }
}

/// The heads whose mixture P = Σₕ πₕ Pₕ reproduces one attention matrix.
///
/// The text form joins heads by `+`, each `global` or `local:W`, with `Nx` for repeats:
/// `global`, `2xglobal`, `local:24+global`, `5xlocal:50+global`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout(Vec<HeadKind>);

impl Layout {
    /// One global head.
    pub fn global() -> Self {
        Self(vec![HeadKind::Global])
    }

    /// One head of this kind.
    pub fn of(kind: HeadKind) -> Self {
        Self(vec![kind])
    }

    /// The heads, in the order in which they were written; never empty.
    pub fn heads(&self) -> &[HeadKind] {
        &self.0
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a == b).map(|run| match run.len() {
            1 => run[0].to_string(),
            heads => format!("{heads}x{}", run[0]),
        });
        f.write_str(&runs.collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Layout {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: &str| {
            TargetError::Other(format!(
                "layout {text:?}: {why}; join heads with +, each global or local:W, such as 2xglobal or \
                 local:24+global"
            ))
        };
        let mut heads = Vec::new();
        for part in text.split('+') {
            // In `local:8x` the x does not follow a count.
            let times = part.split_once('x').filter(|(count, _)| !count.contains(':'));
            let (repeats, kind) = match times {
                Some((count, kind)) => {
                    let count: usize = count
                        .parse()
                        .map_err(|_| wrong(&format!("{count:?} is not a number of heads")))?;
                    (count, kind)
                }
                None => (1, part),
            };
            let kind = match kind.split_once(':') {
                None if kind == "global" => HeadKind::Global,
                Some(("local", window)) => HeadKind::Local {
                    window: window
                        .parse()
                        .ok()
                        .filter(|&w| w > 0)
                        .ok_or_else(|| wrong(&format!("{window:?} is not a window length")))?,
                },
                _ => return Err(wrong(&format!("{part:?} is neither global nor local:W"))),
            };
            if repeats == 0 {
                return Err(wrong("a head cannot be repeated 0 times"));
            }
            if repeats > MOST_HEADS - heads.len() {
                return Err(wrong(&format!("at most {MOST_HEADS} heads are allowed")));
            }
            heads.extend(std::iter::repeat_n(kind, repeats));
        }
        Ok(Self(heads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_read_back_as_written() {
        for text in ["global", "2xglobal", "local:24+global", "5xlocal:50+global"] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_layout_says_which_part_is_wrong() {
        for (text, part) in [
            ("globl", "globl"),
            ("local", "local"),
            ("local:0", "window"),
            ("0xglobal", "0 times"),
            ("ax global", "number of heads"),
            ("local:x+global", "window length"),
            ("global+", "neither"),
        ] {
            let error = text.parse::<Layout>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_local_head_sees_its_window_and_no_more() {
        let head = HeadKind::Local { window: 3 };
        assert_eq!(head.columns(5, 10, Visibility::Causal), 3..6);
        assert_eq!(head.columns(1, 10, Visibility::Causal), 0..2);
        assert_eq!(head.columns(5, 10, Visibility::Bidirectional), 3..8);
        assert_eq!(head.columns(9, 10, Visibility::Bidirectional), 7..10);
    }
}
