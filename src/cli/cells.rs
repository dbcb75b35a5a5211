//! The progress of studies: which cells are at work, and how long the rest may take.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rank_study::study::{Observer, Work};
use rank_study::table::plural;

use super::duration::{about, duration};
use super::progress_bar::{Show, WIDTH, terminal_width, with};
use super::streams::tell;
use super::time_left::TimeLeft;

/// The progress of all cells that a command measures.
pub struct CellsProgress {
    show: Show,
    state: Arc<Mutex<State>>,
}

struct State {
    left: TimeLeft,
    /// Which study of how many is at work, as `2 of 9: `; empty where there is one.
    place: String,
    what: String,
    /// Cells of it that ended, of how many.
    done: usize,
    cells: usize,
    /// What its cells are called.
    called: &'static str,
    /// The largest share of the time that was shown: it does not go back.
    share: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl CellsProgress {
    /// Progress through works that come one after another; shows nothing where `quiet`.
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

    /// How long all of it may take, in words.
    pub fn left(&self) -> String {
        with(&self.state, |state| about(state.left.left_s(state.now())))
    }

    /// Says which study of how many is at work.
    pub fn place(&self, study: usize, of: usize) {
        with(&self.state, |state| state.place = format!("{study} of {of}: "));
    }

    /// A study's cells begin.
    pub fn begin(&self, work: Work) {
        with(&self.state, |state| {
            (state.what, state.done, state.cells) = (work.name.clone(), 0, work.cells.len());
            state.left.begin(work);
        });
    }

    /// What comes after the last cell begins: the report, whose parts are studies.
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

    /// Takes the bar away.
    pub fn finish(&self) {
        self.show.finish();
    }

    /// Notes what happened, and shows what has come of it.
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

    /// The share of all the time, as far as that is known.
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

    /// `2 of 9: phase, 12 of 180 cells: band/n64-d4-s0, band/n64-d4-s1`, with as many of the running cells as there
    /// is room for.
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

/// As many of the names after a head as a width has room for, and how many more there are.
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
