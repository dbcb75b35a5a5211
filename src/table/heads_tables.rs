//! The tables of a study of trained heads.

use super::grid::{Cell, Column, Table};
use super::head_parts::{FACTOR_NAMES, HeadParts, WiderHead};
use super::heads::{Ordering, PartsOfGrowth, TrainedHeads};
use super::spread::Spread;
use crate::predict::PARTS;

impl TrainedHeads {
    /// The tables: parts of the largest logit, what carries its growth, what orders heads.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.parts_table()];
        let growth = self.growth();
        if !growth.is_empty() {
            tables.push(growth_table(&growth));
        }
        tables.push(self.orderings_table());
        tables
    }

    /// The table of what larger ranks would have needed.
    pub fn ranks_table(&self) -> Table {
        let mut table = Table::new(
            "ranks",
            "Logits that a wider head with the same inputs needs for the attention of the largest head",
            vec![
                Column::words("run", "run"),
                Column::numbers("n", "n", None),
                Column::numbers("epsilon", "ε", Some("nats")),
                Column::numbers("step", "step", None),
                Column::numbers("own_rank", "d_head", None),
                Column::numbers("rank", "rank r", None),
                Column::numbers("actual", "max |logit|", None),
                Column::numbers("needed", "needed at rank r", None),
                Column::numbers("needed_tied", "needed from the layer inputs at rank r", None),
                Column::numbers("any_rank", "needed from the layer inputs at any rank", None),
                Column::numbers("lower_bound", "proven lower bound at any rank", None),
                Column::numbers("share", "share of the log input factor removed at rank r", None),
                Column::numbers("share_any_rank", "share removed at any rank", None),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        let wider = self.wider();
        let same = |a: &WiderHead<'_>, b: &WiderHead<'_>| {
            a.wider.setting() == b.wider.setting() && a.own.rank == b.own.rank
        };
        for (at, first) in wider.iter().enumerate() {
            if wider[..at].iter().any(|other| same(other, first)) {
                continue;
            }
            let seeds: Vec<&WiderHead<'_>> =
                wider.iter().filter(|other| same(other, first)).collect();
            let over = |value: &dyn Fn(&WiderHead<'_>) -> Option<f64>| {
                Cell::over(Spread::of(seeds.iter().filter_map(|one| value(one))))
            };
            table.push(vec![
                Cell::text(&first.own.run),
                Cell::count(first.own.n),
                Cell::Setting(first.own.epsilon),
                Cell::count(first.own.step),
                Cell::count(first.own.rank),
                Cell::count(first.wider.rank),
                over(&|one| Some(one.own.actual)),
                over(&|one| one.wider.needed),
                over(&|one| one.wider.needed_tied),
                over(&|one| one.wider.needed_any_rank),
                over(&|one| one.wider.lower_bound_tied),
                over(&|one| one.share_of_tying()),
                over(&|one| one.own.share_of_tying_by_rank()),
                Cell::count(seeds.len()),
            ]);
        }
        table.notes.push(
            "The head with the largest logit of each model. Medians over seeds with (least–greatest). At any rank, W_q·W_kᵀ may be \
             any matrix; the lower bound is proven (see the methods)."
                .to_owned(),
        );
        table
    }

    /// The table of the five parts of each model's largest logit.
    pub fn parts_table(&self) -> Table {
        let mut columns = vec![
            Column::words("run", "run"),
            Column::words("arm", "variant"),
            Column::numbers("n", "n", None),
            Column::numbers("rank", "d_head", None),
            Column::numbers("epsilon", "ε", Some("nats")),
            Column::numbers("step", "step", None),
            Column::numbers("actual", "max |logit|", None),
        ];
        columns.push(Column::numbers("floor", "floor", None));
        columns.extend(
            PARTS
                .iter()
                .zip(FACTOR_NAMES)
                .skip(1)
                .map(|(part, name)| Column::numbers(part, name, None)),
        );
        columns.extend([
            Column::numbers("other_inflation", "rank penalty, all heads", None),
            Column::numbers("other_tying", "input factor, all heads", None),
            Column::numbers("other_drift", "excess factor, all heads", None),
            Column::numbers("seeds", "seeds", None),
        ]);
        let mut table = Table::new(
            "parts",
            "Factors of the largest logit of each model: max |logit| = floor · rank penalty · input factor · excess factor · shift factor",
            columns,
        );
        let largest = self.largest();
        let mut settings: Vec<(&str, &str, usize, usize, u64)> = Vec::new();
        for head in &largest {
            if !settings.contains(&head.setting()) {
                settings.push(head.setting());
            }
        }
        for setting in settings {
            let of_setting: Vec<&&HeadParts> =
                largest.iter().filter(|head| head.setting() == setting).collect();
            let first = of_setting[0];
            let over = |value: &dyn Fn(&HeadParts) -> Option<f64>| {
                Cell::over(Spread::of(of_setting.iter().filter_map(|head| value(head))))
            };
            let mut row = vec![
                Cell::text(&first.run),
                Cell::text(&first.arm),
                Cell::count(first.n),
                Cell::count(first.rank),
                Cell::Setting(first.epsilon),
                Cell::count(first.step),
                over(&|head| Some(head.actual)),
            ];
            row.extend((0..PARTS.len()).map(|part| over(&move |head| Some(head.parts()?[part]))));
            let all: Vec<&HeadParts> =
                self.heads.iter().filter(|head| head.setting() == setting).collect();
            row.extend([1, 2, 3].map(|part| {
                Cell::over(Spread::of(all.iter().filter_map(|head| Some(head.parts()?[part]))))
            }));
            row.push(Cell::count(of_setting.len()));
            table.push(row);
        }
        table.notes.push(
            "The head with the largest logit of each model. Medians over seeds with (least–greatest). Columns with \"all heads\" are \
             medians over every head of every seed. Needed logits are upper bounds."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }

    fn orderings_table(&self) -> Table {
        let mut table = Table::new(
            "orderings",
            "Rank correlation (Spearman's ρ) of the max |logit| of heads with other measures, at the last step",
            vec![
                Column::words("arm", "variant"),
                Column::numbers("epsilon", "ε", Some("nats")),
                Column::words("by", "correlated with"),
                Column::numbers("rho", "ρ, median over models", None),
                Column::numbers("low", "95 % CI, low", None),
                Column::numbers("high", "95 % CI, high", None),
                Column::numbers("mean_rho", "ρ, mean over models", None),
                Column::numbers("by_chance", "|ρ| by chance (95 %)", None),
                Column::numbers("with_entropy", "its ρ with low entropy", None),
                Column::numbers("variance_inflation", "variance inflation", None),
                Column::numbers("models", "models", None),
                Column::numbers("heads", "heads", None),
                Column::numbers("left_out", "models left out", None),
                Column::numbers("collinear", "of these, collinear with entropy", None),
            ],
        );
        for one in self.orderings() {
            let Ordering { arm, epsilon, by, correlation: c, with_entropy } = &one;
            table.push(vec![
                Cell::text(arm),
                Cell::Setting(*epsilon),
                Cell::text(*by),
                Cell::number(Some(c.rho)),
                Cell::number(Some(c.low)),
                Cell::number(Some(c.high)),
                Cell::number(Some(c.mean)),
                Cell::number(Some(c.by_chance)),
                Cell::number(*with_entropy),
                Cell::number(one.variance_inflation()),
                Cell::count(c.groups),
                Cell::count(c.points),
                Cell::count(c.left_out.groups()),
                Cell::count(c.left_out.collinear),
            ]);
        }
        table.notes.push(
            "ρ is computed within each model; the table gives its median over models with a bootstrap interval over models and heads. \
             By chance: |ρ| exceeds this value in 5 % of random shuffles of the heads of each model. \"Given entropy\" is the \
             partial rank correlation given the mean entropy of the rows. Variance inflation is 1/(1 − ρ²) of the median ρ with \
             low entropy; from 10 on, the two measures cannot be separated. A model is left out where the correlation is \
             undefined: fewer than three heads, equal values, or a measure that orders the heads as entropy does. A head is left \
             out where it has no value: no rank penalty where its attention is within ε of uniform, no needed logit where no fit \
             reached ε."
                .to_owned(),
        );
        table
    }
}

fn growth_table(growth: &[PartsOfGrowth]) -> Table {
    let mut columns = vec![
        Column::words("run", "run"),
        Column::words("arm", "variant"),
        Column::numbers("n", "n", None),
        Column::numbers("epsilon", "ε", Some("nats")),
        Column::numbers("first_step", "from step", None),
        Column::numbers("last_step", "to step", None),
        Column::numbers("growth", "growth of log max |logit|", None),
    ];
    columns.extend(
        PARTS
            .iter()
            .zip(FACTOR_NAMES)
            .map(|(part, name)| Column::numbers(part, &format!("from the {name}"), None)),
    );
    columns.push(Column::numbers("seeds", "seeds", None));
    let mut table =
        Table::new("growth", "Growth of the largest logit in training, by factor", columns);
    let setting = |g: &PartsOfGrowth| (g.run.clone(), g.n, g.epsilon.to_bits());
    let mut settings = Vec::new();
    for one in growth {
        if !settings.contains(&setting(one)) {
            settings.push(setting(one));
        }
    }
    for chosen in settings {
        let seeds: Vec<&PartsOfGrowth> = growth.iter().filter(|g| setting(g) == chosen).collect();
        let over = |value: &dyn Fn(&PartsOfGrowth) -> f64| {
            Cell::over(Spread::of(seeds.iter().map(|seed| value(seed))))
        };
        let first = seeds[0];
        let mut row = vec![
            Cell::text(&first.run),
            Cell::text(&first.arm),
            Cell::count(first.n),
            Cell::Setting(first.epsilon),
            Cell::count(first.steps.0),
            Cell::count(first.steps.1),
            over(&|g| g.growth),
        ];
        row.extend((0..PARTS.len()).map(|part| over(&move |g| g.by_part[part])));
        row.push(Cell::count(seeds.len()));
        table.push(row);
    }
    table.notes.push(
        "Natural logarithms: the factors add up to the growth, and 0.69 is a doubling. Each step has its own largest head. Medians \
         over seeds with (least–greatest)."
            .to_owned(),
    );
    table
}
