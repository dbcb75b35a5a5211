//! Spearman's rank correlation, over groups of points, with a bootstrap interval and a control.

use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws of the bootstrap and of the control.
const DRAWS: usize = 2000;
/// The seed of both: the same rows give the same interval.
const SEED: u64 = 1;

/// Spearman's ρ within each of some groups, averaged over them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankCorrelation {
    /// The mean over groups.
    pub rho: f64,
    /// The lower end of its 95 % interval: percentiles of a bootstrap that draws groups, and within a group its
    /// points (Efron 1979).
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What |ρ| exceeds in 5 % of draws where one side of each group is shuffled: the control.
    pub by_chance: f64,
    /// How many groups.
    pub groups: usize,
    /// How many points in all.
    pub points: usize,
}

impl RankCorrelation {
    /// Of x against y within each group; none where no group has three points of different ranks.
    pub fn of(groups: &[Vec<(f64, f64)>]) -> Option<Self> {
        let groups: Vec<Vec<[f64; 3]>> =
            groups.iter().map(|group| group.iter().map(|&(x, y)| [x, y, 0.0]).collect()).collect();
        Self::by(&groups, |points| spearman(points, 0, 1))
    }

    /// The partial correlation of x and y given z, of ranks: (ρxy − ρxz ρyz)/√((1 − ρxz²)(1 − ρyz²)).
    pub fn given(groups: &[Vec<[f64; 3]>]) -> Option<Self> {
        Self::by(groups, partial)
    }

    fn by(
        groups: &[Vec<[f64; 3]>],
        statistic: impl Fn(&[[f64; 3]]) -> Option<f64>,
    ) -> Option<Self> {
        let groups: Vec<&Vec<[f64; 3]>> =
            groups.iter().filter(|group| statistic(group).is_some()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let own: Vec<f64> = groups.iter().filter_map(|group| statistic(group)).collect();
        if own.is_empty() {
            return None;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut drawn = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let one = |rng: &mut ChaCha8Rng| {
                let group = groups.choose(rng)?;
                let again: Vec<[f64; 3]> =
                    (0..group.len()).map(|_| group[rng.random_range(0..group.len())]).collect();
                statistic(&again)
            };
            let values: Vec<f64> = (0..groups.len()).filter_map(|_| one(&mut rng)).collect();
            if !values.is_empty() {
                drawn.push(mean(&values));
            }
        }
        let mut shuffled = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let mut one = |group: &&Vec<[f64; 3]>| {
                let mut first: Vec<f64> = group.iter().map(|point| point[0]).collect();
                first.shuffle(&mut rng);
                let points: Vec<[f64; 3]> =
                    first.into_iter().zip(group.iter()).map(|(x, p)| [x, p[1], p[2]]).collect();
                statistic(&points)
            };
            let values: Vec<f64> = groups.iter().filter_map(&mut one).collect();
            shuffled.push(mean(&values).abs());
        }
        drawn.sort_by(f64::total_cmp);
        shuffled.sort_by(f64::total_cmp);
        let at = |values: &[f64], share: f64| {
            values.get((share * (values.len().max(1) - 1) as f64).round() as usize).copied()
        };
        Some(Self {
            rho: mean(&own),
            low: at(&drawn, 0.025)?,
            high: at(&drawn, 0.975)?,
            by_chance: at(&shuffled, 0.95)?,
            groups: groups.len(),
            points: groups.iter().map(|group| group.len()).sum(),
        })
    }
}

/// The correlation of the ranks of two of the points' coordinates; none where one of them is constant.
fn spearman(points: &[[f64; 3]], x: usize, y: usize) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let [x, y] = [x, y].map(|which| ranks(&points.iter().map(|p| p[which]).collect::<Vec<_>>()));
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>()
    };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    (scale > 0.0).then(|| product(&x, &y) / scale)
}

fn partial(points: &[[f64; 3]]) -> Option<f64> {
    let (xy, xz, yz) = (spearman(points, 0, 1)?, spearman(points, 0, 2)?, spearman(points, 1, 2)?);
    let left = (1.0 - xz * xz) * (1.0 - yz * yz);
    (left > 1e-9).then(|| (xy - xz * yz) / left.sqrt())
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = before as f64 + (tied.len() - 1) as f64 / 2.0;
        tied.iter().for_each(|&at| ranks[at] = shared);
        before += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_their_correlation_are_those_of_a_worked_example() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        // IQ against hours of television: ρ = −29/165, the textbook example.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let points: Vec<(f64, f64)> = iq.into_iter().zip(hours).collect();
        let found = RankCorrelation::of(&[points]).unwrap();
        assert!((found.rho + 29.0 / 165.0).abs() < 1e-12, "{found:?}");
        assert!(found.low < found.rho && found.rho < found.high);
        // Ten points: |ρ| above 0.648 is significant at 5 %.
        assert!((found.by_chance - 0.648).abs() < 0.04, "{found:?}");
    }

    #[test]
    fn what_a_third_explains_is_taken_out() {
        // x and y are both z and a little of their own, in turn.
        let point = |i: usize| {
            let z = i as f64;
            [z + [0.0, 1.6, 0.0, -1.6][i % 4], z + [1.6, 0.0, -1.6, 0.0][i % 4], z]
        };
        let points: Vec<[f64; 3]> = (0..40).map(point).collect();
        let plain: Vec<(f64, f64)> = points.iter().map(|p| (p[0], p[1])).collect();
        assert!(RankCorrelation::of(&[plain]).unwrap().rho > 0.97);
        let given = RankCorrelation::given(&[points]).unwrap();
        assert!(given.rho.abs() < 0.3 && given.low < 0.0 && given.high > 0.0, "{given:?}");
    }

    #[test]
    fn nothing_to_correlate_is_none() {
        assert_eq!(RankCorrelation::of(&[vec![(1.0, 2.0), (2.0, 1.0)]]), None);
        assert_eq!(RankCorrelation::of(&[vec![(1.0, 2.0); 9]]), None);
        assert_eq!(RankCorrelation::of(&[]), None);
    }
}
