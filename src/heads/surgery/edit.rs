//! Edits that replace the attention of heads.

/// A replacement or change of heads' attention. P is the unaltered model's attention. Edits estimate their parameters from P on
/// other passages than those of the loss; only fits use the same passages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    /// No change: the model itself.
    Own,
    /// The free fit of P on the passages of the loss, at error ε and rank r, that of the head: the queries and keys of smallest
    /// max |logit| with kl_nats ≤ ε. If there are none, those of smallest kl_nats. If r is the number of tokens, it limits
    /// nothing, and the fit is the floor's attention, of each passage by itself.
    Fit {
        /// ε, in nats.
        epsilon: f64,
        /// r.
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
    /// Keys without the direction of the head's mean query q̄, kⱼ − q̄(q̄·kⱼ)/|q̄|², and their scores under that query, s·q̄·kⱼ,
    /// added to the logits of every query. The scores are not part of max |logit| of QKᵀ.
    KeyScores,
    /// The matrices of all blocks rounded to b bits: [`Model::rounded`](crate::lm::Model::rounded). All that follows from them
    /// changes, not only attention.
    Rounded {
        /// b.
        bits: usize,
    },
    /// Only W_q and W_k rounded to b bits.
    RoundedQueriesAndKeys {
        /// b.
        bits: usize,
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
            Self::KeyScores => "key-scores",
            Self::Rounded { .. } => "rounded",
            Self::RoundedQueriesAndKeys { .. } => "rounded-qk",
        }
    }

    /// ε and r of a fit; `None` for other edits.
    pub fn fit(self) -> Option<(f64, usize)> {
        match self {
            Self::Fit { epsilon, rank } => Some((epsilon, rank)),
            _ => None,
        }
    }

    /// k, W or b; `None` for edits without one.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::Largest { count: size }
            | Self::Last { window: size }
            | Self::Rounded { bits: size }
            | Self::RoundedQueriesAndKeys { bits: size } => Some(size),
            _ => None,
        }
    }

    /// Whether the replacement is computed from queries and keys.
    pub fn has_logits(self) -> bool {
        use Edit::{Lag, Position, PositionAndLag, Ramp, Uniform};
        !matches!(self, Uniform | Ramp | Position | Lag | PositionAndLag)
    }

    /// Whether it removes columns where P is positive, so that KL(P ‖ P̃) is infinite.
    pub fn cuts(self) -> bool {
        matches!(self, Self::Largest { .. } | Self::Last { .. })
    }

    /// The edit with this name and these numbers. Returns `None` unless exactly the numbers of that edit are given.
    pub fn from_parts(name: &str, fit: Option<(f64, usize)>, size: Option<usize>) -> Option<Self> {
        let edit = match (name, fit, size) {
            ("fit", Some((epsilon, rank)), _) => Self::Fit { epsilon, rank },
            ("top-k", _, Some(count)) => Self::Largest { count },
            ("window", _, Some(window)) => Self::Last { window },
            ("rounded", _, Some(bits)) => Self::Rounded { bits },
            ("rounded-qk", _, Some(bits)) => Self::RoundedQueriesAndKeys { bits },
            _ => {
                use Edit::{KeyScores, Lag, Own, Position, PositionAndLag, Ramp, Uniform};
                let plain = [Own, Uniform, Ramp, Position, Lag, PositionAndLag, KeyScores];
                plain.into_iter().find(|edit| edit.name() == name)?
            }
        };
        ((edit.fit(), edit.size()) == (fit, size)).then_some(edit)
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
            Edit::KeyScores,
            Edit::Rounded { bits: 4 },
            Edit::RoundedQueriesAndKeys { bits: 4 },
        ];
        for edit in all {
            let (name, fit, size) = (edit.name(), edit.fit(), edit.size());
            assert_eq!(Edit::from_parts(name, fit, size), Some(edit));
            let other_fit = fit.is_none().then_some((0.1, 2));
            let other_size = size.is_none().then_some(3);
            assert_eq!(Edit::from_parts(name, other_fit, size), None);
            assert_eq!(Edit::from_parts(name, fit, other_size), None);
        }
        assert_eq!(Edit::from_parts("slope", None, None), None);
    }
}
