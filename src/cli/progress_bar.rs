//! Progress: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rank_study::system::printable;

use super::streams::tell;

/// Minimum time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum width of a plain line; also the assumed width of a terminal that does not report one.
pub const WIDTH: usize = 160;
/// Number of positions of the bar.
const PARTS: f64 = 1000.0;

/// Display of progress.
pub enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines,
}

impl Show {
    /// Shows nothing if `quiet`, and plain lines if standard error is not a terminal. A bar gets the text after it from
    /// `beside` and the line below it from `below`, each time it is drawn.
    pub fn new(
        quiet: bool,
        beside: impl Fn() -> String + Clone + Send + Sync + 'static,
        below: impl Fn() -> String + Clone + Send + Sync + 'static,
    ) -> Self {
        if quiet {
            return Self::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(PARTS as u64);
        let style = ProgressStyle::with_template("{bar:24} {beside}\n{below}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("beside", written(beside))
            .with_key("below", written(below));
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self::Bar(bar)
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        match self {
            Self::Nothing => {}
            Self::Bar(bar) => bar.println(printable(line)),
            Self::Lines => tell(line),
        }
    }

    /// Sets the bar, if there is one, to this share.
    pub fn share(&self, share: impl FnOnce() -> f64) {
        if let Self::Bar(bar) = self {
            bar.set_position((share() * PARTS) as u64);
        }
    }

    /// Returns `true`, and sets `printed` to now, if a plain line is due. `printed` is the time of the last one.
    pub fn is_due(&self, printed: &mut Option<Instant>) -> bool {
        let due = matches!(self, Self::Lines)
            && printed.is_none_or(|printed| printed.elapsed() >= PLAIN_INTERVAL);
        if due {
            *printed = Some(Instant::now());
        }
        due
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Width of the terminal in columns.
pub fn terminal_width() -> usize {
    console::Term::stderr().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns))
}

/// Locks and changes the state that a bar and its work share.
pub fn with<S, T>(state: &Mutex<S>, change: impl FnOnce(&mut S) -> T) -> T {
    // The counters stay valid when another thread panics.
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Adapts a text to the interface of the bar.
fn written(
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> impl Fn(&indicatif::ProgressState, &mut dyn std::fmt::Write) + Clone + Send + Sync + 'static {
    move |_, out| {
        // If this fails, the next redraw (after a quarter of a second) shows the text.
        let _ = out.write_str(&printable(&text()));
    }
}
