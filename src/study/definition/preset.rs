//! The sizes at which the studies are run.

use std::fmt;
use std::str::FromStr;

use toml::{Table, Value};

use crate::pattern::nearest::nearest;

/// A size at which studies are run. The rows of one never lie among those of another, nor are they read for them:
/// a study at one size takes the runs of other studies at that size too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Minutes on two cores: what a definition's table `[quick]` makes of it, or the definition as it stands where
    /// its key `presets` names quick. A study with neither has no such size.
    Quick,
    /// The definition as it stands: hours.
    #[default]
    Paper,
}

impl Preset {
    /// Every size, the definitions' own first.
    pub(super) const ALL: [Self; 2] = [Self::Paper, Self::Quick];
    const NAMES: [(&'static str, Self); 2] = [("quick", Self::Quick), ("paper", Self::Paper)];
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        })
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, preset)| *preset).ok_or_else(|| {
            let near = nearest(text, &Self::NAMES.map(|(name, _)| name));
            format!("unknown preset {text:?}; did you mean {near:?}?")
        })
    }
}

/// Puts the values of `over` over those of `table`: tables key by key, anything else whole.
pub(super) fn lay_over(table: &mut Table, over: Table) {
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
