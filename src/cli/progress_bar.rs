//! Progress: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rank_study::system::printable;

use super::streams::tell;

/// How often a plain line is printed at most.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// How wide a plain line is at most, and one on a terminal that does not say.
pub const WIDTH: usize = 160;
/// The bar's length is cut into so many parts.
const PARTS: f64 = 1000.0;

/// Where progress is shown.
pub enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines,
}

impl Show {
    /// Nowhere where `quiet`; on a terminal a bar, which takes the text after it and the line below it from `beside`
    /// and `below` as often as it is drawn.
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

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        match self {
            Self::Nothing => {}
            Self::Bar(bar) => bar.println(printable(line)),
            Self::Lines => tell(line),
        }
    }

    /// Draws so large a share of the bar, where there is one.
    pub fn share(&self, share: impl FnOnce() -> f64) {
        if let Self::Bar(bar) = self {
            bar.set_position((share() * PARTS) as u64);
        }
    }

    /// Whether a plain line is due, the last having been printed at `printed`: it is now, then.
    pub fn is_due(&self, printed: &mut Option<Instant>) -> bool {
        let due = matches!(self, Self::Lines)
            && printed.is_none_or(|printed| printed.elapsed() >= PLAIN_INTERVAL);
        if due {
            *printed = Some(Instant::now());
        }
        due
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The columns of the terminal.
pub fn terminal_width() -> usize {
    console::Term::stderr().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns))
}

/// Changes what a bar and its work share.
pub fn with<S, T>(state: &Mutex<S>, change: impl FnOnce(&mut S) -> T) -> T {
    // A panic in another thread leaves the counters as good as they were.
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A text as a bar asks for it.
fn written(
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> impl Fn(&indicatif::ProgressState, &mut dyn std::fmt::Write) + Clone + Send + Sync + 'static {
    move |_, out| {
        // A text that cannot be shown is shown a quarter of a second later.
        let _ = out.write_str(&printable(&text()));
    }
}
