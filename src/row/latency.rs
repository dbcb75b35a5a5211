//! The rows of inference.

use super::kind::{Kind, Row};
use super::laws::Laws;
use super::model::ModelColumns;
use super::part::record;
use crate::lm::Latency;

record! {
    /// What tells one cell of a study of inference from others.
    pub struct LatencyOf {
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
    /// What inference took.
    pub struct LatencyFound {
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

impl LatencyFound {
    /// What was measured on so many threads.
    pub fn of(latency: &Latency, threads: usize) -> Self {
        Self {
            threads,
            parameters: latency.parameters,
            prefill_s: latency.prefill_s,
            decode_s: latency.decode_s,
            cache_bytes: latency.cache_bytes,
        }
    }
}

impl Kind for LatencyFound {
    type Of = LatencyOf;

    const NAME: &'static str = "latency";
    const VERSION: u32 = 4;

    fn laws(row: &Row<Self>, laws: &mut Laws) {
        let (of, found) = (&row.of, &row.found);
        let model = &of.model;
        laws.at_least("threads", found.threads as f64, 1.0);
        laws.at_least("prefill_s", found.prefill_s, f64::MIN_POSITIVE);
        laws.at_least("decode_s", found.decode_s, f64::MIN_POSITIVE);
        laws.at_most("one token more takes longer than n", found.decode_s, found.prefill_s, 0.0);
        // A block holds four matrices of d_model² and a hidden layer four times as wide, of eight.
        let blocks = (12 * model.layers * model.d_model * model.d_model) as f64;
        laws.at_least("parameters", found.parameters as f64, blocks);
        // Keys and values in float32, of all tokens read where a head is global, of the last `window` where local.
        let layer = |global: usize| {
            let tokens =
                global * of.n + model.heads.saturating_sub(global) * of.n.min(model.window);
            2 * (model.d_model / model.heads) * tokens * size_of::<f32>()
        };
        let most = model.layers * layer(model.global_heads);
        let least = match model.arm.as_str() {
            // Layers of global heads and of local ones in turn.
            "layer-alternating" => model.layers * layer(0),
            _ => most,
        };
        laws.within("cache_bytes", found.cache_bytes as f64, least as f64, most as f64);
    }
}
