//! Treatments: edits with the parameters that they estimated from one model.

use ndarray::{Array1, Array2, ArrayViewMut1, Axis, concatenate, s};

use super::edit::Edit;
use crate::heads::PredictError;
use crate::heads::positions::{Form, SeenRows};
use crate::lm::{HeadProbe, Probed};

/// The unaltered model on some passages. Heads are numbered through all layers.
pub(super) struct Unaltered {
    /// One list per head, with one probe per passage.
    pub probes: Vec<Vec<HeadProbe>>,
}

impl Unaltered {
    pub fn of(model: &dyn Probed, passages: &[Vec<u32>]) -> Result<Self, PredictError> {
        let mut probes: Vec<Vec<HeadProbe>> = Vec::new();
        for passage in passages {
            let of_passage = model.probe(passage)?;
            probes.resize_with(of_passage.len(), Vec::new);
            probes.iter_mut().zip(of_passage).for_each(|(head, probe)| head.push(probe));
        }
        match probes.is_empty() {
            true => Err(PredictError::NoPassage),
            false => Ok(Self { probes }),
        }
    }

    /// Replaces each head's attention by the nearest attention of a form.
    fn nearest(&self, form: Form) -> Treatment {
        let nearest = |of_head: &Vec<HeadProbe>| {
            let probes: Vec<&HeadProbe> = of_head.iter().collect();
            let tokens = probes[0].queries.nrows();
            let positions: Vec<usize> = (0..tokens).collect();
            let start = vec![0.0; form.parameters(tokens)];
            let theta = SeenRows::of(&probes, &positions).nearest(form, start).theta;
            SeenRows::of(&probes[..1], &positions).attention_of(form, &theta)
        };
        Treatment::Fixed(self.probes.iter().map(nearest).collect())
    }

    /// The mean query of each head.
    fn mean_queries(&self) -> Vec<Array1<f32>> {
        let mean = |of_head: &Vec<HeadProbe>| {
            let sum = of_head.iter().map(|probe| probe.queries.sum_axis(Axis(0)));
            let rows: usize = of_head.iter().map(|probe| probe.queries.nrows()).sum();
            sum.reduce(|sum, of_passage| sum + of_passage).expect("a passage") / rows as f32
        };
        self.probes.iter().map(mean).collect()
    }
}

/// An edit with the parameters that it estimated from a model.
pub(super) enum Treatment {
    /// No change of attention, or a fit that is made for each group separately.
    None,
    /// A fixed attention per head, (T, T), independent of the passage.
    Fixed(Vec<Array2<f64>>),
    /// A change of the head's attention in the edited model.
    Changed(Box<dyn Fn(Array2<f64>) -> Array2<f64>>),
    /// Keys without the direction of each head's mean query, whose scores are added to the logits.
    Scored(Vec<Array1<f32>>),
}

impl Treatment {
    pub fn of(edit: Edit, learned: &Unaltered) -> Self {
        match edit {
            Edit::Own
            | Edit::Fit { .. }
            | Edit::Rounded { .. }
            | Edit::RoundedQueriesAndKeys { .. } => Self::None,
            Edit::Uniform => {
                Self::Fixed(learned.probes.iter().map(|of_head| uniform(&of_head[0])).collect())
            }
            Edit::Ramp => learned.nearest(Form::Ramp),
            Edit::Position => learned.nearest(Form::Position),
            Edit::Lag => learned.nearest(Form::Lag),
            Edit::PositionAndLag => learned.nearest(Form::PositionAndLag),
            Edit::Largest { count } => Self::Changed(Box::new(move |p| largest(p, count))),
            Edit::Last { window } => Self::Changed(Box::new(move |p| last(p, window))),
            Edit::KeyScores => Self::Scored(learned.mean_queries()),
        }
    }

    /// The replacement P̃ of the attention of head `head`, (T, T), and the head with other queries and keys from which it is
    /// computed, each if there is one.
    pub fn of_head(
        &self,
        head: usize,
        probe: &HeadProbe,
    ) -> (Option<Array2<f64>>, Option<HeadProbe>) {
        match self {
            Self::None => (None, None),
            Self::Fixed(of_heads) => (Some(of_heads[head].clone()), None),
            Self::Changed(change) => (Some(change(probe.attention())), None),
            Self::Scored(mean_queries) => {
                let (left, attention) = without_key_scores(probe, &mean_queries[head]);
                (Some(attention), Some(left))
            }
        }
    }
}

/// The head without its keys' direction of the mean query q̄, and the attention of its logits with s·q̄·kⱼ added to each row.
fn without_key_scores(probe: &HeadProbe, mean_query: &Array1<f32>) -> (HeadProbe, Array2<f64>) {
    let scores = probe.keys.dot(mean_query).insert_axis(Axis(1));
    let length = mean_query.dot(mean_query).max(f32::MIN_POSITIVE);
    let along = mean_query.mapv(|v| v / length).insert_axis(Axis(0));
    let keys = &probe.keys - &scores.dot(&along);
    // One more channel, which is 1 in every query, adds the scores.
    let one = Array2::ones((probe.queries.nrows(), 1));
    let both = HeadProbe {
        queries: concatenate![Axis(1), probe.queries, one],
        keys: concatenate![Axis(1), keys, scores],
        ..probe.clone()
    };
    (HeadProbe { keys, ..probe.clone() }, both.attention())
}

/// Equal weight on all columns to which a row may attend.
fn uniform(probe: &HeadProbe) -> Array2<f64> {
    let tokens = probe.queries.nrows();
    let mut attention = Array2::zeros((tokens, tokens));
    for (row, mut p) in attention.rows_mut().into_iter().enumerate() {
        let seen = probe.kind.columns(row, tokens, probe.visibility);
        let weight = 1.0 / seen.len() as f64;
        p.slice_mut(s![seen]).fill(weight);
    }
    attention
}

/// Keeps the `count` largest entries of each row, divided by their sum; ties go to earlier columns.
fn largest(mut attention: Array2<f64>, count: usize) -> Array2<f64> {
    for mut row in attention.rows_mut() {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        order.into_iter().skip(count).for_each(|column| row[column] = 0.0);
        divide_by_sum(row);
    }
    attention
}

/// Keeps the last `window` columns of each causal row, divided by their sum.
fn last(mut attention: Array2<f64>, window: usize) -> Array2<f64> {
    for (at, mut row) in attention.rows_mut().into_iter().enumerate() {
        let first = (at + 1).saturating_sub(window);
        row.iter_mut().take(first).for_each(|p| *p = 0.0);
        divide_by_sum(row);
    }
    attention
}

/// Divides a row by its sum. A row whose remaining entries are all 0, for example because they underflow, stays 0.
fn divide_by_sum(mut row: ArrayViewMut1<'_, f64>) {
    let sum = row.sum();
    if sum > 0.0 {
        row /= sum;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::heads::positions::tests::random;
    use crate::targets::HeadKind;

    /// z′ᵢⱼ = s(qᵢ·k′ⱼ + q̄·kⱼ), by a loop over all pairs.
    #[test]
    fn scores_are_added_to_every_query() {
        let [probe, _] = random(9, HeadKind::Local { window: 4 }, 7);
        let mean = array![1.0f32, -0.5, 0.25];
        let (left, attention) = without_key_scores(&probe, &mean);
        for (i, row) in attention.rows().into_iter().enumerate() {
            let weight = |j: usize| {
                let [q, k] = [probe.queries.row(i), probe.keys.row(j)];
                let score = f64::from(k.dot(&mean));
                let along = score * f64::from(q.dot(&mean)) / f64::from(mean.dot(&mean));
                (probe.scale * (f64::from(q.dot(&k)) - along + score)).exp()
            };
            let columns = i.saturating_sub(3)..=i;
            let sum: f64 = columns.clone().map(weight).sum();
            for j in columns {
                assert!((row[j] - weight(j) / sum).abs() < 1e-5, "row {i}, column {j}");
            }
        }
        let along = left.keys.dot(&mean).mapv(f32::abs).sum();
        assert!(along < 1e-4, "the keys keep {along} of the mean query's direction");
    }

    #[test]
    fn what_is_left_keeps_its_proportions() {
        let p = array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.125, 0.375]];
        let two = largest(p.clone(), 2);
        let rows = |last| ndarray::arr2(&[[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], last]);
        assert_eq!(two, rows([0.5 / 0.875, 0.0, 0.375 / 0.875]));
        assert_eq!(largest(p.clone(), 1), ndarray::arr2(&[[1.0, 0.0, 0.0]; 3]));
        assert_eq!(last(p.clone(), 1), Array2::<f64>::eye(3));
        assert_eq!(last(p.clone(), 2), rows([0.0, 0.25, 0.75]));
        assert_eq!(largest(p.clone(), 3), p);
        assert_eq!(last(p.clone(), 3), p);
    }
}
