//! Attention of a block of a published model, and the probes of its heads.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};

use super::layers::{Linear, Norm, with_ones};
use super::rotary::Rotary;
use super::types::NormOver;
use crate::lm::probe::Side;
use crate::lm::{Attend, HeadInputs, HeadProbe, HeadsOfLayer, LmError, NormalisedInputs, attended};
use crate::numerics::{product, softmax};
use crate::targets::{HeadKind, Visibility};

/// Attention with H query heads and K key-value heads, H a multiple of K: query head h uses key-value head h·K/H.
pub(super) struct Attention {
    pub(super) projections: Projections,
    pub(super) output: Linear,
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    /// d_head.
    pub(super) d: usize,
    /// The scale s of the logits s·QKᵀ.
    pub(super) scale: f64,
    /// Normalisation of queries and keys: gains of (d), or of (H·d) and (K·d).
    pub(super) norm: Option<(NormOver, [Norm; 2])>,
    pub(super) rotary: Option<Arc<Rotary>>,
    pub(super) visibility: Visibility,
    pub(super) kind: HeadKind,
    pub(super) softcap: Option<f32>,
    /// Logits of learned attention sinks, (H).
    pub(super) sinks: Option<Array1<f32>>,
}

/// The projections to queries, keys and values.
pub(super) enum Projections {
    /// One matrix each.
    Apart(Box<[Linear; 3]>),
    /// One matrix: all queries, all keys, all values; or, `by_head`, those of the first head, then of the second, and so on.
    Joint { all: Linear, by_head: bool },
}

impl Attention {
    /// Computes attention on `input`, the concatenated rows of passages of `lengths`: the term added to the residual stream, and
    /// the probes of the heads if they are `probed`. Then `attend` may replace the attention of each head; a sink keeps its
    /// share of the head's own attention. Without `attend` only the probes are computed.
    pub(super) fn of(
        &self,
        layer: usize,
        input: &Array2<f32>,
        lengths: &[usize],
        probed: bool,
        mut attend: Option<&mut Attend<'_>>,
    ) -> Result<(Option<Array2<f32>>, HeadsOfLayer), LmError> {
        let [mut queries, mut keys, values] =
            self.projections.of(input, [self.heads, self.key_heads], self.d)?;
        let together = self.normalise_together([&mut queries, &mut keys], lengths);
        let mut gathered = Array2::zeros(queries.dim());
        let mut probes = Vec::new();
        let mut first = 0;
        for (passage, &t) in lengths.iter().enumerate() {
            let rows = first..first + t;
            let stream = probed.then(|| {
                let own = input.slice(s![rows.clone(), ..]).to_owned();
                Arc::new(if self.projections.has_bias() { with_ones(&own) } else { own })
            });
            let turns = self.rotary.as_ref().map(|rotary| Arc::new(rotary.turns(t, self.d)));
            let together = together.as_ref().map(|of| [0, 1].map(|side| of[passage][side].clone()));
            let side = |of: &Array2<f32>, head: usize, side: usize| {
                let own = of.slice(s![rows.clone(), head * self.d..(head + 1) * self.d]);
                let scales = together.as_ref().map(|scales| &scales[side][..]);
                self.side(own, side, scales, turns.as_deref())
            };
            let of_keys: Vec<Side> = (0..self.key_heads).map(|head| side(&keys, head, 1)).collect();
            let mut of_passage = Vec::new();
            for head in 0..self.heads {
                let key_head = head * self.key_heads / self.heads;
                let query = side(&queries, head, 0);
                let key = &of_keys[key_head];
                let values =
                    values.slice(s![rows.clone(), key_head * self.d..(key_head + 1) * self.d]);
                let mut output =
                    gathered.slice_mut(s![rows.clone(), head * self.d..(head + 1) * self.d]);
                let own = |queries: &Array2<f32>| {
                    self.attend(head, [queries.view(), key.made.view(), values])
                };
                let Some(stream) = &stream else {
                    output.assign(&own(&query.made));
                    continue;
                };
                let probe = HeadProbe {
                    layer,
                    head,
                    visibility: self.visibility,
                    kind: self.kind,
                    queries: query.made,
                    keys: key.made.clone(),
                    key_head,
                    scale: self.scale,
                    softcap: self.softcap,
                    bias: None,
                    sink: self.sinks.as_ref().map(|sinks| sinks[head]),
                    inputs: HeadInputs {
                        stream: stream.clone(),
                        projected: [query.projected, key.projected.clone()],
                        normalised: self.normalised(together.as_ref()),
                        turns: turns.clone(),
                    },
                };
                match attend.as_mut().map(|attend| attend(&probe)).transpose()? {
                    None => {}
                    Some(None) => output.assign(&own(&probe.queries)),
                    Some(Some(mut other)) => {
                        let sinks = probe.sink_shares_of(&(0..t).collect::<Vec<_>>());
                        for (mut row, share) in other.rows_mut().into_iter().zip(sinks) {
                            row *= 1.0 - share;
                        }
                        output.assign(&attended(other, &values.mapv(f64::from), &probe)?);
                    }
                }
                of_passage.push(probe);
            }
            probes.push(of_passage);
            first += t;
        }
        let added = attend.is_some().then(|| self.output.of(&gathered)).transpose()?;
        Ok((added, probes))
    }

    /// Multiplies queries and keys by the gains of a norm over all heads together. Returns the further factor of each row, by
    /// passage and side; `None` for other norms.
    fn normalise_together(
        &self,
        [queries, keys]: [&mut Array2<f32>; 2],
        lengths: &[usize],
    ) -> Option<Vec<[Arc<Vec<f32>>; 2]>> {
        let Some((NormOver::Layer, norms)) = &self.norm else { return None };
        let scales: [Array1<f32>; 2] = [norms[0].scales(queries), norms[1].scales(keys)];
        *queries *= &norms[0].gain;
        *keys *= &norms[1].gain;
        let mut first = 0;
        let of_passage = |&t: &usize| {
            let rows = first..first + t;
            first += t;
            scales.each_ref().map(|all| Arc::new(all.slice(s![rows.clone()]).to_vec()))
        };
        Some(lengths.iter().map(of_passage).collect())
    }

    /// Queries or keys of one head, with the channels of rotary pairs adjacent; normalised and rotated.
    fn side(
        &self,
        own: ArrayView2<'_, f32>,
        side: usize,
        together: Option<&[f32]>,
        turns: Option<&Array2<[f32; 2]>>,
    ) -> Side {
        let order = self.order();
        let projected = own.select(Axis(1), &order);
        let mut made = match &self.norm {
            Some((NormOver::Head, norms)) => {
                let norm = &norms[side];
                Norm { gain: norm.gain.select(Axis(0), &order), ..norm.clone() }
                    .of(projected.clone())
            }
            _ => projected.clone(),
        };
        for (at, mut row) in made.rows_mut().into_iter().enumerate() {
            if let Some(scales) = together {
                row *= scales[at];
            }
            let Some(turns) = turns else { continue };
            for (pair, &[cos, sin]) in turns.row(at).iter().enumerate() {
                let (x, y) = (row[2 * pair], row[2 * pair + 1]);
                row[2 * pair] = x * cos - y * sin;
                row[2 * pair + 1] = x * sin + y * cos;
            }
        }
        Side { projected, made }
    }

    fn order(&self) -> Vec<usize> {
        self.rotary.as_ref().map_or_else(|| (0..self.d).collect(), |r| r.order(self.d))
    }

    /// The normalisation of a head's inputs, for its probe.
    fn normalised(&self, together: Option<&[Arc<Vec<f32>>; 2]>) -> Option<NormalisedInputs> {
        let (over, norms) = self.norm.as_ref()?;
        Some(match over {
            NormOver::Head => NormalisedInputs::Each {
                gains: norms.each_ref().map(|n| n.gain.select(Axis(0), &self.order()).to_vec()),
                epsilon: norms[0].epsilon,
                centred: false,
            },
            NormOver::Layer => NormalisedInputs::Together { scales: together?.clone() },
        })
    }

    /// P·V of one head for queries, keys and values of shape (T, d).
    fn attend(
        &self,
        head: usize,
        [queries, keys, values]: [ArrayView2<'_, f32>; 3],
    ) -> Array2<f32> {
        let t = queries.nrows();
        let mut p = product(queries, keys.t()) * self.scale as f32;
        if let Some(cap) = self.softcap {
            p.mapv_inplace(|z| cap * (z / cap).tanh());
        }
        for (row, mut p) in p.rows_mut().into_iter().enumerate() {
            let seen = self.kind.columns(row, t, self.visibility);
            let left =
                self.sinks.as_ref().map(|sinks| left_by(sinks[head], p.slice(s![seen.clone()])));
            softmax(p.view_mut(), seen);
            if let Some(left) = left {
                p *= left;
            }
        }
        product(p.view(), values)
    }
}

/// The share of attention that a sink with logit `sink` leaves to tokens with logits z.
fn left_by(sink: f32, z: ArrayView1<'_, f32>) -> f32 {
    let most = z.fold(sink, |most, &z| most.max(z));
    let tokens: f32 = z.iter().map(|z| (z - most).exp()).sum();
    tokens / (tokens + (sink - most).exp())
}

impl Projections {
    /// Queries, keys and values of every row; heads are adjacent columns.
    fn of(
        &self,
        x: &Array2<f32>,
        [heads, key_heads]: [usize; 2],
        d: usize,
    ) -> Result<[Array2<f32>; 3], LmError> {
        let (all, by_head) = match self {
            Self::Apart(all) => return Ok([all[0].of(x)?, all[1].of(x)?, all[2].of(x)?]),
            Self::Joint { all, by_head } => (all.of(x)?, *by_head),
        };
        let counts = [heads, key_heads, key_heads];
        Ok([0, 1, 2].map(|part| {
            let before: usize = counts[..part].iter().sum();
            let of_head = |head: usize| {
                let place = if by_head { 3 * head + part } else { before + head };
                all.slice(s![.., place * d..(place + 1) * d])
            };
            let parts: Vec<_> = (0..counts[part]).map(of_head).collect();
            concatenate(Axis(1), &parts).expect("parts of one matrix have equal rows")
        }))
    }

    fn has_bias(&self) -> bool {
        match self {
            Self::Apart(all) => all[..2].iter().any(|side| side.bias.is_some()),
            Self::Joint { all, .. } => all.bias.is_some(),
        }
    }
}
