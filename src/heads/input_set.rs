//! Points of the constraint grid: the inputs that queries and keys may use, and the limit on their rank.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

use ndarray::Array2;

/// The inputs from which a head's queries and keys are projected: its own inputs X, X with additional columns of positions, or
/// no constraint.
///
/// Every set with positions also has a column of ones. Without it no query could be the same in every row, and a ramp z = c·j
/// would not be possible. [`InputSet::Bias`] is X with that column only. Below, j is the position, from 0 to n − 1, in a
/// passage of n tokens:
///
/// | set | columns in addition to X |
/// |---|---|
/// | `own` | none |
/// | `bias` | 1 |
/// | `line` | 1, j |
/// | `pair` | 1, cos(πj/n), sin(πj/n): the period is 2n, so all positions differ |
/// | `pairs4` | 1, and four such pairs, of the periods 2n, n/2, n/8 and n/32 |
/// | `positions` | one column per position: any function of the position |
/// | `free` | no constraint: each row has its own query and key |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSet {
    /// X.
    Own,
    /// X and a column of ones.
    Bias,
    /// X, ones, and a column linear in the position.
    Line,
    /// X, ones, and one Fourier pair of the position.
    Pair,
    /// X, ones, and four Fourier pairs.
    Pairs4,
    /// X and one column per position.
    Positions,
    /// No constraint.
    Free,
}

impl InputSet {
    /// Every set; each comes after all sets that it contains.
    pub const ALL: [Self; 7] =
        [Self::Own, Self::Bias, Self::Line, Self::Pair, Self::Pairs4, Self::Positions, Self::Free];

    /// The name in definitions and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Bias => "bias",
            Self::Line => "line",
            Self::Pair => "pair",
            Self::Pairs4 => "pairs4",
            Self::Positions => "positions",
            Self::Free => "free",
        }
    }

    /// Whether every query and key of `self` is possible with `other` as well.
    pub fn is_within(self, other: Self) -> bool {
        use InputSet::{Bias, Free, Line, Own, Pair, Pairs4, Positions};
        match (self, other) {
            (one, other) if one == other => true,
            (Own, _) | (_, Free) => true,
            (Bias, Line | Pair | Pairs4 | Positions) => true,
            (Line | Pair | Pairs4, Positions) | (Pair, Pairs4) => true,
            _ => false,
        }
    }

    /// The columns in addition to X for `passages` passages of `tokens` tokens each, one below the other.
    pub(super) fn columns(self, tokens: usize, passages: usize) -> Array2<f64> {
        let n = tokens as f64;
        let pairs = |count: usize| -> Vec<Box<dyn Fn(usize) -> f64>> {
            let mut all: Vec<Box<dyn Fn(usize) -> f64>> = vec![Box::new(|_| 1.0)];
            for pair in 0..count {
                let turn = PI / n * 4f64.powi(pair as i32);
                all.push(Box::new(move |j| (turn * j as f64).cos()));
                all.push(Box::new(move |j| (turn * j as f64).sin()));
            }
            all
        };
        let of_position: Vec<Box<dyn Fn(usize) -> f64>> = match self {
            Self::Own | Self::Free => Vec::new(),
            Self::Bias => pairs(0),
            // Centred, so that it is orthogonal to the ones.
            Self::Line => vec![Box::new(|_| 1.0), Box::new(move |j| j as f64 - 0.5 * (n - 1.0))],
            Self::Pair => pairs(1),
            Self::Pairs4 => pairs(4),
            Self::Positions => (0..tokens)
                .map(|at| -> Box<dyn Fn(usize) -> f64> { Box::new(move |j| f64::from(j == at)) })
                .collect(),
        };
        Array2::from_shape_fn((tokens * passages, of_position.len()), |(row, column)| {
            of_position[column](row % tokens)
        })
    }
}

impl fmt::Display for InputSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for InputSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|set| set.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown inputs {text:?}; give some of {names}")
        })
    }
}

/// A bound on the rank of a head's logits, or no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RankLimit {
    /// At most this number of channels in queries and keys.
    Of(usize),
    /// No bound: W_q·W_kᵀ is any matrix, and free logits are any matrix.
    Any,
}

impl fmt::Display for RankLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(rank) => write!(f, "{rank}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl FromStr for RankLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(rank) if rank > 0 => Ok(Self::Of(rank)),
            _ if text == "any" => Ok(Self::Any),
            _ => Err(format!("{text:?} is not a rank; give a number above 0, or any")),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Axis, concatenate};
    use ndarray_linalg::{JobSvd, SVDDC};

    use super::*;

    #[test]
    fn names_and_limits_read_back() {
        for set in InputSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for limit in [RankLimit::Of(7), RankLimit::Any] {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        assert!("position".parse::<InputSet>().unwrap_err().contains("positions, free"));
        assert!("0".parse::<RankLimit>().is_err() && "-3".parse::<RankLimit>().is_err());
        assert!(RankLimit::Of(1000) < RankLimit::Any);
    }

    /// A set is within another if and only if its columns are in the span of the other's.
    #[test]
    fn what_is_within_is_what_the_columns_span() {
        let rank = |m: &Array2<f64>| {
            let (_, sigma, _) = m.svddc(JobSvd::None).unwrap();
            sigma.iter().filter(|&&value| value > 1e-9 * sigma[0]).count()
        };
        let given = &InputSet::ALL[1..6];
        for one in given {
            for other in given {
                let [a, b] = [one, other].map(|set| set.columns(24, 2));
                let both = concatenate(Axis(1), &[a.view(), b.view()]).unwrap();
                assert_eq!(rank(&both) == rank(&b), one.is_within(*other), "{one} in {other}");
            }
            assert!(InputSet::Own.is_within(*one) && one.is_within(InputSet::Free));
            assert!(!one.is_within(InputSet::Own) && !InputSet::Free.is_within(*one));
        }
    }

    /// The longest period distinguishes all positions, and every passage has the same columns.
    #[test]
    fn a_pair_is_one_to_one_and_passages_are_alike() {
        let pair = InputSet::Pair.columns(16, 2);
        for i in 0..16 {
            assert_eq!(pair.row(i), pair.row(16 + i));
            for j in 0..i {
                let apart = (&pair.row(i) - &pair.row(j)).iter().map(|v| v * v).sum::<f64>();
                assert!(apart > 1e-3, "{i} and {j}");
            }
        }
    }
}
