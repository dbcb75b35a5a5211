//! Progress of a command's work: a bar on a terminal, a line every ten seconds otherwise.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::streams::{inform, is_quiet};
use crate::report::duration;
use crate::system::printable;

/// Minimum time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum width of a line.
const WIDTH: usize = 160;

/// Progress of work that is counted in parts of about equal time.
pub struct Progress {
    /// Hidden if standard error is not a terminal; its numbers are then printed as lines.
    bar: ProgressBar,
    /// The time of the last line, at first that of the start: short work prints none.
    printed: Mutex<Instant>,
    left: Left,
}

/// How the time left is shown.
#[derive(Clone, Copy)]
enum Left {
    /// At the pace so far.
    About,
    /// The same, of work that may end before all its parts.
    AtMost,
    /// Not at all, because parts take different times.
    Unknown,
}

impl Progress {
    /// Creates the progress towards `whole` parts; shows nothing if `--quiet` is given.
    pub fn new(whole: usize) -> Self {
        Self::with_left(whole, Left::About)
    }

    /// As [`Self::new`], of parts that take different times.
    pub fn uneven(whole: usize) -> Self {
        Self::with_left(whole, Left::Unknown)
    }

    /// As [`Self::new`], of work that may end before all its parts.
    pub fn up_to(whole: usize) -> Self {
        Self::with_left(whole, Left::AtMost)
    }

    fn with_left(whole: usize, left: Left) -> Self {
        let bar = ProgressBar::new(whole as u64);
        if is_quiet() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{bar:24} {percent} %, {elapsed} elapsed{left}\n{wide_msg}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", move |state: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&left.shown(state.elapsed(), f64::from(state.fraction())));
        }));
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self { bar, printed: Mutex::new(Instant::now()), left }
    }

    /// Sets the name of the work.
    pub fn name(&self, what: &str) {
        self.bar.set_message(printable(what).into_owned());
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        match self.bar.is_hidden() {
            true => inform(line),
            false => self.bar.println(printable(line)),
        }
    }

    /// Whether no part is done yet.
    pub fn is_at_start(&self) -> bool {
        self.bar.position() == 0
    }

    /// Leaves out parts that were done in an earlier process, whose time is unknown.
    pub fn done_before(&self, parts: usize) {
        self.bar.dec_length(parts as u64);
    }

    /// Records that more parts are done.
    pub fn advanced(&self, parts: usize) {
        self.bar.inc(parts as u64);
        if !self.bar.is_hidden() {
            return;
        }
        let is_due = with(&self.printed, |printed| {
            let is_due = printed.elapsed() >= INTERVAL;
            if is_due {
                *printed = Instant::now();
            }
            is_due
        });
        if is_due {
            inform(&self.line());
        }
    }

    /// `12 %, 3 min 20 s elapsed, about 22 min 8 s left; phase, 12 of 180 configurations`.
    fn line(&self) -> String {
        let share = self.bar.position() as f64 / self.bar.length().unwrap_or(0).max(1) as f64;
        let left = self.left.shown(self.bar.elapsed(), share);
        let gone = duration(self.bar.elapsed().as_secs_f64());
        let percent = (100.0 * share.min(1.0)).floor();
        let line = format!("{percent:.0} %, {gone} elapsed{left}; {}", self.bar.message());
        line.chars().take(WIDTH).collect()
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Left {
    /// `, about 22 min 8 s left` at the pace so far; empty if it is not known.
    fn shown(self, elapsed: Duration, share: f64) -> String {
        let about = match self {
            Self::About => "about",
            Self::AtMost => "at most",
            Self::Unknown => return String::new(),
        };
        match elapsed.as_secs_f64() * (1.0 - share) / share {
            left if left > 0.0 && left.is_finite() => format!(", {about} {} left", duration(left)),
            _ => String::new(),
        }
    }
}

/// Locks and changes a state.
pub fn with<S, T>(state: &Mutex<S>, change: impl FnOnce(&mut S) -> T) -> T {
    // The state stays valid when another thread panics.
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}
