//! What inference takes: reading tokens at once, and one more at a time.

use std::time::Instant;

use super::definition::TrainDefinition;
use super::error::LmError;
use super::memory_estimate::{self as room, Kept};
use super::model::{Model, ModelShape};

/// Tokens before the clock starts.
const WARM_UP: usize = 2;
/// What inference took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Seconds to read the first tokens at once.
    pub prefill_s: f64,
    /// The median second that one token more takes.
    pub decode_s: f64,
    /// Bytes of keys and values after the first tokens.
    pub cache_bytes: usize,
    /// The model's numbers.
    pub parameters: usize,
}

impl Latency {
    /// Times a model at its start, of `symbols` symbols, on arbitrary tokens: `read` of them at once, two
    /// more, then `repeats` singly.
    ///
    /// # Errors
    /// Sizes that are wrong, or more than the machine's memory holds.
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
        definition.check()?;
        room::check_weights(&definition, symbols, Kept::Weight)?;
        let tokens = definition.context as f64 * size_of::<u32>() as f64;
        room::check("the tokens need", tokens, "the tokens to read")?;
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
        Ok(Self { prefill_s, decode_s, cache_bytes, parameters: model.parameters() })
    }
}
