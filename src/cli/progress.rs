//! Progress on standard error: a bar with rate and time left on a terminal, plain lines otherwise.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rank_study::lm::StepRecord;
use rank_study::study::Observer;

use super::stop::tell;

/// How often a plain line is printed at most, where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// Before this share of the work is done its pace is not known.
const KNOWN_FROM: f64 = 0.01;
/// The bar counts in these parts of an estimated second.
const PARTS: f64 = 1000.0;

/// The progress of work whose whole is known beforehand as an estimate in seconds.
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
    /// Which study of how many is at work, as `2 of 9`; empty where there is one.
    place: String,
    /// Cells of the study that ended, of those to do; none where there are no cells.
    cells: Option<(usize, usize)>,
    /// How the time left is said: `about` or `at most`.
    left: &'static str,
    done: f64,
    total: f64,
    started: Instant,
    printed: Option<Instant>,
}

impl Progress {
    /// Progress towards `total_s` estimated seconds; shows nothing where `quiet`.
    pub fn new(total_s: f64, quiet: bool) -> Self {
        let show = if quiet {
            Show::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new((total_s * PARTS) as u64);
            let style = ProgressStyle::with_template(
                "{bar:30} {percent:>3}%  {elapsed} gone, {eta} left  {wide_msg}",
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
            Show::Bar(bar)
        } else {
            Show::Lines
        };
        let state = State {
            what: String::new(),
            place: String::new(),
            cells: None,
            left: "about",
            done: 0.0,
            total: total_s.max(1e-9),
            started: Instant::now(),
            printed: None,
        };
        Self { show, state: Mutex::new(state) }
    }

    /// Says which study of how many is at work.
    pub fn place(&self, study: usize, of: usize) {
        self.with(|state| state.place = format!("{study} of {of}: "));
    }

    /// Names what is at work.
    pub fn study(&self, name: &str) {
        self.with(|state| state.what = name.to_owned());
    }

    /// Says how many cells of the study are to do.
    pub fn cells(&self, count: usize) {
        self.with(|state| state.cells = Some((0, count)));
    }

    /// Prints a line beside the bar.
    pub fn say(&self, line: &str) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.println(line),
            Show::Lines => tell(line),
        }
    }

    /// One step of a training run, where every step counts for one second of the whole.
    pub fn step(&self, record: &StepRecord) {
        if let Show::Bar(bar) = &self.show {
            bar.set_message(format!("step {}, loss {:.4}", record.step, record.loss_nats));
        }
        self.with(|state| {
            state.what = format!("step {}, loss {:.4}", record.step, record.loss_nats)
        });
        self.advanced(1.0);
    }

    /// What is at work, of a whole that is an upper bound.
    pub fn within(&self, what: String) {
        if let Show::Bar(bar) = &self.show {
            bar.set_message(what.clone());
        }
        self.with(|state| {
            state.what = what;
            state.left = "at most";
        });
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // A panic in another cell leaves the counters as good as they were.
        change(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn line_is_due(state: &mut State) -> Option<String> {
        let due = state.printed.is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL);
        if !due {
            return None;
        }
        state.printed = Some(Instant::now());
        let share = (state.done / state.total).min(1.0);
        let gone = state.started.elapsed().as_secs_f64();
        let line =
            format!("{}: {:.0} % done, {} gone", state.at_work(""), 100.0 * share, duration(gone));
        let left = match share >= KNOWN_FROM {
            true => format!(", {} {} left", state.left, duration(gone / share - gone)),
            false => String::new(),
        };
        Some(line + &left)
    }
}

impl State {
    /// The study, or one of its cells, and how many of these are done: `2 of 9: phase, 12 of 180 cells`.
    fn at_work(&self, cell: &str) -> String {
        let counts = match self.cells {
            Some((done, cells)) => format!(", {done} of {cells} cells"),
            None => String::new(),
        };
        format!("{}{}{cell}{counts}", self.place, self.what)
    }
}

/// Seconds as a person says them: `48 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

impl Observer for Progress {
    fn cell_started(&self, cell: &str) {
        if let Show::Bar(bar) = &self.show {
            bar.set_message(self.with(|state| state.at_work(&format!("/{cell}"))));
        }
    }

    fn advanced(&self, seconds: f64) {
        let (line, done) = self.with(|state| {
            state.done += seconds;
            (
                matches!(self.show, Show::Lines).then(|| Self::line_is_due(state)).flatten(),
                state.done,
            )
        });
        match &self.show {
            Show::Bar(bar) => bar.set_position((done * PARTS) as u64),
            Show::Lines => line.iter().for_each(|line| tell(line)),
            Show::Nothing => {}
        }
    }

    fn warned(&self, of_what: &str) {
        self.say(of_what);
    }

    fn cell_finished(&self, cell: &str, outcome: &str) {
        self.with(|state| {
            if let Some((done, _)) = &mut state.cells {
                *done += 1;
            }
        });
        if outcome.starts_with("failed") {
            let what = self.with(|state| state.what.clone());
            self.say(&format!("{what}/{cell} {outcome}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_as_a_person_says_them() {
        for (seconds, text) in
            [(0.4, "0 s"), (59.6, "1 min 0 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 5 min")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
