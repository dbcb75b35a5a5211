//! What is put in the place of every head's attention.

/// What is put in the place of every head's attention, or done to it. P is the unaltered model's attention; what is
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

    /// k, W or the number of powers.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::Largest { count: size }
            | Self::Last { window: size }
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

    /// Whether it adds a slope over the lag to the logits of every head.
    pub fn adds_slopes(self) -> bool {
        matches!(self, Self::DetrendedSlope { .. } | Self::FlatSlope { .. })
    }

    /// Whether it takes columns away that P has, so that KL(P ‖ P̃) is infinite.
    pub fn cuts(self) -> bool {
        matches!(self, Self::Largest { .. } | Self::Last { .. })
    }

    /// The edit of this name and these numbers, which are there where it has them and only there.
    pub fn from_parts(name: &str, fit: Option<(f64, usize)>, size: Option<usize>) -> Option<Self> {
        let edit = match (name, fit, size) {
            ("fit", Some((epsilon, rank)), _) => Self::Fit { epsilon, rank },
            ("top-k", _, Some(count)) => Self::Largest { count },
            ("window", _, Some(window)) => Self::Last { window },
            ("detrended", _, Some(degree)) => Self::Detrended { degree },
            ("detrended+slope", _, Some(degree)) => Self::DetrendedSlope { degree },
            ("flat", _, Some(degree)) => Self::Flat { degree },
            ("flat+slope", _, Some(degree)) => Self::FlatSlope { degree },
            _ => {
                use Edit::{Lag, Own, Position, PositionAndLag, Ramp, Uniform};
                let plain = [Own, Uniform, Ramp, Position, Lag, PositionAndLag];
                plain.into_iter().find(|edit| edit.name() == name)?
            }
        };
        (edit.fit() == fit && edit.size() == size).then_some(edit)
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
            Edit::Detrended { degree: 1 },
            Edit::DetrendedSlope { degree: 3 },
            Edit::Flat { degree: 1 },
            Edit::FlatSlope { degree: 2 },
        ];
        for edit in all {
            let (name, fit, size) = (edit.name(), edit.fit(), edit.size());
            assert_eq!(Edit::from_parts(name, fit, size), Some(edit));
            let [other_fit, other_size] = [fit.is_none(), size.is_none()];
            assert_eq!(Edit::from_parts(name, other_fit.then_some((0.1, 2)), size), None);
            assert_eq!(Edit::from_parts(name, fit, other_size.then_some(3)), None);
        }
        assert_eq!(Edit::from_parts("slope", None, None), None);
    }
}
