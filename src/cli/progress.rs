//! The progress of one piece of work: a training run, a fit, an evaluation.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::duration::{about, duration};
use super::progress_bar::{Show, WIDTH, terminal_width, with};
use super::streams::tell;

/// Before this share of the work is done its pace is not known.
const KNOWN_FROM: f64 = 0.01;

/// The progress of work whose parts take about as long as each other.
pub struct Progress {
    show: Show,
    state: Arc<Mutex<State>>,
}

struct State {
    what: String,
    /// Whether the whole is an upper bound.
    at_most: bool,
    done: f64,
    /// What was done before, of which nothing is known.
    before: f64,
    whole: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl Progress {
    /// Progress towards so many parts; shows nothing where `quiet`.
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

    /// Names what is at work.
    pub fn name(&self, what: &str) {
        with(&self.state, |state| state.what = what.to_owned());
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        self.show.say(line);
    }

    /// One part more is done, which makes so many of all, and what is at work. What the first such part finds done was
    /// so before.
    pub fn reached(&self, parts: f64, what: &str) {
        with(&self.state, |state| {
            if state.done == 0.0 {
                (state.before, state.done) = (parts - 1.0, parts - 1.0);
            }
            what.clone_into(&mut state.what);
        });
        self.advanced(1.0);
    }

    /// What is at work, of a whole that is an upper bound.
    pub fn within(&self, what: String) {
        with(&self.state, |state| {
            state.what = what;
            state.at_most = true;
        });
    }

    /// So many parts were done at an earlier time.
    pub fn done_before(&self, parts: f64) {
        with(&self.state, |state| {
            state.before += parts;
            state.done += parts;
        });
    }

    /// So many parts more are done.
    pub fn advanced(&self, parts: f64) {
        let line = with(&self.state, |state| {
            state.done += parts;
            self.show.is_due(&mut state.printed).then(|| state.line())
        });
        self.show.share(|| with(&self.state, |state| state.share()));
        line.iter().for_each(|line| tell(line));
    }

    /// All is done, of which only an upper bound was known.
    pub fn complete(&self, what: &str) {
        with(&self.state, |state| {
            what.clone_into(&mut state.what);
            state.done = state.whole;
            if state.printed.is_some() {
                tell(&state.line());
            }
        });
    }

    /// Takes the bar away.
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
