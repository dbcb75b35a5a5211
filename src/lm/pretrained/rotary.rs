//! Rotary positions (Su et al. 2021, arXiv 2104.09864) and their scaling in published models.

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use serde_json::Value;

use super::config::Config;
use super::types::Pairs;
use crate::lm::LmError;

/// Rotates pairs of a head's channels by the angles position · frequency.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rotary {
    /// Radians per token for each rotated pair.
    frequencies: Vec<f32>,
    pairs: Pairs,
    /// An additional factor of the rotated channels of queries and of keys.
    factor: f64,
    /// The longest passage with these frequencies, if longer ones have others.
    context: Option<usize>,
}

impl Rotary {
    /// Frequencies base^(−2i/r) for r = `turned` channels, scaled as `settings` says.
    ///
    /// # Errors
    /// An unknown way of scaling, or one whose parameters are missing.
    pub(super) fn read(
        settings: &Config,
        base: f64,
        turned: usize,
        pairs: Pairs,
    ) -> Result<Self, LmError> {
        let plain = |i: usize| base.powf(-((2 * i) as f64) / turned as f64);
        let mut frequencies: Vec<f64> = (0..turned / 2).map(plain).collect();
        let (mut factor, mut context) = (1.0, None);
        let found = settings.value("rope_type").or_else(|| settings.value("type"));
        match found.map_or(Some("default"), Value::as_str) {
            // Dynamic scaling acts only beyond the context, which no passage exceeds.
            Some("default" | "dynamic") => {}
            Some("linear") => {
                let by = settings.above_zero("factor")?;
                frequencies.iter_mut().for_each(|frequency| *frequency /= by);
            }
            Some("llama3") => llama3(settings, &mut frequencies)?,
            Some("yarn") => factor = yarn(settings, base, turned, &mut frequencies)?,
            Some("longrope" | "su") => {
                (factor, context) = long_rope(settings, &mut frequencies)?;
            }
            _ => {
                let found = found.unwrap_or(&Value::Null);
                return Err(settings.wrong(format!(
                    "rope_type is {found}; only default, dynamic, linear, llama3, yarn and longrope are supported"
                )));
            }
        }
        let frequencies = frequencies.into_iter().map(|frequency| frequency as f32).collect();
        Ok(Self { frequencies, pairs, factor, context })
    }

    /// The longest passage with these frequencies; `None` if every passage has them.
    pub(super) fn context(&self) -> Option<usize> {
        self.context
    }

    /// With each frequency divided by its divisor.
    pub(super) fn divided_by(mut self, divisors: &Array1<f32>) -> Self {
        self.frequencies.iter_mut().zip(divisors).for_each(|(frequency, by)| *frequency /= by);
        self
    }

    /// The factor of the logits besides the scale. `None` if only some of a head's `d` channels are rotated and these have
    /// another length.
    pub(super) fn factor_of_logits(&self, d: usize) -> Option<f64> {
        (self.factor == 1.0 || 2 * self.frequencies.len() == d).then_some(self.factor.powi(2))
    }

    /// The order of a head's `d` channels in which pairs are adjacent; channels that are not rotated come last.
    pub(super) fn order(&self, d: usize) -> Vec<usize> {
        self.pairs.order(self.frequencies.len(), d)
    }

    /// (cos θ, sin θ) by position and pair of adjacent channels in that order, (T, d/2); (1, 0) for pairs that are not rotated.
    pub(super) fn turns(&self, tokens: usize, d: usize) -> Array2<[f32; 2]> {
        Array2::from_shape_fn((tokens, d / 2), |(position, pair)| {
            // In float32, as in the training of these models.
            let angle = |frequency: &f32| position as f32 * frequency;
            let (sin, cos) = f64::from(self.frequencies.get(pair).map_or(0.0, angle)).sin_cos();
            [cos as f32, sin as f32]
        })
    }
}

/// Scales frequencies as Llama 3.1: long wavelengths are stretched, short ones are not, those between are interpolated.
fn llama3(settings: &Config, frequencies: &mut [f64]) -> Result<(), LmError> {
    let by = settings.above_zero("factor")?;
    let low = settings.above_zero("low_freq_factor")?;
    let high = settings.above_zero("high_freq_factor")?;
    let context = settings.above_zero("original_max_position_embeddings")?;
    if high <= low {
        return Err(settings.wrong(format!(
            "high_freq_factor is {high}; it must be above low_freq_factor, {low}"
        )));
    }
    for frequency in frequencies {
        // Turns within the original context of the model.
        let turns = context * *frequency / (2.0 * PI);
        let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        *frequency *= kept + (1.0 - kept) / by;
    }
    Ok(())
}

/// Scales frequencies as YaRN (Peng et al. 2023, arXiv 2309.00071), and returns the factor of the rotated channels.
fn yarn(
    settings: &Config,
    base: f64,
    turned: usize,
    frequencies: &mut [f64],
) -> Result<f64, LmError> {
    let by = settings.above_zero("factor")?;
    let context = settings.above_zero("original_max_position_embeddings")?;
    let fast = settings.above_zero_or("beta_fast", 32.0)?;
    let slow = settings.above_zero_or("beta_slow", 1.0)?;
    // The fractional index of the pair that makes this number of turns within the context.
    let pair_of =
        |turns: f64| turned as f64 * (context / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
    let (mut first, mut last) = (pair_of(fast), pair_of(slow));
    if settings.flag("truncate", true)? {
        (first, last) = (first.floor(), last.ceil());
    }
    let (first, mut last) = (first.max(0.0), last.min(turned as f64 - 1.0));
    if first == last {
        last += 0.001;
    }
    for (pair, frequency) in frequencies.iter_mut().enumerate() {
        let stretched = ((pair as f64 - first) / (last - first)).clamp(0.0, 1.0);
        *frequency *= 1.0 - stretched + stretched / by;
    }
    let grown = |by: f64, how: f64| if by <= 1.0 { 1.0 } else { 0.1 * how * by.ln() + 1.0 };
    let given = |key: &str| settings.above_zero_if_there(key);
    Ok(match (given("attention_factor")?, given("mscale")?, given("mscale_all_dim")?) {
        (Some(factor), ..) => factor,
        (None, Some(over), Some(under)) => grown(by, over) / grown(by, under),
        _ => grown(by, 1.0),
    })
}

/// Scales frequencies as LongRoPE (Ding et al. 2024, arXiv 2402.13753) does within the original context of the model. Returns
/// the factor of the rotated channels and that context.
fn long_rope(settings: &Config, frequencies: &mut [f64]) -> Result<(f64, Option<usize>), LmError> {
    const ORIGINAL: &str = "original_max_position_embeddings";
    let divisors = settings.numbers("short_factor")?.unwrap_or_default();
    if divisors.len() != frequencies.len() || divisors.iter().any(|by| *by <= 0.0) {
        let (found, needed) = (divisors.len(), frequencies.len());
        return Err(settings.wrong(format!(
            "short_factor has {found} numbers; it must have {needed}, all above 0"
        )));
    }
    frequencies.iter_mut().zip(divisors).for_each(|(frequency, by)| *frequency /= by);
    let original = settings.count(ORIGINAL)?;
    let by = settings.count("max_position_embeddings")? as f64 / original as f64;
    let grown = if by <= 1.0 || original == 1 {
        1.0
    } else {
        (1.0 + by.ln() / (original as f64).ln()).sqrt()
    };
    Ok((settings.above_zero_or("attention_factor", grown)?, Some(original)))
}
