//! One cell of a study of inference: a model at one length, in one round.

use std::sync::atomic::Ordering;

use toml::Table;

use super::cell::{Measure, Within};
use super::definition::LatencyStudy;
use super::settings;
use crate::lm::{Latency, TextVocabulary, TrainDefinition};
use crate::row::{LatencyFound, LatencyOf, ModelColumns};

/// Tokens timed in one cell.
const TOKENS: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct LatencyCell {
    run: String,
    definition: TrainDefinition,
    n: usize,
    round: u64,
}

impl LatencyCell {
    /// Every cell of a study: all models of a round at one length, side by side in time, then the next.
    pub fn all(study: &LatencyStudy) -> Vec<(String, Self)> {
        let mut cells = Vec::new();
        for &n in &study.n {
            for &round in &study.rounds {
                for (run, definition) in &study.models {
                    let cell = Self { run: run.clone(), definition: definition.clone(), n, round };
                    cells.push((format!("{run}/n{n}-r{round}"), cell));
                }
            }
        }
        cells
    }

    fn symbols(&self) -> usize {
        match self.definition.vocabulary {
            TextVocabulary::Bpe { size } => size,
            TextVocabulary::Byte | TextVocabulary::Characters => 256,
        }
    }
}

impl Measure for LatencyCell {
    type Kind = LatencyFound;

    fn settings(&self) -> Table {
        let mut table = Table::new();
        table.insert("model".to_owned(), settings::model(&self.definition).into());
        table.insert("n".to_owned(), (self.n as i64).into());
        table.insert("round".to_owned(), (self.round as i64).into());
        table
    }

    fn defaults() -> Table {
        let model = settings::model(&TrainDefinition::default());
        Table::from_iter([("model".to_owned(), model.into())])
    }

    fn cost_s(&self) -> f64 {
        0.1 + 0.5 * (self.n as f64 / 4096.0).powi(2)
    }

    fn of(&self) -> LatencyOf {
        let model = ModelColumns::of(&self.run, &self.definition);
        LatencyOf { model, n: self.n, round: self.round }
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<LatencyFound>>, String> {
        if within.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let found = Latency::measure(&self.definition, self.symbols(), self.n, TOKENS)
            .map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        Ok(Some(vec![LatencyFound::of(&found, rayon::current_num_threads())]))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::{Preset, StudyDefinition, StudyWork};

    /// The key `global_heads` is of arm ls alone: the column counts the heads of any.
    #[test]
    fn rows_count_the_global_heads_of_every_arm() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis/latency.toml");
        let definition = StudyDefinition::read(&path, Preset::Smoke).unwrap();
        let StudyWork::Latency(study) = definition.work else { panic!("no study of latency") };
        let mut found: Vec<(String, usize, usize)> = LatencyCell::all(&study)
            .into_iter()
            .map(|(_, cell)| cell.of().model)
            .map(|model| (model.run, model.heads, model.global_heads))
            .collect();
        found.sort();
        found.dedup();
        let expected = [("local-only", 6, 0), ("ls", 6, 1), ("mhsa", 6, 6)];
        assert_eq!(found, expected.map(|(run, heads, global)| (run.to_owned(), heads, global)));
    }
}
