//! Measures a plan with a progress bar, and reports the result.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use rank_study::lm::Device;
use rank_study::study::{Plan, Sweep, SweepSummary};
use rank_study::table::plural;

use super::blas::warn_of_slow_blas;
use super::cells::CellsProgress;
use super::stop::Stopped;
use super::streams::tell;

/// Runs a plan with a progress bar, after warnings about damaged lines and superseded rows.
pub fn measure(
    plan: Plan,
    threads: usize,
    device: Device,
    stop: &AtomicBool,
    progress: &CellsProgress,
) -> Result<SweepSummary> {
    let rows = plan.rows();
    for line in plan.damaged() {
        let shown: String = line.chars().take(50).collect();
        progress.say(&format!(
            "warning: {}: a line is cut off or has the wrong number of fields ({shown}…); it moves to \
             rows-set-aside.csv, and its configuration is measured again",
            rows.display()
        ));
    }
    for (count, why) in plan.to_set_aside() {
        progress.say(&format!(
            "warning: {} has {} {why}; superseded rows move to {}",
            rows.display(),
            plural(count, "row"),
            rows.with_file_name("rows-set-aside.csv").display()
        ));
    }
    if plan.decomposes() {
        warn_of_slow_blas(|line| progress.say(line));
    }
    progress.begin(plan.work(threads));
    Ok(plan.run(&Sweep { threads, stop, device, observer: progress })?)
}

/// Summarises in words: `3 configurations measured, 105 done before`.
pub fn describe(summary: &SweepSummary) -> String {
    describe_in(summary, "configuration")
}

/// [`describe`] with another noun for a configuration.
pub fn describe_in(summary: &SweepSummary, noun: &str) -> String {
    let mut parts = vec![format!("{} measured", plural(summary.measured, noun))];
    if summary.skipped > 0 {
        parts.push(format!("{} done before", summary.skipped));
    }
    if !summary.failed.is_empty() {
        parts.push(format!("{} failed", summary.failed.len()));
    }
    if summary.left > 0 {
        parts.push(format!("{} left", summary.left));
    }
    if summary.waiting > 0 {
        parts.push(format!("{} waiting for other shards", summary.waiting));
    }
    parts.join(", ")
}

/// Fails if cells failed or are left. The error says how to continue.
pub fn fail_if_unfinished(summaries: &[(String, SweepSummary)]) -> Result<()> {
    for (name, summary) in summaries {
        for (cell, why) in &summary.failed {
            tell(&format!("failed: {name}/{cell}: {why}"));
        }
    }
    let failed: usize = summaries.iter().map(|(_, summary)| summary.failed.len()).sum();
    let left: usize = summaries.iter().map(|(_, summary)| summary.left).sum();
    let waiting: usize = summaries.iter().map(|(_, summary)| summary.waiting).sum();
    match (failed, left) {
        (0, 0) if waiting > 0 => {
            let why = format!(
                "{waiting} configurations wait for runs of other shards; run the same command when those \
                 have ended"
            );
            Err(Stopped(why).into())
        }
        (0, 0) => Ok(()),
        (failed, 0) => {
            let cells = plural(failed, "configuration");
            let (rows, them) =
                if failed == 1 { ("its row says", "it") } else { ("their rows say", "them") };
            bail!("{cells} failed; {rows} why. Run the same command to retry {them}")
        }
        (failed, left) => {
            let failed = if failed > 0 { format!(" and {failed} failed") } else { String::new() };
            let why = format!(
                "stopped with {} left{failed}; run the same command to continue",
                plural(left, "configuration")
            );
            Err(Stopped(why).into())
        }
    }
}

/// Describes in one line the work that the plans are about to do.
pub fn announce(plans: &[Plan], left: &str, threads: usize) -> String {
    let total: usize = plans.iter().map(|plan| plan.cells().count()).sum();
    let done: usize = plans.iter().flat_map(Plan::cells).filter(|(_, done)| *done).count();
    format!(
        "{}, {total} configurations, {done} done before; {} left on {}",
        plural(plans.len(), "study"),
        left,
        plural(threads, "thread")
    )
}
