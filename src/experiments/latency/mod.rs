//! Inference latency: models × lengths × rounds. Models have their initial weights, since times do not depend on them.

pub mod claims;
pub mod figures;
mod measurement;
pub mod tables;

use std::path::Path;
use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::training::{ModelColumns, RunKeys, TrainKeys, runs};
use crate::claims::Group;
use crate::experiment::{
    Analysed, CellContext, DefinitionTable, Experiment, Measure, RawDefinition, StudyError,
    TextSource, View, lengths, model_settings, read_table, rows_of, seeds,
};
use crate::lm::{TextVocabulary, TrainDefinition};

pub use measurement::{LatencyKey, LatencyMeasurement};

/// The number of tokens timed in one cell.
const TOKENS: usize = 20;

/// A study of inference latency.
#[derive(Clone, Debug)]
pub struct LatencyStudy {
    /// The name and definition of each model.
    pub models: Vec<(String, TrainDefinition)>,
    /// The numbers of tokens that are read before the next one is timed.
    pub n: Vec<usize>,
    /// The rounds; each round times every model again.
    pub rounds: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct Grid {
    /// Sequence lengths.
    n: Vec<usize>,
    /// Rounds: each times every run again; default `[0]`.
    seed: Option<Vec<u64>>,
}

/// A model at one length, in one round.
#[derive(Clone, Debug)]
pub(crate) struct LatencyCell {
    run: String,
    definition: TrainDefinition,
    n: usize,
    round: u64,
}

impl Experiment for LatencyStudy {
    type Cell = LatencyCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<Grid>("grid"),
        DefinitionTable::one::<TrainKeys>("train"),
        DefinitionTable::list::<RunKeys>("run"),
    ];
    const VIEWS: &'static [View] =
        &[View::new("latency", Group::Cost, "Inference times.", |studies| {
            let rows = tables::Latencies::of(&rows_of(studies)?)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: figures::latency(&rows),
                verdicts: claims::verdicts(&rows),
            })
        })];
    const ONE_AT_A_TIME: bool = true;

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let grid = raw.table("grid")?.ok_or("a study of latency needs a [grid] with n")?;
        let grid: Grid = read_table(grid, "grid")?;
        let runs = runs(raw)?;
        let models = runs.into_iter().map(|run| (run.name, run.definition)).collect();
        Ok(Self { models, n: lengths(grid.n)?, rounds: seeds(grid.seed)? })
    }

    /// All models of one round at one length are timed in turn, then the next round follows.
    fn cells(
        &self,
        _: Option<&TextSource>,
        _: &Path,
    ) -> Result<Vec<(String, LatencyCell)>, StudyError> {
        let mut cells = Vec::new();
        for &n in &self.n {
            for &round in &self.rounds {
                for (run, definition) in &self.models {
                    let (run, definition) = (run.clone(), definition.clone());
                    let key = format!("{run}/n{n}-r{round}");
                    cells.push((key, LatencyCell { run, definition, n, round }));
                }
            }
        }
        Ok(cells)
    }

    fn dtype(&self) -> String {
        "float32".to_owned()
    }
}

impl Measure for LatencyCell {
    type Row = LatencyMeasurement;

    fn settings(&self) -> Table {
        let mut table = Table::new();
        table.insert("model".to_owned(), model_settings(&self.definition).into());
        table.insert("n".to_owned(), (self.n as i64).into());
        table.insert("round".to_owned(), (self.round as i64).into());
        table
    }

    fn defaults() -> Table {
        let model = model_settings(&TrainDefinition::default());
        Table::from_iter([("model".to_owned(), model.into())])
    }

    fn key(&self) -> LatencyKey {
        let model = ModelColumns::of(&self.run, &self.definition);
        LatencyKey { model, n: self.n, round: self.round }
    }

    fn measure(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<LatencyMeasurement>>, StudyError> {
        if context.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let symbols = match self.definition.vocabulary {
            TextVocabulary::Bpe { size } => size,
            TextVocabulary::Byte | TextVocabulary::Characters => 256,
        };
        let found = LatencyMeasurement::measure(&self.definition, symbols, self.n, TOKENS)?;
        (context.advanced)(1.0);
        Ok(Some(vec![found]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::Preset;
    use crate::study::StudyDefinition;

    /// The key `global_heads` belongs to variant ls, but the column counts the global heads of any variant.
    #[test]
    fn rows_count_the_global_heads_of_every_variant() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis/latency.toml");
        let definition = StudyDefinition::read(&path, Preset::Smoke).unwrap();
        let study: &LatencyStudy = definition.work.get().unwrap();
        let models =
            study.cells(None, &path).unwrap().into_iter().map(|(_, cell)| cell.key().model);
        let found: BTreeSet<(String, usize, usize)> =
            models.map(|model| (model.run, model.heads, model.global_heads)).collect();
        let expected = [("local-only", 6, 0), ("ls", 6, 1), ("mhsa", 6, 6)];
        let expected = expected.map(|(run, heads, global)| (run.to_owned(), heads, global));
        assert_eq!(found, BTreeSet::from(expected));
    }
}
