//! Error by the window of a local head beside a global one.

use crate::experiments::fits::tables::layouts::{LayoutCell, Layouts};
use crate::table::Table;
use crate::table::groups::distinct;
use crate::table::plural;
use crate::targets::HeadKind;

/// The errors for which the smallest window is searched, in nats.
pub const ERRORS: [f64; 3] = [0.05, 0.1, 0.2];

/// The smallest window that reaches an error, at one length and rank.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastWindow {
    /// The target: its family and parameters.
    pub target: String,
    /// The sequence length.
    pub n: usize,
    /// The rank of each head.
    pub rank: usize,
    /// The error, in nats.
    pub error: f64,
    /// The smallest window tried whose median error is at most `error`; `None` if no window reaches it.
    pub window: Option<usize>,
    /// The cost of the layout with that window, in multiply–adds.
    pub cost: Option<usize>,
    /// Whether no other rank reaches the error at this length with a lower cost.
    pub cheapest: bool,
}

impl LayoutCell {
    /// The window of the local head, if the layout has exactly one.
    pub fn window(&self) -> Option<usize> {
        let heads = self.heads()?;
        let mut windows = heads.heads().iter().filter_map(|head| match head {
            HeadKind::Local { window } => Some(*window),
            HeadKind::Global | HeadKind::Patch(_) => None,
        });
        windows.next().filter(|_| windows.next().is_none())
    }
}

impl Layouts {
    /// The smallest window that reaches the error, for every target, length, rank and error of [`ERRORS`].
    pub fn least_windows(&self) -> Vec<LeastWindow> {
        let mut found: Vec<LeastWindow> = Vec::new();
        let settings = self.cells.iter().map(|cell| (cell.target.as_str(), cell.n, cell.rank));
        for (target, n, rank) in distinct(settings) {
            for error in ERRORS {
                let reaches = |cell: &&LayoutCell| {
                    (cell.target.as_str(), cell.n, cell.rank) == (target, n, rank)
                        && cell.kl_nats().is_some_and(|kl| kl.median <= error)
                };
                let reaching = self.cells.iter().filter(reaches);
                let least = reaching
                    .filter_map(|cell| Some((cell.window()?, cell)))
                    .min_by_key(|(window, _)| *window);
                found.push(LeastWindow {
                    target: target.to_owned(),
                    n,
                    rank,
                    error,
                    window: least.map(|(window, _)| window),
                    cost: least.and_then(|(_, cell)| cell.cost()),
                    cheapest: false,
                });
            }
        }
        let costs: Vec<(String, usize, f64, Option<usize>)> =
            found.iter().map(|w| (w.target.clone(), w.n, w.error, w.cost)).collect();
        for one in &mut found {
            let rivals = costs.iter().filter(|(target, n, error, _)| {
                (target, n, error) == (&one.target, &one.n, &one.error)
            });
            one.cheapest = one.cost.is_some() && rivals.filter_map(|r| r.3).min() == one.cost;
        }
        found
    }

    /// The tables of a study of windows: the smallest windows, then all cells.
    pub fn window_tables(&self) -> Vec<Table> {
        let found = self.least_windows();
        let missing = found.iter().filter(|one| one.window.is_none()).count();
        let title =
            "Smallest window that reaches an error, for one local head beside one global head";
        let table = Table::from_items("windows", title, &found)
            .words("target", "target", |one| &one.target)
            .settings("error_nats", ("error", "nats"), |one| one.error)
            .numbers("n", "n", |one| one.n)
            .numbers("rank", "rank per head", |one| one.rank)
            .numbers("window", "smallest window", |one| one.window)
            .numbers("cost", ("cost", "multiply–adds"), |one| one.cost)
            .words("cheapest", "cheapest at this n", |one| if one.cheapest { "yes" } else { "" })
            .note(format!(
                "Of the windows tried, by the median error over seeds. Cost: multiply–adds of QKᵀ \
                 and PV over the unmasked pairs of both heads. {} reached by no window tried.",
                plural(missing, "case")
            ));
        let mut tables = vec![table.build()];
        tables.extend(self.tables());
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::fits::tables::layouts::LayoutSeed;

    fn cell(window: usize, rank: usize, kl_nats: f64) -> LayoutCell {
        LayoutCell {
            target: "band".to_owned(),
            layout: format!("local:{window}+global"),
            n: 64,
            rank,
            cap: 8.0,
            seeds: vec![LayoutSeed { seed: 0, kl_nats }],
            floor: None,
        }
    }

    #[test]
    fn the_least_window_and_the_cheapest_rank_are_found() {
        let cells = vec![
            cell(8, 4, 0.15),
            cell(16, 4, 0.08),
            cell(32, 4, 0.04),
            cell(8, 8, 0.04),
            cell(16, 8, 0.03),
        ];
        let found = Layouts { cells, failed: 0 }.least_windows();
        let windows: Vec<_> =
            found.iter().map(|w| (w.rank, w.error, w.window, w.cheapest)).collect();
        assert_eq!(
            windows,
            [
                (4, 0.05, Some(32), true),
                (4, 0.1, Some(16), true),
                (4, 0.2, Some(8), true),
                (8, 0.05, Some(8), false),
                (8, 0.1, Some(8), false),
                (8, 0.2, Some(8), false),
            ]
        );
        // 64·65/2 pairs of the global head and 8·64 − 28 of the local one, twice, at rank 8.
        assert_eq!(found[3].cost, Some(2 * 8 * (2080 + 484)));
    }
}
