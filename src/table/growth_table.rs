//! The tables of a study of logit growth.

use super::digits::plural;
use super::grid::{Cell, Column, Table};
use super::growth::{Growth, GrowthSlope};
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
        let mut table = Table::new(
            "slopes",
            "Growth of the rank penalty with n/d: slope of log rank penalty on log(n/d)",
            vec![
                Column::words("target", "target"),
                Column::numbers("tolerance", "ε", Some("nats")),
                Column::words("rank", "rank d"),
                Column::numbers("slope", "slope", None),
                Column::numbers("slope_low", "95 % CI, low", None),
                Column::numbers("slope_high", "95 % CI, high", None),
                Column::numbers("points", "configurations (n, d)", None),
                Column::numbers("reached", "fits that reached ε", None),
                Column::numbers("not_reached", "fits that did not reach ε", None),
            ],
        );
        for family in &self.slopes {
            let slope = family.slope;
            table.push(vec![
                Cell::text(&family.label),
                Cell::Setting(family.tolerance),
                Cell::text(family.rank.map_or("all".to_owned(), |rank| rank.to_string())),
                Cell::number(slope.map(|s| s.slope)),
                Cell::number(slope.map(|s| s.low)),
                Cell::number(slope.map(|s| s.high)),
                slope.map_or(Cell::Missing, |s| Cell::count(s.points)),
                Cell::count(family.reached),
                Cell::count(family.unreached),
            ]);
        }
        table.notes.push(
            "Ordinary least squares through the medians over seeds, one point per (n, d); Student's t interval."
                .to_owned(),
        );
        self.note_censored(&mut table);
        table
    }

    fn cell_table(&self) -> Table {
        let mut table = Table::new(
            "cells",
            "Logits needed at equal error, and the rank penalty",
            vec![
                Column::words("target", "target"),
                Column::numbers("tolerance", "ε", Some("nats")),
                Column::numbers("n", "n", None),
                Column::numbers("rank", "rank d", None),
                Column::numbers("n_over_d", "n/d", None),
                Column::numbers("max_abs_logit", "needed L*(ε)", None),
                Column::numbers("floor_max_abs_logit", "floor L⁰(ε)", None),
                Column::numbers("inflation", "rank penalty", None),
                Column::numbers("reached", "seeds that reached ε", None),
                Column::numbers("not_reached", "seeds that did not reach ε", None),
                Column::numbers("step_limited", "reached at the step limit", None),
            ],
        );
        for cell in &self.cells {
            table.push(vec![
                Cell::text(&cell.label),
                Cell::Setting(cell.tolerance),
                Cell::count(cell.n),
                Cell::count(cell.rank),
                Cell::number(Some(cell.ratio())),
                Cell::over(cell.needed()),
                Cell::over(cell.floor()),
                Cell::over(cell.inflation()),
                Cell::count(cell.reached()),
                Cell::count(cell.unreached()),
                Cell::count(cell.step_limited),
            ]);
        }
        table.notes.push("Medians over seeds, with (least–greatest) where they differ.".to_owned());
        if self.cells.iter().any(|cell| cell.step_limited > 0) {
            table.notes.push(
                "A fit that stopped at the step limit gives an upper bound of L*(ε).".to_owned(),
            );
        }
        self.note_censored(&mut table);
        table
    }

    fn note_censored(&self, table: &mut Table) {
        let unreached: usize = self.pooled_slopes().map(|family| family.unreached).sum();
        if unreached > 0 {
            table.notes.push(format!(
                "{} reached ε at no logit bound tried and so have no L*(ε). Medians and slopes leave them out. This biases both low: the \
                 configurations that need the largest logits are missing.",
                plural(unreached, "fit")
            ));
        }
        table.note_failed(self.failed);
    }
}
