//! One cell of a study of inference: a model at one length, in one round.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::cell::{Measure, Within};
use super::definition::LatencyStudy;
use super::row::Row;
use super::train_cell::model;
use crate::lm::{LmError, Model, ModelShape, TextVocabulary, TrainDefinition};

/// Tokens before the clock starts.
const WARM_UP: usize = 2;
/// Tokens timed in one cell.
const TOKENS: usize = 20;

/// What inference took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Seconds to read the first tokens at once.
    pub prefill_s: f64,
    /// The median second that one token more takes.
    pub decode_s: f64,
    /// Bytes of keys and values after the first tokens.
    pub cache_bytes: usize,
    /// The model's numbers.
    pub parameters: usize,
}

impl Latency {
    /// Times a model at its start, of `symbols` symbols, on arbitrary tokens: `read` of them at once, two
    /// more, then `repeats` singly.
    ///
    /// # Errors
    /// Sizes that are wrong.
    pub fn measure(
        definition: &TrainDefinition,
        symbols: usize,
        read: usize,
        repeats: usize,
    ) -> Result<Self, LmError> {
        let definition =
            TrainDefinition { context: read + WARM_UP + repeats, ..definition.clone() };
        let shape = ModelShape::new(&definition, symbols);
        let model = Model::new(shape, definition.initial_deviation, definition.seed)?;
        let tokens: Vec<u32> =
            (0..definition.context).map(|i| (i * 7919 % symbols) as u32).collect();
        let mut session = model.session();
        let started = Instant::now();
        session.feed(&tokens[..read])?;
        let prefill_s = started.elapsed().as_secs_f64();
        let cache_bytes = session.cache_bytes();
        let mut times = Vec::with_capacity(tokens.len());
        for token in &tokens[read..] {
            let started = Instant::now();
            session.feed(std::slice::from_ref(token))?;
            times.push(started.elapsed().as_secs_f64());
        }
        let mut timed = times.split_off(WARM_UP);
        timed.sort_by(f64::total_cmp);
        let decode_s = timed[timed.len() / 2];
        Ok(Self { prefill_s, decode_s, cache_bytes, parameters: model.parameters() })
    }
}

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
    fn settings(&self) -> String {
        format!("{:?} {} {}", self.definition, self.n, self.round)
    }

    fn cost_s(&self) -> f64 {
        0.2 + (self.n as f64 / 4096.0) * (1.0 + self.n as f64 / 4096.0)
    }

    fn identity(&self) -> Row {
        let mut row = model(&self.run, &self.definition);
        row.set("n", self.n);
        row.set("round", self.round);
        row
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, String> {
        if within.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let found = Latency::measure(&self.definition, self.symbols(), self.n, TOKENS)
            .map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        let mut row = self.identity();
        row.set("threads", rayon::current_num_threads());
        row.set("parameters", found.parameters);
        row.set("prefill_s", found.prefill_s);
        row.set("decode_s", found.decode_s);
        row.set("cache_bytes", found.cache_bytes);
        Ok(Some(vec![row]))
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
        let definition = StudyDefinition::read(&path, Preset::Quick).unwrap();
        let StudyWork::Latency(study) = definition.work else { panic!("no study of latency") };
        let mut found: Vec<[String; 3]> = LatencyCell::all(&study)
            .into_iter()
            .map(|(_, cell)| cell.identity())
            .map(|row| ["run", "heads", "global_heads"].map(|column| row.get(column).to_owned()))
            .collect();
        found.sort();
        found.dedup();
        assert_eq!(found, [["local-only", "6", "0"], ["ls", "6", "1"], ["mhsa", "6", "6"]]);
    }
}
