//! The largest logit of every head, to decide which heads to fit.

use rayon::prelude::*;

use crate::lm::{HeadProbe, LmError, Probed};

/// max |z| of each head of `layers` over the allowed pairs of all passages, ordered by layer and head.
///
/// # Errors
/// As [`Probed::probe_layers`].
pub fn largest_logits(
    model: &dyn Probed,
    passages: &[Vec<u32>],
    layers: &[usize],
) -> Result<Vec<f64>, LmError> {
    let mut largest = Vec::new();
    model.each_layer(passages, layers, |probes| {
        let heads = probes.first().map_or(0, Vec::len);
        let of_head = |head: usize| probes.iter().map(|of| of_probe(&of[head])).fold(0.0, f64::max);
        largest.extend((0..heads).into_par_iter().map(of_head).collect::<Vec<f64>>());
        Ok::<bool, LmError>(true)
    })?;
    Ok(largest)
}

fn of_probe(probe: &HeadProbe) -> f64 {
    let visible = probe.logits();
    visible.iter().filter(|z| z.is_finite()).fold(0.0, |most, z| most.max(z.abs()))
}

/// The threshold on max |logit| for fits: it selects the heads above `above`, but at most `most` heads, those of the largest
/// logits.
pub fn fitted_above(mut largest: Vec<f64>, above: f64, most: usize) -> f64 {
    largest.sort_by(|a, b| b.total_cmp(a));
    match (most.checked_sub(1).and_then(|last| largest.get(last)), largest.get(most)) {
        // Halfway between both values, so that rounding of either does not matter.
        (Some(last), Some(next)) if *next > above => 0.5 * (last + next),
        (None, Some(first)) => first.max(above),
        _ => above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_fitted_as_are_large_and_no_more_than_asked_for() {
        let heads = || vec![3.0, 40.0, 25.0, 30.0, 50.0];
        let fitted = |above: f64, most: usize| {
            let above = fitted_above(heads(), above, most);
            heads().into_iter().filter(|head| *head > above).count()
        };
        assert_eq!(fitted(20.0, 16), 4);
        assert_eq!(fitted(20.0, 2), 2);
        assert_eq!(fitted(45.0, 2), 1);
        assert_eq!(fitted(0.0, 5), 5);
        assert_eq!(fitted(0.0, 0), 0);
        assert_eq!(fitted_above(heads(), 20.0, 4), 20.0);
    }
}
