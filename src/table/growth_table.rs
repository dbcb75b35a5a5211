//! The tables of a study of logit growth.

use super::columns::Columns;
use super::digits::plural;
use super::grid::Table;
use super::growth::{Growth, GrowthSlope};
use super::growth_cell::GrowthCell;
use super::models::model_table;

impl Growth {
    /// The slopes over all ranks.
    pub(crate) fn pooled_slopes(&self) -> impl Iterator<Item = &GrowthSlope> {
        self.slopes.iter().filter(|slope| slope.rank.is_none())
    }

    /// The slopes of the families, the models of L*(ε), then every cell.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.slope_table(), model_table(&self.models), self.cell_table()]
    }

    fn slope_table(&self) -> Table {
        let title = "Growth of the rank penalty with n/d: slope of log rank penalty on log(n/d)";
        let rank = |of: &GrowthSlope| of.rank.map_or("all".to_owned(), |rank| rank.to_string());
        let table = Table::from_items("slopes", title, &self.slopes)
            .words("target", "target", |of| &of.label)
            .settings("tolerance", ("ε", "nats"), |of| of.tolerance)
            .words("rank", "rank d", rank)
            .numbers("slope", "slope", |of| of.slope.map(|slope| slope.slope))
            .numbers("slope_low", "95 % CI, low", |of| of.slope.map(|slope| slope.low))
            .numbers("slope_high", "95 % CI, high", |of| of.slope.map(|slope| slope.high))
            .numbers("points", "configurations (n, d)", |of| of.slope.map(|slope| slope.points))
            .numbers("reached", "fits that reached ε", |of| of.reached)
            .numbers("not_reached", "fits that did not reach ε", |of| of.unreached)
            .note(
                "Ordinary least squares through the medians over seeds, one point per (n, d); \
                 Student's t interval.",
            );
        self.note_censored(table).build()
    }

    fn cell_table(&self) -> Table {
        let title = "Logits needed at equal error, and the rank penalty";
        let table = Table::from_items("cells", title, &self.cells)
            .words("target", "target", |cell| &cell.label)
            .settings("tolerance", ("ε", "nats"), |cell| cell.tolerance)
            .numbers("n", "n", |cell| cell.n)
            .numbers("rank", "rank d", |cell| cell.rank)
            .numbers("n_over_d", "n/d", GrowthCell::ratio)
            .numbers("max_abs_logit", "needed L*(ε)", GrowthCell::needed)
            .numbers("floor_max_abs_logit", "floor L⁰(ε)", GrowthCell::floor)
            .numbers("inflation", "rank penalty", GrowthCell::inflation)
            .numbers("reached", "seeds that reached ε", GrowthCell::reached)
            .numbers("not_reached", "seeds that did not reach ε", GrowthCell::unreached)
            .numbers("step_limited", "reached at the step limit", |cell| cell.step_limited)
            .note("Medians over seeds, with (least–greatest) where they differ.")
            .note_if(
                self.cells.iter().any(|cell| cell.step_limited > 0),
                "A fit that stopped at the step limit gives an upper bound of L*(ε).",
            );
        self.note_censored(table).build()
    }

    fn note_censored<'r, R>(&self, table: Columns<'r, R>) -> Columns<'r, R> {
        let unreached: usize = self.pooled_slopes().map(|family| family.unreached).sum();
        let fits = plural(unreached, "fit");
        let note = format!(
            "{fits} reached ε at no logit bound tried and so have no L*(ε). Medians and slopes \
             leave them out. This biases both low: the configurations that need the largest logits \
             are missing."
        );
        table.note_if(unreached > 0, note).note_failed(self.failed)
    }
}
