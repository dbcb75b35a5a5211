//! The leading singular values of a randomised decomposition, against all of them from LAPACK's.

use std::num::NonZeroUsize;

use rank_study::targets::{
    Bounds, Family, LeadingSpectrum, Spectrum, Statistics, Target, Visibility,
};

const N: usize = 300;

fn build(family: &Family) -> Target {
    family.build(N, 5, Visibility::Causal).unwrap()
}

fn leading(target: &Target, count: usize, seed: u64) -> LeadingSpectrum {
    LeadingSpectrum::of(target, NonZeroUsize::new(count).unwrap(), seed).unwrap()
}

/// Families whose values fall fast, fall slowly, and are all alike.
fn families() -> Vec<Family> {
    let local = Box::new(Family::DirichletBand { window: 24, alpha: 1.0 });
    let global = Box::new(Family::Landmark { m: 6 });
    vec![
        Family::Landmark { m: 8 },
        Family::Prefix,
        Family::DecayBand { window: 40, tau: 10.0 },
        Family::DirichletBand { window: 32, alpha: 1.0 },
        Family::RandomSparse { k: 4 },
        Family::Clustered { c: 5 },
        Family::Induction { vocabulary: 20 },
        Family::PreviousToken { k: 3 },
        Family::UniformBand { window: 1 },
        Family::Mixture { lambda: 0.3, local, global },
    ]
}

/// Whether `value` lies between `bounds`, but for a rounding of `rounding`.
fn within(value: f64, bounds: Bounds<f64>, rounding: f64) -> bool {
    (bounds.at_least - rounding..=bounds.at_most + rounding).contains(&value)
}

#[test]
fn all_that_is_said_of_a_spectrum_is_true_of_it() {
    for family in families() {
        let target = build(&family);
        let exact = Spectrum::of(&target).unwrap();
        let sigma = &exact.singular_values;
        let rounding = 1e-12 * sigma[0];
        for count in [1, 12, 40, N] {
            let found = leading(&target, count, 1);
            let name = format!("{family}, {count} values");
            assert_eq!(found.singular_values.len(), count);
            for (j, &value) in found.singular_values.iter().enumerate() {
                let excess = value - sigma[j];
                assert!(excess <= rounding, "{name}: value {j} is {excess} too large");
                let lack = sigma[j] - found.at_most[j];
                // The energy that is missed is a difference of two sums: its root is less exact.
                assert!(lack <= 1e-6 * sigma[0], "{name}: value {j} is {lack} above its bound");
                let nearest = sigma.iter().map(|s| (s - value).abs()).fold(f64::MAX, f64::min);
                let residual = found.residuals[j];
                assert!(nearest <= residual + rounding, "{name}: {nearest} off, not {residual}");
            }
            let tail = sigma[count..].iter().map(|s| s * s).sum();
            let bounds = found.tail_energy;
            assert!(within(tail, bounds, 1e-10), "{name}: a tail of {tail}, not in {bounds:?}");
            let (rank, bounds) = (exact.effective_rank, found.effective_rank);
            assert!(within(rank, bounds, 1e-6), "{name}: effective {rank}, not in {bounds:?}");
            let (rank, bounds) = (exact.numerical_rank, found.numerical_rank);
            let possible = bounds.at_least..=bounds.at_most;
            assert!(possible.contains(&rank), "{name}: rank {rank}, not in {bounds:?}");
        }
    }
}

#[test]
fn values_that_decay_are_found_to_their_digits() {
    for (family, count, accuracy) in [
        (Family::Landmark { m: 8 }, 8, 1e-12),
        (Family::Prefix, 12, 1e-8),
        (Family::DecayBand { window: 40, tau: 10.0 }, 40, 1e-5),
        (Family::Clustered { c: 5 }, 12, 1e-8),
    ] {
        let target = build(&family);
        let exact = Spectrum::of(&target).unwrap().singular_values;
        let found = leading(&target, count, 2).singular_values;
        let worst = found.iter().zip(&exact).map(|(f, e)| (f / e - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < accuracy, "{family}: off by {worst}");
    }
}

#[test]
fn a_target_of_low_rank_is_known_whole() {
    let target = build(&Family::Landmark { m: 8 });
    let exact = Spectrum::of(&target).unwrap();
    for count in [8, 20] {
        let found = leading(&target, count, 3);
        assert_eq!(found.numerical_rank, Bounds { at_least: 8, at_most: 8 });
        assert!(found.tail_energy.at_most < 1e-10, "{:?}", found.tail_energy);
        for rank in [found.effective_rank.at_least, found.effective_rank.at_most] {
            let difference = (rank - exact.effective_rank).abs();
            assert!(difference < 1e-5, "{count} values: off by {difference}");
        }
        let worst = found.residuals.iter().copied().fold(0.0, f64::max);
        assert!(worst < 1e-11, "a residual of {worst}");
    }
}

#[test]
fn values_and_tail_add_up_to_the_frobenius_norm() {
    for family in families() {
        let target = build(&family);
        let norm = Statistics::of(&target).frobenius_norm;
        let exact: f64 = Spectrum::of(&target).unwrap().singular_values.iter().map(|s| s * s).sum();
        let difference = (exact / norm.powi(2) - 1.0).abs();
        assert!(difference < 1e-12, "{family}: the norm is off by {difference}");
        let found = leading(&target, 12, 4);
        let all: f64 = found.singular_values.iter().map(|s| s * s).sum::<f64>();
        let difference = ((all + found.tail_energy.at_most) / norm.powi(2) - 1.0).abs();
        assert!(difference < 1e-12, "{family}: off by {difference}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for family in [Family::DirichletBand { window: 32, alpha: 1.0 }, Family::Clustered { c: 5 }] {
        let target = build(&family);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| leading(&target, 20, 6))
        };
        let one = on(1);
        assert_eq!(one, on(2), "{family}");
        assert_eq!(one, on(5), "{family}");
        assert_ne!(one, leading(&target, 20, 7), "{family}: the seed changes nothing either");
    }
}
