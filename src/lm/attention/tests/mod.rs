//! Compares the attention operator with the reference.

mod reference;

use candle_core::{Device, Tensor, Var};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Attended, AttentionGradients, HeadStatistics, Heads, attention};
use crate::lm::operators::largest_difference;
use crate::targets::HeadKind::{self, Global, Local};

fn normal(rng: &mut impl Rng, shape: (usize, usize, usize, usize), scale: f32) -> Var {
    let count = shape.0 * shape.1 * shape.2 * shape.3;
    let data: Vec<f32> = (0..count)
        .map(|_| {
            let x: f32 = StandardNormal.sample(rng);
            x * scale
        })
        .collect();
    Var::from_vec(data, shape, &Device::Cpu).unwrap()
}

/// Compares output, gradients and statistics of the operator with the reference for one shape.
fn compare(
    heads: &Heads,
    slopes: Option<&Var>,
    (batch, time, d_head): (usize, usize, usize),
    rng: &mut impl Rng,
) {
    let shape = (batch, time, heads.kinds.len(), d_head);
    // Logits of standard deviation 4 at any D, so that some rows are nearly one-hot and others are not.
    let scale = 2.0 / (d_head as f32).powf(0.25) * 8f32.powf(0.25);
    let [q, k] = [normal(rng, shape, scale), normal(rng, shape, scale)];
    let [v, weights] = [normal(rng, shape, 1.0), normal(rng, shape, 1.0)];
    let of_slopes = slopes.map(Var::as_tensor);
    let Attended { output: ours, statistics, pullback } =
        attention(&q, &k, &v, of_slopes, heads).unwrap();
    let (plain, expected) = reference::attention(&q, &k, &v, of_slopes, heads).unwrap();
    let Heads { kinds, softcap, .. } = heads;
    let case = format!("{kinds:?}, softcap {softcap:?}, shape {shape:?}");
    let off = largest_difference(&ours, &plain);
    assert!(off < 5e-5, "{case}: output differs by {off:e}");

    let loss = (&plain * weights.as_tensor()).unwrap().sum_all().unwrap();
    let store = loss.backward().unwrap();
    let AttentionGradients { heads: found, slopes: of_slopes } = pullback(&weights).unwrap();
    assert_eq!(of_slopes.is_some(), slopes.is_some());
    let pairs = found.into_iter().chain(of_slopes).zip([&q, &k, &v].into_iter().chain(slopes));
    for (name, (ours, x)) in ["dq", "dk", "dv", "slopes"].iter().zip(pairs) {
        let plain = store.get(x).unwrap();
        let largest = largest_difference(plain, &plain.zeros_like().unwrap());
        let off = largest_difference(&ours, plain) / largest.max(1.0);
        // The gradient of a slope is one sum over all pairs, which the reference adds up in float32.
        let most = if *name == "slopes" { 2e-4 } else { 5e-5 };
        assert!(off < most, "{case}: {name} differs by {off:e}");
    }
    let found = HeadStatistics::of_layers(&[statistics]).unwrap().remove(0);
    for (found, expected) in found.iter().zip(&expected) {
        let off = (found.max_logit - expected.max_logit)
            .abs()
            .max((found.min_logit - expected.min_logit).abs())
            .max((found.entropy_nats - expected.entropy_nats).abs());
        assert!(off < 1e-4, "{case}: {found:?} against {expected:?}");
    }
}

#[test]
fn output_gradients_and_statistics_match_the_reference() {
    let mixes: [&[HeadKind]; 5] = [
        &[Global],
        &[Local { window: 1 }],
        &[Global, Local { window: 7 }, Local { window: 33 }],
        &[Local { window: usize::MAX }, Global],
        &[Local { window: 64 }, Local { window: 65 }],
    ];
    // Combine every `time` with several D rather than with all.
    let dimensions = [16, 20, 32, 33, 64, 100, 128];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for softcap in [None, Some(3.0)] {
        for (at, kinds) in mixes.iter().enumerate() {
            for (index, time) in [1, 2, 31, 64, 65, 130].into_iter().enumerate() {
                for pick in [0, 3] {
                    let d_head = dimensions[(at + index + pick) % dimensions.len()];
                    let batch = 1 + (at + index) % 3;
                    let heads = Heads::new(kinds, softcap);
                    compare(&heads, None, (batch, time, d_head), &mut rng);
                    let slopes: Vec<f32> =
                        (0..kinds.len()).map(|head| [0.3, -0.02, 0.0][head]).collect();
                    let slopes = Var::new(slopes, &Device::Cpu).unwrap();
                    compare(&heads, Some(&slopes), (batch, time, d_head), &mut rng);
                }
            }
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let shape = (2, 130, 3, 16);
    let kinds = Heads::new(&[Global, Local { window: 9 }, Local { window: 70 }], None);
    let slopes = Tensor::new(&[0.2f32, 0.05, 0.0], &Device::Cpu).unwrap();
    let [q, k, v] = [(); 3].map(|()| normal(&mut rng, shape, 1.0));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let Attended { output, pullback, .. } =
                attention(&q, &k, &v, Some(&slopes), &kinds).unwrap();
            let gradients = pullback(&output).unwrap();
            let all = std::iter::once(&output).chain(&gradients.heads).chain(&gradients.slopes);
            all.map(|x| x.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
        })
    };
    assert!(run(1) == run(3), "results differ between 1 and 3 threads");
}
