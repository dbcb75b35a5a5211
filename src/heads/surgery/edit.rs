//! Edits that replace the attention of heads.

use crate::targets::HeadKind;

/// The heads of a model that an edit applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditedHeads {
    /// All heads.
    #[default]
    All,
    /// Global heads.
    Global,
    /// Heads with a window.
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

    /// Whether the selection contains heads of this kind.
    pub fn hold(self, kind: HeadKind) -> bool {
        match self {
            Self::All => true,
            Self::Global => kind == HeadKind::Global,
            Self::Local => matches!(kind, HeadKind::Local { .. }),
        }
    }
}

/// A replacement or change of heads' attention. P is the unaltered model's attention. Edits estimate their parameters from P on
/// other passages than those of the loss; only fits use the same passages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    /// No change: the model itself.
    Own,
    /// The free fit of P on the passages of the loss, at error ε and rank r: the queries and keys of smallest max |logit| with
    /// kl_nats ≤ ε. If there are none, those of smallest kl_nats.
    Fit {
        /// ε, in nats.
        epsilon: f64,
        /// r, at most the head dimension.
        rank: usize,
    },
    /// Equal weight on all columns to which a row may attend.
    Uniform,
    /// softmax(c·j), with the c of least KL to P, one per head.
    Ramp,
    /// softmax(h(j)), with the function h of the column of least KL to P, one per head.
    Position,
    /// softmax(g(i − j)), with the function g of the relative distance of least KL to P, one per head.
    Lag,
    /// softmax(h(j) + g(i − j)), with the functions of least KL to P, one pair per head.
    PositionAndLag,
    /// The k largest entries of each row of the head's attention in the edited model, divided by their sum.
    Largest {
        /// k.
        count: usize,
    },
    /// The last W columns of each row of the head's attention in the edited model, divided by their sum.
    Last {
        /// W.
        window: usize,
    },
    /// The best approximation of rank r, from the singular values, of the head's attention (T, T) in the edited model. Negative
    /// entries and entries where the attention is 0 are set to 0, and rows are divided by their sum.
    Truncated {
        /// r.
        rank: usize,
    },
    /// The far mass of each row is spread evenly over its far columns: those at this relative distance or more, except the
    /// first. The rest of the row is unchanged. The same holds for the far edits below.
    FarUniform {
        /// The smallest relative distance that is far.
        from: usize,
    },
    /// The far mass of each row is distributed like the head's mean attention on other passages.
    FarMean {
        /// The smallest relative distance that is far.
        from: usize,
    },
    /// The far mass of each row is distributed over its k largest far entries, in their proportions.
    FarLargest {
        /// k.
        count: usize,
        /// The smallest relative distance that is far.
        from: usize,
    },
    /// The far mass of each row is distributed like the best approximation of rank r of the far parts of all rows together,
    /// with negative entries set to 0.
    FarTruncated {
        /// r.
        rank: usize,
        /// The smallest relative distance that is far.
        from: usize,
    },
    /// Keys minus their own trend over positions. The trend is the regression of each head's keys, averaged over passages, on
    /// the first powers of the position.
    Detrended {
        /// The number of powers.
        degree: usize,
    },
    /// As [`Edit::Detrended`], with a position bias as in [`Edit::FlatSlope`].
    DetrendedSlope {
        /// The number of powers.
        degree: usize,
    },
    /// Keys that cannot read a token's position: W_k becomes (I − U·Uᵀ)·W_k. U spans the directions in which the layer's
    /// normalised residual stream moves with the first powers of the position.
    Flat {
        /// The number of powers.
        degree: usize,
    },
    /// As [`Edit::Flat`], with a position bias c·(j − i) added to the logits, one c per head. It is the c of least KL to P,
    /// given the remaining logits. The bias is not part of max |logit| of QKᵀ.
    FlatSlope {
        /// The number of powers.
        degree: usize,
    },
}

impl Edit {
    /// The name in table rows.
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

    /// ε and r of a fit; `None` for other edits.
    pub fn fit(self) -> Option<(f64, usize)> {
        match self {
            Self::Fit { epsilon, rank } => Some((epsilon, rank)),
            _ => None,
        }
    }

    /// k, W, r of a truncation, or the number of powers; `None` for edits without one.
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

    /// Whether the replacement is computed from queries and keys.
    pub fn has_logits(self) -> bool {
        use Edit::{Lag, Position, PositionAndLag, Ramp, Uniform};
        !matches!(self, Uniform | Ramp | Position | Lag | PositionAndLag)
    }

    /// Whether it changes the model's weights: see [`Edit::edited`].
    pub fn is_of_weights(self) -> bool {
        matches!(self, Self::Flat { .. } | Self::FlatSlope { .. })
    }

    /// Whether it changes each head's attention on its own, so that it can apply to some heads only.
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

    /// The smallest relative distance that is far, for edits of the far part only.
    pub fn far_from(self) -> Option<usize> {
        match self {
            Self::FarUniform { from }
            | Self::FarMean { from }
            | Self::FarLargest { from, .. }
            | Self::FarTruncated { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Whether it adds a linear position bias to the logits of every head.
    pub fn adds_slopes(self) -> bool {
        matches!(self, Self::DetrendedSlope { .. } | Self::FlatSlope { .. })
    }

    /// Whether it removes columns where P is positive, so that KL(P ‖ P̃) is infinite.
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

    /// The edit with this name and these numbers. Returns `None` unless exactly the numbers of that edit are given.
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
