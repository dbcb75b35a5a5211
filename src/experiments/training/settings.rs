//! The keys of a run's definition, as comparisons, tables and legends use them.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::study::{StudyRun, TrainStudy};
use crate::experiment::RawDefinition;
use crate::lm::{Schedule, Stabiliser, TrainDefinition};
use crate::table::groups::distinct;

/// A run's definition key by key; keys of inner tables follow a dot, as in `corpus.recall`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings(BTreeMap<String, String>);

/// The settings of runs by study, as rows name it, and run.
pub type SettingsOfRuns = BTreeMap<(String, String), Settings>;

/// Keys that change no number of a run: when it saves and measures, and how it holds its memory.
const WITHOUT_EFFECT: [&str; 5] =
    ["seed", "eval_every", "checkpoint_every", "keep_checkpoints", "recompute"];

/// Keys that make a variant: its heads and stabilisers. A variant may also [imply](Settings::is_implied_by_variant)
/// some.
const OF_VARIANT: [&str; 2] = ["arm", "stabilisers"];

/// Keys that only variants with local heads have.
const OF_LOCAL_HEADS: [&str; 2] = ["global_heads", "window"];

/// The keys of each run of the study whose rows are in `folder`.
pub(super) fn run_settings(folder: &Path, runs: &TrainStudy) -> SettingsOfRuns {
    let study = folder.file_name().unwrap_or_default().to_string_lossy();
    let key = |run: &StudyRun| (study.clone().into_owned(), run.name.clone());
    runs.runs.iter().map(|run| (key(run), Settings::from_run(run))).collect()
}

impl TrainStudy {
    /// The keys that neither `[train]` nor any `[[run]]` of its definition `text` sets, with their defaults, of those that
    /// have an effect on some run: `learning_rate = 0.003`.
    ///
    /// # Errors
    /// A text that is not the study's definition.
    pub fn defaults(&self, text: &str) -> Result<Vec<String>, String> {
        let raw = RawDefinition::parse(&self.path, text, self.preset)?;
        let tables: Vec<Table> =
            raw.tables("run")?.into_iter().chain([raw.table_or_empty("train")?]).collect();
        let is_set = |key: &str| tables.iter().any(|table| table.contains_key(key));
        let standard = TrainDefinition::default().to_table().map_err(|e| e.to_string())?;
        let all: Vec<Settings> = self.runs.iter().map(Settings::from_run).collect();
        let is_taken = |key: &str| !is_set(key) && all.iter().any(|one| one.get(key).is_some());
        let taken = standard.iter().filter(|(key, _)| is_taken(key));
        Ok(taken.map(|(key, value)| format!("{key} = {value}")).collect())
    }
}

impl Settings {
    /// Every key of a definition.
    pub(crate) fn from_table(table: &Table) -> Self {
        let mut settings = Self::default();
        table.iter().for_each(|(key, value)| settings.insert(key, value));
        settings
    }

    /// The keys of a study's run that have an effect: a window needs local heads, a threshold its stabiliser.
    pub(crate) fn from_run(run: &StudyRun) -> Self {
        let definition = &run.definition;
        let mut settings = definition
            .to_table()
            .map_or_else(|_| Self::default(), |table| Self::from_table(&table));
        settings.0.retain(|key, _| has_effect(key, definition));
        settings
    }

    /// Adds a key, or the keys of a table.
    pub(crate) fn insert(&mut self, key: &str, value: &Value) {
        let text = match value {
            Value::Table(table) => {
                for (inner, value) in table {
                    self.insert(&format!("{key}.{inner}"), value);
                }
                return;
            }
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        self.0.insert(key.to_owned(), text);
    }

    /// Leaves a key out, with the keys of its table.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|own, _| Self::outer(own) != key);
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether they differ at most in what makes a variant.
    pub(crate) fn agree_but_for_variant(&self, other: &Self) -> bool {
        let mut differing = Self::differing([self, other]).into_iter().map(Self::outer);
        differing.all(|key| OF_VARIANT.contains(&key) || Self::is_implied_by_variant(key))
    }

    /// The key of a definition that an inner key belongs to.
    pub(crate) fn outer(key: &str) -> &str {
        key.split('.').next().unwrap_or(key)
    }

    /// Whether a variant has the key and others do not, as its threshold: it is named with the variant.
    pub(crate) fn is_implied_by_variant(key: &str) -> bool {
        OF_LOCAL_HEADS.contains(&key) || Stabiliser::KEYS.iter().any(|(_, own)| *own == key)
    }

    /// The keys in which some of `all` differ, in alphabetical order.
    pub fn differing<'s>(all: impl IntoIterator<Item = &'s Self>) -> Vec<&'s str> {
        let all: Vec<&Self> = all.into_iter().collect();
        let Some((first, rest)) = all.split_first() else { return Vec::new() };
        let mut keys = distinct(all.iter().flat_map(|one| one.0.keys()).map(String::as_str));
        keys.retain(|key| rest.iter().any(|other| other.0.get(*key) != first.0.get(*key)));
        keys
    }
}

/// A key in words: `learning rate` of `learning_rate`, `n` of `context`.
pub(crate) fn key_words(key: &str) -> String {
    match key {
        "context" => "n".to_owned(),
        "slopes" => "position bias".to_owned(),
        "d_model" => key.to_owned(),
        "corpus.recall" => "look-ups".to_owned(),
        key => key.replace(['_', '.'], " "),
    }
}

fn has_effect(key: &str, definition: &TrainDefinition) -> bool {
    let key = Settings::outer(key);
    if let Some(&(stabiliser, _)) = Stabiliser::KEYS.iter().find(|(_, own)| *own == key) {
        return definition.has(stabiliser);
    }
    match key {
        "window" => definition.has_local_heads(),
        "global_heads" => definition.uses_global_heads(),
        "upstream_learning_rate" => definition.upstream_steps > 0,
        "final_learning_rate" => definition.schedule == Schedule::Cosine,
        key => !WITHOUT_EFFECT.contains(&key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_with_an_effect_differ() {
        let of = |keys: &str| {
            let definition = TrainDefinition::from_toml(keys).unwrap();
            Settings::from_run(&StudyRun { name: "a".to_owned(), definition, seeds: vec![1] })
        };
        let plain = of("");
        for same in ["seed = 7", "window = 3", "eval_every = 9", "qk_clip = 3.0"] {
            assert_eq!(of(same), plain, "{same}");
        }
        let differing = |keys: &str| {
            let other = of(keys);
            Settings::differing([&plain, &other]).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(differing("learning_rate = 0.5"), ["learning_rate"]);
        assert_eq!(differing("arm = 'ls'"), ["arm", "global_heads", "window"]);
        assert_eq!(differing("corpus.recall = 0.25"), ["corpus.recall"]);
        assert_eq!(differing("stabilisers = ['qk-clip']"), ["qk_clip", "stabilisers"]);
        assert!(plain.agree_but_for_variant(&of("arm = 'ls'\nwindow = 3")));
        assert!(!plain.agree_but_for_variant(&of("arm = 'ls'\nlearning_rate = 0.5")));
    }
}
