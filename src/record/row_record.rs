//! Structs whose fields are columns: the trait [`Record`], and the macro `record!` that derives it.

use super::column::Column;
use super::fields::Fields;
use super::range::Range;

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
