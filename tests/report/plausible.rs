//! Plausible rows of several kinds of study, made up by formula: for tests of what is drawn and
//! tabulated from rows, never for a statement about attention.

use std::fs;
use std::path::Path;

use rank_study::experiments::TargetColumns;
use rank_study::experiments::fits::tables::growth::Growth;
use rank_study::experiments::fits::tables::layouts::Layouts;
use rank_study::experiments::fits::{FitAsked, FitKey, FitMeasurement, FitTerms, Proven, Reached};
use rank_study::experiments::training::tables::training::Trainings;
use rank_study::experiments::training::{ModelColumns, TrainingKey, TrainingMeasurement};
use rank_study::lm::Split;
use rank_study::record::{Line, Measurement, Rows, columns, line, to_csv, write_records};
use rank_study::run::{Course, CurveRow, EvaluationRow};
use rank_study::solver::{BoundKind, Outcome};
use rank_study::table::TableError;
use rank_study::targets::Visibility;

/// The tables of L*(0.05).
pub fn growth() -> Growth {
    let folder = tempfile::tempdir().unwrap();
    logit_growth(folder.path());
    Growth::of(&Rows::read(&[folder.path().to_owned()]).unwrap()).unwrap()
}

/// The tables of three layouts.
pub fn layout_tables() -> Layouts {
    let folder = tempfile::tempdir().unwrap();
    layouts(folder.path());
    Layouts::of(&Rows::read(&[folder.path().to_owned()]).unwrap()).unwrap()
}

/// The tables of the trainings in a folder.
pub fn trainings(study: &Path) -> Result<Trainings, TableError> {
    let rows = Rows::<TrainingMeasurement>::read(&[study.to_owned()]).unwrap();
    Trainings::of(&rows, study.parent())
}

/// Writes the rows of a study in a folder.
pub type Make = fn(&Path);

/// A number in [−1, 1) that depends on the arguments only.
fn noise(a: usize, b: usize, c: usize) -> f64 {
    let mut state = (a as u64) << 40 ^ (b as u64) << 20 ^ c as u64 ^ 0x9E37_79B9_7F4A_7C15;
    for _ in 0..4 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Writes the `rows.csv` of a study.
fn write<K: Measurement>(study: &Path, lines: &[Line]) {
    fs::create_dir_all(study).unwrap();
    fs::write(study.join("rows.csv"), to_csv(&columns::<K>(), lines).unwrap()).unwrap();
}

/// A target of a family, without parameters.
fn target(family: &str) -> TargetColumns {
    TargetColumns { family: family.to_owned(), ..TargetColumns::default() }
}

/// What a cell of fits is, with causal heads.
fn fit_of(
    of: TargetColumns,
    n: usize,
    rank: usize,
    layout: &str,
    seed: usize,
    tolerance: Option<f64>,
) -> FitKey {
    let asked = FitAsked {
        target: of.family.clone(),
        n,
        rank,
        layout: layout.parse().unwrap(),
        seed: Some(seed as u64),
    };
    FitKey { of, asked, terms: FitTerms { tolerance, visibility: Visibility::Causal } }
}

/// A fit that found these logits at this error.
fn fit_found(max_abs_logit: f64, kl_nats: f64) -> FitMeasurement {
    let reached =
        Reached { max_abs_logit, logit_spread: max_abs_logit, norm_product: max_abs_logit };
    FitMeasurement {
        cap: Some(max_abs_logit),
        kl_nats: Some(kl_nats),
        reached: Some(reached),
        outcome: Outcome::Converged,
        iterations: Some(100),
        evaluations: Some(110),
        wall_time_s: 0.5,
        gradient_norm: Some(1e-6),
        ..FitMeasurement::default()
    }
}

/// Writes rows of L*(0.05): `dirichlet-band` grows with n/d and runs out of caps, `landmark` does
/// not grow, `random-sparse` grows too.
pub fn logit_growth(study: &Path) {
    let mut lines = Vec::new();
    let of_family = |family: &str| match family {
        "dirichlet-band" => TargetColumns { window: Some(32), ..target(family) },
        "landmark" => TargetColumns { m: Some(8), ..target(family) },
        _ => TargetColumns { k: Some(8), ..target(family) },
    };
    for (family, power, base) in
        [("dirichlet-band", 0.55, 0.75), ("landmark", 0.02, 1.02), ("random-sparse", 0.35, 1.0)]
    {
        for n in [64usize, 128, 256] {
            for rank in [4usize, 8, 16, 32] {
                for seed in 0..3usize {
                    let ratio = n as f64 / rank as f64;
                    let floor = 0.5 * (n as f64 / 1.6).ln() + 2.0 + 0.1 * noise(n, seed, 3);
                    let wobble = 0.06 * noise(n * rank, seed, family.len());
                    let inflation = (base * ratio.powf(power)).max(1.0) * (1.0 + wobble.abs());
                    let infeasible = family == "dirichlet-band" && ratio + 4.0 * wobble > 31.9;
                    let needed = if infeasible { 64.0 } else { floor * inflation };
                    let kl_nats = if infeasible { 0.11 } else { 0.0499 };
                    let fitted = fit_found(needed, kl_nats);
                    let found = FitMeasurement {
                        cap: fitted.cap.filter(|_| !infeasible),
                        reached: fitted.reached.filter(|_| !infeasible),
                        unreached_max_abs_logit: infeasible.then_some(needed),
                        floor_max_abs_logit: Some(floor),
                        proven: Some(Proven {
                            lower_bound_max_abs_logit: floor,
                            lower_bound_by: BoundKind::Floor,
                        }),
                        outcome: if infeasible { Outcome::Infeasible } else { Outcome::Converged },
                        inflation: (!infeasible).then_some(inflation),
                        ..fitted
                    };
                    let of = fit_of(of_family(family), n, rank, "global", seed, Some(0.05));
                    let cell = format!("{family}/n{n}-d{rank}-s{seed}");
                    lines.push(line("logit-growth", &cell, &of, Ok(&found), "made up"));
                }
            }
        }
    }
    let of = fit_of(of_family("landmark"), 64, 4, "global", 9, Some(0.05));
    let failed = Err("the target could not be built");
    let cell = "landmark/n64-d4-s9";
    lines.push(line::<FitMeasurement>("logit-growth", cell, &of, failed, "made up"));
    write::<FitMeasurement>(study, &lines);
}

/// Writes rows of three layouts under five caps, in the order that a first look found: one global
/// head of rank 16 best, a local and a global one of rank 8 next, two global ones of rank 8 worst.
pub fn layouts(study: &Path) {
    let mut lines = Vec::new();
    for (layout, rank, floor_at, scale) in [
        ("global", 16, 0.0015, 0.9),
        ("2xglobal", 8, 0.056, 1.1),
        ("local:24+global", 8, 0.017, 0.5),
    ] {
        for cap in [2usize, 4, 8, 16, 32] {
            for seed in 0..3usize {
                let full = 1.2 * (-(cap as f64) / 1.4).exp() + 2e-5;
                let spread = 1.0 + 0.12 * noise(cap, rank + layout.len(), seed);
                let kl = (floor_at + scale * (-(cap as f64) / 2.0).exp()) * spread;
                let of = TargetColumns {
                    lambda: Some(0.5),
                    local: Some("dirichlet-band".to_owned()),
                    global: Some("landmark".to_owned()),
                    ..target("mixture")
                };
                let found =
                    FitMeasurement { floor_kl_nats: Some(full), ..fit_found(cap as f64, kl) };
                let of = fit_of(of, 160, rank, layout, seed, None);
                let cell = format!("mixture/{layout}-d{rank}-s{seed}");
                lines.push(line("layouts", &cell, &of, Ok(&found), "made up"));
            }
        }
    }
    write::<FitMeasurement>(study, &lines);
}

/// Writes the rows and logs of one seed of `mhsa` and of `ls`.
pub fn lm_quick(study: &Path) {
    let mut lines = Vec::new();
    let name = study.file_name().unwrap().to_string_lossy();
    for (arm, last, logit) in [("mhsa", 2.39, 61.0), ("ls", 1.89, 12.0)] {
        let folder = study.join(arm).join("s0");
        fs::create_dir_all(&folder).unwrap();
        training_logs(&folder, arm, last, logit);
        let of = TrainingKey {
            model: ModelColumns {
                run: arm.to_owned(),
                arm: arm.to_owned(),
                layers: 3,
                d_model: 64,
                heads: 4,
                global_heads: 1,
                window: Some(16),
                positions: "learned".to_owned(),
                slopes: "none".to_owned(),
                ..ModelColumns::default()
            },
            seed: 0,
            corpus: "shakespeare".to_owned(),
            context: 512,
            batch: 4,
            steps: 1500,
            learning_rate: 0.003,
            ..TrainingKey::default()
        };
        let found = TrainingMeasurement {
            parameters: 165_000,
            train_loss_nats: Some(last),
            valid_loss_nats: Some(last),
            max_abs_logit: Some(logit),
            outcome: "completed".to_owned(),
            wall_time_s: 61.5,
            course: Course {
                tokens: Some(3_072_000),
                peak_max_abs_logit: Some(logit),
                logit_change_per_step: Some(0.1),
                ..Course::default()
            },
            ..TrainingMeasurement::default()
        };
        lines.push(line(&name, &format!("{arm}/s0"), &of, Ok(&found), "made up"));
    }
    write::<TrainingMeasurement>(study, &lines);
}

/// A curve of 100 stretches of 15 steps, and evaluations.
fn training_logs(folder: &Path, arm: &str, last: f64, logit: f64) {
    let loss = |step: f64| last + (4.2 - last) * (-step / 190.0).exp();
    let (mut curve, mut evaluations) = (Vec::new(), Vec::new());
    for step in (15..=1500usize).step_by(15) {
        let at = step as f64;
        let now = loss(at) + 0.02 * noise(step, arm.len(), 1);
        let grown = logit * (1.0 - (-at / 500.0).exp()).powf(0.6);
        let grown = grown * (1.0 + 0.04 * noise(step, arm.len(), 2));
        curve.push(CurveRow {
            step,
            tokens: (step * 2048) as u64,
            wall_time_s: 0.04 * at,
            loss_nats: now,
            grad_norm: 0.9,
            max_abs_logit: Some(grown),
            max_abs_logit_global: Some(grown),
            max_abs_logit_local: (arm == "ls").then_some(0.8 * grown),
        });
        if step % 250 == 0 {
            let valid = loss(at) + 0.03;
            evaluations.push(EvaluationRow {
                step,
                split: Split::Valid,
                tokens: 20480,
                loss_nats: valid,
                perplexity: valid.exp(),
                bytes: None,
                loss_nats_per_byte: None,
                perplexity_per_byte: None,
            });
        }
    }
    write_records(&folder.join("curve.csv"), &curve).unwrap();
    write_records(&folder.join("eval.csv"), &evaluations).unwrap();
}
