//! Tables of a definition that are no kind's own, with their keys.

use super::expected::Raw as Expected;
use super::study_definition::Keys;
use crate::experiment::DefinitionTable;
use crate::experiments::ModelKeys;

/// The table `[[expected]]`, which every kind may have.
pub const EXPECTED: DefinitionTable = DefinitionTable::list::<Expected>("expected");

/// The keys of a definition outside of its tables.
pub const OWN_KEYS: DefinitionTable = DefinitionTable::one::<Keys>("");

/// The keys that select trained models, in the tables of several kinds.
pub const MODELS: DefinitionTable = DefinitionTable::one::<ModelKeys>("");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::experiment::fields_of;
    use crate::experiments::KINDS;
    use crate::lm::TrainDefinition;

    #[test]
    fn tables_list_the_keys_that_are_read() {
        let of_kind = |name: &str| KINDS.iter().find(|kind| kind.name() == name).unwrap();
        let train = of_kind("train").tables()[0].keys();
        for key in fields_of::<TrainDefinition>() {
            assert!(train["properties"].get(key).is_some(), "{key}");
        }
        assert_eq!(train["properties"]["learning_rate"]["default"], 3e-3);
        assert_eq!(of_kind("fit").tables()[0].keys()["required"], json!(["n"]));
    }
}
