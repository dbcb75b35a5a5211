//! Reads tables of a definition into structs, and describes a wrong key or value in one line.

use serde::de::value::Error as NoFields;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use toml::{Table, Value};

use crate::system::nearest::nearest;
use crate::system::{key_within, wrong_value};

/// Reads the table at the dotted path `place` as a `T`; its fields are the valid keys.
pub(crate) fn read_table<T: DeserializeOwned>(table: &Table, place: &str) -> Result<T, String> {
    check_keys(table, fields_of::<T>(), place)?;
    Value::Table(table.clone()).try_into().map_err(|error| wrong_value(&error, place))
}

/// Reads one table as two structs, each of which takes a part of the keys.
pub(crate) fn read_both<A: DeserializeOwned, B: DeserializeOwned>(
    table: &Table,
    place: &str,
) -> Result<(A, B), String> {
    check_keys(table, &[fields_of::<A>(), fields_of::<B>()].concat(), place)?;
    let part = |fields: &[&str]| -> Table {
        let own = table.iter().filter(|(key, _)| fields.contains(&key.as_str()));
        own.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let one = part(fields_of::<A>()).try_into().map_err(|error| wrong_value(&error, place))?;
    let other = part(fields_of::<B>()).try_into().map_err(|error| wrong_value(&error, place))?;
    Ok((one, other))
}

/// Applies `read` to each table of the list `[[name]]`; an error begins with the table that it concerns.
pub(crate) fn read_each<T>(
    tables: &[Table],
    name: &str,
    mut read: impl FnMut(&Table) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let one = |(at, table)| read(table).map_err(|why| format!("[[{name}]] {}: {why}", at + 1));
    tables.iter().enumerate().map(one).collect()
}

/// Returns an error for a key that is not in `valid`.
pub(crate) fn check_keys(table: &Table, valid: &[&str], place: &str) -> Result<(), String> {
    match table.keys().find(|key| !valid.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let (found, near) = (key_within(place, key), key_within(place, &nearest(key, valid)));
            Err(format!("unknown key {found:?}; did you mean {near:?}?"))
        }
    }
}

/// Removes `key` from the table and returns its text; an error if the value is not text.
pub(crate) fn take_text(table: &mut Table, key: &str) -> Result<Option<String>, String> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key} is {other}; it must be text in quotes")),
    }
}

/// The names of a struct's fields, as serde reads them.
pub(crate) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Fields<'f>(&'f mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = NoFields;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoFields> {
            Err(NoFields::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, NoFields> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
            option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
            ignored_any
        }
    }

    let mut fields: &'static [&'static str] = &[];
    // `deserialize` always fails: the names of the fields are recorded by then.
    let _ = T::deserialize(Fields(&mut fields)).err();
    fields
}
