//! How an estimate rules against bounds.

use super::ruling::Ruling;
use crate::table::Estimate;

impl Estimate {
    /// Holds if the whole interval lies below `bound`, fails if it lies above.
    pub(crate) fn at_most(&self, bound: f64) -> Ruling {
        self.beyond(bound, bound)
    }

    /// Holds if the whole interval lies above `bound`, fails if it lies below.
    pub(crate) fn at_least(&self, bound: f64) -> Ruling {
        self.at_most(bound).not()
    }

    /// Holds if the whole interval lies beyond `holds`, and fails if it lies beyond `fails` on the other side. An end
    /// that equals a bound decides nothing.
    pub(crate) fn beyond(&self, holds: f64, fails: f64) -> Ruling {
        let Some([low, high]) = self.ends() else { return Ruling::of_rule(false, false) };
        match holds <= fails {
            true => Ruling::of_rule(high < holds, low > fails),
            false => Ruling::of_rule(low > holds, high < fails),
        }
    }
}

/// The estimate as text; a dash for `None`.
pub(crate) fn shown(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or_else(|| "–".to_owned(), |estimate| estimate.shown(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, low: f64, high: f64) -> Estimate {
        Estimate::within(value, [low, high])
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
        let open = Ruling::Between;
        for (estimate, at_most, large) in [
            (interval(0.3, 0.2, 0.4), Ruling::Holds, Ruling::Fails),
            (interval(0.7, 0.6, 0.8), Ruling::Fails, open),
            (interval(1.2, 1.1, 1.3), Ruling::Fails, Ruling::Holds),
            (interval(0.5, 0.4, 1.3), open, open),
            (Estimate::range(0.1, [0.1; 2]), Ruling::Holds, Ruling::Fails),
            (Estimate::mean([0.1]).unwrap(), open, open),
        ] {
            assert_eq!(estimate.at_most(0.5), at_most, "{estimate:?}");
            assert_eq!(estimate.at_least(0.5), at_most.not(), "{estimate:?}");
            assert_eq!(estimate.beyond(1.0, 0.5), large, "{estimate:?}");
        }
    }
}
