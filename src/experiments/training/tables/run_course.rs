//! Reads the folder of one training run as series over its steps.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Value;

use crate::experiments::training::Settings;
use crate::experiments::training::tables::run_log::{
    Curve, RunLog, curves, without_partial_stretch,
};
use crate::lm::TrainDefinition;
use crate::record::read_records;
use crate::run::files::STEPS;
use crate::run::heads_log::each_head;
use crate::run::manifest::MANIFEST;
use crate::run::run_manifest::{CORPUS, DEFINITION, so_far};
use crate::run::series::{CURVE, RunSeries};
use crate::run::{CurveRow, Manifest, kept_files};
use crate::table::{Table, TableError};

/// The advice in errors about an unreadable log.
const ADVICE: &str = "go on with the run by train --resume, which mends its logs";

/// One training run, reduced to about two hundred intervals of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCourse {
    /// The folder's name.
    pub name: String,
    /// Its definition as key and value, keys of inner tables after a dot, and the hash of the corpus.
    pub settings: Settings,
    /// The outcome: `completed`, `diverged`, `stopped`, or `running` if it was killed or is in progress.
    pub outcome: String,
    /// The number of steps taken.
    pub steps: usize,
    /// Mean training loss of the last 100 steps, in nats per token; `None` for a run that is in progress or was killed.
    pub train_loss_nats: Option<f64>,
    /// Its losses and its largest logits.
    pub log: RunLog,
    /// (step, loss) of loss spikes: see docs/methods.md, Spikes and times.
    pub spikes: Curve,
    /// Every head; empty if only the curve is left of the logs.
    pub heads: Vec<HeadCourse>,
}

/// One head's attention over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadCourse {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within it, from 0.
    pub head: usize,
    /// The kind of head: `global` or `local:16`.
    pub kind: String,
    /// (step, largest |logit| in the interval).
    pub max_logit: Curve,
    /// (step, mean entropy of a row of attention over the interval), in nats.
    pub entropy_nats: Curve,
}

impl RunCourse {
    /// Whether `folder` holds a training run.
    pub fn is_in(folder: &Path) -> bool {
        let has_logs = [STEPS, CURVE].iter().any(|file| folder.join(file).is_file());
        has_logs && folder.join(MANIFEST).is_file()
    }

    /// Reads a run's folder: all that `train` wrote, or the curve and evaluations that a study keeps.
    ///
    /// # Errors
    /// A missing or damaged file, or one that does not match the hash in the run's manifest; the message says what to do.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        let manifest = Manifest::read(&folder.join(MANIFEST))?;
        kept_files::check(&manifest, folder)?;
        let mut run = Self {
            name: name(folder),
            settings: settings(&manifest),
            outcome: manifest.text("outcome").to_owned(),
            train_loss_nats: so_far(&manifest).and_then(|result| result.train_loss_nats),
            ..Self::default()
        };
        let has_steps = folder.join(STEPS).is_file();
        let rows = match has_steps {
            true => {
                let series = RunSeries::so_far(folder, ADVICE)?;
                let spikes = series.spikes().into_iter().map(|(step, loss)| (step as f64, loss));
                run.spikes = spikes.filter(|(_, loss)| loss.is_finite()).collect();
                series.curve()
            }
            false => read_records(&folder.join(CURVE), ADVICE)?,
        };
        let rows = without_partial_stretch(&rows);
        run.steps = rows.last().map_or(0, |last| last.step);
        run.log = curves(&rows).with_evaluations(folder, ADVICE)?;
        if has_steps {
            run.heads = heads(folder, &rows)?;
        }
        Ok(run)
    }

    /// The number of steps in its definition.
    pub fn steps_asked(&self) -> Option<usize> {
        self.settings.get("steps")?.parse().ok()
    }

    /// The last loss on the validation split, in nats per token.
    pub fn valid_loss_nats(&self) -> Option<f64> {
        self.log.valid_loss.last().map(|(_, loss)| *loss)
    }

    /// The largest |logit| of the run and the step that ends its interval.
    pub fn peak(&self) -> Option<(f64, f64)> {
        self.log.max_logit.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The head with the largest |logit| of the run.
    pub fn largest_head(&self) -> Option<&HeadCourse> {
        let most = |head: &HeadCourse| head.max_logit.iter().map(|p| p.1).fold(0.0, f64::max);
        self.heads.iter().max_by(|a, b| most(a).total_cmp(&most(b)))
    }
}

/// The values of a head by the last step of each interval: the largest |logit|, the sum of entropies, their number.
#[derive(Default)]
struct Stretches {
    kind: String,
    by_end: BTreeMap<usize, (f64, f64, usize)>,
}

/// Every head over the intervals of `rows`.
fn heads(folder: &Path, rows: &[CurveRow]) -> Result<Vec<HeadCourse>, TableError> {
    let mut heads: BTreeMap<(usize, usize), Stretches> = BTreeMap::new();
    each_head(folder, |record| {
        // After a kill, the log may be ahead of the steps.
        let within = rows.get(rows.partition_point(|row| row.step < record.step));
        let Some(stretch) = within.filter(|_| record.step > 0) else { return };
        let of_head = heads.entry((record.layer, record.head)).or_default();
        of_head.kind = record.head_kind().to_string();
        let (largest, sum, count) = of_head.by_end.entry(stretch.step).or_insert((0.0, 0.0, 0));
        *largest = largest.max(record.max_abs_logit);
        *sum += record.entropy_nats;
        *count += 1;
    })?;
    let head = |((layer, head), of): ((usize, usize), Stretches)| HeadCourse {
        layer,
        head,
        kind: of.kind,
        max_logit: of.by_end.iter().map(|(&end, &(most, ..))| (end as f64, most)).collect(),
        entropy_nats: of
            .by_end
            .iter()
            .map(|(&end, &(_, sum, count))| (end as f64, sum / count as f64))
            .filter(|(_, entropy)| entropy.is_finite())
            .collect(),
    };
    Ok(heads.into_iter().map(head).collect())
}

/// The folder's name; for the folder of a seed, preceded by its run's.
fn name(folder: &Path) -> String {
    let parts: Vec<String> =
        folder.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    match &parts[..] {
        [.., run, seed] if seed.strip_prefix('s').is_some_and(|s| s.parse::<u64>().is_ok()) => {
            format!("{run}/{seed}")
        }
        [.., run] => run.clone(),
        [] => String::new(),
    }
}

fn settings(manifest: &Manifest) -> Settings {
    let definition = manifest.more.get(DEFINITION).and_then(Value::as_table);
    let mut settings = definition
        .map(TrainDefinition::without_removed)
        .map_or_else(Settings::default, |definition| Settings::from_table(&definition));
    let corpus = manifest.more.get(CORPUS);
    for key in ["source", "sha256"] {
        if let Some(value) = corpus.and_then(|corpus| corpus.get(key)) {
            settings.insert(&format!("corpus.{key}"), value);
        }
    }
    settings
}

/// The keys in which the runs differ, in order.
fn differing(runs: &[RunCourse]) -> Vec<&str> {
    Settings::differing(runs.iter().map(|run| &run.settings))
}

/// The values of a run for the keys in which `runs` differ, without the seed: `arm = ls, context = 512`.
pub fn label(runs: &[RunCourse], run: &RunCourse) -> String {
    let keys = differing(runs).into_iter().filter(|key| *key != "seed");
    let value = |key: &str| run.settings.get(key).unwrap_or("none");
    keys.map(|key| format!("{key} = {}", value(key))).collect::<Vec<_>>().join(", ")
}

/// The table of each run's results, with the settings that differ.
pub fn runs_table(runs: &[RunCourse]) -> Table {
    let last = |curve: &[(f64, f64)]| curve.last().map(|point| point.1);
    let mut table =
        Table::from_items("runs", "Training runs", runs).words("run", "run", |r| &r.name);
    for key in differing(runs) {
        table = table.words(key, key, |run| run.settings.get(key));
    }
    table
        .numbers("steps_taken", "steps taken", |run| run.steps)
        .numbers("train_loss_nats", "training loss, last 100 steps (nats)", |run| {
            run.train_loss_nats
        })
        .numbers("valid_loss_nats", "validation loss (nats)", RunCourse::valid_loss_nats)
        .numbers("perplexity", "perplexity", |run| run.valid_loss_nats().map(f64::exp))
        .numbers("peak_max_abs_logit", "peak max |logit|", |run| run.peak().map(|peak| peak.1))
        .numbers("max_abs_logit", "max |logit| at the end", |run| last(&run.log.max_logit))
        .numbers("loss_spikes", "loss spikes", |run| {
            // The curve alone does not have them.
            (!run.heads.is_empty()).then_some(run.spikes.len())
        })
        .words("outcome", "outcome", |run| &run.outcome)
        .note(
            "Max |logit| at the end is that of the last stretch of steps, 1/200 of the run. \
             Training losses exist for runs that ended or were stopped. A spike is a loss more \
             than 7 standard deviations above the median around it.",
        )
        .build()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::lm::HeadLogRow;
    use crate::run::csv_log::CsvLog;
    use crate::run::files::EVALUATIONS;
    use crate::run::heads_log::HEADS_LOG;

    #[test]
    fn thinning_keeps_the_largest_logit_and_the_mean_loss() {
        let folder = tempfile::tempdir().unwrap();
        // A run in progress: 450 steps whose loss is the step's number, and a head whose logit is 77 once.
        Manifest::begin(1, "float32").write(&folder.path().join(MANIFEST)).unwrap();
        let mut steps = "step,tokens,loss_nats,learning_rate,grad_norm,wall_time_s\n".to_owned();
        for step in 1..=450 {
            steps.push_str(&format!("{step},{},{step},0.1,1,{step}\n", 8 * step));
        }
        fs::write(folder.path().join(STEPS), steps).unwrap();
        let evaluations = "step,split,tokens,loss_nats,perplexity,bytes,loss_nats_per_byte,perplexity_per_byte\n\
                           200,valid,8,3.5,33,,,\n400,valid,8,2.5,12,,,\n";
        fs::write(folder.path().join(EVALUATIONS), evaluations).unwrap();
        let mut log = CsvLog::create(&folder.path().join(HEADS_LOG)).unwrap();
        // The log may be ahead of the steps.
        for step in 1..=451 {
            let logit = if step == 200 { 77.0 } else { 5.0 };
            let row = HeadLogRow {
                step,
                layer: 1,
                head: 2,
                kind: "local".to_owned(),
                window: Some(4),
                max_logit: logit,
                min_logit: -1.0,
                max_abs_logit: logit,
                entropy_nats: (step % 3) as f64,
            };
            log.push(&row).unwrap();
        }
        log.sync().unwrap();

        let course = RunCourse::read(folder.path()).unwrap();
        let log = &course.log;
        assert_eq!((course.steps, log.train_loss.len()), (450, 150));
        assert_eq!(log.train_loss[..2], [(3.0, 2.0), (6.0, 5.0)], "means of three, at their end");
        assert_eq!(course.peak(), Some((201.0, 77.0)));
        assert_eq!(log.max_logit.last(), Some(&(450.0, 5.0)), "nothing beyond the last step");
        assert_eq!(course.valid_loss_nats(), Some(2.5));
        let [head] = &course.heads[..] else { panic!("{:?}", course.heads) };
        assert_eq!((head.layer, head.head, head.kind.as_str()), (1, 2, "local:4"));
        assert!(head.entropy_nats.iter().all(|point| point.1 == 1.0), "means of 1, 2 and 0");
    }

    #[test]
    fn a_folder_of_a_seed_is_told_with_its_run() {
        for (folder, shown) in [
            ("data/lm/ls-512/s1", "ls-512/s1"),
            ("runs/s", "s"),
            ("runs/mine", "mine"),
            ("mine", "mine"),
        ] {
            assert_eq!(name(Path::new(folder)), shown);
        }
    }
}
