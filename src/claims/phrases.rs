//! Phrases that several verdicts share.

use crate::table::{Interval, significant};

/// `0.25 nats lower [0.19, 0.31]` or `0.0064 nats higher [-0.0093, 0.022]`; the unit begins with a space, or is empty.
pub(super) fn apart(difference: Interval, digits: usize, unit: &str) -> String {
    let Interval { mean, low, high, .. } = difference;
    let (word, [mean, low, high]) = match mean < 0.0 {
        true => ("lower", [-mean, -high, -low]),
        false => ("higher", [mean, low, high]),
    };
    let [mean, low, high] = [mean, low, high].map(|value| significant(value, digits));
    format!("{mean}{unit} {word} [{low}, {high}]")
}

/// `0.011–0.044 nats lower` for differences that all have one sign, else `-0.02 to 0.01 nats`.
pub(super) fn all_apart(differences: &[f64], digits: usize, unit: &str) -> String {
    let sizes = || from_to(differences.iter().map(|value| value.abs()), digits);
    if differences.iter().all(|value| *value < 0.0) {
        format!("{}{unit} lower", sizes())
    } else if differences.iter().all(|value| *value >= 0.0) {
        format!("{}{unit} higher", sizes())
    } else {
        format!("{}{unit}", from_to(differences.iter().copied(), digits))
    }
}

/// `0.28× [0.20, 0.38]`.
pub(super) fn times(ratio: Interval, digits: usize) -> String {
    let [mean, low, high] =
        [ratio.mean, ratio.low, ratio.high].map(|value| significant(value, digits));
    format!("{mean}× [{low}, {high}]")
}

/// A ratio with its interval, `0.28× [0.20, 0.38]`, or as found where there is none, `0.28×`.
pub(super) fn times_or(interval: Option<Interval>, found: f64, digits: usize) -> String {
    interval.map_or_else(
        || format!("{}×", significant(found, digits)),
        |interval| times(interval, digits),
    )
}

/// `0.45–0.46`, or one number where both are the same.
pub(super) fn from_to(values: impl IntoIterator<Item = f64>, digits: usize) -> String {
    let (low, high) = values
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let [least, greatest] = [low, high].map(|value| significant(value, digits));
    match () {
        () if low > high => "–".to_owned(),
        () if least == greatest => least,
        () if low < 0.0 => format!("{least} to {greatest}"),
        () => format!("{least}–{greatest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_ratios_have_their_intervals() {
        let of = |mean, low, high| Interval { mean, low, high, count: 3 };
        assert_eq!(apart(of(-0.25, -0.31, -0.19), 2, " nats"), "0.25 nats lower [0.19, 0.31]");
        assert_eq!(apart(of(0.01, -0.02, 0.04), 1, " nats"), "0.01 nats higher [-0.02, 0.04]");
        assert_eq!(times(of(0.28, 0.2, 0.38), 2), "0.28× [0.20, 0.38]");
        assert_eq!(from_to([3.0, 1.0], 2), "1.0–3.0");
        assert_eq!(from_to([1.0], 2), "1.0");
        assert_eq!(from_to([-1.0, 1.0], 1), "-1 to 1");
        assert_eq!(from_to([], 1), "–");
        assert_eq!(all_apart(&[-0.1, -0.3], 1, " nats"), "0.1–0.3 nats lower");
        assert_eq!(all_apart(&[0.1], 1, " nats"), "0.1 nats higher");
        assert_eq!(all_apart(&[-0.1, 0.3], 1, " nats"), "-0.1 to 0.3 nats");
    }
}
