//! Tables built column by column: one call gives a column's name, heading and value.

use crate::table::{Align, Cell, Column, Spread, Table, plural};

/// A table under construction. Each row is a group of similar items, such as the seeds of a run; a table of single
/// items has groups of one. A column computes its cell for every row, so all rows have all columns.
pub struct Columns<'r, R> {
    table: Table,
    groups: Vec<Vec<&'r R>>,
}

impl Table {
    /// A table with one row per item.
    pub fn from_items<'r, R>(
        name: &str,
        title: &str,
        items: impl IntoIterator<Item = &'r R>,
    ) -> Columns<'r, R> {
        Self::from_groups(name, title, items.into_iter().map(|item| vec![item]))
    }

    /// A table with one row per group of items; empty groups are left out.
    pub fn from_groups<'r, R>(
        name: &str,
        title: &str,
        groups: impl IntoIterator<Item = Vec<&'r R>>,
    ) -> Columns<'r, R> {
        let groups: Vec<Vec<&R>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        Columns { table: Self::without_columns(name, title, groups.len()), groups }
    }
}

impl<'r, R> Columns<'r, R> {
    /// Adds a column of words, from the first item of each group.
    pub fn words<C: Into<Cell>>(
        self,
        name: &str,
        heading: &str,
        value: impl Fn(&'r R) -> C,
    ) -> Self {
        self.column(name, heading, Align::Left, |group| value(group[0]))
    }

    /// Adds a column of numbers, from the first item of each group.
    pub fn numbers<C: Into<Cell>>(
        self,
        name: &str,
        heading: &str,
        value: impl Fn(&'r R) -> C,
    ) -> Self {
        self.column(name, heading, Align::Right, |group| value(group[0]))
    }

    /// Adds a column of numbers that were set, not measured; they are shown in full.
    pub fn settings(self, name: &str, heading: &str, value: impl Fn(&'r R) -> f64) -> Self {
        self.numbers(name, heading, |item| Cell::Setting(value(item)))
    }

    /// Adds a column of medians over the items of a group that have a value, with minimum and maximum.
    pub fn medians<V: Into<Option<f64>>>(
        self,
        name: &str,
        heading: &str,
        value: impl Fn(&'r R) -> V,
    ) -> Self {
        self.medians_to(3, name, heading, value)
    }

    /// [`medians`](Self::medians) with `digits` significant digits.
    pub fn medians_to<V: Into<Option<f64>>>(
        self,
        digits: usize,
        name: &str,
        heading: &str,
        value: impl Fn(&'r R) -> V,
    ) -> Self {
        self.per_group(name, heading, |group| {
            Cell::over(Spread::of(group.iter().filter_map(|item| value(item).into())), digits)
        })
    }

    /// Adds a column of numbers, each computed from a whole group.
    pub fn per_group<C: Into<Cell>>(
        self,
        name: &str,
        heading: &str,
        value: impl Fn(&[&'r R]) -> C,
    ) -> Self {
        self.column(name, heading, Align::Right, value)
    }

    /// Adds a column of words, each computed from a whole group.
    pub fn words_per_group<C: Into<Cell>>(
        self,
        name: &str,
        heading: &str,
        value: impl Fn(&[&'r R]) -> C,
    ) -> Self {
        self.column(name, heading, Align::Left, value)
    }

    /// Adds a column with the number of items per group: `("seeds", "seeds")`.
    pub fn sizes(self, name: &str, heading: &str) -> Self {
        self.per_group(name, heading, <[&R]>::len)
    }

    fn column<C: Into<Cell>>(
        mut self,
        name: &str,
        heading: &str,
        align: Align,
        value: impl Fn(&[&'r R]) -> C,
    ) -> Self {
        let mut cells = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            cells.push(value(group).into());
        }
        self.add(name, heading, align, cells);
        self
    }

    /// Adds finished cells. Not inlined: `column` is compiled once for each of several hundred closures.
    #[inline(never)]
    fn add(&mut self, name: &str, heading: &str, align: Align, cells: Vec<Cell>) {
        let (name, heading) = (name.to_owned(), heading.to_owned());
        self.table.add_column(Column { name, heading, align }, cells);
    }

    /// Adds a note for the reader.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.table.notes.push(note.into());
        self
    }

    /// Adds a note if it applies.
    pub fn note_if(self, applies: bool, note: impl Into<String>) -> Self {
        if applies { self.note(note) } else { self }
    }

    /// Adds a note with the number of cells that failed with an error and are left out, if there are any.
    pub fn note_failed(self, cells: usize) -> Self {
        let failed = plural(cells, "cell");
        let note = format!("Left out: {failed} that failed, see the column err of the rows.");
        self.note_if(cells > 0, note)
    }

    /// Returns the finished table.
    pub fn build(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::groups;
    use super::*;

    #[test]
    fn each_row_is_a_group_and_has_every_column() {
        let runs = [("a", 1.0), ("b", 5.0), ("a", 3.0), ("a", f64::NAN)];
        let groups = groups(&runs, |run| run.0);
        let table = Table::from_groups("t", "T", groups)
            .words("run", "run", |run| run.0)
            .medians("loss", "loss (nats)", |run| run.1)
            .per_group("last", "last", |runs| runs.last().map(|run| Cell::Setting(run.1)))
            .sizes("seeds", "seeds")
            .note_failed(0)
            .build();
        let shown = |row: &[Cell]| row.iter().map(Cell::shown).collect::<Vec<_>>();
        assert_eq!(shown(&table.rows()[0]), ["a", "2.00 (1.00–3.00)", "NaN", "3"]);
        assert_eq!(shown(&table.rows()[1]), ["b", "5.00", "5", "1"]);
        assert_eq!(table.columns[1].heading, "loss (nats)");
        assert!(table.notes.is_empty());
    }
}
