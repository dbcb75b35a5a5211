//! Progress of a command's work: a bar on a terminal, a line every ten seconds otherwise.

use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::duration::duration;
use super::streams::{is_quiet, tell};
use crate::system::printable;

/// Minimum time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum width of a line; also the assumed width of a terminal that does not report one.
const WIDTH: usize = 160;
/// Number of positions of the bar.
const PARTS: f64 = 1000.0;

/// Progress of work that is counted in parts of about equal time.
pub struct Progress {
    show: Show,
    state: Arc<Mutex<State>>,
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
        let state = Arc::new(Mutex::new(State {
            what: String::new(),
            done: 0.0,
            before: 0.0,
            whole,
            started: Instant::now(),
            printed: None,
        }));
        let show = match std::io::stderr().is_terminal() {
            _ if is_quiet() => Show::Nothing,
            false => Show::Lines,
            true => Show::Bar(bar(&state)),
        };
        Self { show, state }
    }

    /// Sets the name of the work.
    pub fn name(&self, what: &str) {
        with(&self.state, |state| what.clone_into(&mut state.what));
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
        with(&self.state, |state| {
            if state.done == 0.0 {
                (state.before, state.done) = (parts - 1.0, parts - 1.0);
            }
            what.clone_into(&mut state.what);
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
        let (share, line) = with(&self.state, |state| {
            state.done += parts;
            let due = state.printed.is_none_or(|printed| printed.elapsed() >= INTERVAL);
            let line = (due && matches!(self.show, Show::Lines)).then(|| state.line());
            if line.is_some() {
                state.printed = Some(Instant::now());
            }
            (state.share(), line)
        });
        if let Show::Bar(bar) = &self.show {
            bar.set_position((share * PARTS) as u64);
        }
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

    /// `12 %, 3 min 20 s elapsed, about 22 min 8 s left`; the time left is at the pace so far.
    fn times(&self) -> String {
        let gone_s = self.started.elapsed().as_secs_f64();
        let (new, left) = (self.done - self.before, self.whole - self.done);
        let left = match new > 0.0 && left > 0.0 {
            true => format!(", about {} left", duration(gone_s * left / new)),
            false => String::new(),
        };
        format!("{:.0} %, {} elapsed{left}", (100.0 * self.share()).floor(), duration(gone_s))
    }

    fn line(&self) -> String {
        format!("{}; {}", self.times(), self.what).chars().take(WIDTH).collect()
    }
}

/// A bar with the times beside it and the name of the work below.
fn bar(state: &Arc<Mutex<State>>) -> ProgressBar {
    let (beside, below) = (state.clone(), state.clone());
    // If a write fails, the next redraw (after a quarter of a second) shows the text.
    let write = |text: &str, out: &mut dyn Write| {
        let _ = out.write_str(&printable(text));
    };
    let style = ProgressStyle::with_template("{bar:24} {beside}\n{below}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("beside", move |_: &ProgressState, out: &mut dyn Write| {
            write(&with(&beside, |state| state.times()), out);
        })
        .with_key("below", move |_: &ProgressState, out: &mut dyn Write| {
            let width = console::Term::stderr().size_checked();
            let width = width.map_or(WIDTH, |(_, columns)| usize::from(columns));
            let fits: String = with(&below, |state| state.what.chars().take(width).collect());
            write(&fits, out);
        });
    let bar = ProgressBar::new(PARTS as u64);
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Locks and changes a state.
pub fn with<S, T>(state: &Mutex<S>, change: impl FnOnce(&mut S) -> T) -> T {
    // The counters stay valid when another thread panics.
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}
