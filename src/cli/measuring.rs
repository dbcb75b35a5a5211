//! Measures plans with a progress bar, which shows the running cells and the time left, and reports the results.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use super::errors::error_line;
use super::progress::{Progress, with};
use super::stop::{AFTER_CELLS, Stopped, stop_at_signal};
use super::streams::tell;
use crate::lm::Device;
use crate::study::{Observer, Plan, Sweep, SweepSummary, Work};
use crate::table::plural;

/// Plans that are measured one after another, with one progress bar.
pub struct Session {
    threads: usize,
    device: Device,
    stop: &'static AtomicBool,
    pub progress: CellsProgress,
    /// Result of each study that was measured.
    pub summaries: Vec<(String, SweepSummary)>,
    /// Studies whose rows cannot be read or written, each with its error.
    pub broken: Vec<(String, String)>,
}

impl Session {
    /// Begins to measure the cells of `works`, and stops at a signal.
    pub fn begin(works: Vec<Work>, threads: usize, device: Device) -> Result<Self> {
        let progress = CellsProgress::new(works);
        let stop = stop_at_signal(AFTER_CELLS)?;
        Ok(Self { threads, device, stop, progress, summaries: Vec::new(), broken: Vec::new() })
    }

    /// Returns `true` if a signal has stopped the work.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Measures a plan. Rows that cannot be read or written stop only their own study.
    pub fn add(&mut self, plan: Plan) {
        let (name, rows) = (plan.name().to_owned(), plan.rows());
        match self.measure(plan) {
            Ok(summary) => {
                let told = describe(&summary);
                self.progress.say(&format!("{name}: {told}; rows in {}", rows.display()));
                self.summaries.push((name, summary));
            }
            Err(error) => self.broken.push((name, error_line(error.as_ref()))),
        }
    }

    /// Measures a plan, after warnings about damaged lines and superseded rows.
    pub fn measure(&self, plan: Plan) -> Result<SweepSummary> {
        let Self { threads, device, stop, ref progress, .. } = *self;
        let rows = plan.rows();
        for line in plan.damaged() {
            let shown: String = line.chars().take(50).collect();
            progress.say(&format!(
                "warning: {}: a line is cut off or has the wrong number of fields ({shown}…); it moves to \
                 rows-set-aside.csv, and its configuration is measured again",
                rows.display()
            ));
        }
        for (count, why) in plan.to_set_aside() {
            progress.say(&format!(
                "warning: {} has {} {why}; superseded rows move to {}",
                rows.display(),
                plural(count, "row"),
                rows.with_file_name("rows-set-aside.csv").display()
            ));
        }
        progress.begin(plan.work(threads));
        Ok(plan.run(&Sweep { threads, stop, device, observer: progress })?)
    }
}

/// Summarises in words: `3 configurations measured, 105 done before`.
pub fn describe(summary: &SweepSummary) -> String {
    describe_in(summary, "configuration")
}

/// [`describe`] with another noun for a configuration.
pub fn describe_in(summary: &SweepSummary, noun: &str) -> String {
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

/// Describes in one line the work that the plans are about to do.
pub fn announce(plans: &[Plan], left: &str, threads: usize) -> String {
    let total: usize = plans.iter().map(|plan| plan.cells().count()).sum();
    let done: usize = plans.iter().flat_map(Plan::cells).filter(|(_, done)| *done).count();
    format!(
        "{}, {}, {done} done before; {} left on {}",
        plural(plans.len(), "study"),
        plural(total, "configuration"),
        left,
        plural(threads, "thread")
    )
}

/// Progress of all cells that a command measures, counted in their estimated costs.
pub struct CellsProgress {
    progress: Progress,
    state: Mutex<State>,
}

struct State {
    /// Seconds that the cells take on this machine, by study and cell, until they begin.
    costs: HashMap<(String, String), f64>,
    /// Running cells: name, cost, and the share that is done.
    running: Vec<(String, f64, f64)>,
    /// Number of the current study, as `2 of 9: `; empty if there is only one.
    place: String,
    study: String,
    /// Cells of the current study that have ended, and their total.
    done: usize,
    cells: usize,
    /// Noun for the cells.
    called: &'static str,
}

impl CellsProgress {
    /// Creates the progress of works that run one after another; shows nothing if `--quiet` is given. A cell that several works
    /// of the same name contain counts once.
    pub fn new(works: Vec<Work>) -> Self {
        let mut state = State {
            costs: HashMap::new(),
            running: Vec::new(),
            place: String::new(),
            study: String::new(),
            done: 0,
            cells: 0,
            called: "configurations",
        };
        let whole = works.iter().map(|work| state.expect(work)).sum();
        Self { progress: Progress::of_seconds(whole), state: Mutex::new(state) }
    }

    /// Formats the estimated time left.
    pub fn left(&self) -> String {
        self.progress.left()
    }

    /// Sets the number of the current study and the number of studies.
    pub fn place(&self, study: usize, of: usize) {
        with(&self.state, |state| state.place = format!("{study} of {of}: "));
    }

    /// Starts the progress of a study's cells.
    pub fn begin(&self, work: Work) {
        self.progress.add(with(&self.state, |state| state.expect(&work)));
        with(&self.state, |state| {
            state.running.clear();
            (state.study, state.done, state.cells) = (work.name, 0, work.cells.len());
            self.progress.name(&state.at_work());
        });
    }

    /// Starts the progress of the report, after the last cell; its cells are studies.
    pub fn begin_report(&self, work: Work) {
        self.say(&format!(
            "all configurations are measured; writing tables and figures of {}, and the report",
            plural(work.cells.len(), "study")
        ));
        with(&self.state, |state| {
            state.place.clear();
            state.called = "studies";
        });
        self.begin(work);
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        self.progress.say(line);
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.progress.finish();
    }

    /// Applies a change to the state, which returns the seconds of work that are done now, and updates the display.
    fn note(&self, change: impl FnOnce(&mut State) -> f64) {
        let done_s = with(&self.state, |state| {
            let done_s = change(state);
            self.progress.name(&state.at_work());
            done_s
        });
        self.progress.advanced(done_s);
    }
}

impl State {
    /// Adds the cells of `work` that are not expected yet, and returns their cost.
    fn expect(&mut self, work: &Work) -> f64 {
        let mut added_s = 0.0;
        for (cell, cost_s) in &work.cells {
            let cost_s = cost_s / work.at_a_time.max(1) as f64;
            self.costs.entry((work.name.clone(), cell.clone())).or_insert_with(|| {
                added_s += cost_s;
                cost_s
            });
        }
        added_s
    }

    /// `2 of 9: phase, 12 of 180 configurations: band/n64-d4-s0, band/n64-d4-s1`.
    fn at_work(&self) -> String {
        let Self { place, study, done, cells, called, .. } = self;
        let running: Vec<&str> = self.running.iter().map(|(cell, ..)| cell.as_str()).collect();
        let colon = if running.is_empty() { "" } else { ": " };
        format!("{place}{study}, {done} of {cells} {called}{colon}{}", running.join(", "))
    }

    /// Removes a cell that has ended, and returns the seconds of its work that were not counted yet.
    fn take(&mut self, cell: &str) -> f64 {
        self.done += 1;
        let place = self.running.iter().position(|(name, ..)| name == cell);
        place.map_or(0.0, |place| {
            let (_, cost_s, share) = self.running.remove(place);
            cost_s * (1.0 - share)
        })
    }
}

impl Observer for CellsProgress {
    fn cell_started(&self, cell: &str) {
        self.note(|state| {
            let cost_s = state.costs.remove(&(state.study.clone(), cell.to_owned()));
            state.running.push((cell.to_owned(), cost_s.unwrap_or(0.0), 0.0));
            0.0
        });
    }

    fn advanced(&self, cell: &str, share: f64) {
        self.note(|state| {
            let running = state.running.iter_mut().find(|(name, ..)| name == cell);
            running.map_or(0.0, |(_, cost_s, done)| {
                let share = share.min(1.0 - *done);
                *done += share;
                *cost_s * share
            })
        });
    }

    fn warned(&self, of_what: &str) {
        self.say(of_what);
    }

    fn cell_finished(&self, cell: &str, outcome: &str) {
        let failed = outcome.starts_with("failed");
        if failed {
            let study = with(&self.state, |state| state.study.clone());
            self.say(&format!("{study}/{cell} {outcome}"));
        }
        self.note(|state| {
            let left_s = state.take(cell);
            // The time of a failed cell does not count for the pace.
            if failed {
                self.progress.add(-left_s);
            }
            if failed { 0.0 } else { left_s }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_two_works_of_a_name_count_once() {
        let work = |cells: &[(&str, f64)]| {
            let cells = cells.iter().map(|&(name, cost_s)| (name.to_owned(), cost_s)).collect();
            Work { name: "a".to_owned(), at_a_time: 2, cells }
        };
        let works = vec![work(&[("1", 100.0)]), work(&[("1", 100.0), ("2", 50.0)])];
        assert_eq!(CellsProgress::new(works).left(), "about 75 s");
    }
}
