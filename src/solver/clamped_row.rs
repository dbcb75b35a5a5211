//! Rows of a target and the level u at which a logit bound clamps their entries: see [`floor`](super::floor).

/// Largest logit bound that is distinguished: e^{2L} must stay finite in float64.
pub(super) const LARGEST_LOGIT: f64 = 340.0;
/// Fixed-point steps for a level before it is computed by a walk.
const GUESSES: usize = 24;

/// R = e^{2L}: the largest ratio of two probabilities of a row.
pub(super) fn ratio(max_logit: f64) -> f64 {
    (2.0 * max_logit.clamp(0.0, LARGEST_LOGIT)).exp()
}

/// A row in ascending order.
pub(super) fn ascending(a: &[f64]) -> Vec<f64> {
    let mut sorted = a.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The u for which Σⱼ min(max(aⱼ, u), u·R) = 1 over `visible` entries, of which those above 0 (Σ = 1) are `sorted` in ascending
/// order. If every two entries are already within a ratio R, any u that clamps nothing is a solution, and the smallest entry is
/// returned.
pub(super) fn clamp_level(sorted: &[f64], visible: usize, ratio: f64) -> f64 {
    let zeros = (visible - sorted.len()) as f64;
    let greatest = sorted[sorted.len() - 1];
    if zeros == 0.0 && sorted[0] * ratio >= greatest {
        return sorted[0];
    }
    // Walks u upwards over the places where an entry changes side: entries ≤ u are raised to u, entries ≥ u·R are lowered to
    // u·R. `raised` and `lowered` count them and have their sums; the root of raised·u − Σ raised = Σ lowered − lowered·u·R
    // lies between two such places.
    let count = sorted.len();
    let (mut raised, mut raised_sum) = (0usize, 0.0);
    let (mut lowered, mut lowered_sum) = (count, sorted.iter().sum::<f64>());
    loop {
        let weight = raised as f64 + zeros + lowered as f64 * ratio;
        let u = (raised_sum + lowered_sum) / weight;
        let next_raise = sorted.get(raised).copied().unwrap_or(f64::INFINITY);
        let next_release = sorted.get(count - lowered).map_or(f64::INFINITY, |a| a / ratio);
        if u <= next_raise && u <= next_release {
            return u;
        }
        if next_raise <= next_release {
            raised += 1;
            raised_sum += next_raise;
        } else {
            lowered_sum -= sorted[count - lowered];
            lowered -= 1;
        }
    }
}

/// A row in ascending order with prefix sums of a and a ln a, so that its error at a level takes two searches.
pub(super) struct SummedRow<'a> {
    sorted: &'a [f64],
    visible: usize,
    sums: Vec<[f64; 2]>,
}

impl<'a> SummedRow<'a> {
    /// `sorted` are the entries above 0 of `visible` entries, in ascending order.
    pub fn of(sorted: &'a [f64], visible: usize) -> Self {
        let mut so_far = [0.0; 2];
        let mut sums = vec![so_far];
        sums.extend(sorted.iter().map(|a| {
            so_far = [so_far[0] + a, so_far[1] + a * a.ln()];
            so_far
        }));
        Self { sorted, visible, sums }
    }

    /// The smallest KL, in nats, if no two probabilities of the row differ by more than the factor `ratio`; exact up to
    /// rounding of sums.
    pub fn kl_nats(&self, ratio: f64) -> f64 {
        let count = self.sorted.len();
        let zeros = self.visible - count;
        if zeros == 0 && self.sorted[0] * ratio >= self.sorted[count - 1] {
            return 0.0;
        }
        let mut level = 1.0 / self.visible as f64;
        let [mut raised, mut lowered] = self.clamped(level, ratio);
        let mut is_found = false;
        for _ in 0..GUESSES {
            let sum = self.sums[raised][0] + self.sums[count][0] - self.sums[lowered][0];
            level = sum / ((raised + zeros) as f64 + (count - lowered) as f64 * ratio);
            let again = self.clamped(level, ratio);
            is_found = again == [raised, lowered];
            [raised, lowered] = again;
            if is_found {
                break;
            }
        }
        if !is_found {
            level = clamp_level(self.sorted, self.visible, ratio);
            [raised, lowered] = self.clamped(level, ratio);
        }
        let [low, of_low] = self.sums[raised];
        let [below, of_below] = self.sums[lowered];
        let [all, of_all] = self.sums[count];
        of_low - low * level.ln() + (of_all - of_below) - (all - below) * (level * ratio).ln()
    }

    /// The number of entries below `level`, and the number of entries up to `ratio` times `level`.
    fn clamped(&self, level: f64, ratio: f64) -> [usize; 2] {
        let high = level * ratio;
        let raised = self.sorted.partition_point(|&a| a < level);
        [raised, self.sorted.partition_point(|&a| a <= high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_row_cost_what_its_entries_do_one_by_one() {
        for (count, visible, power) in [(1, 1, 1.0), (1, 7, 1.0), (40, 40, 3.0), (40, 55, 9.0)] {
            let mut a: Vec<f64> =
                (0..count).map(|i| ((i * i * 7 % 41 + 1) as f64).powf(power)).collect();
            let sum: f64 = a.iter().sum();
            a.iter_mut().for_each(|a| *a /= sum);
            let sorted = ascending(&a);
            let row = SummedRow::of(&sorted, visible);
            for logit in [0.0, 0.1, 0.7, 2.0, 5.0, 12.0] {
                let ratio = (2.0f64 * logit).exp();
                let level = clamp_level(&sorted, visible, ratio);
                let cost = |a: &f64| a * (a / a.max(level).min(level * ratio)).ln();
                let one_by_one: f64 = a.iter().map(cost).sum();
                let off = (row.kl_nats(ratio) - one_by_one).abs();
                assert!(off < 1e-13, "{count} of {visible} at {logit}: off by {off}");
            }
        }
    }
}
