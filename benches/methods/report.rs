//! The runs as rows, and their medians as a table.

use std::time::Duration;

use rank_study::table::{Cell, Column, Spread, Table};

use crate::run::Trace;
use crate::{BUDGETS, Method, SEEDS};

/// Within these shares of the best value.
const SHARES: [f64; 2] = [0.01, 0.001];

/// One method from one start.
pub struct Measured {
    problem: &'static str,
    seed: u64,
    budget: Duration,
    pub method: Method,
    pub trace: Trace,
    /// The least value of any method from this start at any budget.
    best: f64,
    /// Whether it is in the table: rates of Adam that lost are only in the rows.
    pub chosen: bool,
}

impl Measured {
    /// Before the others from its start are known.
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

    /// What the value is above the best, in per cent of it.
    fn excess(&self) -> f64 {
        100.0 * (self.trace.value / self.best - 1.0)
    }
}

/// Tells all runs from one start what the best of them reached.
pub fn hold_against_the_best(runs: &mut [Measured]) {
    let best = runs.iter().map(|run| run.trace.value).fold(f64::INFINITY, f64::min);
    runs.iter_mut().for_each(|run| run.best = best);
}

/// One row a run.
pub fn rows(measured: &[Measured]) -> Table {
    let words = ["problem", "method"].map(|name| Column::words(name, name));
    let numbers = [
        "seed",
        "learning_rate",
        "budget_s",
        "value",
        "best_value",
        "within_1pct_s",
        "within_1pct_evaluations",
        "within_01pct_s",
        "within_01pct_evaluations",
        "gradient_norm",
        "evaluations",
        "products",
        "time_s",
    ]
    .map(|name| Column::numbers(name, name, None));
    let columns = words.into_iter().chain(numbers).collect();
    let mut table = Table::new("rows", "One row a run", columns);
    for run in measured {
        let trace = &run.trace;
        let mut row = vec![
            Cell::text(run.problem),
            Cell::text(run.method.name()),
            Cell::Setting(run.seed as f64),
            match run.method {
                Method::Adam(rate) => Cell::Setting(rate),
                _ => Cell::Missing,
            },
            Cell::Setting(run.budget.as_secs_f64()),
            Cell::number(Some(trace.value)),
            Cell::number(Some(run.best)),
        ];
        for share in SHARES {
            let mark = trace.within(run.best, share);
            row.push(Cell::number(mark.map(|mark| mark.seconds)));
            row.push(mark.map_or(Cell::Missing, |mark| Cell::count(mark.evaluations)));
        }
        row.extend([
            Cell::number(Some(trace.gradient_norm)),
            Cell::count(trace.evaluations),
            Cell::count(trace.products),
            Cell::number(Some(trace.seconds)),
        ]);
        table.push(row);
    }
    table
}

/// Medians over the seeds, one line a problem and method.
pub fn summary(measured: &[Measured]) -> Table {
    let [short, long] = BUDGETS.map(|budget| budget.as_secs_f64());
    let columns = vec![
        Column::words("problem", "problem"),
        Column::words("method", "method"),
        Column::numbers("over_best_short", &format!("over the best at {short} s"), Some("%")),
        Column::numbers("over_best", &format!("at {long} s"), Some("%")),
        Column::numbers("within_1pct_s", "within 1 %", Some("s")),
        Column::numbers("within_01pct_s", "within 0.1 %", Some("s")),
        Column::numbers("gradient_norm", &format!("gradient at {long} s"), None),
        Column::numbers("evaluations", "evaluations", None),
        Column::numbers("products", "products", None),
    ];
    let title = "Descent on one stage of the fit's objective, by the clock";
    let mut table = Table::new("methods", title, columns);
    for first in measured.iter().filter(|run| run.chosen && run.is_first_of_its_line()) {
        let line: Vec<&Measured> = measured
            .iter()
            .filter(|run| run.chosen && run.problem == first.problem)
            .filter(|run| run.method.name() == first.method.name())
            .collect();
        let at = |budget: Duration| line.iter().filter(move |run| run.budget == budget);
        let median = |budget: Duration, of: &dyn Fn(&Measured) -> f64| Cell::Number {
            value: Spread::of(at(budget).map(|run| of(run))).map_or(f64::NAN, |s| s.median),
            digits: 2,
        };
        let mut row = vec![
            Cell::text(first.problem),
            Cell::text(first.method.name()),
            median(BUDGETS[0], &Measured::excess),
            median(BUDGETS[1], &Measured::excess),
        ];
        row.extend(SHARES.map(|share| reached(&line, share)));
        row.push(median(BUDGETS[1], &|run| run.trace.gradient_norm));
        row.push(median(BUDGETS[1], &|run| run.trace.evaluations as f64));
        row.push(median(BUDGETS[1], &|run| run.trace.products as f64));
        table.push(row);
    }
    let best = |problem: &str| {
        let best = measured.iter().filter(|run| run.problem == problem).map(|run| run.best);
        Cell::over(Spread::of(best)).shown()
    };
    let mut problems: Vec<&str> = measured.iter().map(|run| run.problem).collect();
    problems.dedup();
    let bests: Vec<String> =
        problems.iter().map(|problem| format!("{problem}: {}", best(problem))).collect();
    table.notes.push(format!("The best values in nats: {}.", bests.join("; ")));
    table.notes.push(format!(
        "Medians over {} seeds of target and random start; n = 128, one causal head, float64, seconds of \
         one thread's own time. The best is the least value of any run from the same start, so a method \
         may miss it in a minimum of its own. Seconds are of the sooner of a method's two runs, with the \
         number of seeds that got there where not all did, and without a median where most did not. \
         The gradient is its largest entry; products are those with a Hessian that were no \
         evaluation. Adam's rate is the best of {:?} on the first seed, at each budget.",
        SEEDS.len(),
        crate::adam::LEARNING_RATES,
    ));
    table
}

impl Measured {
    fn is_first_of_its_line(&self) -> bool {
        self.seed == SEEDS[0] && self.budget == BUDGETS[0]
    }
}

/// The median over seeds of the seconds until within a share of the best, in the sooner of a seed's
/// runs; never is longer than all.
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
