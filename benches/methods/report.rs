//! Formats the runs as rows, and their medians as a table.

use std::time::Duration;

use rank_study::table::{Cell, Spread, Table};

use crate::run::Trace;
use crate::{BUDGETS, Method, SEEDS};

/// Shares above the best value for which times are reported.
const SHARES: [f64; 2] = [0.01, 0.001];

/// One run: one method from one start.
pub struct Measured {
    problem: &'static str,
    seed: u64,
    budget: Duration,
    pub method: Method,
    pub trace: Trace,
    /// Smallest value of any method from this start, with any budget.
    best: f64,
    /// Whether the run is in the table: worse learning rates of Adam are only in the rows.
    pub chosen: bool,
}

impl Measured {
    /// Creates the result before the other runs from its start are known.
    pub fn new(
        problem: &'static str,
        seed: u64,
        budget: Duration,
        method: Method,
        trace: Trace,
    ) -> Self {
        let best = trace.value;
        Self { problem, seed, budget, method, trace, best, chosen: true }
    }

    /// Excess of the value over the best value, in per cent of the best.
    fn excess(&self) -> f64 {
        100.0 * (self.trace.value / self.best - 1.0)
    }
}

/// Sets the best value of all runs from one start.
pub fn hold_against_the_best(runs: &mut [Measured]) {
    let best = runs.iter().map(|run| run.trace.value).fold(f64::INFINITY, f64::min);
    runs.iter_mut().for_each(|run| run.best = best);
}

/// The table with one row per run.
pub fn rows(measured: &[Measured]) -> Table {
    let rate = |run: &Measured| match run.method {
        Method::Adam(rate) => Some(Cell::Setting(rate)),
        _ => None,
    };
    let within = |run: &Measured, share: f64| run.trace.within(run.best, share);
    let [one, tenth] = SHARES;
    Table::from_items("rows", "One row a run", measured)
        .words("problem", "problem", |run| run.problem)
        .words("method", "method", |run| run.method.name())
        .settings("seed", "seed", |run| run.seed as f64)
        .numbers("learning_rate", "learning_rate", rate)
        .settings("budget_s", "budget_s", |run| run.budget.as_secs_f64())
        .numbers("value", "value", |run| run.trace.value)
        .numbers("best_value", "best_value", |run| run.best)
        .numbers("within_1pct_s", "within_1pct_s", |run| Some(within(run, one)?.seconds))
        .numbers("within_1pct_evaluations", "within_1pct_evaluations", |run| {
            Some(within(run, one)?.evaluations)
        })
        .numbers("within_01pct_s", "within_01pct_s", |run| Some(within(run, tenth)?.seconds))
        .numbers("within_01pct_evaluations", "within_01pct_evaluations", |run| {
            Some(within(run, tenth)?.evaluations)
        })
        .numbers("gradient_norm", "gradient_norm", |run| run.trace.gradient_norm)
        .numbers("evaluations", "evaluations", |run| run.trace.evaluations)
        .numbers("products", "products", |run| run.trace.products)
        .numbers("time_s", "time_s", |run| run.trace.seconds)
        .build()
}

/// The table of medians over seeds, one line per problem and method.
pub fn summary(measured: &[Measured]) -> Table {
    let [short, long] = BUDGETS.map(|budget| budget.as_secs_f64());
    let [over_short, over_long] =
        [format!("over the best at {short} s (%)"), format!("at {long} s (%)")];
    let gradient = format!("gradient at {long} s");
    let lines = measured.iter().filter(|run| run.chosen && run.is_first_of_its_line());
    let lines = lines.map(|first| {
        let line = measured.iter().filter(|run| run.chosen && run.problem == first.problem);
        line.filter(|run| run.method.name() == first.method.name()).collect()
    });
    let median = |budget: Duration, of: fn(&Measured) -> f64| {
        move |line: &[&Measured]| {
            let at = line.iter().filter(|run| run.budget == budget);
            let value = Spread::of(at.map(|run| of(run))).map_or(f64::NAN, |s| s.median);
            Cell::Number { value, digits: 2 }
        }
    };
    let best = |problem: &str| {
        let best = measured.iter().filter(|run| run.problem == problem).map(|run| run.best);
        Cell::from(Spread::of(best)).shown()
    };
    let mut problems: Vec<&str> = measured.iter().map(|run| run.problem).collect();
    problems.dedup();
    let bests: Vec<String> =
        problems.iter().map(|problem| format!("{problem}: {}", best(problem))).collect();
    let title = "Descent on one stage of the fit's objective, by the clock";
    Table::from_groups("methods", title, lines)
        .words("problem", "problem", |run| run.problem)
        .words("method", "method", |run| run.method.name())
        .per_group("over_best_short", &over_short, median(BUDGETS[0], Measured::excess))
        .per_group("over_best", &over_long, median(BUDGETS[1], Measured::excess))
        .per_group("within_1pct_s", "within 1 % (s)", |line| reached(line, SHARES[0]))
        .per_group("within_01pct_s", "within 0.1 % (s)", |line| reached(line, SHARES[1]))
        .per_group("gradient_norm", &gradient, median(BUDGETS[1], |run| run.trace.gradient_norm))
        .per_group("evaluations", "evaluations", median(BUDGETS[1], |r| r.trace.evaluations as f64))
        .per_group("products", "products", median(BUDGETS[1], |run| run.trace.products as f64))
        .note(format!("The best values in nats: {}.", bests.join("; ")))
        .note(format!(
            "Medians over {} seeds of target and random start; n = 128, one causal head, float64, \
             seconds of one thread's own time. The best is the least value of any run from the same \
             start, so a method may miss it in a minimum of its own. Seconds are of the sooner of a \
             method's two runs, with the number of seeds that got there where not all did, and \
             without a median where most did not. The gradient is its largest entry; products are \
             those with a Hessian that were no evaluation. Adam's rate is the best of {:?} on the \
             first seed, at each budget.",
            SEEDS.len(),
            crate::adam::LEARNING_RATES,
        ))
        .build()
}

impl Measured {
    fn is_first_of_its_line(&self) -> bool {
        self.seed == SEEDS[0] && self.budget == BUDGETS[0]
    }
}

/// Median over seeds of the seconds until the value is within `share` of the best; the faster run of each seed counts.
/// A run that never gets there counts as infinite.
fn reached(line: &[&Measured], share: f64) -> Cell {
    let seed_s = |seed: u64| {
        line.iter()
            .filter(|run| run.seed == seed)
            .filter_map(|run| Some(run.trace.within(run.best, share)?.seconds))
            .min_by(f64::total_cmp)
    };
    let mut seconds: Vec<f64> = SEEDS.into_iter().filter_map(seed_s).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(SEEDS.len() / 2);
    let shown = median.map_or(Cell::Missing, |&value| Cell::Number { value, digits: 2 }).shown();
    Cell::Text(match seconds.len() {
        count if count == SEEDS.len() => shown,
        count => format!("{shown} ({count} of {})", SEEDS.len()),
    })
}
