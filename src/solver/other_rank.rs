//! Factors of another rank that are nearest to given ones.

use ndarray::{Array2, Array3, ArrayView2, s};
use ndarray_linalg::{JobSvd, QR, SVDDC};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::factors::{Factors, FactorsError};
use super::problem::FitError;
use crate::numerics::blas::on_one_thread;
use crate::numerics::product;

/// Queries and keys of one head.
type Pair = (Array2<f64>, Array2<f64>);

impl Factors {
    /// Factors of `rank` with the same logits Z = QKᵀ/√d if `rank` is d or more. Otherwise their logits are nearest in squares
    /// over each of `blocks` equal blocks of rows and columns, such as the passages of a packed target (Eckart and Young 1936).
    /// One block takes all pairs together, so that rows stay linear in the same inputs.
    ///
    /// Added channels are zeros in the queries, so that logits stay the same. In the keys they are normal draws as long as the
    /// keys' own channels, so that the descent can use them.
    ///
    /// # Errors
    /// `Shape` if `rank` is 0; `Value` if `blocks` does not divide n, or LAPACK fails.
    pub fn at_rank(&self, rank: usize, blocks: usize) -> Result<Self, FitError> {
        let (heads, n, own) = (self.heads(), self.n(), self.rank());
        if blocks == 0 || !n.is_multiple_of(blocks) {
            let why = "the matrix does not divide into blocks of this rank";
            return Err(FactorsError::Value(why).into());
        }
        let mut queries = Array3::zeros((heads, n, rank));
        let mut keys = Array3::zeros((heads, n, rank));
        let mut generator = ChaCha8Rng::seed_from_u64(0);
        let scale = (rank as f64 / own as f64).powf(0.25);
        for head in 0..heads {
            let (q, k) = self.head(head);
            if rank >= own {
                queries.slice_mut(s![head, .., ..own]).assign(&(&q * scale));
                keys.slice_mut(s![head, .., ..own]).assign(&(&k * scale));
                let length = scale * (k.iter().map(|v| v * v).sum::<f64>() / k.len() as f64).sqrt();
                keys.slice_mut(s![head, .., own..]).mapv_inplace(|_| {
                    let draw: f64 = StandardNormal.sample(&mut generator);
                    length * draw
                });
                continue;
            }
            for block in 0..blocks {
                let rows = block * n / blocks..(block + 1) * n / blocks;
                let of = |m: ArrayView2<'_, f64>| m.slice(s![rows.clone(), ..]).to_owned();
                let (near_q, near_k) = truncated(of(q), of(k), rank)
                    .ok_or(FactorsError::Value("no singular values of a query or key"))?;
                queries.slice_mut(s![head, rows.clone(), ..]).assign(&(near_q * scale));
                keys.slice_mut(s![head, rows, ..]).assign(&(near_k * scale));
            }
        }
        Ok(Self::new(queries, keys, self.weights().clone())?)
    }
}

/// The `rank` leading singular directions of QKᵀ, split equally, from the triangles of Q and K without the n × n product.
/// Returns `None` if LAPACK fails.
fn truncated(q: Array2<f64>, k: Array2<f64>, rank: usize) -> Option<Pair> {
    let (left, r_q) = on_one_thread(|| q.qr()).ok()?;
    let (right, r_k) = on_one_thread(|| k.qr()).ok()?;
    let small = product(r_q.view(), r_k.t());
    let (u, sigma, vt) = on_one_thread(|| small.svddc(JobSvd::Some)).ok()?;
    let used = rank.min(sigma.len());
    let root = sigma.slice(s![..used]).mapv(f64::sqrt);
    let wide = |m: Array2<f64>| {
        let mut all = Array2::zeros((m.nrows(), rank));
        all.slice_mut(s![.., ..used]).assign(&m);
        all
    };
    let q = left.dot(&u?.slice(s![.., ..used])) * &root;
    let k = right.dot(&vt?.slice(s![..used, ..]).t()) * &root;
    Some((wide(q), wide(k)))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Axis};

    use super::*;

    fn wave(n: usize, d: usize, shift: f64) -> Array3<f64> {
        Array3::from_shape_fn((1, n, d), |(_, i, c)| (0.9 * (i * (c + 2)) as f64 + shift).sin())
    }

    fn factors(d: usize) -> Factors {
        Factors::new(wave(12, d, 0.3), wave(12, d, 1.1), Array1::ones(1)).unwrap()
    }

    fn off(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        (a - b).iter().fold(0.0, |most: f64, v| most.max(v.abs()))
    }

    #[test]
    fn more_rank_keeps_logits_and_adds_keys_that_descent_can_use() {
        let own = factors(3);
        let wider = own.at_rank(5, 1).unwrap();
        let off = off(&own.logits(0), &wider.logits(0));
        assert!(off < 1e-12, "{off}");
        assert!(wider.keys().index_axis(Axis(2), 4).iter().any(|v| v.abs() > 1e-3));
    }

    /// The squared error is the sum of the squares of the omitted singular values.
    #[test]
    fn less_rank_is_nearest_in_squares_over_each_block() {
        let own = factors(4);
        for blocks in [1, 3] {
            let nearest = own.at_rank(2, blocks).unwrap();
            assert_eq!(nearest.rank(), 2);
            for block in 0..blocks {
                let rows = block * 12 / blocks..(block + 1) * 12 / blocks;
                let part = |z: Array2<f64>| z.slice(s![rows.clone(), rows.clone()]).to_owned();
                let z = part(own.logits(0));
                let (_, sigma, _) = z.svddc(JobSvd::None).unwrap();
                let left: f64 = (&z - &part(nearest.logits(0))).iter().map(|v| v * v).sum();
                let least: f64 = sigma.iter().skip(2).map(|v| v * v).sum();
                assert!((left - least).abs() < 1e-9 * (1.0 + least), "{left} against {least}");
            }
        }
    }

    #[test]
    fn shapes_that_there_are_not_are_refused() {
        for (rank, blocks) in [(0, 1), (2, 0), (2, 5)] {
            assert!(factors(3).at_rank(rank, blocks).is_err(), "{rank} in {blocks}");
        }
    }
}
