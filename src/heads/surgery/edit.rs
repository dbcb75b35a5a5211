//! Edits that replace the attention of heads.

use crate::targets::HeadKind;

/// Which heads of a model attend otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditedHeads {
    /// All.
    #[default]
    All,
    /// Those that see everything.
    Global,
    /// Those with a window.
    Local,
}

impl EditedHeads {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::All, Self::Global, Self::Local];

    /// The name in definitions and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Global => "global",
            Self::Local => "local",
        }
    }

    /// Whether heads of this kind are among them.
    pub fn hold(self, kind: HeadKind) -> bool {
        match self {
            Self::All => true,
            Self::Global => kind == HeadKind::Global,
            Self::Local => matches!(kind, HeadKind::Local { .. }),
        }
    }
}

/// What is put in the place of heads' attention, or done to it. P is the unaltered model's attention; what is
/// learned of it is learned on passages other than those that the loss is of, but for fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    /// Nothing: the model as it is.
    Own,
    /// The free fit of P on the very passages, at error ε and rank r: the queries and keys of least max abs logit found
    /// with kl_nats ≤ ε, or, where none were, of the least kl_nats found.
    Fit {
        /// ε, in nats.
        epsilon: f64,
        /// r, at most the head dimension.
        rank: usize,
    },
    /// The same weight on all that a row sees.
    Uniform,
    /// softmax(c·j), with the c of least KL to P, one a head.
    Ramp,
    /// softmax(h(j)), with the function h of the column of least KL to P, one a head.
    Position,
    /// softmax(g(i − j)), with the function g of the lag of least KL to P, one a head.
    Lag,
    /// softmax(h(j) + g(i − j)), with the functions of least KL to P, one pair a head.
    PositionAndLag,
    /// The k largest entries of a row of the attention as it has become, divided by their sum.
    Largest {
        /// k.
        count: usize,
    },
    /// The last W columns of it, divided by their sum.
    Last {
        /// W.
        window: usize,
    },
    /// The best approximation of a head's attention as it has become of rank r, (T, T), by its singular values: entries under 0,
    /// and those where the attention has none, taken for 0, and rows divided by their sum.
    Truncated {
        /// r.
        rank: usize,
    },
    /// The far mass of each row, what it has at so large a lag or a larger one but for the first column, spread evenly over those
    /// columns. All else of the row stays, here and in what follows.
    FarUniform {
        /// The least lag that is far.
        from: usize,
    },
    /// The far mass of each row as the head's mean attention on other passages has it there.
    FarMean {
        /// The least lag that is far.
        from: usize,
    },
    /// The far mass of each row on its k largest far entries, in their proportions.
    FarLargest {
        /// k.
        count: usize,
        /// The least lag that is far.
        from: usize,
    },
    /// The far mass of each row as the far parts of all rows together have it in their best approximation of rank r, entries
    /// under 0 taken for 0.
    FarTruncated {
        /// r.
        rank: usize,
        /// The least lag that is far.
        from: usize,
    },
    /// Keys less their own trend over positions: what the first powers of the position explain of each head's keys, in
    /// the mean of passages, is taken from them.
    Detrended {
        /// How many powers.
        degree: usize,
    },
    /// The same, and a slope as with [`Edit::FlatSlope`].
    DetrendedSlope {
        /// How many powers.
        degree: usize,
    },
    /// Keys that do not read where their token stands: W_k becomes (I − U·Uᵀ)·W_k, U the directions of the layer's
    /// normalised stream that the first powers of the position move it along.
    Flat {
        /// How many powers.
        degree: usize,
    },
    /// The same, and a slope c·(j − i) added to the logits, with the c of least KL to P, one a head, given the
    /// logits that are left. It costs no logit of QKᵀ.
    FlatSlope {
        /// How many powers.
        degree: usize,
    },
}

impl Edit {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Fit { .. } => "fit",
            Self::Uniform => "uniform",
            Self::Ramp => "ramp",
            Self::Position => "position",
            Self::Lag => "lag",
            Self::PositionAndLag => "position+lag",
            Self::Largest { .. } => "top-k",
            Self::Last { .. } => "window",
            Self::Truncated { .. } => "rank-r",
            Self::FarUniform { .. } => "far-uniform",
            Self::FarMean { .. } => "far-mean",
            Self::FarLargest { .. } => "far-top-k",
            Self::FarTruncated { .. } => "far-rank-r",
            Self::Detrended { .. } => "detrended",
            Self::DetrendedSlope { .. } => "detrended+slope",
            Self::Flat { .. } => "flat",
            Self::FlatSlope { .. } => "flat+slope",
        }
    }

    /// ε and r, of a fit.
    pub fn fit(self) -> Option<(f64, usize)> {
        match self {
            Self::Fit { epsilon, rank } => Some((epsilon, rank)),
            _ => None,
        }
    }

    /// k, W, r of a truncation, or the number of powers.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::Largest { count: size }
            | Self::Last { window: size }
            | Self::Truncated { rank: size }
            | Self::FarLargest { count: size, .. }
            | Self::FarTruncated { rank: size, .. }
            | Self::Detrended { degree: size }
            | Self::DetrendedSlope { degree: size }
            | Self::Flat { degree: size }
            | Self::FlatSlope { degree: size } => Some(size),
            _ => None,
        }
    }

    /// Whether what takes the place of the attention is made of queries and keys.
    pub fn has_logits(self) -> bool {
        use Edit::{Lag, Position, PositionAndLag, Ramp, Uniform};
        !matches!(self, Uniform | Ramp | Position | Lag | PositionAndLag)
    }

    /// Whether what it does is done to the model's weights: see [`Edit::edited`].
    pub fn is_of_weights(self) -> bool {
        matches!(self, Self::Flat { .. } | Self::FlatSlope { .. })
    }

    /// Whether it is done to each head's attention by itself, so that it can be done to some heads alone.
    pub fn is_of_attention(self) -> bool {
        !matches!(
            self,
            Self::Fit { .. }
                | Self::Detrended { .. }
                | Self::DetrendedSlope { .. }
                | Self::Flat { .. }
                | Self::FlatSlope { .. }
        )
    }

    /// The least lag that is far, where it leaves all but the far part as it is.
    pub fn far_from(self) -> Option<usize> {
        match self {
            Self::FarUniform { from }
            | Self::FarMean { from }
            | Self::FarLargest { from, .. }
            | Self::FarTruncated { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Whether it adds a slope over the lag to the logits of every head.
    pub fn adds_slopes(self) -> bool {
        matches!(self, Self::DetrendedSlope { .. } | Self::FlatSlope { .. })
    }

    /// Whether it takes columns away that P has, so that KL(P ‖ P̃) is infinite.
    pub fn cuts(self) -> bool {
        use Edit::{FarLargest, FarTruncated, Largest, Last, Truncated};
        matches!(
            self,
            Largest { .. }
                | Last { .. }
                | Truncated { .. }
                | FarLargest { .. }
                | FarTruncated { .. }
        )
    }

    /// The edit of this name and these numbers, which are there where it has them and only there.
    pub fn from_parts(
        name: &str,
        fit: Option<(f64, usize)>,
        size: Option<usize>,
        far_from: Option<usize>,
    ) -> Option<Self> {
        let edit = match (name, fit, size, far_from) {
            ("fit", Some((epsilon, rank)), ..) => Self::Fit { epsilon, rank },
            ("top-k", _, Some(count), _) => Self::Largest { count },
            ("window", _, Some(window), _) => Self::Last { window },
            ("rank-r", _, Some(rank), _) => Self::Truncated { rank },
            ("far-uniform", _, _, Some(from)) => Self::FarUniform { from },
            ("far-mean", _, _, Some(from)) => Self::FarMean { from },
            ("far-top-k", _, Some(count), Some(from)) => Self::FarLargest { count, from },
            ("far-rank-r", _, Some(rank), Some(from)) => Self::FarTruncated { rank, from },
            ("detrended", _, Some(degree), _) => Self::Detrended { degree },
            ("detrended+slope", _, Some(degree), _) => Self::DetrendedSlope { degree },
            ("flat", _, Some(degree), _) => Self::Flat { degree },
            ("flat+slope", _, Some(degree), _) => Self::FlatSlope { degree },
            _ => {
                use Edit::{Lag, Own, Position, PositionAndLag, Ramp, Uniform};
                let plain = [Own, Uniform, Ramp, Position, Lag, PositionAndLag];
                plain.into_iter().find(|edit| edit.name() == name)?
            }
        };
        let own = (edit.fit(), edit.size(), edit.far_from());
        (own == (fit, size, far_from)).then_some(edit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_read_back_from_their_parts() {
        let all = [
            Edit::Own,
            Edit::Fit { epsilon: 0.01, rank: 4 },
            Edit::Uniform,
            Edit::Ramp,
            Edit::Position,
            Edit::Lag,
            Edit::PositionAndLag,
            Edit::Largest { count: 16 },
            Edit::Last { window: 64 },
            Edit::Truncated { rank: 8 },
            Edit::FarUniform { from: 16 },
            Edit::FarMean { from: 64 },
            Edit::FarLargest { count: 4, from: 16 },
            Edit::FarTruncated { rank: 2, from: 16 },
            Edit::Detrended { degree: 1 },
            Edit::DetrendedSlope { degree: 3 },
            Edit::Flat { degree: 1 },
            Edit::FlatSlope { degree: 2 },
        ];
        for edit in all {
            let (name, fit, size, from) = (edit.name(), edit.fit(), edit.size(), edit.far_from());
            assert_eq!(Edit::from_parts(name, fit, size, from), Some(edit));
            let other_fit = fit.is_none().then_some((0.1, 2));
            let [other_size, other_from] = [size, from].map(|one| one.is_none().then_some(3));
            assert_eq!(Edit::from_parts(name, other_fit, size, from), None);
            assert_eq!(Edit::from_parts(name, fit, other_size, from), None);
            assert_eq!(Edit::from_parts(name, fit, size, other_from), None);
        }
        assert_eq!(Edit::from_parts("slope", None, None, None), None);
    }

    #[test]
    fn heads_are_told_by_what_they_see() {
        let kinds = [HeadKind::Global, HeadKind::Local { window: 4 }];
        let expected = [("all", [true, true]), ("global", [true, false]), ("local", [false, true])];
        for (heads, (told, hold)) in EditedHeads::ALL.into_iter().zip(expected) {
            assert_eq!(heads.name(), told);
            assert_eq!(kinds.map(|kind| heads.hold(kind)), hold, "{told}");
        }
    }
}
