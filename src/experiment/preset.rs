//! The sizes at which the studies are run.

use std::fmt;
use std::str::FromStr;

use toml::{Table, Value};

use crate::system::nearest::instead;

/// A size at which studies are run. Rows of different sizes are never mixed: a study takes the runs of other studies at
/// its own size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The smallest size, for tests: the definition with its table `[smoke]` applied, or the definition itself if its
    /// key `presets` names smoke. A study with neither does not have this size.
    Smoke,
    /// At most ten minutes on two cores for all studies of this size: the definition with its table `[quick]` applied.
    Quick,
    /// The definition itself; takes hours.
    #[default]
    Paper,
}

impl Preset {
    /// Every size, beginning with that of the definition itself.
    pub(crate) const ALL: [Self; 3] = [Self::Paper, Self::Quick, Self::Smoke];

    /// The name, in definitions, manifests and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Paper => "paper",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            format!("unknown preset {text:?}; {}", instead(text, &Self::ALL.map(Self::name)))
        })
    }
}

/// Merges `over` into `table`: tables key by key, any other value replaces the old one.
pub(crate) fn lay_over(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(over)) => lay_over(inner, over),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_laid_over_key_by_key_and_lists_replaced() {
        let mut table: Table =
            "[grid]\nn = [1, 2]\nrank = [3]\n[[run]]\nname = 'a'".parse().unwrap();
        let over: Table = "[grid]\nn = [4]\n[[run]]\nname = 'b'".parse().unwrap();
        lay_over(&mut table, over);
        let whole: Table = "[grid]\nn = [4]\nrank = [3]\n[[run]]\nname = 'b'".parse().unwrap();
        assert_eq!(table, whole);
    }
}
