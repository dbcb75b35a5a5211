//! The tables of a study of trained heads.

use super::grid::{Cell, Column, Table};
use super::head_parts::{HeadParts, WiderHead};
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
            "What a wider head would have needed for the attention of the largest one, with the same inputs",
            vec![
                Column::words("run", "run"),
                Column::numbers("n", "n", None),
                Column::numbers("epsilon", "ε", Some("nats")),
                Column::numbers("step", "step", None),
                Column::numbers("own_rank", "its rank d", None),
                Column::numbers("rank", "rank r", None),
                Column::numbers("actual", "actual max |logit|", Some("nats")),
                Column::numbers("needed", "needed at r", Some("nats")),
                Column::numbers("needed_tied", "needed at r, tied", Some("nats")),
                Column::numbers("any_rank", "tied, any rank", Some("nats")),
                Column::numbers("lower_bound", "no less at any rank", Some("nats")),
                Column::numbers("share", "share of log tying that goes at r", None),
                Column::numbers("share_any_rank", "at any rank", None),
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
            "Of the head with the largest logit of each model, medians over seeds with (least–greatest). At any \
             rank, W_q·W_kᵀ is any matrix: what is needed then is known from both sides, \"no less\" is proven (METHODS.md)."
                .to_owned(),
        );
        table
    }

    /// The table of the five parts of each model's largest logit.
    pub fn parts_table(&self) -> Table {
        let mut columns = vec![
            Column::words("run", "run"),
            Column::words("arm", "arm"),
            Column::numbers("n", "n", None),
            Column::numbers("rank", "rank d", None),
            Column::numbers("epsilon", "ε", Some("nats")),
            Column::numbers("step", "step", None),
            Column::numbers("actual", "actual max |logit|", Some("nats")),
        ];
        columns.push(Column::numbers("floor", "floor L⁰", Some("nats")));
        columns.extend(PARTS[1..].iter().map(|part| Column::numbers(part, part, None)));
        columns.extend([
            Column::numbers("other_inflation", "inflation, all heads", None),
            Column::numbers("other_tying", "tying, all heads", None),
            Column::numbers("other_drift", "drift, all heads", None),
            Column::numbers("seeds", "seeds", None),
        ]);
        let mut table = Table::new(
            "parts",
            "The largest logit of each model and its five parts: actual = floor · inflation · tying · drift · gauge",
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
            "Of the head with the largest logit of each model, medians over seeds with (least–greatest); \
             \"all heads\" over every head of every seed. Needed logits are upper bounds."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }

    fn orderings_table(&self) -> Table {
        let mut table = Table::new(
            "orderings",
            "What orders the heads of a model by their largest logits? Spearman's ρ at the last step",
            vec![
                Column::words("arm", "arm"),
                Column::numbers("epsilon", "ε", Some("nats")),
                Column::words("by", "ordered by"),
                Column::numbers("rho", "ρ, median over models", None),
                Column::numbers("low", "95 % from", None),
                Column::numbers("high", "to", None),
                Column::numbers("mean_rho", "ρ, mean over models", None),
                Column::numbers("by_chance", "|ρ| by chance", None),
                Column::numbers("with_entropy", "its ρ with low entropy", None),
                Column::numbers("variance_inflation", "variance inflation", None),
                Column::numbers("models", "models", None),
                Column::numbers("heads", "heads", None),
                Column::numbers("left_out", "models left out", None),
                Column::numbers("collinear", "of these, ordered as entropy does", None),
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
            "ρ within each model, its median over models, as was predicted of; a bootstrap over models and heads gives \
             the median's interval. By chance: what |ρ| exceeds in 5 % of draws where the heads of each model are \
             shuffled. \"Given entropy\" is the partial correlation of ranks with the mean entropy of the rows taken \
             out; variance inflation is 1/(1 − ρ²) of the median ρ with low entropy: from 10 on the two can hardly be \
             told apart. A model is left out where the correlation is not defined in it: fewer than three heads, heads \
             that are alike, or, of a partial one, heads that entropy orders exactly as the other does; a head where it has \
             no such value: no inflation where its attention is within ε of uniform, nothing tied where no such fit \
             reached ε."
                .to_owned(),
        );
        table
    }
}

fn growth_table(growth: &[PartsOfGrowth]) -> Table {
    let mut columns = vec![
        Column::words("run", "run"),
        Column::words("arm", "arm"),
        Column::numbers("n", "n", None),
        Column::numbers("epsilon", "ε", Some("nats")),
        Column::numbers("first_step", "from step", None),
        Column::numbers("last_step", "to step", None),
        Column::numbers("growth", "growth of log actual", None),
    ];
    columns.extend(PARTS.map(|part| Column::numbers(part, &format!("by {part}"), None)));
    columns.push(Column::numbers("seeds", "seeds", None));
    let mut table =
        Table::new("growth", "What carries the growth of the largest logit in training", columns);
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
        "Logarithms: the parts add up to the growth, 0.69 is a doubling. Each step's largest head, which need \
         not be the same; medians over seeds with (least–greatest)."
            .to_owned(),
    );
    table
}
