//! Spikes of a series: values far from those around them.

/// Number of values for the rolling mean (OLMo 2).
const ROLLING: usize = 1000;
/// Number of standard deviations from the mean at which a value counts as a spike.
const DEVIATIONS: f64 = 7.0;
/// Number of values to either side for the median.
const HALF: usize = 100;
/// Factor from a median absolute deviation to the standard deviation of a normal distribution.
const NORMAL: f64 = 1.4826;

/// The spike score of OLMo 2 (arXiv 2501.00656, section 3.1). It is the share of values that lie 7 standard deviations
/// or more from the mean of the 1,000 values before them. Values with fewer than 100 values before them count in the
/// total, but not as spikes. A value that is not finite is a spike.
pub(crate) fn share_far_above_mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let is_spike = |at: usize| {
        if !values[at].is_finite() {
            return true;
        }
        let before: Vec<f64> = values[at.saturating_sub(ROLLING)..at]
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        if before.len() < HALF {
            return false;
        }
        let count = before.len() as f64;
        let mean = before.iter().sum::<f64>() / count;
        let deviation =
            (before.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        (values[at] - mean).abs() >= DEVIATIONS * deviation && deviation > 0.0
    };
    (0..values.len()).filter(|&at| is_spike(at)).count() as f64 / values.len() as f64
}

/// Returns the indices where runs of high values begin. A value is high if it exceeds the median of the 201 values
/// around it by more than 7 standard deviations. These are estimated from the median absolute deviation.
pub(crate) fn spikes_above_median(values: &[f64]) -> Vec<usize> {
    let above = |at: usize| {
        let around = &values[at.saturating_sub(HALF)..(at + HALF + 1).min(values.len())];
        let middle = median(around.to_vec());
        let deviation = NORMAL * median(around.iter().map(|v| (v - middle).abs()).collect());
        !values[at].is_finite() || values[at] > middle + DEVIATIONS * deviation
    };
    let high: Vec<bool> = (0..values.len()).map(above).collect();
    (0..high.len()).filter(|&at| high[at] && (at == 0 || !high[at - 1])).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smooth_short_and_constant_series_have_no_spikes_and_one_with_two_has_two() {
        // A slowly falling series that jitters by ±0.1.
        let jitter = |at: usize| 0.1 * ((at * 37 % 19) as f64 / 9.0 - 1.0);
        let mut values: Vec<f64> =
            (0..2000).map(|at| 4.0 - 1e-4 * at as f64 + jitter(at)).collect();
        for calm in [&values[..], &[], &[1.0; 300]] {
            assert_eq!((share_far_above_mean(calm), spikes_above_median(calm)), (0.0, vec![]));
        }
        values[700] += 3.0;
        values[701] += 2.5;
        values[1500] += 3.0;
        assert_eq!(spikes_above_median(&values), [700, 1500], "two rises");
        assert!((share_far_above_mean(&values) - 3.0 / 2000.0).abs() < 1e-12);
        values[1999] = f64::NAN;
        assert_eq!(spikes_above_median(&values).len(), 3, "an end that is not finite is a spike");
    }
}
