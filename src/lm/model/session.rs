//! Inference of one sequence token by token, with a key–value cache.

use candle_core::{DType, Device, Result, Tensor, bail};
use ndarray::{Array1, ArrayView1, ArrayView2};
use rayon::prelude::*;

use super::block::Mixer;
use super::language_model::Model;
use super::self_attention::SelfAttention;
use crate::lm::LmError;
use crate::lm::attention::{Heads, attention};
use crate::lm::operators::{matrix, tied_logits, with_elements};
use crate::lm::simd::{self, Slope};
use crate::numerics::times_vector;
use crate::targets::HeadKind;

/// Number of past tokens per task. It is fixed, so that sums do not depend on the number of
/// threads.
const TASK_TOKENS: usize = 1024;

/// One sequence and its key–value cache. A global head keeps the keys and values of every token, a
/// local head those of its last w tokens.
pub struct Session<'m> {
    model: &'m Model,
    /// One cache per layer.
    caches: Vec<LayerCache>,
    tokens: usize,
}

/// What a layer keeps of the tokens read.
enum LayerCache {
    Heads(Vec<HeadCache>),
    /// The last inputs of a convolution.
    Recent(Option<Tensor>),
}

/// One head's keys and values, (tokens, D) each.
struct HeadCache {
    /// The largest number of tokens kept; a later token replaces the oldest.
    most: usize,
    /// Offset of the oldest token once the cache is full.
    oldest: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Model {
    /// Starts an empty sequence.
    pub fn session(&self) -> Session<'_> {
        let cache = |kind: &HeadKind| HeadCache {
            most: kind.window().unwrap_or(usize::MAX),
            oldest: 0,
            keys: Vec::new(),
            values: Vec::new(),
        };
        let layer = |heads: &Vec<HeadKind>| match self.shape.memory_slots {
            Some(_) => LayerCache::Recent(None),
            None => LayerCache::Heads(heads.iter().map(cache).collect()),
        };
        let caches = self.shape.heads.iter().map(layer).collect();
        Session { model: self, caches, tokens: 0 }
    }
}

impl Session<'_> {
    /// Reads tokens and returns the V logits of the next one. The first call
    /// reads its tokens in one pass, later calls read them one by one.
    ///
    /// # Errors
    /// No tokens, more tokens in total than the context, or a token that the vocabulary lacks. The
    /// session must not be used after an error.
    pub fn feed(&mut self, tokens: &[u32]) -> std::result::Result<Vec<f32>, LmError> {
        let mut logits = None;
        let at_once = if self.tokens == 0 { tokens.len().max(1) } else { 1 };
        for tokens in tokens.chunks(at_once) {
            logits = Some(self.read(tokens)?);
        }
        match logits {
            Some(logits) => Ok(logits.flatten_all()?.to_vec1()?),
            None => Err(candle_core::Error::Msg("no tokens to read".to_owned()).into()),
        }
    }

    /// Number of tokens read so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Size of the cache in bytes.
    pub fn cache_bytes(&self) -> usize {
        let numbers = |cache: &HeadCache| cache.keys.len() + cache.values.len();
        let of_layer = |cache: &LayerCache| match cache {
            LayerCache::Heads(heads) => heads.iter().map(numbers).sum(),
            LayerCache::Recent(recent) => recent.as_ref().map_or(0, Tensor::elem_count),
        };
        self.caches.iter().map(of_layer).sum::<usize>() * size_of::<f32>()
    }

    /// The logits after the last of `tokens`, (1, V). At the start of a sequence any number of tokens, later one.
    fn read(&mut self, tokens: &[u32]) -> Result<Tensor> {
        let (first, time) = (self.tokens, tokens.len());
        let ids = Tensor::from_slice(tokens, (1, time), &Device::Cpu)?;
        let decoder = &self.model.decoder;
        let (mut x, _) = decoder.embed(&ids, first)?;
        for (stage, cache) in decoder.stages.iter().zip(&mut self.caches) {
            let block = stage.block()?;
            x = match (&block.mixer, cache) {
                (Mixer::Attention(attention), LayerCache::Heads(caches)) => {
                    next(attention, &x, caches, first)?
                }
                (Mixer::GatedMemory(memory), LayerCache::Recent(recent)) => {
                    memory.add_next(&x, recent)?
                }
                _ => bail!("a cache of another kind of layer"),
            };
            (x, _) = block.add_mlp(&x)?;
        }
        self.tokens += time;
        let (hidden, _) = decoder.after_blocks(&x.narrow(0, time - 1, 1)?)?;
        tied_logits(&hidden, &decoder.output_embedding()?)?.to_dtype(DType::F32)
    }
}

/// The residual stream after attention over the cached entries, for new tokens from position `first` on, which are cached.
fn next(
    layer: &SelfAttention,
    x: &Tensor,
    caches: &mut [HeadCache],
    first: usize,
) -> Result<Tensor> {
    let ([q, k, v], _) = layer.heads_of(x, (1, x.dim(0)?), layer.turns(first))?;
    keep(caches, &k.to_dtype(DType::F32)?, &v.to_dtype(DType::F32)?)?;
    let attended = if first == 0 {
        attention(&q, &k, &v, layer.slopes(), &layer.heads)?.output
    } else {
        let exact = q.to_dtype(DType::F32)?;
        attend(caches, &exact, layer.slopes(), &layer.heads)?.to_dtype(q.dtype())?
    };
    Ok(layer.add_output(x, &attended)?.0)
}

/// Appends the keys and values, (1, T, H, D), of new tokens to the caches.
fn keep(caches: &mut [HeadCache], k: &Tensor, v: &Tensor) -> Result<()> {
    let (_, time, heads, d) = k.dims4()?;
    with_elements([k, v], |[k, v]| {
        caches.par_iter_mut().enumerate().for_each(|(head, cache)| {
            // A window keeps only the last tokens.
            for token in time.saturating_sub(cache.most)..time {
                let at = (token * heads + head) * d;
                cache.keep(&k[at..at + d], &v[at..at + d]);
            }
        });
        Ok(())
    })
}

impl HeadCache {
    /// The negated relative distance j − i ≤ 0 of an entry to the newest token.
    fn lag(&self, place: usize, d: usize) -> f32 {
        let kept = self.keys.len() / d;
        let age = (place + kept - self.oldest / d) % kept;
        age as f32 - (kept - 1) as f32
    }

    fn keep(&mut self, key: &[f32], value: &[f32]) {
        if self.keys.len() < self.most.saturating_mul(key.len()) {
            self.keys.extend_from_slice(key);
            self.values.extend_from_slice(value);
        } else {
            self.keys[self.oldest..][..key.len()].copy_from_slice(key);
            self.values[self.oldest..][..value.len()].copy_from_slice(value);
            self.oldest = (self.oldest + key.len()) % self.keys.len();
        }
    }
}

/// Partial softmax over some of a head's past: Σ e^(z − max) and Σ e^(z − max) v.
struct Part {
    max: f32,
    sum: f64,
    mixed: Array1<f32>,
}

/// The heads' outputs, (1, 1, H, D), for the queries of the newest token, over the cached entries.
/// The order of entries in the cache does not matter.
fn attend(
    caches: &[HeadCache],
    q: &Tensor,
    slopes: Option<&Tensor>,
    heads: &Heads,
) -> Result<Tensor> {
    let d = q.dim(3)?;
    let slopes = slopes.map(Tensor::to_vec1::<f32>).transpose()?;
    let scale = 1.0 / (d as f32).sqrt();
    let mut output = vec![0.0; q.elem_count()];
    with_elements([q], |[q]: [&[f32]; 1]| {
        let chunks = |head: usize| {
            let HeadCache { keys, values, .. } = &caches[head];
            let chunks = keys.chunks(TASK_TOKENS * d).zip(values.chunks(TASK_TOKENS * d));
            chunks
                .enumerate()
                .map(move |(at, (keys, values))| (head, at * TASK_TOKENS, keys, values))
        };
        let tasks: Vec<_> = (0..caches.len()).flat_map(chunks).collect();
        let parts = tasks
            .par_iter()
            .map(|&(head, first, keys, values)| {
                let q = Array1::from_iter(q[head * d..][..d].iter().map(|q| q * scale));
                let lags: Vec<f32> = match &slopes {
                    None => Vec::new(),
                    Some(_) => {
                        let places = first..first + keys.len() / d;
                        places.map(|place| caches[head].lag(place, d)).collect()
                    }
                };
                let slope =
                    slopes.as_ref().map(|slopes| Slope { slope: slopes[head], lags: &lags });
                let (keys, values) = (matrix(keys, d)?, matrix(values, d)?);
                Ok((head, part(&q, keys, values, heads.softcap, slope)))
            })
            .collect::<Result<Vec<_>>>()?;
        for (head, to) in output.chunks_exact_mut(d).enumerate() {
            let mine = || parts.iter().filter(|(h, _)| *h == head).map(|(_, part)| part);
            let max = mine().map(|part| part.max).fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0f64;
            for part in mine() {
                let weight = (part.max - max).exp();
                sum += f64::from(weight) * part.sum;
                to.iter_mut().zip(&part.mixed).for_each(|(to, from)| *to += weight * from);
            }
            to.iter_mut().for_each(|to| *to /= sum as f32);
        }
        Ok(())
    })?;
    Tensor::from_vec(output, q.shape(), q.device())
}

fn part(
    q: &Array1<f32>,
    keys: ArrayView2<'_, f32>,
    values: ArrayView2<'_, f32>,
    softcap: Option<f32>,
    slope: Option<Slope<'_>>,
) -> Part {
    let mut logits = times_vector(keys, q.view());
    let terms = simd::softmax_terms_of(&mut logits, softcap, slope);
    Part {
        max: terms.shift,
        sum: terms.sum,
        mixed: times_vector(values.t(), ArrayView1::from(&logits)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{ModelShape, TrainDefinition};

    fn definition() -> TrainDefinition {
        TrainDefinition::default().with("layers=2 d_model=24 heads=3 window=7 context=60 softcap=2")
    }

    /// A session reads `first` tokens and then one at a time.
    #[test]
    fn a_token_at_a_time_gives_what_the_whole_sequence_does() {
        let tokens: Vec<u32> = (0..60).map(|i| (i * i * 7 + i / 3) % 23).collect();
        for (settings, first) in [
            ("arm=mhsa positions=learned", 1),
            ("arm=ls positions=rope", 5),
            ("arm=local-only positions=none stabilisers=[\"softcap\"]", 20),
            ("arm=layer-alternating positions=rope stabilisers=[\"qk-norm\"]", 7),
            ("arm=ls positions=learned stabilisers=[\"sigma-reparam\"]", 8),
            ("arm=ls positions=sinusoidal slopes=alibi", 3),
            ("arm=ls positions=none slopes=learned stabilisers=[\"softcap\"]", 20),
            ("heads=1 arm=gam positions=learned", 1),
            ("heads=1 arm=gam positions=none", 20),
        ] {
            // With this deviation attention is far from uniform.
            let shape = ModelShape::new(&definition().with(settings), 23);
            let model = Model::new(shape, 0.5, 3).unwrap();
            let ids = Tensor::from_slice(&tokens, (1, tokens.len()), &Device::Cpu).unwrap();
            let whole = model.predict(&ids).unwrap().logits().unwrap().to_vec2::<f32>().unwrap();
            let mut session = model.session();
            let mut found = vec![session.feed(&tokens[..first]).unwrap()];
            found.extend(tokens[first..].iter().map(|&token| session.feed(&[token]).unwrap()));
            assert_eq!(session.tokens(), tokens.len());
            let off = whole[first - 1..].iter().flatten().zip(found.iter().flatten());
            let off = off.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let largest = whole.iter().flatten().fold(0.0f32, |most, z| most.max(z.abs()));
            assert!(off < 2e-5 * largest.max(1.0), "{settings} differs by {off:e} of {largest}");
        }
    }

    #[test]
    fn a_local_head_keeps_its_window() {
        let shape = ModelShape::new(&definition().with("arm=ls"), 23);
        let model = Model::new(shape, 0.02, 0).unwrap();
        let mut session = model.session();
        session.feed(&[1; 40]).unwrap();
        session.feed(&[2; 3]).unwrap();
        // Keys and values of 8 float32 numbers: one global head with 43 tokens and two local heads with 7.
        assert_eq!(session.cache_bytes(), 2 * (43 + 2 * 7) * 2 * 8 * 4);
        assert!(session.feed(&[1; 18]).is_err(), "18 tokens after 43 of 60");
    }
}
