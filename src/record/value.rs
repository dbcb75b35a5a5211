//! Values that fill one column, and the macro `value!` that implements [`Record`](super::Record) for their types.

/// Implements [`Record`](super::Record) for a type of one column. The arguments are the column's type, what its text
/// must be, how a value is written and read unless by `ToString` and `FromStr`, and the check against the column's range.
macro_rules! value {
    ($kind:ident, $what:literal, $write:expr, $read:expr, $Type:ty $(, $check:ident as $As:ty)?) => {
            impl $crate::record::Record for $Type {
                fn columns(field: $crate::record::Column, into: &mut Vec<$crate::record::Column>) {
                    let kind = $crate::record::ColumnKind::$kind;
                    into.push($crate::record::Column { kind, needed: true, ..field });
                }

                fn write(&self, into: &mut Vec<String>) {
                    let write: fn(&$Type) -> String = $write;
                    into.push(write(self));
                }

                fn read(field: &'static str, from: &$crate::record::Fields<'_>) -> Result<Self, String> {
                    let text = from.get(field);
                    if text.is_empty() {
                        return Err(format!("nothing in column {field}"));
                    }
                    let read: fn(&str) -> Option<$Type> = $read;
                    read(text).ok_or_else(|| format!("{text:?} in column {field} is not {}", $what))
                }

                $(
                    fn check(&self, field: &'static str, range: $crate::record::Range) -> Result<(), String> {
                        range.$check(field, *self as $As)
                    }
                )?
            }
    };
    ($kind:ident, $what:literal, $Type:ty $(, $check:ident as $As:ty)?) => {
        $crate::record::value!(
            $kind, $what, ToString::to_string, |text| text.parse().ok(), $Type $(, $check as $As)?
        );
    };
}

pub(crate) use value;

value!(Text, "a word", String);
value!(Integer, "a whole number", usize, check_whole as u64);
value!(Integer, "a whole number", u64, check_whole as u64);
value!(Number, "a number", f64, check_number as f64);

/// Rounds a time in s to the microsecond.
pub fn to_microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Rounds a time in s to the millisecond.
pub fn to_milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
