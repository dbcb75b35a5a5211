//! Matrices: targets from numpy, and what needs no search.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rank_study::solver::{self, Floor, Problem, check_cap, check_tolerance};
use rank_study::targets::{Family, Layout, Parameters, Spectrum, Target, TargetRead, Visibility};

/// A `ValueError` with the message of an error, flags as parameters.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    let message = error.to_string();
    let other_mask = r#"use the other mask ("causal" or "bidirectional")"#;
    let message = message.replace("--softmax", "softmax=True").replace(
        "leave them out with --trim-padding",
        "leave these rows and columns out of the array",
    );
    PyValueError::new_err(message.replace("use the other mask", other_mask))
}

/// Checks that the rows of a matrix are attention under a mask.
pub(crate) fn checked(
    matrix: &PyReadonlyArray2<'_, f64>,
    mask: &str,
    logits: bool,
) -> PyResult<Target> {
    let visibility: Visibility = mask.parse().map_err(value_error)?;
    let read = TargetRead::of_matrix(matrix.as_array().to_owned(), logits, visibility);
    Ok(read.map_err(value_error)?.target)
}

/// One matrix with its heads and rank.
pub(crate) fn problem(target: Target, rank: usize, layout: &str) -> PyResult<Problem> {
    let layout: Layout = layout.parse().map_err(value_error)?;
    Problem::new(target, layout, rank).map_err(value_error)
}

/// The full-rank minimum: of max |logit| for an error, or of the error for a logit bound. None where no logits reach it.
#[pyfunction]
pub(crate) fn floor(
    py: Python<'_>,
    matrix: PyReadonlyArray2<'_, f64>,
    mask: &str,
    logits: bool,
    tolerance: Option<f64>,
    max_logit: Option<f64>,
) -> PyResult<Option<f64>> {
    tolerance.map_or(Ok(()), check_tolerance).map_err(value_error)?;
    max_logit.map_or(Ok(()), check_cap).map_err(value_error)?;
    let problem = problem(checked(&matrix, mask, logits)?, 1, "global")?;
    Ok(py.detach(|| {
        let floor = Floor::new(&problem);
        match (tolerance, max_logit) {
            (Some(kl_nats), _) => floor.max_abs_logit(kl_nats),
            (None, bound) => bound.map(|bound| floor.kl_nats(bound)),
        }
    }))
}

/// A proven lower bound on max |logit|, the argument that proves it, and the floor.
#[pyfunction]
pub(crate) fn lower_bound(
    py: Python<'_>,
    matrix: PyReadonlyArray2<'_, f64>,
    mask: &str,
    logits: bool,
    rank: usize,
    tolerance: f64,
) -> PyResult<Option<(f64, String, f64)>> {
    check_tolerance(tolerance).map_err(value_error)?;
    let problem = problem(checked(&matrix, mask, logits)?, rank, "global")?;
    let bound = py.detach(|| solver::lower_bound(&problem, tolerance));
    Ok(bound.map(|bound| (bound.max_abs_logit, bound.by.name().to_owned(), bound.floor)))
}

/// Singular values, numerical rank and effective rank.
#[pyfunction]
pub(crate) fn spectrum<'py>(
    py: Python<'py>,
    matrix: PyReadonlyArray2<'py, f64>,
    mask: &str,
    logits: bool,
) -> PyResult<(Bound<'py, PyArray1<f64>>, usize, f64)> {
    let target = checked(&matrix, mask, logits)?;
    let spectrum = py.detach(|| Spectrum::of(&target)).map_err(value_error)?;
    let values = spectrum.singular_values.into_pyarray(py);
    Ok((values, spectrum.numerical_rank, spectrum.effective_rank))
}

/// The matrix of a target family. `parameters` is a JSON object.
#[pyfunction]
pub(crate) fn target<'py>(
    py: Python<'py>,
    family: &str,
    n: usize,
    seed: u64,
    mask: &str,
    parameters: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let visibility: Visibility = mask.parse().map_err(value_error)?;
    let parameters: Parameters = serde_json::from_str(parameters).map_err(value_error)?;
    let family = Family::from_parameters(family, &parameters).map_err(value_error)?;
    let built = py.detach(|| family.build(n, seed, visibility)).map_err(value_error)?;
    Ok(built.dense().into_pyarray(py))
}
