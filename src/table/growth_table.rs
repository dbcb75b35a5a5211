//! The tables of a study of logit growth.

use super::digits::plural;
use super::grid::{Cell, Column, Table};
use super::growth::Growth;
use super::models::model_table;

impl Growth {
    /// The slopes of the families, the models of L*(ε), then every cell.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.slope_table(), model_table(&self.models), self.cell_table()]
    }

    fn slope_table(&self) -> Table {
        let mut table = Table::new(
            "slopes",
            "How inflation grows with n/d: slope of log inflation on log(n/d)",
            vec![
                Column::words("target", "target"),
                Column::numbers("tolerance", "ε", Some("nats")),
                Column::numbers("slope", "slope", None),
                Column::numbers("slope_low", "95 % from", None),
                Column::numbers("slope_high", "to", None),
                Column::numbers("points", "cells (n, d)", None),
                Column::numbers("reached", "fits that reached ε", None),
                Column::numbers("not_reached", "fits that did not", None),
            ],
        );
        for family in &self.slopes {
            let slope = family.slope;
            table.push(vec![
                Cell::text(&family.label),
                Cell::Setting(family.tolerance),
                Cell::number(slope.map(|s| s.slope)),
                Cell::number(slope.map(|s| s.low)),
                Cell::number(slope.map(|s| s.high)),
                slope.map_or(Cell::Missing, |s| Cell::count(s.points)),
                Cell::count(family.reached),
                Cell::count(family.unreached),
            ]);
        }
        table.notes.push(
            "Ordinary least squares through the medians over seeds, one point a cell (n, d); \
             the interval is Student's."
                .to_owned(),
        );
        self.note_censored(&mut table);
        table
    }

    fn cell_table(&self) -> Table {
        let mut table = Table::new(
            "cells",
            "Logits needed at equal error, and the price of low rank",
            vec![
                Column::words("target", "target"),
                Column::numbers("tolerance", "ε", Some("nats")),
                Column::numbers("n", "n", None),
                Column::numbers("rank", "rank d", None),
                Column::numbers("n_over_d", "n/d", None),
                Column::numbers("max_abs_logit", "L*(ε)", Some("nats")),
                Column::numbers("floor_max_abs_logit", "floor L⁰(ε)", Some("nats")),
                Column::numbers("inflation", "inflation", None),
                Column::numbers("reached", "seeds that reached ε", None),
                Column::numbers("not_reached", "seeds that did not", None),
                Column::numbers("step_limited", "of the reached, at the step limit", None),
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
        let unreached: usize = self.slopes.iter().map(|family| family.unreached).sum();
        if unreached > 0 {
            table.notes.push(format!(
                "{} reached ε at no cap tried and so have no L*(ε). They are left out of \
                 the medians and slopes, which biases them low: the cells that need \
                 the largest logits are the ones missing.",
                plural(unreached, "fit")
            ));
        }
        table.note_failed(self.failed);
    }
}
