//! An estimate: a number with its interval or range, how it rules against bounds, and how it is written.

use super::ruling::Ruling;
use crate::table::{Interval, Spread, significant};

/// A number with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The mean, the slope or the median.
    pub value: f64,
    ends: Ends,
}

/// The uncertainty of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// A 95 % interval.
    Interval([f64; 2]),
    /// The smallest and the largest measured value.
    Range([f64; 2]),
    /// Unknown: there is one seed.
    Unknown,
}

impl Estimate {
    /// The mean with Student's interval over seeds. One seed gives its value without an interval, no seed gives `None`.
    pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let alone = Self { value: mean, ends: Ends::Unknown };
        (!values.is_empty()).then(|| Interval::of(values).map_or(alone, Self::from))
    }

    /// The median with the smallest and the largest value; `None` without values.
    pub fn median(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let Spread { median, low, high } = Spread::of(values)?;
        Some(Self { value: median, ends: Ends::Range([low, high]) })
    }

    /// A value with the ends of its range.
    pub fn range(value: f64, ends: [f64; 2]) -> Self {
        Self { value, ends: Ends::Range(ends) }
    }

    /// A single measured value: its range is that value.
    pub fn once(value: f64) -> Self {
        Self::range(value, [value; 2])
    }

    /// The ends of the interval or range; `None` if unknown.
    pub fn ends(&self) -> Option<[f64; 2]> {
        match self.ends {
            Ends::Interval(ends) | Ends::Range(ends) => Some(ends),
            Ends::Unknown => None,
        }
    }

    /// Applies an increasing function to the value and its ends.
    pub fn map(self, rises: impl Fn(f64) -> f64) -> Self {
        let ends = match self.ends {
            Ends::Interval(ends) => Ends::Interval(ends.map(&rises)),
            Ends::Range(ends) => Ends::Range(ends.map(&rises)),
            Ends::Unknown => Ends::Unknown,
        };
        Self { value: rises(self.value), ends }
    }

    /// The value without its ends.
    pub fn without_ends(self) -> Self {
        Self { ends: Ends::Unknown, ..self }
    }

    /// Applies the exponential; this turns a mean of logarithms into the geometric mean.
    pub fn exp(self) -> Self {
        self.map(f64::exp)
    }

    /// Holds if the whole interval lies below `bound`, fails if it lies above.
    pub fn at_most(&self, bound: f64) -> Ruling {
        self.beyond(bound, bound)
    }

    /// Holds if the whole interval lies above `bound`, fails if it lies below.
    pub fn at_least(&self, bound: f64) -> Ruling {
        self.at_most(bound).not()
    }

    /// Holds if the whole interval lies beyond `holds`, and fails if it lies beyond `fails` on the other side. An end
    /// that equals a bound decides nothing.
    pub fn beyond(&self, holds: f64, fails: f64) -> Ruling {
        let Some([low, high]) = self.ends() else { return Ruling::of_rule(false, false) };
        match holds <= fails {
            true => Ruling::of_rule(high < holds, low > fails),
            false => Ruling::of_rule(low > holds, high < fails),
        }
    }

    /// `0.28 [0.20, 0.38]` with an interval, `0.28 (0.20–0.38)` with a range, else `0.28`.
    pub fn shown(&self, digits: usize) -> String {
        self.with_unit("", digits)
    }

    /// As [`shown`](Self::shown), followed by `(1 seed)` if the ends are unknown.
    pub fn shown_of_seeds(&self, digits: usize) -> String {
        let note = if self.ends == Ends::Unknown { " (1 seed)" } else { "" };
        self.shown(digits) + note
    }

    /// Written as a factor: `0.28× [0.20, 0.38]`.
    pub fn times(&self, digits: usize) -> String {
        self.with_unit("×", digits)
    }

    /// Written as a difference: `0.25 nats lower [0.19, 0.31]` or `0.0064 nats higher [-0.0093, 0.022]`. `unit` is
    /// empty or begins with a space.
    pub fn apart(&self, digits: usize, unit: &str) -> String {
        if self.value >= 0.0 {
            return self.with_unit(&format!("{unit} higher"), digits);
        }
        let turned = |[low, high]: [f64; 2]| [-high, -low];
        let ends = match self.ends {
            Ends::Interval(ends) => Ends::Interval(turned(ends)),
            Ends::Range(ends) => Ends::Range(turned(ends)),
            Ends::Unknown => Ends::Unknown,
        };
        Self { value: -self.value, ends }.with_unit(&format!("{unit} lower"), digits)
    }

    fn with_unit(&self, unit: &str, digits: usize) -> String {
        let value = significant(self.value, digits);
        match self.ends {
            Ends::Interval(ends) => {
                let [low, high] = ends.map(|end| significant(end, digits));
                format!("{value}{unit} [{low}, {high}]")
            }
            Ends::Range([low, high]) => {
                Spread { median: self.value, low, high }.shown(digits) + unit
            }
            Ends::Unknown => value + unit,
        }
    }
}

impl From<Interval> for Estimate {
    fn from(Interval { value, low, high }: Interval) -> Self {
        Self { value, ends: Ends::Interval([low, high]) }
    }
}

/// The estimate as text; a dash for `None`.
pub(crate) fn shown(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or_else(|| "–".to_owned(), |estimate| estimate.shown(digits))
}

#[cfg(test)]
mod tests {
    use super::super::ruling::Reason;
    use super::*;

    fn interval(value: f64, low: f64, high: f64) -> Estimate {
        Interval { value, low, high }.into()
    }

    #[test]
    fn every_kind_of_estimate_has_its_words() {
        let ratio = interval(0.28, 0.2, 0.38);
        assert_eq!(ratio.shown(2), "0.28 [0.20, 0.38]");
        assert_eq!(ratio.times(2), "0.28× [0.20, 0.38]");
        let lower = interval(-0.25, -0.31, -0.19);
        assert_eq!(lower.apart(2, " nats"), "0.25 nats lower [0.19, 0.31]");
        let higher = interval(0.01, -0.02, 0.04);
        assert_eq!(higher.apart(1, " nats"), "0.01 nats higher [-0.02, 0.04]");
        assert_eq!(Estimate::median([3.0, 1.0, 2.0]).unwrap().shown(2), "2.0 (1.0–3.0)");
        let alone = Estimate::mean([-0.5]).unwrap();
        assert_eq!((alone.shown(1), alone.apart(1, "")), ("-0.5".into(), "0.5 lower".into()));
        assert_eq!(shown(Estimate::mean([]), 2), "–");
    }

    #[test]
    fn every_estimate_has_its_ruling() {
        let open = Ruling::Between(Reason::Undecided);
        for (estimate, at_most, large) in [
            (interval(0.3, 0.2, 0.4), Ruling::Holds, Ruling::Fails),
            (interval(0.7, 0.6, 0.8), Ruling::Fails, open),
            (interval(1.2, 1.1, 1.3), Ruling::Fails, Ruling::Holds),
            (interval(0.5, 0.4, 1.3), open, open),
            (Estimate::once(0.1), Ruling::Holds, Ruling::Fails),
            (Estimate::mean([0.1]).unwrap(), open, open),
        ] {
            assert_eq!(estimate.at_most(0.5), at_most, "{estimate:?}");
            assert_eq!(estimate.at_least(0.5), at_most.not(), "{estimate:?}");
            assert_eq!(estimate.beyond(1.0, 0.5), large, "{estimate:?}");
        }
    }
}
