//! One layer of a file of exported heads: reads its tensors, checks them, and converts them to heads.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, Axis, Zip, s};

use super::about::{AboutLayer, AboutNorm};
use crate::lm::pretrained::{NormOver, Pairs, with_ones};
use crate::lm::probe::Side;
use crate::lm::tensor_file::{SafetensorsFile, TensorSource as _};
use crate::lm::{HeadInputs, HeadProbe, LmError, NormalisedInputs, PositionBias};
use crate::targets::{HeadKind, Visibility};

/// Access to the tensors of one layer.
pub(super) struct Tensors<'f> {
    file: &'f SafetensorsFile,
    layer: usize,
}

impl Tensors<'_> {
    fn name(&self, of: &str) -> String {
        format!("layers.{}.{of}", self.layer)
    }

    pub(super) fn wrong(&self, what: &str) -> LmError {
        self.file.wrong(format!("layer {} has {what}", self.layer))
    }

    pub(super) fn has(&self, of: &str) -> bool {
        self.file.dimensions(&self.name(of)).is_some()
    }

    /// The dimensions of a tensor. Fails if it is missing or differs from a dimension that is `known`.
    pub(super) fn shape<const N: usize>(
        &self,
        of: &str,
        known: [Option<usize>; N],
    ) -> Result<[usize; N], LmError> {
        let name = self.name(of);
        let Some(found) = self.file.dimensions(&name) else {
            let why =
                format!("has no tensor {name} of float32, float16 or bfloat16; export it again");
            return Err(self.file.wrong(why));
        };
        let fits = |found: &[usize; N]| {
            known.iter().zip(found).all(|(known, found)| known.is_none_or(|known| known == *found))
        };
        found.try_into().ok().filter(fits).ok_or_else(|| {
            let known =
                known.map(|known| known.map_or("any".to_owned(), |known| known.to_string()));
            let known = known.join(", ");
            self.file
                .wrong(format!("{name} is {found:?}, but [{known}] is needed; export it again"))
        })
    }

    /// The elements at `places` along a tensor's first axis. Fails if one is not finite.
    pub(super) fn numbers(&self, of: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let numbers = self.file.read(&self.name(of), places)?;
        match numbers.iter().all(|v| v.is_finite()) {
            true => Ok(numbers),
            false => Err(self.file.wrong(format!(
                "{} has values that are NaN or infinite; export an earlier step, or use float32",
                self.name(of)
            ))),
        }
    }

    pub(super) fn matrix(&self, of: &str, shape: [usize; 2]) -> Result<Array2<f32>, LmError> {
        self.shape(of, shape.map(Some))?;
        matrix(self.numbers(of, 0..shape[0])?, shape)
    }
}

pub(super) fn matrix(data: Vec<f32>, shape: [usize; 2]) -> Result<Array2<f32>, LmError> {
    Ok(Array2::from_shape_vec(shape, data).map_err(candle_core::Error::wrap)?)
}

/// Tolerance of the length of cosines and sines, relative to 1 or to their mean, for rounding.
const ROUNDING: f64 = 0.01;

/// The rotation of adjacent pairs of channels by position.
pub(super) struct Rotation {
    /// (cos θ, sin θ) by position and pair, (T, d/2).
    pub(super) turns: Array2<[f32; 2]>,
    /// An additional factor of the rotated channels.
    pub(super) factor: f64,
}

impl Rotation {
    /// Also returns the order of channels in which the channels of a pair are adjacent.
    pub(super) fn read(
        tensors: &Tensors<'_>,
        pairs: Pairs,
        tokens: usize,
        d: usize,
    ) -> Result<(Self, Vec<usize>), LmError> {
        let [_, count] = tensors.shape("cos", [Some(tokens), None])?;
        let (cos, sin) =
            (tensors.matrix("cos", [tokens, count])?, tensors.matrix("sin", [tokens, count])?);
        if count == 0 || 2 * count > d || !d.is_multiple_of(2) {
            return Err(tensors.wrong(&format!("{count} angles for heads of {d} channels")));
        }
        let lengths = Zip::from(&cos).and(&sin).map_collect(|&c, &s| f64::from(c).hypot(s.into()));
        let mean = lengths.mean().unwrap_or(1.0);
        if lengths.iter().any(|length| (length / mean - 1.0).abs() > ROUNDING) {
            return Err(tensors.wrong("cosines and sines that are all zero"));
        }
        let factor = if (mean - 1.0).abs() < ROUNDING { 1.0 } else { mean };
        if factor != 1.0 && 2 * count < d {
            return Err(tensors.wrong(&format!(
                "cosines and sines of length {factor:.3} for {} of {d} channels, which is not supported",
                2 * count
            )));
        }
        let turns = Array2::from_shape_fn((tokens, d / 2), |(at, pair)| match pair < count {
            true => [cos[[at, pair]], sin[[at, pair]]].map(|v| (f64::from(v) / factor) as f32),
            false => [1.0, 0.0],
        });
        Ok((Self { turns, factor }, pairs.order(count, d)))
    }

    /// Undoes the rotation of rows.
    pub(super) fn undone(&self, rows: &Array2<f32>) -> Array2<f32> {
        let mut back = rows.clone();
        for (mut row, turns) in back.rows_mut().into_iter().zip(self.turns.rows()) {
            for (pair, &[cos, sin]) in turns.iter().enumerate() {
                let (x, y) = (row[2 * pair], row[2 * pair + 1]);
                let length = cos * cos + sin * sin;
                row[2 * pair] = (x * cos + y * sin) / length;
                row[2 * pair + 1] = (y * cos - x * sin) / length;
            }
        }
        back
    }
}

/// A layer whose tensors are complete and have consistent shapes.
pub(super) struct ExportedLayer {
    about: AboutLayer,
    pub(super) heads: usize,
    key_heads: usize,
    /// Tokens per passage.
    tokens: usize,
    /// d_head.
    pub(super) d: usize,
    /// Channels of the layer input.
    width: usize,
    rotation: Option<Rotation>,
    /// The order of channels in which those that are rotated together are adjacent.
    order: Vec<usize>,
    /// The normalisation of queries and keys, with their gains by head, if there is one.
    norm: Option<(AboutNorm, [Array2<f32>; 2])>,
    sinks: Option<Vec<f32>>,
    /// The position bias of each head, (2T − 1), if there is one.
    biases: Option<Vec<Arc<[f32]>>>,
}

/// The factor of each row.
type RowFactors = Arc<Vec<f32>>;

impl ExportedLayer {
    /// Finds the tensors of a layer for a number of passages and of tokens per passage.
    pub(super) fn find(
        file: &SafetensorsFile,
        about: AboutLayer,
        [passages, tokens]: [usize; 2],
    ) -> Result<Self, LmError> {
        let tensors = Tensors { file, layer: about.layer };
        let [_, heads, _, d] =
            tensors.shape("queries", [Some(passages), None, Some(tokens), None])?;
        let [_, key_heads, ..] =
            tensors.shape("keys", [Some(passages), None, Some(tokens), Some(d)])?;
        let [.., width] = tensors.shape("stream", [Some(passages), Some(tokens), None])?;
        if heads == 0 || key_heads == 0 || d == 0 || width == 0 || !heads.is_multiple_of(key_heads)
        {
            return Err(tensors.wrong(&format!(
                "{heads} query heads and {key_heads} key heads of {d} channels, made from {width}"
            )));
        }
        let (rotation, order) = match about.pairs {
            None => (None, (0..d).collect()),
            Some(pairs) => {
                let (rotation, order) = Rotation::read(&tensors, pairs, tokens, d)?;
                (Some(rotation), order)
            }
        };
        let mut norm = None;
        if let Some(about) = about.norm {
            for (name, heads) in [("queries_before", heads), ("keys_before", key_heads)] {
                tensors.shape(name, [passages, heads, tokens, d].map(Some))?;
            }
            let gains = |name: &str, heads: usize| -> Result<_, LmError> {
                Ok(tensors.matrix(name, [heads, d])?.select(Axis(1), &order))
            };
            norm = Some((about, [gains("queries_gains", heads)?, gains("keys_gains", key_heads)?]));
        }
        let sinks = tensors.has("sinks").then(|| {
            tensors.shape("sinks", [Some(heads)])?;
            tensors.numbers("sinks", 0..heads)
        });
        let sinks = sinks.transpose()?;
        let biases = tensors.has("position_bias").then(|| -> Result<Vec<_>, LmError> {
            let biases = tensors.matrix("position_bias", [heads, 2 * tokens - 1])?;
            Ok(biases.rows().into_iter().map(|bias| bias.iter().copied().collect()).collect())
        });
        let biases = biases.transpose()?;
        Ok(Self { about, heads, key_heads, tokens, d, width, rotation, order, norm, sinks, biases })
    }

    pub(super) fn number(&self) -> usize {
        self.about.layer
    }

    pub(super) fn kind(&self) -> HeadKind {
        match self.about.window {
            Some(window) => HeadKind::Local { window },
            None => HeadKind::Global,
        }
    }

    /// The heads on the first `tokens` tokens of passage number `place`.
    pub(super) fn heads_on(
        &self,
        file: &SafetensorsFile,
        place: usize,
        tokens: usize,
    ) -> Result<Vec<HeadProbe>, LmError> {
        let tensors = Tensors { file, layer: self.about.layer };
        if !self.about.causal && tokens != self.tokens {
            return Err(tensors.wrong(&format!(
                "heads that are not causal, so the first {tokens} of {} tokens cannot be taken alone; ask \
                 for whole passages",
                self.tokens
            )));
        }
        let (queries, of_queries) = self.sides(&tensors, 0, place, tokens)?;
        let (keys, of_keys) = self.sides(&tensors, 1, place, tokens)?;
        let stream = Arc::new(self.stream(&tensors, place, tokens)?);
        let turns = self
            .rotation
            .as_ref()
            .map(|rotation| Arc::new(rotation.turns.slice(s![..tokens, ..]).to_owned()));
        let together = of_queries
            .zip(of_keys)
            .map(|(queries, keys)| NormalisedInputs::Together { scales: [queries, keys] });
        let factor = self.rotation.as_ref().map_or(1.0, |rotation| rotation.factor);
        let probe = |(head, query): (usize, Side)| {
            let key_head = head * self.key_heads / self.heads;
            let key = &keys[key_head];
            HeadProbe {
                layer: self.about.layer,
                head,
                visibility: match self.about.causal {
                    true => Visibility::Causal,
                    false => Visibility::Bidirectional,
                },
                kind: self.kind(),
                queries: query.made,
                keys: key.made.clone(),
                key_head,
                scale: self.about.scale * factor.powi(2),
                softcap: self.about.softcap,
                bias: self.biases.as_ref().map(|biases| PositionBias::Table(biases[head].clone())),
                sink: self.sinks.as_ref().map(|sinks| sinks[head]),
                inputs: HeadInputs {
                    stream: stream.clone(),
                    projected: [query.projected, key.projected.clone()],
                    normalised: together.clone().or_else(|| self.each(head, key_head)),
                    turns: turns.clone(),
                },
            }
        };
        Ok(queries.into_iter().enumerate().map(probe).collect())
    }

    /// The layer input X, with a column of ones if the projections have biases.
    fn stream(
        &self,
        tensors: &Tensors<'_>,
        place: usize,
        tokens: usize,
    ) -> Result<Array2<f32>, LmError> {
        let data = tensors.numbers("stream", place..place + 1)?;
        let all = matrix(data, [self.tokens, self.width])?;
        let own = all.slice(s![..tokens, ..]).to_owned();
        Ok(if self.about.bias { with_ones(&own) } else { own })
    }

    /// Queries (side 0) or keys (side 1) of all heads, and the factor of each row if all heads are normalised together.
    fn sides(
        &self,
        tensors: &Tensors<'_>,
        side: usize,
        place: usize,
        tokens: usize,
    ) -> Result<(Vec<Side>, Option<RowFactors>), LmError> {
        let (name, heads) = [("queries", self.heads), ("keys", self.key_heads)][side];
        let by_head = |name: &str| -> Result<Vec<Array2<f32>>, LmError> {
            let all = tensors.numbers(name, place..place + 1)?;
            let all = matrix(all, [heads * self.tokens, self.d])?;
            let of_head = |head: usize| {
                let rows = all.slice(s![head * self.tokens..head * self.tokens + tokens, ..]);
                rows.select(Axis(1), &self.order)
            };
            Ok((0..heads).map(of_head).collect())
        };
        let mut made = by_head(name)?;
        if let Some(Rotation { factor, .. }) = self.rotation {
            made.iter_mut().for_each(|rows| *rows /= factor as f32);
        }
        let mut projected = match (&self.norm, &self.rotation) {
            (Some(_), _) => by_head(&format!("{name}_before"))?,
            (None, Some(rotation)) => made.iter().map(|rows| rotation.undone(rows)).collect(),
            (None, None) => made.clone(),
        };
        let mut scales = None;
        if let Some((AboutNorm { over: NormOver::Layer, epsilon, .. }, gains)) = &self.norm {
            scales = Some(Arc::new(scales_together(&projected, *epsilon)));
            for (rows, gain) in projected.iter_mut().zip(gains[side].rows()) {
                *rows *= &gain;
            }
        }
        let both = projected.into_iter().zip(made);
        Ok((both.map(|(projected, made)| Side { projected, made }).collect(), scales))
    }

    /// The normalisation of a head by itself; `None` if there is none.
    fn each(&self, head: usize, key_head: usize) -> Option<NormalisedInputs> {
        let (AboutNorm { centred, epsilon, .. }, [of_queries, of_keys]) = self.norm.as_ref()?;
        let gains = [of_queries.row(head).to_vec(), of_keys.row(key_head).to_vec()];
        let (centred, epsilon) = (*centred, *epsilon);
        Some(NormalisedInputs::Each { gains, epsilon, centred })
    }
}

/// 1/√(mean square + ε) of each row over all heads.
fn scales_together(heads: &[Array2<f32>], epsilon: f32) -> Vec<f32> {
    let width: usize = heads.iter().map(Array2::ncols).sum();
    let mut squares = Array1::<f64>::zeros(heads[0].nrows());
    for rows in heads {
        let of_row =
            |row: ArrayView1<'_, f32>| -> f64 { row.iter().map(|&v| f64::from(v).powi(2)).sum() };
        Zip::from(&mut squares).and(rows.rows()).for_each(|sum, row| *sum += of_row(row));
    }
    let scale = |sum: f64| (sum / width as f64 + f64::from(epsilon)).sqrt().recip() as f32;
    squares.into_iter().map(scale).collect()
}
