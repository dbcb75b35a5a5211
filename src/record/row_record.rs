//! Structs whose fields are columns: the trait [`Record`], the macro `record!` that derives it, and the valid ranges of
//! single values, checked on reading: a file may have been edited or damaged.

use super::column::{Column, Fields};

/// One or more adjacent columns of a row: a value, or a struct of values.
///
/// A struct made by `record!` has the columns of its fields, in their order. A field that is such a struct has several
/// columns. A value has one, with the field's name, unit and docs.
pub trait Record: Sized {
    /// Appends its columns to `into`; a value uses `field`, a struct ignores it.
    fn columns(field: Column, into: &mut Vec<Column>);

    /// Appends the text of each of its columns to `into`.
    fn write(&self, into: &mut Vec<String>);

    /// Reads the value from the column `field`; a struct reads its own columns instead.
    ///
    /// # Errors
    /// A sentence that names the column whose value is missing or of another type.
    fn read(field: &'static str, from: &Fields<'_>) -> Result<Self, String>;

    /// Checks a number against the range of the column `field`. The fields of a struct are checked when they are read.
    ///
    /// # Errors
    /// A sentence that names the column.
    fn check(&self, _field: &'static str, _range: Range) -> Result<(), String> {
        Ok(())
    }
}

/// The columns of a `record!` struct, in order.
pub fn columns_of<R: Record>() -> Vec<Column> {
    let mut columns = Vec::new();
    R::columns(Column::default(), &mut columns);
    columns
}

/// An optional value; all of its columns are empty for `None`.
impl<R: Record> Record for Option<R> {
    fn columns(field: Column, into: &mut Vec<Column>) {
        let first = into.len();
        R::columns(field, into);
        for column in &mut into[first..] {
            column.needed = false;
        }
    }

    fn write(&self, into: &mut Vec<String>) {
        match self {
            Some(record) => record.write(into),
            None => into.extend(columns_of::<R>().iter().map(|_| String::new())),
        }
    }

    fn read(field: &'static str, from: &Fields<'_>) -> Result<Self, String> {
        let mut columns = Vec::new();
        R::columns(Column { name: field, ..Column::default() }, &mut columns);
        match columns.iter().all(|column| from.get(column.name).is_empty()) {
            true => Ok(None),
            false => R::read(field, from).map(Some),
        }
    }

    fn check(&self, field: &'static str, range: Range) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |record| record.check(field, range))
    }
}

/// Defines a struct whose fields are columns, in their order, under their names. The docs of a field describe the
/// column. After them, `#[unit = "nats"]` sets its unit and `#[range = Counted]` the [`Range`] of its values.
macro_rules! record {
    (
        $(#[$of_struct:meta])*
        pub struct $Record:ident {
            $( $(#[doc = $about:literal])+ $(#[unit = $unit:literal])? $(#[range = $range:ident])?
                $field:ident: $Type:ty, )+
        }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Record {
            $( $(#[doc = $about])+ pub $field: $Type, )+
        }

        impl $crate::record::Record for $Record {
            fn columns(_: $crate::record::Column, into: &mut Vec<$crate::record::Column>) {
                $(
                    let column = $crate::record::Column {
                        name: stringify!($field),
                        about: concat!($($about),+),
                        $( unit: Some($unit), )?
                        ..$crate::record::Column::default()
                    };
                    <$Type as $crate::record::Record>::columns(column, into);
                )+
            }

            fn write(&self, into: &mut Vec<String>) {
                $( $crate::record::Record::write(&self.$field, into); )+
            }

            fn read(_: &'static str, from: &$crate::record::Fields<'_>) -> Result<Self, String> {
                $(
                    let $field = <$Type as $crate::record::Record>::read(stringify!($field), from)?;
                    let range = [$($crate::record::Range::$range,)?].first().copied().unwrap_or_default();
                    $crate::record::Record::check(&$field, stringify!($field), range)?;
                )+
                Ok(Self { $($field),+ })
            }
        }
    };
}
pub(crate) use record;

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
        assert!(why.contains("0 in column rank") && why.contains("1 to 9007199254740992"), "{why}");
        assert!(Measured.check_whole("seed", u64::MAX).is_err());
        assert_eq!(Placed.check_whole("layer", 0), Ok(()));
        assert!(Placed.check_whole("layer", 10_000).is_err());
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
        assert!(why.starts_with("1e300 in column kl_nats "), "{why}");
    }
}
