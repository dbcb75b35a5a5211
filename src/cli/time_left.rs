//! Estimate of the remaining time, from the costs of finished and remaining cells.

use rank_study::study::Work;

/// Weight of the estimates against the measured pace: this many seconds of work count as done in the estimated time.
const TRUST_S: f64 = 10.0;

/// Progress of a command: cost done and cost left, in seconds of this machine.
#[derive(Debug, Default)]
pub struct TimeLeft {
    at_hand: Option<Work>,
    waiting: Vec<Work>,
    /// Running cells: name, cost, and the share that is done.
    running: Vec<(String, f64, f64)>,
    done_s: f64,
}

impl TimeLeft {
    /// Creates the progress of these works, which run one after another. A cell that several works of the same name
    /// contain counts once.
    pub fn of(works: Vec<Work>) -> Self {
        let mut waiting: Vec<Work> = Vec::new();
        for mut work in works {
            match waiting.iter_mut().find(|other| other.name == work.name) {
                Some(other) => {
                    work.cells.retain(|(cell, _)| other.cells.iter().all(|(name, _)| name != cell));
                    other.cells.append(&mut work.cells);
                }
                None => waiting.push(work),
            }
        }
        Self { waiting, ..Self::default() }
    }

    /// Begins `work`. Waiting cells of work with the same name stay waiting if `work` does not contain them.
    pub fn begin(&mut self, work: Work) {
        self.running.clear();
        for other in self.waiting.iter_mut().filter(|other| other.name == work.name) {
            other.cells.retain(|(cell, _)| work.cells.iter().all(|(name, _)| name != cell));
        }
        self.at_hand = Some(work);
    }

    /// Records that a cell of the current work begins.
    pub fn started(&mut self, cell: &str) {
        let Some(work) = &mut self.at_hand else { return };
        let Some(place) = work.cells.iter().position(|(name, _)| name == cell) else { return };
        let (name, cost_s) = work.cells.remove(place);
        self.running.push((name, cost_s / work.at_a_time.max(1) as f64, 0.0));
    }

    /// Records that a further share of a running cell is done.
    pub fn advanced(&mut self, cell: &str, share: f64) {
        if let Some(running) = self.running.iter_mut().find(|running| running.0 == cell) {
            running.2 = (running.2 + share).min(1.0);
        }
    }

    /// Records that a running cell has ended.
    pub fn finished(&mut self, cell: &str) {
        self.done_s += self.take(cell).unwrap_or(0.0);
    }

    /// Records that a running cell has failed; its time does not count for the pace.
    pub fn failed(&mut self, cell: &str) {
        self.take(cell);
    }

    /// Names of the running cells, in the order in which they began.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.running.iter().map(|running| running.0.as_str())
    }

    /// Estimated seconds left, at the pace of the first `elapsed_s` seconds.
    pub fn left_s(&self, elapsed_s: f64) -> f64 {
        let waiting: f64 = self.at_hand.iter().chain(&self.waiting).map(cost_s).sum();
        let share = |done: bool| -> f64 {
            let parts = self.running.iter();
            parts.map(|(_, cost_s, share)| cost_s * if done { *share } else { 1.0 - share }).sum()
        };
        let pace = (elapsed_s + TRUST_S) / (self.done_s + share(true) + TRUST_S);
        (waiting + share(false)) * pace
    }

    fn take(&mut self, cell: &str) -> Option<f64> {
        let place = self.running.iter().position(|running| running.0 == cell)?;
        Some(self.running.remove(place).1)
    }
}

fn cost_s(work: &Work) -> f64 {
    work.cells.iter().map(|(_, cost_s)| cost_s).sum::<f64>() / work.at_a_time.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(name: &str, at_a_time: usize, cells: &[(&str, f64)]) -> Work {
        let cells = cells.iter().map(|&(name, cost_s)| (name.to_owned(), cost_s)).collect();
        Work { name: name.to_owned(), at_a_time, cells }
    }

    #[test]
    fn time_left_follows_the_pace_of_what_is_done() {
        let both = vec![work("a", 2, &[("1", 100.0), ("2", 100.0)]), work("b", 1, &[("3", 50.0)])];
        let mut left = TimeLeft::of(both.clone());
        assert_eq!(left.left_s(0.0), 150.0);
        left.begin(both[0].clone());
        left.started("1");
        left.started("2");
        left.advanced("1", 0.5);
        left.advanced("2", 0.5);
        // Costs of 50 s are done after 100 s. With 10 s of trust added to both, the pace is 110/60.
        assert!((left.left_s(100.0) - 100.0 * 110.0 / 60.0).abs() < 1e-9);
        left.finished("1");
        left.failed("2");
        left.begin(both[1].clone());
        left.started("3");
        assert_eq!(left.running().collect::<Vec<_>>(), ["3"]);
        left.finished("3");
        assert_eq!(left.left_s(300.0), 0.0);
    }

    #[test]
    fn cells_of_two_works_of_a_name_count_once() {
        let twice = vec![work("a", 1, &[("1", 10.0)]), work("a", 1, &[("1", 10.0), ("2", 5.0)])];
        assert_eq!(TimeLeft::of(twice).left_s(0.0), 15.0);
    }
}
