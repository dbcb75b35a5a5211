//! Regressions and rank correlations of columns.

use nalgebra::{DMatrix, DVector};
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::table::{Estimate, Spread};

/// Ordinary least squares y = a + Σ bₖ xₖ over `points`, each (x, y): the coefficients bₖ, without the constant a. `None` if there
/// are fewer points than coefficients, constant included, or if the variables are collinear.
pub(crate) fn least_squares(points: &[(Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let count = points.len();
    let width = 1 + points.first()?.0.len();
    if count < width {
        return None;
    }
    let means: Vec<f64> = (0..width - 1)
        .map(|k| points.iter().map(|(x, _)| x[k]).sum::<f64>() / count as f64)
        .collect();
    let x = DMatrix::from_fn(count, width, |row, k| match k.checked_sub(1) {
        None => 1.0,
        Some(k) => points[row].0[k] - means[k],
    });
    let y = DVector::from_iterator(count, points.iter().map(|(_, y)| *y));
    let gram = x.transpose() * &x;
    // Collinear variables leave a pivot that is only rounding error, which Cholesky may accept.
    let inverse = gram.clone().cholesky()?.inverse();
    if (&inverse * &gram - DMatrix::identity(width, width)).amax() > 1e-6 {
        return None;
    }
    let fitted = &inverse * (x.transpose() * &y);
    Some(fitted.iter().skip(1).copied().collect())
}

/// Number of draws of the bootstrap and of the permutation control.
const DRAWS: usize = 2000;
/// Seed of both, so that the same rows give the same interval.
const SEED: u64 = 1;

/// Spearman's ρ within each of several groups, and its median over the groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankCorrelation {
    /// Median over groups.
    pub rho: f64,
    /// Lower end of the median's 95 % interval: percentiles of a bootstrap that draws groups, and points within each
    /// group (Efron 1979).
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// Mean over groups.
    pub mean: f64,
    /// Permutation control: with x shuffled within each group, the median's |ρ| exceeds this value in 5 % of draws.
    pub by_chance: f64,
    /// Number of groups used.
    pub groups: usize,
    /// Number of points in these groups.
    pub points: usize,
    /// Number of groups that are not used: fewer than three points, points that agree in one of the coordinates, or
    /// [`collinear`](Self::collinear).
    pub left_out: usize,
    /// Of these, groups whose third coordinate orders the points as x or y does, so that the partial correlation is
    /// undefined.
    pub collinear: usize,
}

/// Why points have no correlation.
#[derive(PartialEq)]
enum Undefined {
    FewOrAlike,
    Collinear,
}

impl RankCorrelation {
    /// Correlates the coordinates with indices `x` and `y` within each group. Returns `None` if no group has three points
    /// that differ in both.
    pub fn between<const N: usize>(groups: &[Vec<[f64; N]>], x: usize, y: usize) -> Option<Self> {
        Self::by(groups, |points| spearman(points, x, y))
    }

    /// Partial rank correlation of x and y given z: (ρxy − ρxz ρyz)/√((1 − ρxz²)(1 − ρyz²)).
    pub fn given(groups: &[Vec<[f64; 3]>]) -> Option<Self> {
        Self::by(groups, partial)
    }

    /// Formats as `ρ [low, high]` with two significant digits.
    pub fn shown(&self) -> String {
        Estimate::within(self.rho, [self.low, self.high]).shown(2)
    }

    fn by<const N: usize>(
        groups: &[Vec<[f64; N]>],
        statistic: impl Fn(&[[f64; N]]) -> Result<f64, Undefined>,
    ) -> Option<Self> {
        let (mut left_out, mut collinear) = (0, 0);
        let (mut defined, mut own) = (Vec::new(), Vec::new());
        for group in groups {
            match statistic(group) {
                Ok(rho) => {
                    defined.push(group);
                    own.push(rho);
                }
                Err(why) => {
                    left_out += 1;
                    collinear += usize::from(why == Undefined::Collinear);
                }
            }
        }
        let groups = defined;
        let rho = median(&own)?;
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut drawn = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let one = |rng: &mut ChaCha8Rng| {
                let group = groups.choose(rng)?;
                let again: Vec<[f64; N]> =
                    (0..group.len()).map(|_| group[rng.random_range(0..group.len())]).collect();
                statistic(&again).ok()
            };
            let values: Vec<f64> = (0..groups.len()).filter_map(|_| one(&mut rng)).collect();
            drawn.extend(median(&values));
        }
        let mut shuffled = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let mut one = |group: &&Vec<[f64; N]>| {
                let mut first: Vec<f64> = group.iter().map(|point| point[0]).collect();
                first.shuffle(&mut rng);
                let mut points = (*group).clone();
                points.iter_mut().zip(first).for_each(|(point, x)| point[0] = x);
                statistic(&points).ok()
            };
            let values: Vec<f64> = groups.iter().filter_map(&mut one).collect();
            shuffled.extend(median(&values).map(f64::abs));
        }
        drawn.sort_by(f64::total_cmp);
        shuffled.sort_by(f64::total_cmp);
        let at = |values: &[f64], share: f64| {
            values.get((share * (values.len().max(1) - 1) as f64).round() as usize).copied()
        };
        Some(Self {
            rho,
            low: at(&drawn, 0.025)?,
            high: at(&drawn, 0.975)?,
            mean: own.iter().sum::<f64>() / own.len() as f64,
            by_chance: at(&shuffled, 0.95)?,
            groups: groups.len(),
            points: groups.iter().map(|group| group.len()).sum(),
            left_out,
            collinear,
        })
    }
}

fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values.iter().copied()).map(|spread| spread.median)
}

/// Rank correlation of the coordinates with indices `x` and `y`.
fn spearman<const N: usize>(points: &[[f64; N]], x: usize, y: usize) -> Result<f64, Undefined> {
    if points.len() < 3 {
        return Err(Undefined::FewOrAlike);
    }
    let [x, y] = [x, y].map(|which| ranks(&points.iter().map(|p| p[which]).collect::<Vec<_>>()));
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>()
    };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    if scale > 0.0 { Ok(product(&x, &y) / scale) } else { Err(Undefined::FewOrAlike) }
}

fn partial(points: &[[f64; 3]]) -> Result<f64, Undefined> {
    let (xy, xz, yz) = (spearman(points, 0, 1)?, spearman(points, 0, 2)?, spearman(points, 1, 2)?);
    let left = (1.0 - xz * xz) * (1.0 - yz * yz);
    if left > 1e-9 { Ok((xy - xz * yz) / left.sqrt()) } else { Err(Undefined::Collinear) }
}

/// Ranks from 0; equal values share the mean of their ranks.
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
    fn coefficients_are_those_of_a_worked_example() {
        // x is centred and orthogonal to 1; b = Σxy/Σx² = 12/10.
        let x = [-2.0, -1.0, 0.0, 0.0, 1.0, 2.0];
        let y = [-2.0, -2.0, 1.0, -1.0, 2.0, 2.0];
        let points: Vec<(Vec<f64>, f64)> = x.iter().zip(y).map(|(x, y)| (vec![*x], y)).collect();
        let [b] = least_squares(&points).unwrap()[..] else { panic!("one coefficient") };
        assert!((b - 1.2).abs() < 1e-12, "{b}");
        assert_eq!(least_squares(&points[..1]), None, "one point");
        assert_eq!(least_squares(&[]), None);
        let twice: Vec<_> = points.iter().map(|(x, y)| (vec![x[0], 2.0 * x[0]], *y)).collect();
        assert_eq!(least_squares(&twice), None, "one variable twice");
    }

    #[test]
    fn ranks_and_their_correlation_are_those_of_a_worked_example() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        // IQ against hours of television: ρ = −29/165, the textbook example.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let points: Vec<[f64; 2]> = iq.into_iter().zip(hours).map(<[f64; 2]>::from).collect();
        let found = RankCorrelation::between(&[points], 0, 1).unwrap();
        assert!((found.rho + 29.0 / 165.0).abs() < 1e-12, "{found:?}");
        assert!(found.low < found.rho && found.rho < found.high);
        // Ten points: |ρ| above 0.648 is significant at 5 %.
        assert!((found.by_chance - 0.648).abs() < 0.04, "{found:?}");
    }

    #[test]
    fn what_a_third_explains_is_taken_out() {
        // x and y are both z plus a small periodic term of their own.
        let point = |i: usize| {
            let z = i as f64;
            [z + [0.0, 1.6, 0.0, -1.6][i % 4], z + [1.6, 0.0, -1.6, 0.0][i % 4], z]
        };
        let points: [Vec<[f64; 3]>; 1] = [(0..40).map(point).collect()];
        assert!(RankCorrelation::between(&points, 0, 1).unwrap().rho > 0.97);
        let given = RankCorrelation::given(&points).unwrap();
        assert!(given.rho.abs() < 0.3 && given.low < 0.0 && given.high > 0.0, "{given:?}");
    }

    #[test]
    fn it_is_the_median_over_groups_and_tells_the_mean_beside() {
        let line = |order: [f64; 4]| -> Vec<[f64; 2]> {
            order.into_iter().enumerate().map(|(x, y)| [x as f64, y]).collect()
        };
        // ρ of 1, 1 and −1.
        let (up, down) = (line([1.0, 2.0, 3.0, 4.0]), line([4.0, 3.0, 2.0, 1.0]));
        let found = RankCorrelation::between(&[up.clone(), up, down], 0, 1).unwrap();
        assert!((found.rho - 1.0).abs() < 1e-12 && (found.mean - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((found.groups, found.points), (3, 12));
    }

    #[test]
    fn groups_that_are_left_out_are_told_with_what_they_lack() {
        let good: Vec<[f64; 3]> =
            (0..8).map(|i| [i as f64, (i * 3 % 8) as f64, (i * 5 % 8) as f64]).collect();
        let collinear: Vec<[f64; 3]> = good.iter().map(|&[x, y, _]| [x, y, 2.0 * x]).collect();
        let alike: Vec<[f64; 3]> = good.iter().map(|&[_, y, z]| [1.0, y, z]).collect();
        let few = good[..2].to_vec();
        let found = RankCorrelation::given(&[good, collinear, alike, few]).unwrap();
        assert_eq!((found.groups, found.points), (1, 8));
        assert_eq!((found.left_out, found.collinear), (3, 1));
    }

    #[test]
    fn nothing_to_correlate_is_none() {
        assert_eq!(RankCorrelation::between(&[vec![[1.0, 2.0], [2.0, 1.0]]], 0, 1), None);
        assert_eq!(RankCorrelation::between(&[vec![[1.0, 2.0]; 9]], 0, 1), None);
        assert_eq!(RankCorrelation::between::<2>(&[], 0, 1), None);
    }
}
