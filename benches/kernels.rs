//! Benchmark of the fit's fused kernel: one evaluation of objective and gradient, as in the solver, on all cores. Run
//! `cargo bench --bench kernels`, or with `-- --quick` for rough numbers.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use rank_study::solver::{Evaluator, Precision, Problem};
use rank_study::targets::{Family, Parameters, Visibility};

/// Logit bound and weight of its penalty, as in `rank-study bench fit`.
const PENALTY: (f64, f64) = (4.0, 0.1);

/// A dense-local target with this window, for fits with `layout` at head dimension `rank`.
fn dense_local(n: usize, rank: usize, window: usize, layout: &str) -> Problem {
    let band = Parameters { window: Some(window), ..Parameters::default() };
    let family =
        Family::from_parameters("dirichlet-band", &band).expect("a window is all it takes");
    let target = family.build(n, 0, Visibility::Causal).expect("n is above the window");
    Problem::new(target, layout.parse().expect("a layout"), rank).expect("a rank above 0")
}

fn evaluation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluation");
    let sizes = [
        ("global-n2048-d64", dense_local(2048, 64, 50, "global")),
        ("local50+global-n2048-d64", dense_local(2048, 64, 50, "local:50+global")),
        ("local50-n16384-d64", dense_local(16384, 64, 50, "local:50")),
        ("global-n96-d8", dense_local(96, 8, 32, "global")),
    ];
    for (name, problem) in &sizes {
        for (precision, dtype) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
            let mut evaluator =
                Evaluator::new(problem, precision, None, PENALTY).expect("a cap above 0");
            group.bench_function(format!("{name}/{dtype}"), |b| b.iter(|| evaluator.evaluate()));
        }
    }
    group.finish();
}

criterion_group! {
    name = kernels;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(30);
    targets = evaluation
}
criterion_main!(kernels);
