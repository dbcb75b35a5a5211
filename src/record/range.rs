//! Valid ranges of single values in rows, checked on reading: a file may have been edited or damaged.

/// The range of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// A whole number, or a finite number of at most the largest float32 in magnitude, since models compute in float32.
    #[default]
    Measured,
    /// A count of at least 1.
    Counted,
    /// The index of a layer or a head in its model. It is bounded, since figures have one panel or cell per index.
    Placed,
    /// A number above 0.
    Positive,
    /// A number of a run that may have diverged: as `Measured`, or NaN or infinite.
    Diverging,
    /// Any float64, such as the exponential of another number.
    Any,
}

/// 2⁵³: every whole number up to it is exact in a float64.
const MOST: u64 = 1 << f64::MANTISSA_DIGITS;

/// The largest valid index of a layer or head; no model has as many.
const LAST_PLACE: u64 = 9_999;

impl Range {
    /// Checks a whole number against the range.
    ///
    /// # Errors
    /// A sentence that names the column and the valid range.
    pub fn check_whole(self, column: &str, value: u64) -> Result<(), String> {
        let (least, most) = match self {
            Self::Counted => (1, MOST),
            Self::Placed => (0, LAST_PLACE),
            _ => (0, MOST),
        };
        match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!(
                "{value} in column {column} is not a whole number from {least} to {most}"
            )),
        }
    }

    /// Checks a number against the range.
    ///
    /// # Errors
    /// A sentence that names the column and the valid range.
    pub fn check_number(self, column: &str, value: f64) -> Result<(), String> {
        let most = f64::from(f32::MAX);
        let (is_in, what) = match self {
            Self::Any => (true, ""),
            Self::Positive => (value > 0.0 && value <= most, "above 0 and at most"),
            Self::Measured | Self::Counted | Self::Placed => {
                (value.abs() <= most, "of magnitude at most")
            }
            Self::Diverging => (!value.is_finite() || value.abs() <= most, "of magnitude at most"),
        };
        match is_in {
            true => Ok(()),
            false => Err(format!("{value:?} in column {column} is not a number {what} {most:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Range::{Any, Counted, Diverging, Measured, Placed, Positive};

    #[test]
    fn what_cannot_be_is_told_with_its_column() {
        assert_eq!(Measured.check_whole("layer", 0), Ok(()));
        let why = Counted.check_whole("rank", 0).unwrap_err();
        assert_eq!(why, "0 in column rank is not a whole number from 1 to 9007199254740992");
        assert!(Measured.check_whole("seed", u64::MAX).is_err());
        assert!(
            Placed.check_whole("layer", 0).is_ok() && Placed.check_whole("layer", 10_000).is_err()
        );
        for (range, value, holds) in [
            (Measured, -3e38, true),
            (Measured, 1e-320, true),
            (Measured, 1e300, false),
            (Measured, f64::NAN, false),
            (Measured, f64::NEG_INFINITY, false),
            (Positive, 0.0, false),
            (Positive, 1e-4, true),
            (Positive, f64::NAN, false),
            (Diverging, f64::NAN, true),
            (Diverging, 1e300, false),
            (Any, 1e300, true),
        ] {
            assert_eq!(range.check_number("x", value).is_ok(), holds, "{range:?} {value}");
        }
        let why = Measured.check_number("kl_nats", 1e300).unwrap_err();
        assert!(why.starts_with("1e300 in column kl_nats is not a number of magnitude"), "{why}");
    }
}
