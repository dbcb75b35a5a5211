//! Progress of a command's work: a bar on a terminal, a line every ten seconds otherwise.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::streams::{is_quiet, tell};
use crate::report::duration;
use crate::system::printable;

/// Minimum time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum width of a line.
const WIDTH: usize = 160;
/// Number of positions of the bar.
const PARTS: f64 = 1000.0;

/// Progress of work that is counted in parts of about equal time.
pub struct Progress {
    show: Show,
    state: Mutex<State>,
}

enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines,
}

struct State {
    what: String,
    done: f64,
    /// Parts done in earlier processes, whose time is unknown.
    before: f64,
    whole: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl Progress {
    /// Creates the progress towards `whole` parts; shows nothing if `--quiet` is given.
    pub fn new(whole: f64) -> Self {
        let state = State {
            what: String::new(),
            done: 0.0,
            before: 0.0,
            whole,
            started: Instant::now(),
            printed: None,
        };
        let show = match std::io::stderr().is_terminal() {
            _ if is_quiet() => Show::Nothing,
            false => Show::Lines,
            true => Show::Bar(bar()),
        };
        Self { show, state: Mutex::new(state) }
    }

    /// Sets the name of the work.
    pub fn name(&self, what: &str) {
        with(&self.state, |state| what.clone_into(&mut state.what));
        if let Show::Bar(bar) = &self.show {
            bar.set_message(printable(what).into_owned());
        }
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.println(printable(line)),
            Show::Lines => tell(line),
        }
    }

    /// Records that one more part is done, `parts` in total, and sets the name of the work. Parts before the first call
    /// count as done in an earlier process.
    pub fn reached(&self, parts: f64, what: &str) {
        self.name(what);
        with(&self.state, |state| {
            if state.done == 0.0 {
                (state.before, state.done) = (parts - 1.0, parts - 1.0);
            }
        });
        self.advanced(1.0);
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
            if let Show::Bar(bar) = &self.show {
                bar.set_position((state.share() * PARTS) as u64);
                bar.set_prefix(state.left());
            }
            let due = state.printed.is_none_or(|printed| printed.elapsed() >= INTERVAL);
            (due && matches!(self.show, Show::Lines)).then(|| state.line())
        });
        line.iter().for_each(|line| tell(line));
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

impl State {
    fn share(&self) -> f64 {
        (self.done / self.whole.max(1e-9)).min(1.0)
    }

    /// `, about 22 min 8 s left` at the pace so far; empty if it is not known.
    fn left(&self) -> String {
        let (new, left) = (self.done - self.before, self.whole - self.done);
        match new > 0.0 && left > 0.0 {
            true => {
                let gone_s = self.started.elapsed().as_secs_f64();
                format!(", about {} left", duration(gone_s * left / new))
            }
            false => String::new(),
        }
    }

    /// `12 %, 3 min 20 s elapsed, about 22 min 8 s left; phase, 12 of 180 configurations`.
    fn line(&mut self) -> String {
        self.printed = Some(Instant::now());
        let percent = (100.0 * self.share()).floor();
        let gone = duration(self.started.elapsed().as_secs_f64());
        let line = format!("{percent:.0} %, {gone} elapsed{}; {}", self.left(), self.what);
        line.chars().take(WIDTH).collect()
    }
}

/// A bar with the times beside it and the name of the work below.
fn bar() -> ProgressBar {
    let template = "{bar:24} {percent} %, {elapsed} elapsed{prefix}\n{wide_msg}";
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(PARTS as u64);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Locks and changes a state.
pub fn with<S, T>(state: &Mutex<S>, change: impl FnOnce(&mut S) -> T) -> T {
    // The counters stay valid when another thread panics.
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}
