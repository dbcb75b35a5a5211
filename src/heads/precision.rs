//! Precision risk: how much rounding a head's logits to a short float format changes its attention.

use super::positions::SeenRows;
use crate::record::record;

record! {
    /// Precision risk of a head: mean over rows of KL(P ‖ P̂), where P̂ has logits z = s·q·k rounded once to a format, to the
    /// nearest and ties to even, and everything else exact. Values beyond a format's largest become that.
    pub struct PrecisionRisk {
        /// mean KL of the attention from that of its logits rounded to bfloat16
        #[unit = "nats"]
        kl_bf16: f64,
        /// the same for float16
        #[unit = "nats"]
        kl_f16: f64,
        /// the same for float8 e4m3, whose largest value is 448
        #[unit = "nats"]
        kl_f8: f64,
    }
}

/// A binary floating-point format.
struct Format {
    /// Stored bits of the significand.
    bits: i32,
    /// The exponent of the least normal number.
    least: i32,
    largest: f64,
}

/// `f32`'s range, eight significant bits.
const BF16: Format = Format { bits: 7, least: -126, largest: 3.389_531_389_251_535_5e38 };
/// IEEE 754 binary16.
const F16: Format = Format { bits: 10, least: -14, largest: 65_504.0 };
/// E4M3 of Micikevicius et al. 2022 (arXiv 2209.05433), table 1.
const F8: Format = Format { bits: 3, least: -6, largest: 448.0 };

impl Format {
    fn round(&self, value: f64) -> f64 {
        let exponent = (((value.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(self.least);
        let step = 2f64.powi(exponent - self.bits);
        ((value / step).round_ties_even() * step).clamp(-self.largest, self.largest)
    }
}

impl PrecisionRisk {
    /// Of the head whose rows are `seen`; `softcap` is the c of c·tanh(z/c), if its logits are bounded by it.
    pub(super) fn of_rows(seen: &SeenRows, softcap: Option<f64>) -> Self {
        let [kl_bf16, kl_f16, kl_f8] =
            [BF16, F16, F8].map(|format| mean_divergence(seen, softcap, &format));
        Self { kl_bf16, kl_f16, kl_f8 }
    }
}

/// With δ the change of what softmax receives, KL(P ‖ P̂) = ln(1 + Σ p (e^δ − 1)) − Σ p δ. P is the attention among tokens:
/// a learned sink has no part in it.
fn mean_divergence(seen: &SeenRows, softcap: Option<f64>, format: &Format) -> f64 {
    let capped = |z: f64| softcap.map_or(z, |cap| cap * (z / cap).tanh());
    let of_row = |logits: &[f64], attention: &[f64]| {
        let (mut mass, mut shift) = (0.0, 0.0);
        for (&z, &p) in logits.iter().zip(attention) {
            let delta = capped(format.round(z)) - capped(z);
            mass += p * delta.exp_m1();
            shift += p * delta;
        }
        (mass.ln_1p() - shift).max(0.0)
    };
    seen.each().map(|row| of_row(row.logits, row.attention)).sum::<f64>() / seen.len() as f64
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::heads::positions::tests::{head, random};
    use crate::lm::HeadProbe;
    use crate::targets::HeadKind;

    #[test]
    fn numbers_are_rounded_as_the_formats_do() {
        for at in -4000..4000 {
            // `half` drops bits of an f64 before it rounds.
            let single = 1.37 * at as f32 * 2f32.powi(at % 23);
            let value = f64::from(single);
            assert_eq!(BF16.round(value), half::bf16::from_f32(single).to_f64(), "{value}");
            let short = half::f16::from_f32(single).to_f64();
            assert_eq!(F16.round(value), short.clamp(-65_504.0, 65_504.0), "{value}");
        }
        // Steps of 1/8 of a power of two, 2^-9 below the least normal number, saturated.
        for (value, rounded) in
            [(17.0, 16.0), (18.1, 18.0), (19.0, 20.0), (1.5 / 512.0, 2.0 / 512.0), (-1e3, -448.0)]
        {
            assert_eq!(F8.round(value), rounded, "{value}");
        }
        assert_eq!([BF16, F16, F8].map(|format| format.round(0.0)), [0.0; 3]);
    }

    /// The divergence, computed from the softmax of rounded logits.
    #[test]
    fn risk_is_the_divergence_of_rounded_logits() {
        let [mut probe, _] = random(24, HeadKind::Global, 3);
        probe.queries *= 30.0;
        for softcap in [None, Some(20.0f32)] {
            let probe = HeadProbe { softcap, ..probe.clone() };
            let positions: Vec<usize> = (0..24).collect();
            let seen = SeenRows::of(&[&probe], &positions);
            let risk = PrecisionRisk::of_rows(&seen, softcap.map(f64::from));
            let capped = |z: f64| softcap.map_or(z, |c| f64::from(c) * (z / f64::from(c)).tanh());
            let mut sum = 0.0;
            for row in seen.each() {
                let rounded = row.logits.iter().map(|z| capped(half::bf16::from_f64(*z).to_f64()));
                let weights: Vec<f64> = rounded.map(f64::exp).collect();
                let all: f64 = weights.iter().sum();
                let terms = row.attention.iter().zip(&weights).map(|(p, w)| p * (p * all / w).ln());
                sum += terms.sum::<f64>();
            }
            assert!((risk.kl_bf16 - sum / 24.0).abs() < 1e-9, "{risk:?} against {}", sum / 24.0);
            assert!(risk.kl_f16 < risk.kl_bf16 && risk.kl_bf16 < risk.kl_f8, "{risk:?}");
        }
    }

    #[test]
    fn logits_that_a_format_holds_have_no_risk() {
        let queries = Array2::from_elem((8, 1), 1.0);
        let keys = Array2::from_shape_fn((8, 1), |(j, _)| j as f64);
        let probe = head(queries, keys, HeadKind::Global);
        let seen = SeenRows::of(&[&probe], &[3, 7]);
        let risk = PrecisionRisk::of_rows(&seen, None);
        assert_eq!([risk.kl_bf16, risk.kl_f16, risk.kl_f8], [0.0; 3]);
    }
}
