//! Progress of one task: a training run, a fit, an evaluation.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::duration::{about, duration};
use super::progress_bar::{Show, WIDTH, terminal_width, with};
use super::streams::tell;

/// Share of the work that must be done before the time left is estimated.
const KNOWN_FROM: f64 = 0.01;

/// Progress of work whose parts take about equally long.
pub struct Progress {
    show: Show,
    state: Arc<Mutex<State>>,
}

struct State {
    what: String,
    /// Whether `whole` is an upper bound.
    at_most: bool,
    done: f64,
    /// Parts done in earlier processes, whose time is unknown.
    before: f64,
    whole: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl Progress {
    /// Creates the progress towards `whole` parts; shows nothing if `quiet`.
    pub fn new(whole: f64, quiet: bool) -> Self {
        let state = Arc::new(Mutex::new(State {
            what: String::new(),
            at_most: false,
            done: 0.0,
            before: 0.0,
            whole: whole.max(1e-9),
            started: Instant::now(),
            printed: None,
        }));
        let (beside, below) = (state.clone(), state.clone());
        let show = Show::new(
            quiet,
            move || with(&beside, |state| state.times()),
            move || with(&below, |state| state.what.chars().take(terminal_width()).collect()),
        );
        Self { show, state }
    }

    /// Sets the name of the work.
    pub fn name(&self, what: &str) {
        with(&self.state, |state| state.what = what.to_owned());
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        self.show.say(line);
    }

    /// Records that one more part is done, `parts` in total, and sets the name of the work. Parts before the first call
    /// count as done in an earlier process.
    pub fn reached(&self, parts: f64, what: &str) {
        with(&self.state, |state| {
            if state.done == 0.0 {
                (state.before, state.done) = (parts - 1.0, parts - 1.0);
            }
            what.clone_into(&mut state.what);
        });
        self.advanced(1.0);
    }

    /// Sets the name of the work, and marks its total as an upper bound.
    pub fn within(&self, what: String) {
        with(&self.state, |state| {
            state.what = what;
            state.at_most = true;
        });
    }

    /// Records parts that were done in an earlier process.
    pub fn done_before(&self, parts: f64) {
        with(&self.state, |state| {
            state.before += parts;
            state.done += parts;
        });
    }

    /// Records that more parts are done.
    pub fn advanced(&self, parts: f64) {
        let line = with(&self.state, |state| {
            state.done += parts;
            self.show.is_due(&mut state.printed).then(|| state.line())
        });
        self.show.share(|| with(&self.state, |state| state.share()));
        line.iter().for_each(|line| tell(line));
    }

    /// Records that all is done, if the total was only an upper bound.
    pub fn complete(&self, what: &str) {
        with(&self.state, |state| {
            what.clone_into(&mut state.what);
            state.done = state.whole;
            if state.printed.is_some() {
                tell(&state.line());
            }
        });
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.show.finish();
    }
}

impl State {
    fn share(&self) -> f64 {
        (self.done / self.whole).min(1.0)
    }

    /// `12 %, 3 min 20 s elapsed, about 22 min left`.
    fn times(&self) -> String {
        let gone = self.started.elapsed().as_secs_f64();
        let (done, left) = (self.done - self.before, (self.whole - self.done).max(0.0));
        let known = done / (done + left).max(1e-9) >= KNOWN_FROM;
        let left_s = gone * left / done.max(1e-9);
        let left = match (known && left > 0.0, self.at_most) {
            (false, _) => String::new(),
            (true, true) => format!(", at most {} left", duration(left_s)),
            (true, false) => format!(", {} left", about(left_s)),
        };
        format!("{:.0} %, {} elapsed{left}", (100.0 * self.share()).floor(), duration(gone))
    }

    fn line(&self) -> String {
        format!("{}: {}", self.what, self.times()).chars().take(WIDTH).collect()
    }
}
