//! Measures plans with a progress bar, which shows the running cells, and reports the results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use super::errors::error_line;
use super::progress::{Progress, with};
use super::stop::{AFTER_CELLS, Stopped, stop_at_signal};
use super::streams::{say, tell};
use crate::lm::Device;
use crate::study::{Observer, Plan, Sweep, SweepSummary};
use crate::table::plural;

/// Plans that are measured one after another, with one progress bar.
pub struct Session {
    threads: usize,
    device: Device,
    stop: &'static AtomicBool,
    pub progress: CellsProgress,
    /// One line on the work ahead.
    pub ahead: String,
}

/// The result of each study that was measured, and the studies whose rows cannot be read or written, with their errors.
pub type Results = (Vec<(String, SweepSummary)>, Vec<(String, String)>);

impl Session {
    /// Begins to measure the cells of plans, and stops at a signal.
    pub fn begin<'p>(
        plans: impl IntoIterator<Item = &'p Plan>,
        threads: usize,
        device: Device,
    ) -> Result<Self> {
        let (mut studies, mut cells, mut left) = (0, 0, 0);
        for plan in plans {
            studies += usize::from(plan.left() > 0);
            cells += plan.cells().count();
            left += plan.left();
        }
        let parts = left * PARTS as usize;
        Ok(Self {
            threads,
            device,
            stop: stop_at_signal(AFTER_CELLS)?,
            progress: CellsProgress {
                // A training takes as long as many fits.
                progress: match studies {
                    0 | 1 => Progress::new(parts),
                    _ => Progress::uneven(parts),
                },
                state: Mutex::default(),
            },
            ahead: format!(
                "{}, {} done before; on {}",
                plural(cells, "configuration"),
                cells - left,
                plural(threads, "thread")
            ),
        })
    }

    /// Measures all plans. Rows that cannot be read or written stop only their own study.
    pub fn measure_all(self, plans: impl IntoIterator<Item = Plan>) -> Results {
        let (mut summaries, mut broken) = Results::default();
        for plan in plans {
            let (name, rows) = (plan.name().to_owned(), plan.rows());
            if self.stop.load(Ordering::Relaxed) {
                let left = SweepSummary { left: plan.left(), ..SweepSummary::default() };
                summaries.push((name, left));
                continue;
            }
            match self.measure(plan) {
                Ok(summary) => {
                    let told = describe(&summary, "configuration");
                    self.progress.say(&format!("{name}: {told}; rows in {}", rows.display()));
                    summaries.push((name, summary));
                }
                Err(error) => broken.push((name, error_line(error.as_ref()))),
            }
        }
        self.progress.finish();
        (summaries, broken)
    }

    /// Measures a plan, after warnings about damaged lines and superseded rows.
    pub fn measure(&self, plan: Plan) -> Result<SweepSummary> {
        let Self { threads, device, stop, ref progress, .. } = *self;
        let rows = plan.rows();
        let warn = |count: usize, what: &str, why: &str| {
            if count > 0 {
                let (rows, aside) = (rows.display(), rows.with_file_name("rows-set-aside.csv"));
                let what = plural(count, what);
                progress.say(&format!(
                    "warning: {rows} has {what} {why}; moved to {}",
                    aside.display()
                ));
            }
        };
        warn(plan.damaged().len(), "line", "cut off or with the wrong number of fields");
        warn(plan.to_set_aside(), "row", "that the present definition does not give");
        progress.begin(plan.name(), plan.left());
        Ok(plan.run(&Sweep { threads, stop, device, observer: progress })?)
    }
}

/// Prints the cells of a plan and whether they are done.
pub fn list_cells(plan: &Plan) {
    for (cell, done) in plan.cells() {
        say!("{}  {cell}", if done { "done" } else { "    " });
    }
}

/// Summarises in words: `3 configurations measured, 105 done before`, with `noun` for a configuration.
pub fn describe(summary: &SweepSummary, noun: &str) -> String {
    let mut parts = vec![format!("{} measured", plural(summary.measured, noun))];
    if summary.skipped > 0 {
        parts.push(format!("{} done before", summary.skipped));
    }
    if !summary.failed.is_empty() {
        parts.push(format!("{} failed", summary.failed.len()));
    }
    if summary.left > 0 {
        parts.push(format!("{} left", summary.left));
    }
    if summary.waiting > 0 {
        parts.push(format!("{} waiting for other shards", summary.waiting));
    }
    parts.join(", ")
}

/// Fails if cells failed or are left. The error says how to continue.
pub fn fail_if_unfinished(summaries: &[(String, SweepSummary)]) -> Result<()> {
    for (name, summary) in summaries {
        for (cell, why) in &summary.failed {
            tell(&format!("failed: {name}/{cell}: {why}"));
        }
    }
    let failed: usize = summaries.iter().map(|(_, summary)| summary.failed.len()).sum();
    let left: usize = summaries.iter().map(|(_, summary)| summary.left).sum();
    let waiting: usize = summaries.iter().map(|(_, summary)| summary.waiting).sum();
    match (failed, left) {
        (0, 0) if waiting > 0 => {
            let why = format!(
                "waiting for runs of other shards: {}; run the same command when those have ended",
                plural(waiting, "configuration")
            );
            Err(Stopped(why).into())
        }
        (0, 0) => Ok(()),
        (failed, 0) => {
            let cells = plural(failed, "configuration");
            let (rows, them) =
                if failed == 1 { ("its row says", "it") } else { ("their rows say", "them") };
            bail!("{cells} failed; {rows} why. Run the same command to retry {them}")
        }
        (failed, left) => {
            let failed = if failed > 0 { format!(" and {failed} failed") } else { String::new() };
            let why = format!(
                "stopped with {} left{failed}; run the same command to continue",
                plural(left, "configuration")
            );
            Err(Stopped(why).into())
        }
    }
}

/// Parts of the progress that a cell is counted as.
const PARTS: f64 = 1000.0;

/// Progress of all cells that a command measures.
pub struct CellsProgress {
    progress: Progress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Name of the current study.
    study: String,
    /// Number of its cells that were left, and of those that have ended.
    cells: usize,
    done: usize,
    /// Running cells: name, and the parts that are done.
    running: Vec<(String, f64)>,
}

impl CellsProgress {
    /// Starts the progress of a study's cells.
    pub fn begin(&self, study: &str, cells: usize) {
        self.note(|state| {
            *state = State { study: study.to_owned(), cells, ..State::default() };
            0.0
        });
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        self.progress.say(line);
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.progress.finish();
    }

    /// Applies a change to the state, which returns the parts that are done now, and updates the display.
    fn note(&self, change: impl FnOnce(&mut State) -> f64) {
        let parts = with(&self.state, |state| {
            let parts = change(state);
            self.progress.name(&state.at_work());
            parts
        });
        self.progress.advanced(parts as usize);
    }
}

impl State {
    /// `phase, 12 of 180 configurations: band/n64-d4-s0, band/n64-d4-s1`.
    fn at_work(&self) -> String {
        let Self { study, cells, done, running } = self;
        let running: Vec<&str> = running.iter().map(|(cell, _)| cell.as_str()).collect();
        let colon = if running.is_empty() { "" } else { ": " };
        let of = plural(*cells, "configuration");
        format!("{study}, {done} of {of}{colon}{}", running.join(", "))
    }
}

impl Observer for CellsProgress {
    fn cell_started(&self, cell: &str) {
        self.note(|state| {
            state.running.push((cell.to_owned(), 0.0));
            0.0
        });
    }

    fn advanced(&self, cell: &str, share: f64) {
        self.note(|state| {
            let running = state.running.iter_mut().find(|(name, _)| name == cell);
            running.map_or(0.0, |(_, done)| {
                let before = done.floor();
                *done = (*done + PARTS * share).min(PARTS);
                done.floor() - before
            })
        });
    }

    fn warned(&self, of_what: &str) {
        self.say(of_what);
    }

    fn cell_finished(&self, cell: &str, outcome: &str) {
        if outcome.starts_with("failed") {
            let study = with(&self.state, |state| state.study.clone());
            self.say(&format!("{study}/{cell} {outcome}"));
        }
        self.note(|state| {
            state.done += 1;
            let place = state.running.iter().position(|(name, _)| name == cell);
            let ended = place.map(|place| state.running.remove(place));
            ended.map_or(0.0, |(_, done)| PARTS - done.floor())
        });
    }
}
