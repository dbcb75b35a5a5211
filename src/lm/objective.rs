//! Training objectives: inputs, targets and weights of a batch.

use candle_core::{Result, Tensor};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

/// A batch of sequences with the targets to predict.
pub(in crate::lm) struct Batch {
    /// Input tokens, (B, T) of uint32.
    pub(in crate::lm) inputs: Tensor,
    /// Target tokens, (N) of uint32.
    pub(in crate::lm) targets: Tensor,
    /// The rows, out of B·T, to which the targets belong, (N) of uint32 in ascending order; `None` for all rows.
    pub(in crate::lm) rows: Option<Tensor>,
}

/// Masking of tokens that the model predicts (Devlin et al. 2019, arXiv 1810.04805). In each sequence of T tokens,
/// round(`share` · T) of them, at least one, are replaced by `symbol`. In the paper one in five of the chosen tokens
/// becomes another symbol or stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::lm) struct Masking {
    /// Above 0, below 1.
    pub(in crate::lm) share: f64,
    /// The symbol of masked tokens, which no other token has.
    pub(in crate::lm) symbol: u32,
}

impl Batch {
    /// A batch in which every row predicts the next token; `targets` holds B·T tokens.
    pub(in crate::lm) fn next(inputs: Tensor, targets: &Tensor) -> Result<Self> {
        Ok(Self { inputs, targets: targets.flatten_all()?, rows: None })
    }

    /// A batch of the B·T `tokens` of B sequences, some of which are masked. The choice depends on `seed` and on the number
    /// of the sequence alone; the first sequence has the number `number`.
    pub(in crate::lm) fn masked(
        tokens: &Tensor,
        (batch, time): (usize, usize),
        masking: Masking,
        seed: u64,
        number: u64,
    ) -> Result<Self> {
        let device = tokens.device();
        let mut inputs = tokens.flatten_all()?.to_vec1::<u32>()?;
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for (sequence, tokens) in inputs.chunks_exact_mut(time).enumerate() {
            for place in masking.places(time, seed, number + sequence as u64) {
                rows.push((sequence * time + place) as u32);
                targets.push(std::mem::replace(&mut tokens[place], masking.symbol));
            }
        }
        Ok(Self {
            inputs: Tensor::from_vec(inputs, (batch, time), device)?,
            targets: Tensor::new(targets, device)?,
            rows: Some(Tensor::new(rows, device)?),
        })
    }

    /// The rows of a (B·T, C) tensor that have a target, (N, C).
    pub(in crate::lm) fn of_rows(&self, x: &Tensor) -> Result<Tensor> {
        match &self.rows {
            Some(rows) => x.index_select(rows, 0),
            None => Ok(x.clone()),
        }
    }

    /// Backward pass of [`Self::of_rows`]: the gradient of all rows of `x`, zero for rows without a target.
    pub(in crate::lm) fn to_rows(&self, x: &Tensor, gradient: Tensor) -> Result<Tensor> {
        match &self.rows {
            Some(rows) => x.zeros_like()?.index_add(rows, &gradient, 0),
            None => Ok(gradient),
        }
    }
}

impl Masking {
    /// Positions of the masked tokens out of `time`, in ascending order.
    fn places(self, time: usize, seed: u64, number: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(MASK_STREAM + number);
        let count = (self.share * time as f64).round() as usize;
        let mut places = index::sample(&mut rng, time, count.clamp(1, time)).into_vec();
        places.sort_unstable();
        places
    }
}

/// The first stream of the random generator for masks; streams 0 and 1 are for weights and for windows of text.
const MASK_STREAM: u64 = 2;

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn the_share_of_each_sequence_is_hidden_and_nothing_else_changes() {
        let (batch, time) = (7, 40);
        let tokens: Vec<u32> = (0..batch * time).map(|i| (i * i % 19) as u32).collect();
        let of = |share: f64, seed: u64, number: u64| {
            let tokens = Tensor::from_slice(&tokens, batch * time, &Device::Cpu).unwrap();
            let masking = Masking { share, symbol: 19 };
            let found = Batch::masked(&tokens, (batch, time), masking, seed, number).unwrap();
            let numbers = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<u32>().unwrap();
            [numbers(&found.inputs), numbers(&found.targets), numbers(&found.rows.unwrap())]
        };
        for (share, each) in [(0.001, 1), (0.15, 6), (0.5, 20), (0.999, 40)] {
            let [inputs, targets, rows] = of(share, 3, 0);
            assert_eq!((targets.len(), rows.len()), (batch * each, batch * each));
            assert!(rows.is_sorted_by(|a, b| a < b));
            for (at, (&input, &token)) in inputs.iter().zip(&tokens).enumerate() {
                match rows.iter().position(|&row| row as usize == at) {
                    Some(which) => assert_eq!((input, targets[which]), (19, token)),
                    None => assert_eq!(input, token),
                }
            }
            let of_sequence = |b: usize| rows.iter().filter(|&&r| r as usize / time == b).count();
            assert!((0..batch).all(|b| of_sequence(b) == each));
        }
        assert_eq!(of(0.15, 3, 0), of(0.15, 3, 0));
        assert_ne!(of(0.15, 3, 0), of(0.15, 4, 0));
        assert_ne!(of(0.15, 3, 0), of(0.15, 3, 1));
        // The mask of a sequence does not depend on its place in a batch.
        let masks = |number: u64| {
            let rows = of(0.15, 3, number)[2].clone();
            rows.chunks(6)
                .map(|c| c.iter().map(|r| r % time as u32).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert_eq!(masks(0)[1..], masks(1)[..batch - 1]);
    }
}
