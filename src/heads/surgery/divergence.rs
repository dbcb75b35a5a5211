//! Divergence of replaced attention from a head's own.

use ndarray::Array2;

/// Two distances of attention P̃ from P, (T, T) each, as means over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Divergence {
    /// KL(Pᵢ ‖ P̃ᵢ), in nats. Entries of P̃ below the smallest positive normal float64 count as that number.
    pub kl_nats: f64,
    /// Total variation, ½ Σ|Pᵢⱼ − P̃ᵢⱼ|.
    pub total_variation: f64,
}

impl Divergence {
    pub fn between(own: &Array2<f64>, other: &Array2<f64>) -> Self {
        let rows = own.nrows() as f64;
        let (mut kl, mut variation) = (0.0, 0.0);
        for (&p, &q) in own.iter().zip(other) {
            if p > 0.0 {
                kl += p * (p / q.max(f64::MIN_POSITIVE)).ln();
            }
            variation += 0.5 * (p - q).abs();
        }
        Self { kl_nats: (kl / rows).max(0.0), total_variation: variation / rows }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn distances_are_those_worked_out_by_hand() {
        let p = array![[1.0, 0.0], [0.5, 0.5]];
        let q = array![[1.0, 0.0], [0.25, 0.75]];
        let found = Divergence::between(&p, &q);
        // ½·(½ ln 2 + ½ ln ⅔) and ½·¼.
        let kl = 0.5 * (0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln());
        assert!((found.kl_nats - kl).abs() < 1e-15, "{found:?}");
        assert_eq!(found.total_variation, 0.125);
        assert_eq!(Divergence::between(&p, &p), Divergence::default());
    }
}
