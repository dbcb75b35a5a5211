//! Treatments: edits with the parameters that they estimated from one model.

use ndarray::{Array2, ArrayViewMut1, s};

use super::directions::{telling_positions, trend};
use super::edit::Edit;
use super::tilt::nearest_slope;
use crate::heads::PredictError;
use crate::heads::positions::{Form, SeenRows};
use crate::lm::{HeadProbe, Model};

/// The unaltered model on the passages from which edits estimate their parameters. Heads are numbered through all layers.
pub(super) struct Learned {
    passages: Vec<Vec<u32>>,
    /// One list per head, with one probe per passage.
    probes: Vec<Vec<HeadProbe>>,
}

impl Learned {
    pub fn of(model: &Model, passages: &[Vec<u32>]) -> Result<Self, PredictError> {
        let mut probes: Vec<Vec<HeadProbe>> = Vec::new();
        for passage in passages {
            let of_passage = model.probe(passage)?;
            probes.resize_with(of_passage.len(), Vec::new);
            probes.iter_mut().zip(of_passage).for_each(|(head, probe)| head.push(probe));
        }
        match probes.is_empty() {
            true => Err(PredictError::NoPassage),
            false => Ok(Self { passages: passages.to_vec(), probes }),
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

    /// The model whose keys cannot read token positions.
    fn flat(&self, model: &Model, degree: usize) -> Result<Model, PredictError> {
        let directions = |layer: usize| {
            let of_layer = self.probes.iter().find(|of_head| of_head[0].layer == layer);
            let streams = of_layer.into_iter().flatten().map(|probe| &*probe.inputs.stream);
            telling_positions(&streams.collect::<Vec<_>>(), degree)
        };
        let directions =
            (0..model.shape().layers()).map(directions).collect::<Result<Vec<_>, _>>()?;
        Ok(model.with_keys_without(&directions)?)
    }

    /// Adds to a flat model the position bias of each head that brings its attention nearest to the unaltered model's. Layers
    /// are processed in order, each with the residual stream that the biases of earlier layers give.
    fn with_slopes(&self, flat: &Model) -> Result<Model, PredictError> {
        let heads = &flat.shape().heads;
        let mut added: Vec<Vec<f32>> =
            heads.iter().map(|of_layer| vec![0.0; of_layer.len()]).collect();
        let mut model = flat.with_slopes_added(&added)?;
        for layer in 0..heads.len() {
            let mut left: Vec<Vec<Array2<f64>>> = heads[layer].iter().map(|_| Vec::new()).collect();
            for passage in &self.passages {
                let probes = model.probe(passage)?;
                for probe in probes.iter().filter(|probe| probe.layer == layer) {
                    left[probe.head].push(probe.attention());
                }
            }
            let first: usize = heads[..layer].iter().map(Vec::len).sum();
            for (head, left) in left.iter().enumerate() {
                let own: Vec<_> =
                    self.probes[first + head].iter().map(HeadProbe::attention).collect();
                added[layer][head] = nearest_slope(&own, left) as f32;
            }
            model = flat.with_slopes_added(&added)?;
        }
        Ok(model)
    }

    /// The trend of each head's keys. If `sloped`, also the position biases that bring the attention without it nearest to the
    /// unaltered model's, layer by layer as for a flat model.
    fn detrended(
        &self,
        model: &Model,
        degree: usize,
        sloped: bool,
    ) -> Result<Treatment, PredictError> {
        let trend = |of_head: &Vec<HeadProbe>| {
            let keys: Vec<_> = of_head.iter().map(|probe| &probe.keys).collect();
            Ok(trend(&keys, degree)?.mapv(|v| v as f32))
        };
        let trends = self.probes.iter().map(trend).collect::<Result<Vec<_>, PredictError>>()?;
        let mut less = Less { trends, slopes: vec![None; self.probes.len()] };
        let layers = if sloped { model.shape().layers() } else { 0 };
        for layer in 0..layers {
            let mut left: Vec<Vec<Array2<f64>>> = self.probes.iter().map(|_| Vec::new()).collect();
            for passage in &self.passages {
                let mut head = 0;
                model.passage_loss(passage, &mut |probe| {
                    let attention = less.of(head, probe).attention();
                    if probe.layer == layer {
                        left[head].push(attention.clone());
                    }
                    head += 1;
                    Ok(Some(attention))
                })?;
            }
            for ((left, of_head), slope) in left.iter().zip(&self.probes).zip(&mut less.slopes) {
                if !left.is_empty() {
                    let own: Vec<_> = of_head.iter().map(HeadProbe::attention).collect();
                    *slope = Some(nearest_slope(&own, left) as f32);
                }
            }
        }
        Ok(Treatment::Detrended(less))
    }
}

/// Heads whose keys lose a trend and may get a position bias.
pub(super) struct Less {
    /// Trends of the keys, (T, D), one per head.
    trends: Vec<Array2<f32>>,
    /// The slope added to the position bias of each head, if any.
    slopes: Vec<Option<f32>>,
}

impl Less {
    /// The head `probe` with its trend removed and its position bias added.
    fn of(&self, head: usize, probe: &HeadProbe) -> HeadProbe {
        let slope = match self.slopes[head] {
            Some(added) => Some(probe.slope.unwrap_or(0.0) + added),
            None => probe.slope,
        };
        HeadProbe { keys: &probe.keys - &self.trends[head], slope, ..probe.clone() }
    }
}

/// A change of the attention of a head.
type Change = Box<dyn Fn(Array2<f64>) -> Array2<f64>>;

/// An edit with the parameters that it estimated from a model.
pub(super) enum Treatment {
    /// No change, or a fit that is made for each group separately.
    None,
    /// A fixed attention per head, (T, T), independent of the passage.
    Fixed(Vec<Array2<f64>>),
    /// A change of the head's attention in the edited model.
    Changed(Change),
    /// Keys without their trend.
    Detrended(Less),
    /// A model with edited weights.
    Edited(Box<Model>),
}

/// The replacement of a head's attention.
pub(super) struct Replaced {
    /// P̃, (T, T); `None` for the head's own attention.
    pub attention: Option<Array2<f64>>,
    /// The head with other queries and keys from which P̃ is computed, if any.
    pub probe: Option<HeadProbe>,
}

impl Treatment {
    pub fn of(edit: Edit, model: &Model, learned: &Learned) -> Result<Self, PredictError> {
        Ok(match edit {
            Edit::Own | Edit::Fit { .. } => Self::None,
            Edit::Uniform => {
                Self::Fixed(learned.probes.iter().map(|of_head| uniform(&of_head[0])).collect())
            }
            Edit::Ramp => learned.nearest(Form::Ramp),
            Edit::Position => learned.nearest(Form::Position),
            Edit::Lag => learned.nearest(Form::Lag),
            Edit::PositionAndLag => learned.nearest(Form::PositionAndLag),
            Edit::Largest { count } => Self::Changed(Box::new(move |p| largest(p, count))),
            Edit::Last { window } => Self::Changed(Box::new(move |p| last(p, window))),
            Edit::Detrended { degree } => learned.detrended(model, degree, false)?,
            Edit::DetrendedSlope { degree } => learned.detrended(model, degree, true)?,
            Edit::Flat { degree } => Self::Edited(Box::new(learned.flat(model, degree)?)),
            Edit::FlatSlope { degree } => {
                let flat = learned.flat(model, degree)?;
                Self::Edited(Box::new(learned.with_slopes(&flat)?))
            }
        })
    }

    /// The model to run: the edited model, or `own` if the weights are unchanged.
    pub fn model_of<'m>(&'m self, own: &'m Model) -> &'m Model {
        match self {
            Self::Edited(model) => model,
            Self::None | Self::Fixed(_) | Self::Changed(_) | Self::Detrended(_) => own,
        }
    }

    /// The replacement of the attention of head `head`.
    pub fn of_head(&self, head: usize, probe: &HeadProbe) -> Replaced {
        let (attention, probe) = match self {
            Self::None | Self::Edited(_) => (None, None),
            Self::Fixed(of_heads) => (Some(of_heads[head].clone()), None),
            Self::Changed(change) => (Some(change(probe.attention())), None),
            Self::Detrended(less) => {
                let probe = less.of(head, probe);
                (Some(probe.attention()), Some(probe))
            }
        };
        Replaced { attention, probe }
    }
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
        keep_largest(row.view_mut(), count);
        divide_by_sum(row);
    }
    attention
}

/// Sets all but the `count` largest entries to 0; ties go to earlier places.
fn keep_largest(mut entries: ArrayViewMut1<'_, f64>, count: usize) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[b].total_cmp(&entries[a]));
    order.into_iter().skip(count).for_each(|place| entries[place] = 0.0);
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
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::heads::Surgery;
    use crate::lm::{Arm, ModelShape, Slopes, TrainDefinition};
    use crate::solver::SearchOptions;

    const TOKENS: usize = 24;

    fn model(slopes: Slopes) -> Model {
        let definition = TrainDefinition {
            layers: 2,
            d_model: 16,
            heads: 2,
            window: 7,
            context: TOKENS,
            arm: Arm::Ls,
            slopes,
            ..TrainDefinition::default()
        };
        Model::new(ModelShape::new(&definition, 19), 0.5, 3).unwrap()
    }

    fn passage(at: u32) -> Vec<u32> {
        (0..TOKENS as u32).map(|i| (i * i * 7 + i / 3 + at * i + at) % 19).collect()
    }

    #[test]
    fn an_edit_of_weights_has_the_loss_of_the_edited_model() {
        let (learned_on, group) = ([passage(0), passage(1)], vec![passage(2), passage(3)]);
        let edits = [Edit::Flat { degree: 2 }, Edit::FlatSlope { degree: 2 }];
        for slopes in [Slopes::None, Slopes::Alibi] {
            let model = model(slopes);
            let search = SearchOptions::default();
            let surgery = Surgery { model: &model, edits: &edits, fit_groups: 0, search };
            let mut found = Vec::new();
            let groups = [group.clone()];
            let keep = |operated| {
                found.push(operated);
                Ok(())
            };
            assert!(surgery.run(&learned_on, &groups, &AtomicBool::new(false), keep).unwrap());
            for operated in &found[1..] {
                let edit = operated.edit().unwrap();
                let learned = Learned::of(&model, &learned_on).unwrap();
                let treatment = Treatment::of(edit, &model, &learned).unwrap();
                let edited = treatment.model_of(&model);
                let loss = |at: usize| edited.passage_loss(&group[at], &mut |_| Ok(None)).unwrap();
                assert_eq!(loss(0) / 2.0 + loss(1) / 2.0, operated.loss_nats);
                assert_ne!(operated.delta_loss_nats, 0.0);
                let has_added = matches!(edit, Edit::FlatSlope { .. });
                let expected = if has_added { Slopes::Learned } else { slopes };
                assert_eq!(edited.shape().slopes, expected);
            }
            assert_ne!(found[1].loss_nats, found[2].loss_nats);
        }
    }
}

#[cfg(test)]
mod cut_tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn what_is_left_keeps_its_proportions() {
        let p = array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.125, 0.375]];
        let two = largest(p.clone(), 2);
        assert_eq!(
            two,
            array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5 / 0.875, 0.0, 0.375 / 0.875]]
        );
        assert_eq!(
            largest(p.clone(), 1),
            array![[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        );
        assert_eq!(last(p.clone(), 1), Array2::<f64>::eye(3));
        assert_eq!(
            last(p.clone(), 2),
            array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.0, 0.25, 0.75]]
        );
        assert_eq!(largest(p.clone(), 3), p);
        assert_eq!(last(p.clone(), 3), p);
    }
}
