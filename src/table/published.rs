//! The heads of models from elsewhere: those of large logits, and what they needed.

use super::{Cell, Column, HeadParts, Spread, Table, TableError, TrainedHeads, epsilons};
use crate::row::{HeadFound, Row, Rows};

/// Logits from here on are large, in nats: one token has e²⁰ times the attention of another of logit 0.
pub const LARGE_NATS: f64 = 20.0;
/// A study of models from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedHeads {
    /// Every head, fitted or screened, by model.
    heads: Vec<Row<HeadFound>>,
    /// Those that were fitted.
    pub fitted: Option<TrainedHeads>,
    failed: usize,
}

/// One model at one ε.
pub struct PublishedModel<'h> {
    /// The model's name.
    pub run: &'h str,
    /// Its type.
    pub arm: &'h str,
    /// ε in nats.
    pub epsilon: f64,
    /// Every head.
    pub heads: Vec<&'h HeadFound>,
    /// Those whose max |logit| is [`LARGE_NATS`] or more.
    pub large: Vec<&'h HeadFound>,
}

impl PublishedHeads {
    /// Gathers the rows.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<HeadFound>) -> Result<Self, TableError> {
        let fitted = rows.rows.iter().any(|row| row.found.is_fitted());
        let fitted =
            (fitted || rows.rows.is_empty()).then(|| TrainedHeads::of(rows)).transpose()?;
        Ok(Self { heads: rows.rows.clone(), fitted, failed: rows.failed })
    }

    /// The heads that were not fitted.
    pub fn screened(&self) -> Vec<HeadParts> {
        let rows = self.heads.iter().filter(|row| !row.found.is_fitted());
        rows.map(HeadParts::from).collect()
    }

    /// The models, by ε from large to small.
    pub fn models(&self) -> Vec<PublishedModel<'_>> {
        let mut runs: Vec<(&str, &str)> = Vec::new();
        for row in &self.heads {
            let model = (row.of.model.run.as_str(), row.of.model.arm.as_str());
            if !runs.contains(&model) {
                runs.push(model);
            }
        }
        let mut models = Vec::new();
        for epsilon in epsilons::descending(self.heads.iter().map(|row| row.found.epsilon)) {
            for &(run, arm) in &runs {
                let is_of =
                    |row: &&Row<HeadFound>| row.of.model.run == run && row.found.epsilon == epsilon;
                let heads: Vec<&HeadFound> =
                    self.heads.iter().filter(is_of).map(|row| &row.found).collect();
                let large: Vec<&HeadFound> =
                    heads.iter().copied().filter(|head| head.actual >= LARGE_NATS).collect();
                models.push(PublishedModel { run, arm, epsilon, heads, large });
            }
        }
        models
    }

    /// The tables: heads of large logits beside all, and the parts of the largest.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.large_table()];
        tables.extend(self.fitted.as_ref().map(TrainedHeads::parts_table));
        tables
    }

    fn large_table(&self) -> Table {
        let columns = vec![
            Column::words("run", "model"),
            Column::words("arm", "type"),
            Column::numbers("epsilon", "ε", Some("nats")),
            Column::words("which", "heads"),
            Column::numbers("heads", "count", None),
            Column::numbers("fitted", "fitted", None),
            Column::numbers("actual", "max |logit|", None),
            Column::numbers("needed", "needed", None),
            Column::numbers("floor", "floor", None),
            Column::numbers("inflation", "rank penalty", None),
            Column::numbers("tying", "input factor", None),
            Column::numbers("drift", "excess factor", None),
            Column::numbers("gauge", "shift factor", None),
            Column::numbers("ramp", "R² of a ramp", None),
            Column::numbers("first", "attention on the first token", None),
            Column::numbers("rank", "effective rank", None),
        ];
        let title = "Heads of published models: large logits and their factors";
        let mut table = Table::new("published", title, columns);
        for model in self.models() {
            let above = format!("max |logit| above {LARGE_NATS}");
            for (which, heads) in [("all", &model.heads), (above.as_str(), &model.large)] {
                let over = |value: fn(&HeadFound) -> Option<f64>| {
                    Cell::over(Spread::of(heads.iter().filter_map(|head| value(head))))
                };
                table.push(vec![
                    Cell::text(model.run),
                    Cell::text(model.arm),
                    Cell::number(Some(model.epsilon)),
                    Cell::text(which),
                    Cell::count(heads.len()),
                    Cell::count(heads.iter().filter(|head| head.is_fitted()).count()),
                    over(|head| Some(head.actual)),
                    over(|head| head.needed),
                    over(|head| head.floor),
                    over(|head| head.inflation),
                    over(|head| head.tying),
                    over(|head| head.drift),
                    over(|head| head.gauge),
                    over(|head| head.share_ramp),
                    over(|head| head.first_mass),
                    over(|head| Some(head.effective_rank_logits)),
                ]);
            }
        }
        table.notes.push(
            "Medians over heads with (least–greatest). Needed logits and factors are those of fitted heads. R² of a ramp: of c·j in the \
             logits less their row means, causal heads only."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }
}
