//! What every timing needs: medians, and how much memory was held.

use std::time::Instant;

use anyhow::{Result, bail};
use rank_study::system::peak_rss_bytes;

use crate::cli::usage_error::UsageError;

/// Refuses a flag's 0.
pub(super) fn at_least_one(flag: &str, found: usize) -> Result<()> {
    if found == 0 {
        bail!(UsageError(format!("{flag} must be at least 1")));
    }
    Ok(())
}

/// The median of the seconds that each of `repeats` runs of `work` takes.
pub(super) fn median_seconds(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let time = |_| {
        let started = Instant::now();
        work()?;
        Ok(started.elapsed().as_secs_f64())
    };
    Ok(median((0..repeats).map(time).collect::<Result<_>>()?))
}

pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    0.5 * (times[(times.len() - 1) / 2] + times[times.len() / 2])
}

/// The most memory that the process has held, for the end of a line.
pub(super) fn held() -> String {
    peak_rss_bytes().map_or_else(String::new, |bytes| {
        format!(", peak memory {:.0} MiB", bytes as f64 / f64::from(1 << 20))
    })
}
