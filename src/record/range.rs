//! Valid ranges of single values in rows, checked on reading: a file may have been edited or damaged.

/// The range of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// A whole number, or a finite number no larger than a float32 holds: what models are computed in.
    #[default]
    Measured,
    /// A number of things of which there is at least one.
    Counted,
    /// The place of a layer or a head in its model, of which pictures have a field each.
    Placed,
    /// A number above 0.
    Positive,
    /// A number of a run that may have diverged: the same, or NaN or infinite.
    Diverging,
    /// Whatever a float64 can be, as the exponential of another number.
    Any,
}

/// The largest whole number that a float64 holds as it is, with all before it.
const MOST: u64 = 1 << f64::MANTISSA_DIGITS;

/// More layers, or heads of one, than any model has.
const LAST_PLACE: u64 = 9_999;

impl Range {
    /// Holds a whole number to what its column can have.
    ///
    /// # Errors
    /// In words, with the column.
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

    /// Holds a number to what its column can have.
    ///
    /// # Errors
    /// In words, with the column.
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
