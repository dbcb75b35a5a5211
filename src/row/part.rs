//! Structs that are columns: what every field of one can do, and the macro that makes one.

use super::column::Column;
use super::fields::Fields;
use super::range::Range;

/// One or more neighbouring columns of a row: a value, or a struct of such.
///
/// A struct made by `record!` has the columns of its fields in their order. A field that is a struct itself
/// has columns of its own; a value has one, of the field's name, unit and docs.
pub trait Part: Sized {
    /// Adds its columns; `field` is a value's.
    fn columns(field: Column, into: &mut Vec<Column>);

    /// Adds what stands in its columns.
    fn write(&self, into: &mut Vec<String>);

    /// Reads itself; a value is that of the column `field`.
    ///
    /// # Errors
    /// In words, a value that is missing or none of its kind, with its column.
    fn read(field: &'static str, from: &Fields<'_>) -> Result<Self, String>;

    /// Holds itself to what the column `field` can have, where it is a number; the fields of a struct were held to theirs as
    /// they were read.
    ///
    /// # Errors
    /// In words, with the column.
    fn check(&self, _field: &'static str, _range: Range) -> Result<(), String> {
        Ok(())
    }
}

/// The columns of a `record!` struct, in order.
pub fn columns_of_record<P: Part>() -> Vec<Column> {
    columns_of::<P>("")
}

/// The columns of a struct, or the one of a value called `field`.
pub(crate) fn columns_of<P: Part>(field: &'static str) -> Vec<Column> {
    let mut columns = Vec::new();
    P::columns(Column { name: field, ..Column::default() }, &mut columns);
    columns
}

/// What may not be there: then nothing stands in any of its columns.
impl<P: Part> Part for Option<P> {
    fn columns(field: Column, into: &mut Vec<Column>) {
        let first = into.len();
        P::columns(field, into);
        for column in &mut into[first..] {
            column.needed = false;
        }
    }

    fn write(&self, into: &mut Vec<String>) {
        match self {
            Some(part) => part.write(into),
            None => into.extend(columns_of::<P>("").iter().map(|_| String::new())),
        }
    }

    fn read(field: &'static str, from: &Fields<'_>) -> Result<Self, String> {
        let is_empty = |column: &Column| from.get(column.name).is_empty();
        match columns_of::<P>(field).iter().all(is_empty) {
            true => Ok(None),
            false => P::read(field, from).map(Some),
        }
    }

    fn check(&self, field: &'static str, range: Range) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |part| part.check(field, range))
    }
}

/// A struct whose fields are columns, in their order, under their names: their docs say what a column is, and
/// `#[unit = "nats"]` after the docs what its unit is, and `#[range = Counted]` which [`Range`] its values are of.
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

        impl $crate::row::Part for $Record {
            fn columns(_: $crate::row::Column, into: &mut Vec<$crate::row::Column>) {
                $(
                    let column = $crate::row::Column {
                        name: stringify!($field),
                        about: concat!($($about),+),
                        $( unit: Some($unit), )?
                        ..$crate::row::Column::default()
                    };
                    <$Type as $crate::row::Part>::columns(column, into);
                )+
            }

            fn write(&self, into: &mut Vec<String>) {
                $( $crate::row::Part::write(&self.$field, into); )+
            }

            fn read(_: &'static str, from: &$crate::row::Fields<'_>) -> Result<Self, String> {
                $(
                    let $field = <$Type as $crate::row::Part>::read(stringify!($field), from)?;
                    let range = [$($crate::row::Range::$range,)?].first().copied().unwrap_or_default();
                    $crate::row::Part::check(&$field, stringify!($field), range)?;
                )+
                Ok(Self { $($field),+ })
            }
        }
    };
}
pub(crate) use record;
