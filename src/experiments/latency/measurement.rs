//! Measures inference: time to read n tokens, time of the next token, size of cached keys and values.

use std::time::Instant;

use crate::experiments::training::ModelColumns;
use crate::lm::{Arm, LmError, Model, ModelShape, TrainDefinition};
use crate::record::{InvariantChecker, Measurement, Row, record};

/// The number of tokens read one by one before timing starts.
const WARM_UP: usize = 2;

record! {
    /// Identifies a cell: a model at one length, in one round.
    pub struct LatencyKey {
        /// the model
        model: ModelColumns,
        /// the tokens read
        #[range = Counted]
        n: usize,
        /// the number of the repetition
        round: u64,
    }
}

record! {
    /// Times and sizes of inference.
    #[derive(Default)]
    pub struct LatencyMeasurement {
        /// the threads of the process
        #[range = Counted]
        threads: usize,
        /// the number of parameters
        parameters: usize,
        /// the time to read n tokens at once
        #[unit = "s"]
        prefill_s: f64,
        /// the median time of one more token
        #[unit = "s"]
        decode_s: f64,
        /// the size of keys and values kept after n tokens
        #[unit = "bytes"]
        cache_bytes: usize,
    }
}

impl LatencyMeasurement {
    /// Times a model with its initial weights on arbitrary tokens of `symbols` symbols. It reads `read` of them at
    /// once, two more to warm up, then `repeats` one by one.
    ///
    /// # Errors
    /// Sizes that are invalid, or that need more memory than the machine has.
    pub fn measure(
        definition: &TrainDefinition,
        symbols: usize,
        read: usize,
        repeats: usize,
    ) -> Result<Self, LmError> {
        let definition = TrainDefinition {
            context: read.saturating_add(WARM_UP).saturating_add(repeats),
            ..definition.clone()
        };
        definition.check_inference(symbols)?;
        let shape = ModelShape::new(&definition, symbols);
        let model = Model::new(shape, definition.initial_deviation, definition.seed)?;
        let tokens: Vec<u32> =
            (0..definition.context).map(|i| (i * 7919 % symbols) as u32).collect();
        let mut session = model.session();
        let started = Instant::now();
        session.feed(&tokens[..read])?;
        let prefill_s = started.elapsed().as_secs_f64();
        let cache_bytes = session.cache_bytes();
        let mut times = Vec::with_capacity(tokens.len());
        for token in &tokens[read..] {
            let started = Instant::now();
            session.feed(std::slice::from_ref(token))?;
            times.push(started.elapsed().as_secs_f64());
        }
        let mut timed = times.split_off(WARM_UP);
        timed.sort_by(f64::total_cmp);
        let decode_s = timed[timed.len() / 2];
        let threads = rayon::current_num_threads();
        Ok(Self { threads, parameters: model.parameters(), prefill_s, decode_s, cache_bytes })
    }
}

impl Measurement for LatencyMeasurement {
    type Key = LatencyKey;

    const NAME: &'static str = "latency";
    const VERSION: u32 = 4;

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, found) = (&row.of, &row.found);
        let model = &of.model;
        check.at_least("threads", found.threads as f64, 1.0);
        check.at_least("prefill_s", found.prefill_s, f64::MIN_POSITIVE);
        check.at_least("decode_s", found.decode_s, f64::MIN_POSITIVE);
        check.at_most("one token more takes longer than n", found.decode_s, found.prefill_s, 0.0);
        // A block has four matrices of d_model² entries, and a hidden layer of width 4·d_model with 8·d_model² entries.
        check.at_least("parameters", found.parameters as f64, model.block_weights() as f64);
        // Keys and values are float32: of all tokens read in a global head, of the last `window` tokens in a local one.
        let layer = |global: usize| {
            let tokens = global * of.n
                + model.heads.saturating_sub(global)
                    * model.window.map_or(of.n, |window| of.n.min(window));
            2 * model.head_dimension() * tokens * size_of::<f32>()
        };
        let global = |at: usize| match model.arm.parse::<Arm>() {
            Ok(arm) => arm.global_heads(at, model.heads, model.global_heads),
            Err(_) => model.global_heads,
        };
        let odd = model.layers / 2;
        let kept = (model.layers - odd) * layer(global(0)) + odd * layer(global(1));
        check.equal("cache_bytes", found.cache_bytes as f64, kept as f64, 0.0);
        let most = global(0).max(if odd > 0 { global(1) } else { 0 });
        check.equal("global_heads", model.global_heads as f64, most as f64, 0.0);
    }
}
