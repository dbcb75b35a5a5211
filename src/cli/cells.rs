//! Progress of studies: the running cells, and an estimate of the time left.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rank_study::study::{Observer, Work};
use rank_study::table::plural;

use super::duration::{about, duration};
use super::progress_bar::{Show, WIDTH, terminal_width, with};
use super::streams::tell;
use super::time_left::TimeLeft;

/// Progress of all cells that a command measures.
pub struct CellsProgress {
    show: Show,
    state: Arc<Mutex<State>>,
}

struct State {
    left: TimeLeft,
    /// Number of the current study, as `2 of 9: `; empty if there is only one.
    place: String,
    what: String,
    /// Cells of the current study that have ended, and their total.
    done: usize,
    cells: usize,
    /// Noun for the cells.
    called: &'static str,
    /// Largest share of the time shown so far, so that the progress never decreases.
    share: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl CellsProgress {
    /// Creates the progress of works that run one after another; shows nothing if `quiet`.
    pub fn new(works: Vec<Work>, quiet: bool) -> Self {
        let state = Arc::new(Mutex::new(State {
            left: TimeLeft::of(works),
            place: String::new(),
            what: String::new(),
            done: 0,
            cells: 0,
            called: "configurations",
            share: 0.0,
            started: Instant::now(),
            printed: None,
        }));
        let (beside, below) = (state.clone(), state.clone());
        let show = Show::new(
            quiet,
            move || with(&beside, |state| state.times()),
            move || with(&below, |state| state.at_work(terminal_width())),
        );
        Self { show, state }
    }

    /// Formats the estimated time left.
    pub fn left(&self) -> String {
        with(&self.state, |state| about(state.left.left_s(state.now())))
    }

    /// Sets the number of the current study and the number of studies.
    pub fn place(&self, study: usize, of: usize) {
        with(&self.state, |state| state.place = format!("{study} of {of}: "));
    }

    /// Starts the progress of a study's cells.
    pub fn begin(&self, work: Work) {
        with(&self.state, |state| {
            (state.what, state.done, state.cells) = (work.name.clone(), 0, work.cells.len());
            state.left.begin(work);
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
        self.show.say(line);
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.show.finish();
    }

    /// Applies a change to the state and updates the display.
    fn note(&self, change: impl FnOnce(&mut State)) {
        let line = with(&self.state, |state| {
            change(state);
            self.show.is_due(&mut state.printed).then(|| state.line())
        });
        self.show.share(|| with(&self.state, State::share));
        line.iter().for_each(|line| tell(line));
    }
}

impl State {
    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Share of the estimated total time that has passed.
    fn share(&mut self) -> f64 {
        let now = self.now();
        let share = now / (now + self.left.left_s(now)).max(1e-9);
        self.share = self.share.max(share);
        self.share
    }

    /// `12 %, 3 min 20 s elapsed, about 4 min left`.
    fn times(&mut self) -> String {
        let (now, share) = (self.now(), self.share());
        let left = about(self.left.left_s(now));
        format!(
            "{:.0} %, {} elapsed, {left} left",
            (100.0 * share).floor().min(99.0),
            duration(now)
        )
    }

    /// `2 of 9: phase, 12 of 180 configurations: band/n64-d4-s0, band/n64-d4-s1`, with as many running cells as fit.
    fn at_work(&self, width: usize) -> String {
        let Self { place, what, done, cells, called, .. } = self;
        if what.is_empty() {
            return String::new();
        }
        let running: Vec<&str> = self.left.running().collect();
        let head = match running.is_empty() {
            true => format!("{place}{what}, {done} of {cells} {called}"),
            false => format!("{place}{what}, {done} of {cells} {called}: "),
        };
        fitted(&head, &running, width)
    }

    fn line(&mut self) -> String {
        let times = self.times();
        let room = WIDTH.saturating_sub(times.chars().count() + 2);
        format!("{times}; {}", self.at_work(room))
    }
}

/// Appends as many names to `head` as fit in `width`, then the number of the others.
fn fitted(head: &str, names: &[&str], width: usize) -> String {
    let all = |shown: usize| {
        let more = match names.len() - shown {
            0 => String::new(),
            more if shown == 0 => format!("{more} running"),
            more => format!(" and {more} more"),
        };
        format!("{head}{}{more}", names[..shown].join(", "))
    };
    let fits = |text: &String| text.chars().count() <= width;
    let longest = (0..=names.len()).rev().map(all).find(fits);
    longest.unwrap_or_else(|| head.trim_end_matches(": ").chars().take(width).collect())
}

impl Observer for CellsProgress {
    fn cell_started(&self, cell: &str) {
        self.note(|state| state.left.started(cell));
    }

    fn advanced(&self, cell: &str, share: f64) {
        self.note(|state| state.left.advanced(cell, share));
    }

    fn warned(&self, of_what: &str) {
        self.say(of_what);
    }

    fn cell_finished(&self, cell: &str, outcome: &str) {
        let failed = outcome.starts_with("failed");
        if failed {
            let what = with(&self.state, |state| state.what.clone());
            self.say(&format!("{what}/{cell} {outcome}"));
        }
        self.note(|state| {
            state.done += 1;
            match failed {
                true => state.left.failed(cell),
                false => state.left.finished(cell),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn as_many_names_are_told_as_there_is_room_for() {
        let names = ["alpha", "beta", "gamma"];
        for (width, text) in [
            (40, "phase: alpha, beta, gamma"),
            (25, "phase: alpha, beta, gamma"),
            (24, "phase: alpha and 2 more"),
            (20, "phase: 3 running"),
            (8, "phase"),
            (3, "pha"),
        ] {
            assert_eq!(fitted("phase: ", &names, width), text);
        }
        assert_eq!(fitted("phase", &[], 40), "phase");
    }
}
