//! Benchmark of matrix products with the shapes of the language model, against two alternatives on one thread each.
//! These are the crate `gemm`, which the tensor library uses, and the OpenBLAS that was found. Run `cargo bench --bench
//! products`. It prints which kernels OpenBLAS selected; `OPENBLAS_CORETYPE` selects others.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder as _};

// Values of the enumerations of CBLAS.
const ROW_MAJOR: c_int = 101;
const AS_IT_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_corename() -> *const c_char;
    fn cblas_sgemm(
        order: c_int,
        transposed_a: c_int,
        transposed_b: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: f32,
        a: *const f32,
        stride_a: c_int,
        b: *const f32,
        stride_b: c_int,
        beta: f32,
        c: *mut f32,
        stride_c: c_int,
    );
}

type Product = fn(ArrayView2<'_, f32>, ArrayView2<'_, f32>, ArrayViewMut2<'_, f32>);

fn open_blas(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, mut c: ArrayViewMut2<'_, f32>) {
    let size = |n: usize| n as c_int;
    let operand = |m: ArrayView2<'_, f32>| match m.is_standard_layout() {
        true => (AS_IT_IS, m.as_ptr(), m.ncols() as c_int),
        false => (TRANSPOSED, m.as_ptr(), m.nrows() as c_int),
    };
    let ((m, k), n) = (a.dim(), b.ncols());
    let ((ta, a, la), (tb, b, lb)) = (operand(a), operand(b));
    // SAFETY: the matrices are dense with these shapes, by row or by column.
    unsafe {
        let (to, lc) = (c.as_mut_ptr(), size(n));
        cblas_sgemm(ROW_MAJOR, ta, tb, size(m), size(n), size(k), 1.0, a, la, b, lb, 0.0, to, lc);
    }
}

fn gemm_crate(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, mut c: ArrayViewMut2<'_, f32>) {
    let ((m, k), n) = (a.dim(), b.ncols());
    let [ra, ca] = [a.strides()[0], a.strides()[1]];
    let [rb, cb] = [b.strides()[0], b.strides()[1]];
    let [rc, cc] = [c.strides()[0], c.strides()[1]];
    let one_thread = gemm::Parallelism::None;
    // SAFETY: the strides belong to views of these shapes.
    unsafe {
        let (to, a, b) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
        let alike = false;
        gemm::gemm(
            m, n, k, to, cc, rc, false, a, ca, ra, b, cb, rb, 0.0, 1.0, alike, alike, alike,
            one_thread,
        );
    }
}

/// A matrix of sine values, stored by row, or by column if `turned`.
fn filled(rows: usize, columns: usize, turned: bool) -> Array2<f32> {
    let shape = (rows, columns).set_f(turned);
    Array2::from_shape_fn(shape, |(i, j)| (0.37 * (i * 31 + j) as f32).sin())
}

fn products(criterion: &mut Criterion) {
    // SAFETY: OpenBLAS exports these functions with these signatures; the name is valid as long as the process runs.
    let core = unsafe {
        openblas_set_num_threads(1);
        CStr::from_ptr(openblas_get_corename()).to_string_lossy()
    };
    println!("OpenBLAS's kernels are those for {core}");
    // d_model 192 with 8,192 symbols, then nanoGPT's small setting, then 64 channels, then one token.
    let shapes = [
        ("x·W, 192 to 768", [256, 192, 768], [false, false]),
        ("x·W, 768 to 192", [256, 768, 192], [false, false]),
        ("g·Wᵀ, 192 to 768", [256, 192, 768], [false, true]),
        ("xᵀ·g, 192 by 96", [192, 2048, 96], [true, false]),
        ("logits, 1,024 symbols", [512, 192, 1024], [false, true]),
        ("dz·E, 8,192 symbols", [256, 8192, 192], [false, false]),
        ("dzᵀ·x, 1,024 symbols", [1024, 512, 192], [true, false]),
        ("small x·W, 128 to 128", [192, 128, 128], [false, false]),
        ("small xᵀ·g, 128 by 64", [128, 768, 64], [true, false]),
        ("x·W, 64 to 64", [256, 64, 64], [false, false]),
        ("one token, 192 to 768", [1, 192, 768], [false, false]),
    ];
    let sides: [(&str, Product); 3] =
        [("ours", rank_study::numerics::multiply), ("gemm", gemm_crate), ("OpenBLAS", open_blas)];
    for (name, [m, k, n], turned) in shapes {
        let (a, b) = (filled(m, k, turned[0]), filled(k, n, turned[1]));
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements((m * k * n) as u64));
        for (side, product) in sides {
            let mut c = Array2::zeros((m, n));
            group.bench_function(side, |bench| {
                bench.iter(|| product(a.view(), b.view(), c.view_mut()));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = products_of_matrices;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20);
    targets = products
}
criterion_main!(products_of_matrices);
