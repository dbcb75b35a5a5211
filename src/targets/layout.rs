//! Layouts: the heads that share one attention matrix, and the columns each may attend to.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::{Patch, TargetError, Visibility};

/// Limit on the heads of a layout, above that of any model's layer.
const MOST_HEADS: usize = 1 << 16;

/// The pairs to which a head may attend, in addition to the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeadKind {
    /// All pairs that the mask allows.
    Global,
    /// A sliding window: i − w < j ≤ i when causal, |i − j| < w when bidirectional.
    Local {
        /// The window length w ≥ 1; a causal row attends to itself and the w − 1 tokens before it.
        window: usize,
    },
    /// A two-dimensional window over tokens in raster order. No layout contains it, because fits support contiguous windows
    /// only.
    Patch(Patch),
}

impl HeadKind {
    /// Length of the shortest contiguous window with all columns of a row; `None` for a global head.
    pub fn window(self) -> Option<usize> {
        match self {
            Self::Global => None,
            Self::Local { window } => Some(window),
            Self::Patch(patch) => Some(patch.span()),
        }
    }

    /// The largest number of tokens, up to and including its own, to which a row may attend; `None` for a global head.
    pub fn tokens(self) -> Option<usize> {
        match self {
            Self::Global => None,
            Self::Local { window } => Some(window),
            Self::Patch(patch) => Some(patch.tokens()),
        }
    }

    /// Whether each row attends to one contiguous range of columns.
    pub fn is_contiguous(self) -> bool {
        !matches!(self, Self::Patch(_))
    }

    /// The columns to which row `row` of `n` may attend through this head under the mask `visibility`. For a patch this is the
    /// range around them; [`Self::segments`] gives the exact columns.
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

    /// The columns to which row `row` of `n` may attend under the mask `visibility`, as ranges in ascending order.
    pub fn segments(
        self,
        row: usize,
        n: usize,
        visibility: Visibility,
    ) -> impl Iterator<Item = Range<usize>> {
        let (whole, parts) = match self {
            Self::Patch(patch) => (None, Some(patch.segments(row, n, visibility))),
            _ => (Some(self.columns(row, n, visibility)), None),
        };
        whole.into_iter().chain(parts.into_iter().flatten())
    }
}

impl fmt::Display for HeadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Local { window } => write!(f, "local:{window}"),
            Self::Patch(patch) => write!(f, "patch:{patch}"),
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
        let mut first = true;
        for run in self.0.chunk_by(|a, b| a == b) {
            if !first {
                f.write_str("+")?;
            }
            first = false;
            if run.len() > 1 {
                write!(f, "{}x", run.len())?;
            }
            write!(f, "{}", run[0])?;
        }
        Ok(())
    }
}

impl FromStr for Layout {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: &str| TargetError::Layout { found: text.to_owned(), why: why.to_owned() };
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

    /// Compares with the two distances of every pair.
    #[test]
    fn a_patch_sees_what_is_near_in_rows_and_columns() {
        for (columns, rows, reach) in [
            (1, 0, 0),
            (1, 3, 0),
            (5, 0, 2),
            (5, 2, 0),
            (5, 1, 1),
            (6, 2, 3),
            (7, 3, 6),
            (28, 3, 3),
        ] {
            let patch = Patch { columns, rows, reach };
            let kind = HeadKind::Patch(patch);
            for (n, visibility) in [1, 2, 27, 30, 61]
                .into_iter()
                .flat_map(|n| [(n, Visibility::Causal), (n, Visibility::Bidirectional)])
            {
                let mut most = 0;
                for i in 0..n {
                    let seen: Vec<usize> = kind.segments(i, n, visibility).flatten().collect();
                    let sees = |&j: &usize| {
                        (i / columns).abs_diff(j / columns) <= rows
                            && (i % columns).abs_diff(j % columns) <= reach
                            && (visibility == Visibility::Bidirectional || j <= i)
                    };
                    let expected: Vec<usize> = (0..n).filter(sees).collect();
                    assert_eq!(seen, expected, "{patch} of {n}, {visibility}, row {i}");
                    let around = kind.columns(i, n, visibility);
                    assert!(seen.iter().all(|j| around.contains(j)), "{patch}: {around:?}");
                    most = most.max(seen.iter().filter(|&&j| j <= i).count());
                }
                assert!(most <= patch.tokens());
                if n > patch.span() + columns && columns > 2 * reach {
                    assert_eq!(most, patch.tokens(), "{patch}");
                }
            }
        }
    }

    #[test]
    fn what_is_contiguous_is_one_segment() {
        for kind in [HeadKind::Global, HeadKind::Local { window: 3 }] {
            for visibility in [Visibility::Causal, Visibility::Bidirectional] {
                for row in 0..9 {
                    let segments: Vec<_> = kind.segments(row, 9, visibility).collect();
                    assert_eq!(segments, [kind.columns(row, 9, visibility)]);
                }
            }
        }
    }
}
