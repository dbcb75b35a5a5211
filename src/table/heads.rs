//! Trained heads held against what their attention needed: by run, step and ε.

use super::TableError;
use super::grid::{Cell, Column, Table};
use super::rank_correlation::RankCorrelation;
use super::spread::Spread;
use crate::row::{HeadFound, Row, Rows};

/// One head at one step and ε.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadParts {
    /// The study of its run.
    pub of: String,
    /// The run's name there.
    pub run: String,
    /// The arm.
    pub arm: String,
    /// The run's seed.
    pub seed: usize,
    /// The step of the weights.
    pub step: usize,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// What it sees: `global`, `local:16`.
    pub kind: String,
    /// Tokens of a passage.
    pub n: usize,
    /// The head dimension d.
    pub rank: usize,
    /// Which passages.
    pub passage: usize,
    /// ε in nats.
    pub epsilon: f64,
    /// max |z|.
    pub actual: f64,
    /// The greatest max − min of a row's logits.
    pub spread: f64,
    /// L*(ε; P, d); none where no logit reached ε.
    pub needed: Option<f64>,
    /// Lˣ(ε; P, d).
    pub needed_tied: Option<f64>,
    /// Lˣ(ε; P, ∞): tied to the same inputs at any rank; none where it was not asked for.
    pub needed_any_rank: Option<f64>,
    /// What is proven of that from below.
    pub lower_bound_tied: Option<f64>,
    /// L⁰(ε; P).
    pub floor: Option<f64>,
    /// The mean entropy of a row of attention, in nats.
    pub entropy_nats: f64,
    /// The attention's effective rank.
    pub effective_rank: Option<f64>,
    /// Its mass on the last 16 tokens.
    pub mass_within_16: Option<f64>,
}

impl From<&Row<HeadFound>> for HeadParts {
    fn from(row: &Row<HeadFound>) -> Self {
        let (of, found) = (&row.of, &row.found);
        Self {
            of: of.of.clone().unwrap_or_default(),
            run: of.run.clone(),
            arm: of.arm.clone(),
            seed: of.seed.unwrap_or(0) as usize,
            step: of.step.unwrap_or(0),
            layer: of.layer,
            head: found.head,
            kind: found.kind.to_string(),
            n: found.n,
            rank: found.rank,
            passage: found.passage,
            epsilon: found.epsilon,
            actual: found.actual,
            spread: found.spread,
            needed: found.needed,
            needed_tied: found.needed_tied,
            needed_any_rank: found.needed_any_rank,
            lower_bound_tied: found.lower_bound_tied,
            floor: found.floor,
            entropy_nats: found.entropy_nats,
            effective_rank: found.effective_rank_attention,
            mass_within_16: Some(found.mass_within_16),
        }
    }
}

/// The parts of a largest logit, in the order of the equation.
pub const PARTS: [&str; 5] = ["floor", "inflation", "tying", "drift", "gauge"];

impl HeadParts {
    /// floor, inflation, tying, drift and gauge; none where one is not known, or the floor is 0.
    pub fn parts(&self) -> Option<[f64; 5]> {
        let (floor, needed, tied) = (self.floor?, self.needed?, self.needed_tied?);
        let half = 0.5 * self.spread;
        let all = [floor, needed / floor, tied / needed, half / tied, self.actual / half];
        all.iter().all(|part| part.is_finite() && *part > 0.0).then_some(all)
    }

    /// The share of log tying, at rank d, that goes where inputs need `less` than Lˣ(d): log(Lˣ(d)/less) /
    /// log(Lˣ(d)/L*(d)); none where there is no tying.
    pub fn share_of_tying_less(&self, less: f64) -> Option<f64> {
        let (needed, tied) = (self.needed?, self.needed_tied?);
        let share = (tied / less).ln() / (tied / needed).ln();
        (tied > needed && share.is_finite()).then_some(share)
    }

    /// The share that goes at any rank.
    pub fn share_of_tying_by_rank(&self) -> Option<f64> {
        self.share_of_tying_less(self.needed_any_rank?)
    }

    fn setting(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.rank, self.step, self.epsilon.to_bits())
    }

    fn model(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.seed, self.step, self.epsilon.to_bits())
    }
}

/// What the attention of a model's largest head would have needed at a larger rank, with the same inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct WiderHead<'h> {
    /// The head at its own rank d.
    pub own: &'h HeadParts,
    /// The same at the larger rank r.
    pub wider: &'h HeadParts,
}

impl WiderHead<'_> {
    /// The share of log tying that rank r takes away.
    pub fn share_of_tying(&self) -> Option<f64> {
        self.own.share_of_tying_less(self.wider.needed_tied?)
    }
}

/// What each part adds to the growth of the largest logit of a run from its first step here to its last.
#[derive(Clone, Debug, PartialEq)]
pub struct PartsOfGrowth {
    /// The arm.
    pub arm: String,
    /// The run's name.
    pub run: String,
    /// Its length of passages.
    pub n: usize,
    /// The seed.
    pub seed: usize,
    /// ε in nats.
    pub epsilon: f64,
    /// The first and the last step.
    pub steps: (usize, usize),
    /// log(actual at the last) − log(actual at the first), of the largest head of each.
    pub growth: f64,
    /// Of this, what each of [`PARTS`] adds: they sum to `growth`.
    pub by_part: [f64; 5],
}

/// How well something orders the heads of a model by their largest logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The arm.
    pub arm: String,
    /// ε in nats.
    pub epsilon: f64,
    /// What orders them: `needed`, `floor`, `needed, given entropy`, …
    pub by: &'static str,
    /// How well.
    pub correlation: RankCorrelation,
}

/// A study of trained heads.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedHeads {
    /// The heads, in the order of the rows: runs as their definitions name them.
    pub heads: Vec<HeadParts>,
    /// Rows of cells that failed.
    pub failed: usize,
}

impl TrainedHeads {
    /// Gathers the rows of a study of trained heads.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<HeadFound>) -> Result<Self, TableError> {
        let heads: Vec<HeadParts> = rows.rows.iter().map(HeadParts::from).collect();
        if heads.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path.clone(),
                why: "no finished row has a trained head".to_owned(),
                advice: "read the column err, and run the study again".to_owned(),
            });
        }
        Ok(Self { heads, failed: rows.failed })
    }

    /// The errors ε, from large to small.
    pub fn epsilons(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.heads.iter().map(|head| head.epsilon).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        all.dedup();
        all
    }

    /// The ε that figures and verdicts tell of: 0.01 where the study has it, or else the middle one.
    pub fn epsilon_told(&self) -> f64 {
        let all = self.epsilons();
        all.iter().copied().find(|e| *e == 0.01).unwrap_or(all[all.len() / 2])
    }

    /// The last step of any run.
    pub fn last_step(&self) -> usize {
        self.heads.iter().map(|head| head.step).max().unwrap_or(0)
    }

    /// The head of the largest logit of each run, seed, step, rank and ε.
    pub fn largest(&self) -> Vec<&HeadParts> {
        let mut found: Vec<&HeadParts> = Vec::new();
        for head in &self.heads {
            let same =
                |other: &&mut &HeadParts| (other.model(), other.rank) == (head.model(), head.rank);
            match found.iter_mut().find(same) {
                Some(other) if head.actual > other.actual => *other = head,
                Some(_) => {}
                None => found.push(head),
            }
        }
        found
    }

    /// What carries the growth of each run's largest logit, for runs of several steps.
    pub fn growth(&self) -> Vec<PartsOfGrowth> {
        let largest = self.largest();
        let same = |a: &HeadParts, b: &HeadParts| {
            (&a.of, &a.run, a.seed, a.rank, a.epsilon) == (&b.of, &b.run, b.seed, b.rank, b.epsilon)
        };
        let mut found = Vec::new();
        for first in &largest {
            let of_run = || largest.iter().filter(|head| same(head, first));
            if of_run().any(|head| head.step < first.step) {
                continue;
            }
            let Some(last) = of_run().max_by_key(|head| head.step) else { continue };
            let (Some(before), Some(after)) = (first.parts(), last.parts()) else { continue };
            if last.step > first.step {
                found.push(PartsOfGrowth {
                    arm: first.arm.clone(),
                    run: first.run.clone(),
                    n: first.n,
                    seed: first.seed,
                    epsilon: first.epsilon,
                    steps: (first.step, last.step),
                    growth: (last.actual / first.actual).ln(),
                    by_part: std::array::from_fn(|part| (after[part] / before[part]).ln()),
                });
            }
        }
        found
    }

    /// The largest head of each model, step and ε at each rank above its own, where it was fitted at any.
    pub fn wider(&self) -> Vec<WiderHead<'_>> {
        let largest = self.largest();
        let at_ranks = |own: &HeadParts| {
            largest.iter().copied().filter(|head| head.model() == own.model()).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for &own in &largest {
            let ranks = at_ranks(own);
            if ranks.iter().all(|head| head.rank >= own.rank) {
                let wider = ranks.into_iter().filter(|head| head.rank > own.rank);
                found.extend(wider.map(|wider| WiderHead { own, wider }));
            }
        }
        found
    }

    /// How well needed logits, and what they are to be held against, order the heads of each model by their
    /// largest logits, at the last step.
    pub fn orderings(&self) -> Vec<Ordering> {
        let last = self.last_step();
        let mut arms: Vec<&str> = self.heads.iter().map(|head| head.arm.as_str()).collect();
        arms.sort_unstable();
        arms.dedup();
        let mut found = Vec::new();
        for arm in arms {
            for epsilon in self.epsilons() {
                let chosen: Vec<&HeadParts> = self
                    .heads
                    .iter()
                    .filter(|h| h.arm == arm && h.epsilon == epsilon && h.step == last)
                    .collect();
                let mut models: Vec<Vec<&HeadParts>> = Vec::new();
                for head in chosen {
                    match models.iter_mut().find(|model| model[0].model() == head.model()) {
                        Some(model) => model.push(head),
                        None => models.push(vec![head]),
                    }
                }
                let mut push = |by, correlation: Option<RankCorrelation>| {
                    let arm = arm.to_owned();
                    found.extend(correlation.map(|correlation| Ordering {
                        arm,
                        epsilon,
                        by,
                        correlation,
                    }));
                };
                for (by, of) in ORDERED_BY {
                    let groups: Vec<Vec<(f64, f64)>> = models
                        .iter()
                        .map(|m| m.iter().filter_map(|h| Some((of(h)?, h.actual))).collect())
                        .collect();
                    push(by, RankCorrelation::of(&groups));
                }
                for (by, of) in ORDERED_GIVEN_ENTROPY {
                    let groups: Vec<Vec<[f64; 3]>> = models
                        .iter()
                        .map(|model| {
                            let point = |h: &&HeadParts| Some([of(h)?, h.actual, -h.entropy_nats]);
                            model.iter().filter_map(point).collect()
                        })
                        .collect();
                    push(by, RankCorrelation::given(&groups));
                }
            }
        }
        found
    }

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
            "Of the head with the largest logit of each model, medians over seeds with [least, greatest]. At any \
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
            "Of the head with the largest logit of each model, medians over seeds with [least, greatest]; \
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
                Column::numbers("rho", "ρ", None),
                Column::numbers("low", "95 % from", None),
                Column::numbers("high", "to", None),
                Column::numbers("by_chance", "|ρ| by chance", None),
                Column::numbers("models", "models", None),
                Column::numbers("heads", "heads", None),
            ],
        );
        for Ordering { arm, epsilon, by, correlation: c } in self.orderings() {
            table.push(vec![
                Cell::text(&arm),
                Cell::Setting(epsilon),
                Cell::text(by),
                Cell::number(Some(c.rho)),
                Cell::number(Some(c.low)),
                Cell::number(Some(c.high)),
                Cell::number(Some(c.by_chance)),
                Cell::count(c.groups),
                Cell::count(c.points),
            ]);
        }
        table.notes.push(
            "ρ within each model, averaged over models; a bootstrap over models and heads gives the interval. \
             By chance: what |ρ| exceeds in 5 % of draws where the heads of each model are shuffled. \"Given \
             entropy\" is the partial correlation of ranks with the mean entropy of the rows taken out."
                .to_owned(),
        );
        table
    }
}

type OfHead = fn(&HeadParts) -> Option<f64>;

/// What heads may be ordered by.
const ORDERED_BY: [(&str, OfHead); 6] = [
    ("needed", |h| h.needed),
    ("needed, tied", |h| h.needed_tied),
    ("inflation", |h| Some(h.parts()?[1])),
    ("floor", |h| h.floor),
    ("low entropy", |h| Some(-h.entropy_nats)),
    ("effective rank of attention", |h| h.effective_rank),
];

const ORDERED_GIVEN_ENTROPY: [(&str, OfHead); 4] = [
    ("needed, given entropy", |h| h.needed),
    ("needed, tied, given entropy", |h| h.needed_tied),
    ("inflation, given entropy", |h| Some(h.parts()?[1])),
    ("floor, given entropy", |h| h.floor),
];

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
         not be the same; medians over seeds with [least, greatest]."
            .to_owned(),
    );
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A head whose parts are those given, its attention of so much entropy.
    pub(crate) fn head(
        (arm, seed, step, head): (&str, usize, usize, usize),
        [floor, inflation, tying, drift, gauge]: [f64; 5],
        entropy_nats: f64,
    ) -> HeadParts {
        let tied = floor * inflation * tying;
        HeadParts {
            of: "runs".to_owned(),
            run: format!("{arm}-64"),
            arm: arm.to_owned(),
            seed,
            step,
            head,
            n: 64,
            rank: 8,
            epsilon: 0.01,
            actual: tied * drift * gauge,
            spread: 2.0 * tied * drift,
            needed: Some(floor * inflation),
            needed_tied: Some(tied),
            floor: Some(floor),
            entropy_nats,
            ..HeadParts::default()
        }
    }

    #[test]
    fn parts_multiply_to_the_actual_and_an_unknown_one_leaves_none() {
        let one = head(("mhsa", 0, 10, 0), [2.0, 1.5, 3.0, 1.2, 1.1], 1.0);
        let parts = one.parts().unwrap();
        assert!((parts.iter().product::<f64>() / one.actual - 1.0).abs() < 1e-12);
        assert!((parts[2] - 3.0).abs() < 1e-12);
        assert_eq!(HeadParts { needed: None, ..one.clone() }.parts(), None);
        assert_eq!(HeadParts { floor: Some(0.0), ..one }.parts(), None);
    }

    #[test]
    fn growth_is_that_of_the_largest_head_and_adds_up() {
        let heads = vec![
            head(("mhsa", 0, 10, 0), [2.0, 1.0, 1.0, 1.0, 1.0], 1.0),
            head(("mhsa", 0, 10, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
            head(("mhsa", 0, 20, 0), [3.0, 1.0, 4.0, 2.0, 1.0], 1.0),
            head(("mhsa", 0, 20, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
        ];
        let study = TrainedHeads { heads, failed: 0 };
        let growth = study.growth();
        assert_eq!(growth.len(), 1);
        let one = &growth[0];
        assert_eq!(one.steps, (10, 20));
        assert!((one.growth - 8f64.ln()).abs() < 1e-12);
        assert!((one.by_part.iter().sum::<f64>() - one.growth).abs() < 1e-12);
        assert!((one.by_part[2] - 4f64.ln()).abs() < 1e-12 && one.by_part[1].abs() < 1e-12);
        let tables = study.tables();
        assert_eq!(tables.len(), 3);
    }

    #[test]
    fn a_wider_head_is_held_against_itself_at_its_own_rank() {
        let own = head(("mhsa", 0, 20, 1), [2.0, 1.0, 8.0, 1.0, 1.0], 1.0);
        let own = HeadParts { needed_any_rank: Some(4.0), ..own };
        let wider = HeadParts { rank: 64, needed_tied: Some(8.0), ..own.clone() };
        let smaller = head(("mhsa", 0, 20, 0), [2.0, 1.0, 4.0, 1.0, 1.0], 1.0);
        let smaller_wider = HeadParts { rank: 64, ..smaller.clone() };
        let heads = vec![smaller, smaller_wider, own.clone(), wider.clone()];
        let study = TrainedHeads { heads, failed: 0 };
        let found = study.wider();
        assert_eq!(found, [WiderHead { own: &own, wider: &wider }]);
        // Of a factor of 8, one of 2.
        assert!((found[0].share_of_tying().unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert!((own.share_of_tying_by_rank().unwrap() - 2.0 / 3.0).abs() < 1e-12);
        let untied = HeadParts { needed_tied: own.needed, ..own.clone() };
        assert_eq!(WiderHead { own: &untied, wider: &wider }.share_of_tying(), None);
        assert!(study.ranks_table().to_csv().lines().nth(1).unwrap().starts_with("mhsa-64,64,"));
    }

    #[test]
    fn an_ordering_is_within_a_model_and_of_its_last_step() {
        // Within each model needed orders heads; over both it would not.
        let heads = (0..8).flat_map(|at| {
            let size = 1.0 + at as f64;
            [
                head(("mhsa", 0, 20, at), [size, 1.0, 1.0, 2.0, 1.0], 3.0 - size / 10.0),
                head(("mhsa", 1, 20, at), [10.0 * size, 1.0, 1.0, 0.1, 1.0], 3.0 - size / 10.0),
                head(("mhsa", 1, 10, at), [10.0 - size, 1.0, 1.0, size, 1.0], 3.0),
            ]
        });
        let study = TrainedHeads { heads: heads.collect(), failed: 0 };
        let orderings = study.orderings();
        let by = |name| orderings.iter().find(|o| o.by == name).map(|o| o.correlation);
        let needed = by("needed").unwrap();
        assert_eq!((needed.groups, needed.points), (2, 16));
        assert!((needed.rho - 1.0).abs() < 1e-12);
        assert!((by("low entropy").unwrap().rho - 1.0).abs() < 1e-12);
        assert_eq!(by("inflation"), None, "all alike");
        assert_eq!(by("needed, given entropy"), None, "nothing is left over");
    }
}
