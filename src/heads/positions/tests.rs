//! Compares least squares with dummy variables, and divergences with the conditions of their minimum.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use ndarray::Array2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{Form, SeenRows};
use crate::lm::{HeadInputs, HeadProbe};
use crate::targets::{HeadKind, Visibility};

/// A causal head with these queries and keys.
pub(in super::super) fn head(queries: Array2<f64>, keys: Array2<f64>, kind: HeadKind) -> HeadProbe {
    let [queries, keys] = [queries, keys].map(|m| m.mapv(|v| v as f32));
    let projected = [queries.clone(), keys.clone()];
    let stream = Arc::new(queries.clone());
    let rank = queries.ncols();
    HeadProbe {
        layer: 1,
        head: 2,
        visibility: Visibility::Causal,
        kind,
        queries,
        keys,
        key_head: 2,
        scale: 1.0 / (rank as f64).sqrt(),
        softcap: None,
        bias: None,
        sink: None,
        inputs: HeadInputs { stream, projected, normalised: None, turns: None },
    }
}

/// Two passages of a head of rank 3 with random queries and keys.
pub(in super::super) fn random(tokens: usize, kind: HeadKind, seed: u64) -> [HeadProbe; 2] {
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    let mut matrix = || Array2::from_shape_fn((tokens, 3), |_| draws.random_range(-2.0..2.0));
    [(); 2].map(|()| head(matrix(), matrix(), kind))
}

/// The test cases: every form for global and local heads, with all rows and with some.
fn cases() -> Vec<(String, Form, SeenRows)> {
    let mut all = Vec::new();
    for form in [Form::Ramp, Form::Position, Form::Lag, Form::PositionAndLag] {
        for kind in [HeadKind::Global, HeadKind::Local { window: 4 }] {
            for rows in [(0..9).collect::<Vec<_>>(), vec![1, 4, 8]] {
                let seen = SeenRows::of(&random(9, kind, 5).each_ref(), &rows);
                all.push((format!("{form:?}, {kind}, rows {rows:?}"), form, seen));
            }
        }
    }
    all
}

/// x_ij of every allowed pair, one column per parameter, from the definition of each form.
fn design(form: Form, seen: &SeenRows) -> DMatrix<f64> {
    let n = seen.tokens;
    let mut pairs = Vec::new();
    for row in seen.each() {
        pairs.extend(row.columns.clone().map(|j| (row.position, j)));
    }
    let entry = |at: usize, parameter: usize| {
        let (i, j) = pairs[at];
        let is = |yes: bool| f64::from(u8::from(yes));
        match (form, parameter.checked_sub(n)) {
            (Form::Ramp, _) => j as f64 / (n - 1) as f64,
            (Form::Lag, _) => is(i - j == parameter),
            (Form::PositionAndLag, Some(lag)) => is(i - j == lag),
            (Form::Position | Form::PositionAndLag, _) => is(j == parameter),
        }
    };
    DMatrix::from_fn(pairs.len(), form.parameters(n), entry)
}

#[test]
fn a_form_gives_the_logits_of_its_formula_and_gathers_by_the_transpose() {
    let mut draws = ChaCha8Rng::seed_from_u64(1);
    for (case, form, seen) in cases() {
        let x = design(form, &seen);
        let theta = DVector::from_fn(x.ncols(), |_, _| draws.random_range(-1.0..1.0));
        let weights = DVector::from_fn(x.nrows(), |_, _| draws.random_range(-1.0..1.0));
        let (mut z, mut gathered) = (vec![0.0; x.nrows()], vec![0.0; x.ncols()]);
        for row in seen.each() {
            form.logits(theta.as_slice(), seen.tokens, &row, &mut z[row.pairs()]);
            let of_row = &weights.as_slice()[row.pairs()];
            form.gather(of_row, seen.tokens, &row, &mut gathered);
        }
        let off = (&x * &theta - DVector::from_vec(z)).amax();
        assert!(off < 1e-14, "{case}: logits are off by {off:e}");
        let off = (x.transpose() * &weights - DVector::from_vec(gathered)).amax();
        assert!(off < 1e-14, "{case}: gathered off by {off:e}");
    }
}

/// The same least squares with one design column per row's constant, by Cholesky with a tiny ridge.
#[test]
fn shares_are_those_of_least_squares_with_a_constant_for_each_row() {
    for (case, form, seen) in cases() {
        let z = DVector::from_iterator(seen.pairs(), seen.each().flat_map(|r| r.logits.to_vec()));
        let mut constants = DMatrix::zeros(seen.pairs(), seen.len());
        let mut lines = DMatrix::zeros(seen.pairs(), seen.len());
        for (at, row) in seen.each().enumerate() {
            for (pair, column) in row.pairs().zip(row.columns.clone()) {
                constants[(pair, at)] = 1.0;
                lines[(pair, at)] = column as f64;
            }
        }
        let left = |more: &DMatrix<f64>| {
            let constants = constants.clone();
            let width = constants.ncols();
            let mut x = constants.resize_horizontally(width + more.ncols(), 0.0);
            x.columns_mut(width, more.ncols()).copy_from(more);
            // The ridge adds an error of its own size to the least squares.
            let ridge = DMatrix::identity(x.ncols(), x.ncols()) * 1e-9;
            let best =
                (x.transpose() * &x + ridge).cholesky().unwrap().solve(&(x.transpose() * &z));
            (&z - x * best).norm_squared()
        };
        let all = left(&DMatrix::zeros(z.len(), 0));
        let share = seen.share_of(form);
        let (told, expected) = (share.of_variance.unwrap(), 1.0 - left(&design(form, &seen)) / all);
        assert!(share.converged, "{case}");
        assert!((told - expected).abs() < 1e-7, "{case}: {told}, not {expected}");
        let (told, expected) = (seen.share_of_lines().unwrap(), 1.0 - left(&lines) / all);
        assert!((told - expected).abs() < 1e-7, "{case}: lines: {told}, not {expected}");
    }
}

#[test]
fn the_gradient_of_a_divergence_is_its_slope() {
    let mut draws = ChaCha8Rng::seed_from_u64(3);
    for (case, form, seen) in cases() {
        let theta: Vec<f64> =
            (0..form.parameters(seen.tokens)).map(|_| draws.random_range(-1.0..1.0)).collect();
        let gradient = seen.gradient(form, &seen.at(form, &theta));
        for (parameter, told) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut theta = theta.clone();
                theta[parameter] += by;
                seen.at(form, &theta).kl_nats
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((told - slope).abs() < 1e-8, "{case}: {told}, not {slope}");
        }
    }
}

/// A convex function is minimal where its gradient vanishes: where each parameter has the mass of the head's attention.
#[test]
fn the_nearest_attention_has_the_head_s_own_mass_at_every_parameter() {
    for (case, form, seen) in cases() {
        let p =
            DVector::from_iterator(seen.pairs(), seen.each().flat_map(|r| r.attention.to_vec()));
        let nearest = seen.nearest(form, vec![0.0; form.parameters(seen.tokens)]);
        assert!(nearest.converged, "{case}");
        let x = design(form, &seen);
        let z = &x * DVector::from_column_slice(&nearest.theta);
        let mut found = z.map(f64::exp);
        let mut divergence = 0.0;
        for row in seen.each() {
            let sum: f64 = row.pairs().map(|pair| found[pair]).sum();
            for pair in row.pairs() {
                found[pair] /= sum;
                divergence += p[pair] * (p[pair] / found[pair]).ln();
            }
        }
        divergence /= seen.len() as f64;
        let off = (x.transpose() * (&found - &p)).amax() / seen.len() as f64;
        assert!(off < 1e-4, "{case}: a mass is off by {off:e}");
        let told = nearest.kl_nats;
        let off = (told - divergence).abs();
        assert!(off < 1e-12, "{case}: {told}, not {divergence}");
    }
}
