//! The figures of studies with many training runs: variants, recall and learning rates.

use crate::experiments::training::figures::overview::Value;
use crate::experiments::training::figures::variant::{Variant, is_too_long, positions_name};
use crate::experiments::training::tables::training::{TrainingRun, Trainings, arm_name};
use crate::experiments::training::{Settings, key_words};
use crate::figure::model::heights;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::{distinct, groups, plural};

/// Loss above the corpus's entropy against the share of recall, one line per variant.
pub fn dial(study: &Trainings) -> Vec<Figure> {
    let mut series = Vec::new();
    for arm in distinct(study.runs.iter().map(|run| run.arm())) {
        let point = |run: &TrainingRun| {
            Some((run.of.recall?, run.loss()? - run.found.corpus_entropy_nats?))
        };
        let seeds = along_x(study.arm(arm).filter_map(point));
        series.extend(Series::over_seeds(arm_name(arm), Variant::plain(arm).ink(), seeds));
    }
    for line in series.iter_mut().filter(|line| line.shape == Shape::LineMarkers) {
        line.label = Some(line.name.clone());
    }
    let shares = study.runs.iter().filter_map(|run| run.of.recall);
    let x = Axis::linear("share of segments that need a stored key", shares, Some(0.0));
    let y = Axis::linear("loss above the minimum (nats per token)", heights(&series), Some(0.0));
    vec![Figure {
        name: "dial".to_owned(),
        caption: "Validation loss above the corpus's entropy, which is the lowest expected loss of any model, against the share of \
                  text that can only be predicted from a key stored far back. Markers are medians, ticks single seeds. A \
                  higher marker means that the variant uses far keys less well."
            .to_owned(),
        keys: vec![
            Key::new("median", Ink::grey(Stroke::Solid), Shape::Points),
            Key::seed(),
        ],
        panels: vec![Panel::new("From local to long-range text", x, y, series)],
    }]
}

/// The variant without its positions, which are in the titles, so that it has one colour in all panels.
fn beside_positions(run: &TrainingRun) -> Variant<'_> {
    Variant::new(run.arm(), None, Some(&run.of.model.slopes))
}

/// The panels of a run in [`learning_rate`]: its positional encoding, its optimiser, its initial deviation.
fn kind(run: &TrainingRun) -> (Option<usize>, &str, &str, &str) {
    let place = POSITIONS.iter().position(|known| *known == run.of.model.positions);
    let setting = |key| run.settings.get(key).unwrap_or_default();
    (place, &run.of.model.positions, setting("optimiser"), setting("initial_deviation"))
}

/// The lines of a panel of [`learning_rate`]: runs of one variant that differ in the learning rate and the seed alone. Where
/// runs of a variant differ in another key, the lines of all but the first are dashed, and each is named by its value. If there
/// is one variant only, its lines have colours of their own, and no name of it.
fn lines<'r>(
    runs: impl Iterator<Item = &'r TrainingRun>,
) -> Vec<(String, Ink, Vec<&'r TrainingRun>)> {
    let mut lines = Vec::new();
    let variants = groups(runs, |run| beside_positions(run));
    let is_alone = variants.len() == 1;
    for of_variant in variants {
        let variant = beside_positions(of_variant[0]);
        let mut keys = Settings::differing(of_variant.iter().map(|run| &run.settings));
        keys.retain(|key| *key != "learning_rate");
        let values = |run: &'r TrainingRun| -> Vec<Option<&str>> {
            keys.iter().map(|key| run.settings.get(key)).collect()
        };
        let lines_of_variant = groups(of_variant, values);
        let is_alone = is_alone && lines_of_variant.len() > 1;
        for (at, alike) in lines_of_variant.into_iter().enumerate() {
            let mut words = if is_alone { Vec::new() } else { vec![variant.name()] };
            for (key, value) in keys.iter().zip(values(alike[0])) {
                let value = value.map(|value| value.strip_suffix(".0").unwrap_or(value));
                match (Settings::is_implied_by_variant(key), value, words.last_mut()) {
                    (_, None, _) => {}
                    (true, Some(value), Some(name)) => name.push_str(&format!(" at {value}")),
                    (_, Some(value), _) => words.push(format!("{} {value}", key_words(key))),
                }
            }
            let ink = match at {
                _ if is_alone => Ink::numbered(at),
                0 => variant.ink(),
                _ => Ink { stroke: Stroke::Dashed, ..variant.ink() },
            };
            lines.push((words.join(", "), ink, alike));
        }
    }
    if lines.iter().any(|(name, ..)| is_too_long(name)) {
        lines.iter_mut().for_each(|(name, _, runs)| *name = runs[0].name_at_any_rate().to_owned());
    }
    lines
}

/// Validation loss (left) and peak max |logit| (right) against the learning rate: one row of panels per positional
/// encoding, optimiser and initial deviation, one line per variant.
pub fn learning_rate(study: &Trainings) -> Vec<Figure> {
    let rates = || study.runs.iter().filter_map(TrainingRun::learning_rate);
    let x = Axis::log("learning rate", rates());
    let kinds = distinct(study.runs.iter().map(kind));
    let has_muon = kinds.iter().any(|(.., optimiser, _)| *optimiser == "muon");
    let has_deviations = distinct(kinds.iter().map(|kind| kind.3)).len() > 1;
    let has_seeds = study.by_run().any(|seeds| seeds.len() > 1);
    let values = |of: Value| study.runs.iter().filter_map(of);
    let losses = Axis::linear("validation loss (nats per token)", values(TrainingRun::loss), None);
    let peaks = Axis::log("peak max |logit|, QKᵀ/√d", values(TrainingRun::peak));
    let panel = |here, y: &Axis, of: Value| {
        let (_, positions, optimiser, deviation) = here;
        let of_kind = study.runs.iter().filter(|run| kind(run) == here);
        let mut series = Vec::new();
        for (name, ink, runs) in lines(of_kind) {
            let point = |run: &&TrainingRun| Some((run.learning_rate()?, of(run)?));
            let seeds = along_x(runs.iter().filter_map(point));
            let [seeds, medians] = Series::over_seeds(&name, ink, seeds);
            series.extend(has_seeds.then_some(seeds));
            series.push(medians.labelled(&name));
        }
        let mut title = positions_name(positions);
        if has_muon {
            title.push_str(if optimiser == "muon" { ", Muon" } else { ", AdamW" });
        }
        if has_deviations {
            title.push_str(&format!(", initial deviation {deviation}"));
        }
        Panel::new(&title, x.clone(), y.clone(), series)
    };
    let row = |here: &_| {
        [panel(*here, &losses, TrainingRun::loss), panel(*here, &peaks, TrainingRun::peak)]
    };
    vec![Figure {
        name: "learning-rate".to_owned(),
        caption: "Final validation loss (left) and the largest |logit| of QKᵀ in training (right) against the peak learning rate, one \
                  line per variant, and per value of another key in which runs of a variant differ. Markers are medians, ticks single seeds. A larger marker or broader line lies under \
                  another. A variant tolerates the rates at which its loss stays near its lowest. A position bias beside QKᵀ \
                  is not counted."
            .to_owned(),
        keys: match has_seeds {
            true => {
                vec![Key::new("median", Ink::grey(Stroke::Solid), Shape::LineMarkers), Key::seed()]
            }
            false => Vec::new(),
        },
        panels: kinds.iter().flat_map(row).collect(),
    }]
}

/// Peak max |logit| (left) and validation loss (right) against the head dimension, one line per number of heads.
pub fn head_size(study: &Trainings) -> Vec<Figure> {
    let sizes = || study.runs.iter().map(|run| run.d_head() as f64);
    let x = Axis::log_at("dimensions per head, d_head", sizes());
    let counts = distinct(study.runs.iter().map(|run| run.of.model.heads));
    let panel = |title: &str, y: Axis, of: Value| {
        let series = counts.iter().flat_map(|&heads| {
            let point = |run: &TrainingRun| Some((run.d_head() as f64, of(run)?));
            let here = study.runs.iter().filter(|run| run.of.model.heads == heads);
            let (name, ink) = (plural(heads, "head"), Ink::of_rank(2 * heads));
            Series::over_seeds(&name, ink, along_x(here.filter_map(point)))
        });
        Panel::new(title, x.clone(), y, series.collect())
    };
    let values = |of: Value| study.runs.iter().filter_map(of);
    let peaks = Axis::log("peak max |logit|, QKᵀ/√d", values(TrainingRun::peak));
    let losses = Axis::linear("validation loss (nats per token)", values(TrainingRun::loss), None);
    let panels = vec![
        panel("Peak logit", peaks, TrainingRun::peak),
        panel("Loss", losses, TrainingRun::loss),
    ];
    let mut keys = Key::of_series(&panels[0].series, Shape::LineMarkers);
    keys.push(Key::seed());
    vec![Figure {
        name: "head-size".to_owned(),
        caption: "The largest |logit| of QKᵀ in training (left) and the final validation loss (right) against the dimensions of a head, \
                  one line per number of heads. Lines are medians over seeds, ticks single seeds. Along a line only the rank of \
                  heads changes; between lines at one d_head, only their number."
            .to_owned(),
        keys,
        panels,
    }]
}

/// The points of seeds, sorted by x.
fn along_x(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Positional encodings in the order of panels.
const POSITIONS: [&str; 4] = ["learned", "rope", "sinusoidal", "none"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_in_another_key_have_lines_of_their_own() {
        let run = |key: &str, value: f64, rate: f64| {
            let mut run = TrainingRun::made_up("run", "mhsa", 1, 10.0, 2.0);
            run.settings.insert("learning_rate", &rate.into());
            run.settings.insert("weight_decay", &0.1.into());
            run.settings.insert(key, &value.into());
            run
        };
        let runs = [1e-3, 1e-2].map(|rate| run("weight_decay", 0.1, rate));
        let others = [1e-3, 1e-2].map(|rate| run("weight_decay", 0.5, rate));
        let same = lines(runs.iter());
        assert_eq!(same.iter().map(|line| line.2.len()).collect::<Vec<_>>(), [2]);
        let all = lines(runs.iter().chain(&others));
        assert_eq!(all.iter().map(|line| line.2.len()).collect::<Vec<_>>(), [2, 2]);
        assert!(all[0].0 != all[1].0 && all[1].0.contains("0.5"), "{}", all[1].0);
    }
}
