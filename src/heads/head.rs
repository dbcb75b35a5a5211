//! A trained head on some passages, as a problem for the fit.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};

use super::PredictError;
use crate::lm::{HeadInputs, HeadProbe, NormalisedInputs};
use crate::solver::{Factors, Inputs, Normalisation, Problem, SharedProjection};
use crate::targets::{HeadKind, Layout, Spectrum, Target, TargetError};

/// Probabilities below this count as 0: their sum is far below any requested error.
const NO_PROBABILITY: f64 = 1e-12;
/// The longest passage whose attention is decomposed; singular values take O(n³).
const LARGEST_DECOMPOSED: usize = 2048;

/// One head of a trained model on passages of equal length, one after another.
///
/// ```
/// use rank_study::solver::SearchOptions;
/// use rank_study::lm::{Model, ModelShape, TrainDefinition};
/// use rank_study::heads::TrainedHead;
///
/// let definition =
///     TrainDefinition { layers: 1, d_model: 8, heads: 2, context: 12, ..TrainDefinition::default() };
/// let model = Model::new(ModelShape::new(&definition, 5), 0.5, 0)?;
/// let probes = model.probe(&[0, 3, 1, 4, 2, 2, 0, 1])?;
///
/// let head = TrainedHead::new(&[&probes[0]], None)?;
/// let options = SearchOptions { starts: 0, passes: 0, ..SearchOptions::default() };
/// let parts = head.parts(0.01, options)?;
/// let [needed, tied] = [&parts.needed, &parts.needed_from_input].map(|found| found.max_abs_logit());
/// assert!(parts.floor <= needed && needed <= tied);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TrainedHead {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// The pairs to which it may attend.
    pub kind: HeadKind,
    /// Number of tokens of one passage.
    pub tokens: usize,
    /// Its attention on all passages as a target, at its rank and with its mask.
    pub(super) problem: Problem,
    /// Its own queries, scaled so that their logits are QKᵀ/√d, and its keys.
    pub(super) own: Factors,
    /// The queries and keys that are projections of its own inputs.
    pub(super) tied: SharedProjection,
    /// Its own weights, as a point of `tied`.
    pub(super) point: Vec<f64>,
    /// The measured rows of each passage.
    pub(super) rows: Vec<usize>,
    /// The attention of those rows, passage by passage, (rows, T).
    pub(super) attention: Vec<Array2<f64>>,
}

impl TrainedHead {
    /// Builds a head from `probes`, one per passage. All rows of a passage are used, or `most` evenly spaced ones of a longer
    /// passage; these need no larger logits than all rows.
    ///
    /// # Errors
    /// No probe, a head with a position bias, logits that are not finite, passages of different lengths.
    pub fn new(probes: &[&HeadProbe], most: Option<usize>) -> Result<Self, PredictError> {
        Self::of_layer(probes, most, &mut None)
    }

    /// As [`Self::new`] for one of several heads with the same inputs X. These are decomposed for the first one and kept in
    /// `inputs`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_layer(
        probes: &[&HeadProbe],
        most: Option<usize>,
        inputs: &mut Option<Inputs>,
    ) -> Result<Self, PredictError> {
        let &first = probes.first().ok_or(PredictError::NoPassage)?;
        let HeadProbe { layer, head, kind, .. } = *first;
        check_fittable(probes)?;
        let tokens = first.queries.nrows();
        let rows = held_rows(tokens, most);
        let attention = attention_of(probes, &rows);
        let problem = problem_of(probes, &rows, &attention)?;
        let rank = problem.rank();
        let inputs = match inputs {
            Some(inputs) => inputs,
            None => {
                inputs.insert(Inputs::new(joined(probes, |probe| &*probe.inputs.stream).view())?)
            }
        };
        let (mut tied, point) = tied(probes, rank, inputs.clone())?;
        let mut queries = joined(probes, |probe| &probe.queries) * scale_of(first);
        if rows.len() < tokens {
            let target = problem.target();
            let positions: Vec<usize> =
                (0..problem.rows()).map(|row| target.position(row)).collect();
            let held = queries.select(Axis(0), &positions);
            queries.fill(0.0);
            queries.slice_mut(s![..positions.len(), ..]).assign(&held);
            tied = tied.with_queries_at(positions);
        }
        let keys = joined(probes, |probe| &probe.keys);
        let [queries, keys] = [queries, keys].map(|m| m.insert_axis(Axis(0)));
        let own = Factors::new(queries, keys, Array1::ones(1))?;
        Ok(Self { layer, head, kind, tokens, problem, own, tied, point, rows, attention })
    }

    /// The number of measured rows per passage.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The head dimension d.
    pub fn rank(&self) -> usize {
        self.problem.rank()
    }

    /// [`Spectrum::effective_rank`] of the attention, mean over passages. `None` if the passages are too long or rows were
    /// sampled.
    ///
    /// # Errors
    /// `Decomposition` if LAPACK fails.
    pub fn effective_rank_attention(&self) -> Result<Option<f64>, PredictError> {
        if self.rows.len() < self.tokens || self.tokens > LARGEST_DECOMPOSED {
            return Ok(None);
        }
        let ranks = self.attention.iter().map(|p| Ok(Spectrum::of_matrix(p)?.effective_rank));
        let sum = ranks.sum::<Result<f64, TargetError>>()?;
        Ok(Some(sum / self.attention.len() as f64))
    }
}

/// The attention of the measured `rows` of each passage, (rows, T).
pub(super) fn attention_of(probes: &[&HeadProbe], rows: &[usize]) -> Vec<Array2<f64>> {
    probes.iter().map(|probe| probe.attention_of(rows)).collect()
}

/// The attention as a target for queries and keys of the head's rank and mask.
pub(super) fn problem_of(
    probes: &[&HeadProbe],
    rows: &[usize],
    attention: &[Array2<f64>],
) -> Result<Problem, PredictError> {
    let &HeadProbe { kind, visibility, ref queries, .. } = probes[0];
    let (tokens, rank) = queries.dim();
    let targets = attention
        .iter()
        .map(|p| {
            let entries = p.rows().into_iter().map(sparse);
            match rows.len() < tokens {
                true => {
                    let rows = rows.iter().copied().zip(entries).collect();
                    Target::from_some_rows(tokens, rows, visibility)
                }
                false => Target::from_rows(entries.collect(), visibility),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Problem::new(Target::packed(&targets)?, Layout::of(kind), rank)?)
}

/// Refuses heads to which no queries and keys can be fitted.
pub(super) fn check_fittable(probes: &[&HeadProbe]) -> Result<(), PredictError> {
    refuse(
        probes,
        |probe| probe.bias.is_some(),
        "has a position bias, so its attention is not the softmax of QKᵀ/√d and its needed logit is undefined; take a \
         model without one",
    )?;
    check_finite(probes)
}

/// Refuses queries and keys that are NaN or infinite, as at the end of a run that diverged.
pub(super) fn check_finite(probes: &[&HeadProbe]) -> Result<(), PredictError> {
    refuse(
        probes,
        |probe| !probe.queries.iter().chain(&probe.keys).all(|v| v.is_finite()),
        "has logits that are NaN or infinite; take an earlier step",
    )
}

/// Returns the error `why` of the first probe that is `wrong`, if any.
pub(super) fn refuse(
    probes: &[&HeadProbe],
    wrong: impl Fn(&HeadProbe) -> bool,
    why: &'static str,
) -> Result<(), PredictError> {
    match probes.iter().find(|probe| wrong(probe)) {
        Some(probe) => Err(PredictError::Head { layer: probe.layer, head: probe.head, why }),
        None => Ok(()),
    }
}

/// The measured rows of a passage of `tokens`: all, or `most` evenly spaced ones.
pub fn held_rows(tokens: usize, most: Option<usize>) -> Vec<usize> {
    let count = most.map_or(tokens, |most| most.clamp(1, tokens));
    (0..count).map(|row| (2 * row + 1) * tokens / (2 * count)).collect()
}

fn sparse(row: ndarray::ArrayView1<'_, f64>) -> Vec<(usize, f64)> {
    row.iter().copied().enumerate().filter(|&(_, p)| p > NO_PROBABILITY).collect()
}

/// Stacks a matrix of every passage, one below the other, in float64.
fn joined<'p>(
    probes: &[&'p HeadProbe],
    matrix: impl Fn(&'p HeadProbe) -> &'p Array2<f32>,
) -> Array2<f64> {
    let parts: Vec<ArrayView2<'_, f32>> = probes.iter().map(|probe| matrix(probe).view()).collect();
    let all = concatenate(Axis(0), &parts).expect("the matrices of a head have equal columns");
    all.mapv(f64::from)
}

/// The factor by which the queries are multiplied so that the head's logits s·QKᵀ equal QKᵀ/√d.
fn scale_of(probe: &HeadProbe) -> f64 {
    probe.scale * (probe.queries.ncols() as f64).sqrt()
}

/// The queries and keys that are projections of the head's inputs, and the point of its own weights.
fn tied(
    probes: &[&HeadProbe],
    rank: usize,
    inputs: Inputs,
) -> Result<(SharedProjection, Vec<f64>), PredictError> {
    let HeadInputs { normalised, turns, .. } = &probes[0].inputs;
    let scale = scale_of(probes[0]);
    let (normalisation, gains) = match normalised {
        Some(NormalisedInputs::Each { gains, epsilon, centred }) => {
            let normalisation = Normalisation { epsilon: f64::from(*epsilon), centred: *centred };
            let gains = gains.each_ref().map(|gain| gain.iter().map(|&g| g.into()).collect());
            (Some(normalisation), Some(gains))
        }
        _ => (None, None),
    };
    let turns = turns.as_ref().map(|turns| {
        // Every passage starts at the first position.
        let turns = turns.mapv(|turn| turn.map(f64::from));
        concatenate(Axis(0), &vec![turns.view(); probes.len()]).expect("equal columns")
    });
    let mut tied = SharedProjection::new(inputs, rank, normalisation, turns)?;
    if let Some(NormalisedInputs::Together { .. }) = normalised {
        tied = tied.with_scales([0, 1].map(|side| together(probes, side)))?;
    }
    let mut projected =
        [0, 1].map(|side| joined(probes, move |probe| &probe.inputs.projected[side]));
    // If queries are normalised, their length is lost, so the scale goes into the gain.
    let gains: Option<[Vec<f64>; 2]> = gains.map(|[query, key]: [Vec<f64>; 2]| {
        [query.into_iter().map(|gain| gain * scale).collect(), key]
    });
    if gains.is_none() {
        projected[0] *= scale;
    }
    let gains = gains.as_ref().map(|[query, key]| [&query[..], &key[..]]);
    let point = tied.point(projected[0].view(), projected[1].view(), gains);
    Ok((tied, point))
}

/// The factors of the rows of queries or keys of all passages, if all heads are normalised together.
fn together(probes: &[&HeadProbe], side: usize) -> Vec<f64> {
    let of_passage = |probe: &&HeadProbe| match &probe.inputs.normalised {
        Some(NormalisedInputs::Together { scales }) => scales[side].to_vec(),
        _ => Vec::new(),
    };
    probes.iter().flat_map(of_passage).map(f64::from).collect()
}

#[cfg(test)]
mod tests;
