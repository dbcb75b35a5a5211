//! The heads of published models: those with large logits, and the logits that they need.

use crate::experiments::heads::HeadMeasurement;
use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::record::Rows;
use crate::table::groups::{epsilons, groups};
use crate::table::{Spread, Table, TableError};

/// Logits from here on are large: a token gets e²⁰ times the attention of one with logit 0.
pub const LARGE_NATS: f64 = 20.0;

/// A study of published models.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedHeads {
    /// Every head, fitted or screened, by model.
    heads: Vec<HeadRow>,
    /// The heads that were fitted; `None` if there are none.
    pub fitted: Option<TrainedHeads>,
    failed: usize,
}

/// One model at one ε.
pub struct PublishedModel<'h> {
    /// The model's name.
    pub run: &'h str,
    /// Its type.
    pub arm: &'h str,
    /// The training step, if known.
    pub step: Option<usize>,
    /// ε in nats.
    pub epsilon: f64,
    /// Every head.
    pub heads: Vec<&'h HeadMeasurement>,
    /// The heads whose max |logit| is at least [`LARGE_NATS`].
    pub large: Vec<&'h HeadMeasurement>,
}

impl PublishedHeads {
    /// Gathers the rows.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<HeadMeasurement>) -> Result<Self, TableError> {
        let fitted = rows.rows.iter().any(|row| row.found.is_fitted());
        let fitted =
            (fitted || rows.rows.is_empty()).then(|| TrainedHeads::of(rows)).transpose()?;
        Ok(Self { heads: rows.rows.clone(), fitted, failed: rows.failed })
    }

    /// The heads that were not fitted, as a figure shows them: none with several errors, in whose panels they would be the
    /// same thousand points.
    pub fn screened(&self) -> Vec<&HeadRow> {
        let several = epsilons(self.heads.iter().map(|row| row.found.epsilon)).len() > 1;
        self.heads.iter().filter(|row| !several && !row.found.is_fitted()).collect()
    }

    /// The models, by ε in descending order.
    pub fn models(&self) -> Vec<PublishedModel<'_>> {
        let runs =
            groups(&self.heads, |HeadRow { of, .. }| (&of.model.run, &of.model.arm, of.model.step));
        let mut models = Vec::new();
        for epsilon in epsilons(self.heads.iter().map(|row| row.found.epsilon)) {
            for rows in &runs {
                let (run, arm) = (rows[0].of.model.run.as_str(), rows[0].of.model.arm.as_str());
                let found = rows.iter().map(|row| &row.found);
                let heads: Vec<&HeadMeasurement> = found.filter(|f| f.epsilon == epsilon).collect();
                let large: Vec<&HeadMeasurement> =
                    heads.iter().copied().filter(|head| head.actual >= LARGE_NATS).collect();
                let step = rows[0].of.model.step;
                models.push(PublishedModel { run, arm, step, epsilon, heads, large });
            }
        }
        models
    }

    /// The tables: heads with large logits and all heads, and the factors of the largest.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.large_table()];
        tables.extend(self.fitted.as_ref().map(TrainedHeads::parts_table));
        tables
    }

    fn large_table(&self) -> Table {
        let above = format!("max |logit| above {LARGE_NATS}");
        let models = self.models();
        let lines = models.iter().flat_map(|model| {
            let [all, large] = [&model.heads, &model.large];
            [Line { model, which: "all", heads: all }, Line { model, which: &above, heads: large }]
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let title = "Heads of published models: large logits and their factors";
        let mut table = Table::from_items("published", title, &lines)
            .words("run", "model", |line| line.model.run)
            .words("arm", "type", |line| line.model.arm);
        if models.iter().any(|model| model.step.is_some()) {
            table = table.numbers("step", "step", |line| line.model.step);
        }
        table
            .numbers("epsilon", "ε (nats)", |line| line.model.epsilon)
            .words("which", "heads", |line| line.which)
            .numbers("heads", "count", |line| line.heads.len())
            .numbers("fitted", "fitted", Line::fitted)
            .numbers("actual", "max |logit|", |line| line.over(|head| Some(head.actual)))
            .numbers("needed", "needed", |line| line.over(|head| head.needed))
            .numbers("floor", "floor", |line| line.over(|head| head.floor))
            .numbers("inflation", "rank penalty", |line| line.over(|head| head.inflation))
            .numbers("input_factor", "input factor", |line| line.over(|head| head.input_factor))
            .numbers("excess_factor", "excess factor", |line| line.over(|head| head.excess_factor))
            .numbers("shift_factor", "shift factor", |line| line.over(|head| head.shift_factor))
            .numbers("ramp", "R² of a ramp", |line| line.over(|head| head.share_ramp))
            .numbers("first", "attention on the first token", |line| line.over(|h| h.first_mass))
            .numbers("rank", "effective rank", |l| l.over(|h| Some(h.effective_rank_logits)))
            .note(
                "Medians over heads with (least–greatest). Needed logits and factors are those of \
                 fitted heads. R² of a ramp: of c·j in the logits less their row means, causal \
                 heads only.",
            )
            .note_failed(self.failed)
            .build()
    }
}

/// Heads of a model that share one line of the table.
struct Line<'m> {
    model: &'m PublishedModel<'m>,
    which: &'m str,
    heads: &'m [&'m HeadMeasurement],
}

impl Line<'_> {
    fn fitted(&self) -> usize {
        self.heads.iter().filter(|head| head.is_fitted()).count()
    }

    fn over(&self, value: fn(&HeadMeasurement) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.heads.iter().filter_map(|head| value(head)))
    }
}
