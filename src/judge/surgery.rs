//! Verdicts on trained models whose heads attend otherwise.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::predict::Edit;
use crate::table::{
    HARMLESS_NATS, Interval, OperatedModel, Spread, Surgeries, plural, significant,
};

/// The error that the parts of a trained head's logits are told at.
pub(super) const EPSILON: f64 = 0.01;
/// A slope in the place of the ramp loses at most this, in nats per token.
pub(super) const SLOPE_LOSES_LITTLE: f64 = 0.02;
/// From here on it loses much.
pub(super) const SLOPE_LOSES_MUCH: f64 = 0.2;
/// The share of the largest logit that may be left.
pub(super) const FALLS_TO: f64 = 0.5;

/// The verdicts of such a study.
pub(crate) fn surgery(study: &Surgeries) -> Vec<Verdict> {
    vec![small_error(study), slope(study)]
}

/// What fits at ε = 0.01 of the heads' own rank cost, by model, in 95 % intervals over groups of passages.
///
/// *Not yet measured*: no such fits, or a model without an interval.
fn small_error(study: &Surgeries) -> Verdict {
    let claim = Claim::SmallErrorIsHarmless;
    let fits: Vec<&OperatedModel> = study
        .models
        .iter()
        .filter(|m| m.edit.fit().is_some_and(|(e, rank)| e == EPSILON && Some(rank) == m.d_head))
        .collect();
    let Some(intervals) = intervals(&fits) else {
        let why = format!("Needs fits at ε = {EPSILON} on two groups of passages or more.");
        return Verdict::new(claim, why, Word::NotYetMeasured, 0);
    };
    let word = if intervals.iter().all(|interval| interval.high < HARMLESS_NATS) {
        Word::Confirmed
    } else if intervals.iter().all(|interval| interval.low > HARMLESS_NATS) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let harmless = study.harmless();
    let own = harmless.iter().filter(|one| Some(one.rank) == one.model.d_head);
    let from: Vec<Option<f64>> = own.map(|one| one.epsilon_surely).collect();
    let least = from.iter().flatten().copied().reduce(f64::min);
    let told = match least {
        Some(least) if from.iter().all(Option::is_some) => {
            format!(
                "In every model it lies under {HARMLESS_NATS} nats at ε = {least} and at each smaller error tried."
            )
        }
        _ => format!(
            "Not in every model is there an error tried under which it lies below {HARMLESS_NATS} nats."
        ),
    };
    let measured = format!(
        "With every head's attention its free fit at ε = {EPSILON}, models lose, in nats per token: {}. {told} {}.",
        by_run(&fits),
        seeds_told(&fits)
    );
    Verdict::new(claim, measured, word, seeds_of(&fits))
}

/// What mhsa loses where the direction of the position's linear trend is taken out of the keys' input and each head gets a slope over
/// the lag, and what is left of its largest logit.
///
/// *Not yet measured*: no such model, or one without an interval.
fn slope(study: &Surgeries) -> Verdict {
    let claim = Claim::RampIsASlope;
    let after = |edit: Edit| -> Vec<&OperatedModel> {
        study.models.iter().filter(|m| m.arm == "mhsa" && m.edit == edit).collect()
    };
    let sloped = after(Edit::FlatSlope { degree: 1 });
    let Some(intervals) = intervals(&sloped) else {
        let why = "Needs mhsa after flat+slope of degree 1 on two groups of passages or more.";
        return Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let left = |model: &OperatedModel| model.after.map(|after| after / model.before);
    let falls = sloped.iter().all(|model| left(model).is_some_and(|left| left < FALLS_TO));
    let word = if falls && intervals.iter().all(|i| i.high <= SLOPE_LOSES_LITTLE) {
        Word::Confirmed
    } else if intervals.iter().all(|interval| interval.low > SLOPE_LOSES_MUCH) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let shown = |values: Vec<f64>, digits| {
        Spread::of(values).map_or_else(|| "–".to_owned(), |spread| spread.shown(digits))
    };
    let flat = after(Edit::Flat { degree: 1 });
    let without = match flat.is_empty() {
        true => String::new(),
        false => format!("; without the slope {}", by_run(&flat)),
    };
    let alone = after(Edit::DetrendedSlope { degree: 1 });
    let alone = match alone.is_empty() {
        true => String::new(),
        false => format!(
            " With the trend alone out of the keys, and the slope, it loses {}, and {} of the largest logit is left.",
            by_run(&alone),
            shown(alone.iter().filter_map(|model| left(model)).collect(), 2)
        ),
    };
    let measured = format!(
        "With the direction of the position's linear trend out of the keys' input and a slope over the lag added, mhsa loses, in \
         nats per token: {}{without}. Of its largest |QKᵀ/√d| {} is left, {} nats of {}.{alone} {}.",
        by_run(&sloped),
        shown(sloped.iter().filter_map(|model| left(model)).collect(), 2),
        shown(sloped.iter().filter_map(|model| model.after).collect(), 3),
        shown(sloped.iter().map(|model| model.before).collect(), 3),
        seeds_told(&sloped)
    );
    Verdict::new(claim, measured, word, seeds_of(&sloped))
}

/// The interval of each model; none where there is no model, or one of them has none.
pub(super) fn intervals(models: &[&OperatedModel]) -> Option<Vec<Interval>> {
    let all: Vec<Interval> = models.iter().map(|model| model.interval()).collect::<Option<_>>()?;
    (!all.is_empty()).then_some(all)
}

/// Each run's seeds: `mhsa-256 0.013 [0.011, 0.016], 0.011 [0.008, 0.014]`.
pub(super) fn by_run(models: &[&OperatedModel]) -> String {
    let runs = models.chunk_by(|a, b| (&a.of, &a.run, a.step) == (&b.of, &b.run, b.step));
    let run = |seeds: &[&OperatedModel]| {
        let each = seeds.iter().map(|model| match model.interval() {
            Some(interval) => interval.shown(2),
            None => significant(model.delta(), 2),
        });
        format!("{} {}", seeds[0].run, each.collect::<Vec<_>>().join(", "))
    };
    runs.map(run).collect::<Vec<_>>().join("; ")
}

pub(super) fn seeds_told(models: &[&OperatedModel]) -> String {
    let groups = models.iter().map(|model| model.deltas.len()).min().unwrap_or(0);
    let seeds = plural(seeds_of(models), "seed");
    format!("{seeds}, a number each, 95 % intervals over {} of passages", plural(groups, "group"))
}

/// The fewest seeds of any run and step.
fn seeds_of(models: &[&OperatedModel]) -> usize {
    let runs = models.chunk_by(|a, b| (&a.of, &a.run, a.step) == (&b.of, &b.run, b.step));
    runs.map(<[_]>::len).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::EditedHeads;

    fn model(seed: usize, edit: Edit, deltas: [f64; 3], after: f64) -> OperatedModel {
        OperatedModel {
            of: "lm-logits".to_owned(),
            run: "mhsa-256".to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            step: 6000,
            n: 256,
            window: Some(16),
            d_head: Some(16),
            heads: 12,
            edit,
            edited_heads: EditedHeads::All,
            deltas: deltas.to_vec(),
            before: 100.0,
            after: Some(after),
            after_of_largest: Some(after),
            kl_nats: Some(0.01),
            total_variation: 0.02,
            reached: edit.fit().map(|_| 12),
        }
    }

    fn study(edit: Edit, seeds: usize, delta: f64, after: f64) -> Surgeries {
        let deltas = [0.9 * delta, delta, 1.1 * delta];
        let models = (0..seeds).map(|seed| model(seed, edit, deltas, after)).collect();
        Surgeries { models, failed: 0 }
    }

    #[test]
    fn a_small_error_has_every_word() {
        let fit = Edit::Fit { epsilon: 0.01, rank: 16 };
        let word = |seeds, delta| small_error(&study(fit, seeds, delta, 50.0)).word;
        assert_eq!(word(3, 0.005), Word::Confirmed);
        assert_eq!(word(2, 0.005), Word::Qualified, "two seeds");
        assert_eq!(word(3, 0.0099), Word::Qualified, "the interval holds 0.01");
        assert_eq!(word(3, 0.05), Word::Refuted);
        let mut mixed = study(fit, 3, 0.05, 50.0);
        mixed.models[1].deltas = vec![0.001, 0.001, 0.002];
        assert_eq!(small_error(&mixed).word, Word::Qualified);
        let lower = Edit::Fit { epsilon: 0.01, rank: 4 };
        assert_eq!(small_error(&study(lower, 3, 0.005, 50.0)).word, Word::NotYetMeasured);
        mixed.models[1].deltas = vec![0.001];
        assert_eq!(small_error(&mixed).word, Word::NotYetMeasured, "one group");
        let told = small_error(&study(fit, 3, 0.005, 50.0)).measured;
        assert!(told.contains("under 0.01 nats at ε = 0.01 and"), "{told}");
    }

    #[test]
    fn a_slope_has_every_word() {
        let edit = Edit::FlatSlope { degree: 1 };
        let word = |seeds, delta, after| slope(&study(edit, seeds, delta, after)).word;
        assert_eq!(word(3, 0.01, 20.0), Word::Confirmed);
        assert_eq!(word(2, 0.01, 20.0), Word::Qualified, "two seeds");
        assert_eq!(word(3, 0.01, 60.0), Word::Qualified, "the logits stay");
        assert_eq!(word(3, 0.1, 20.0), Word::Qualified);
        assert_eq!(word(3, 0.5, 20.0), Word::Refuted);
        let mut local = study(edit, 3, 0.01, 20.0);
        local.models.iter_mut().for_each(|model| model.arm = "ls".to_owned());
        assert_eq!(slope(&local).word, Word::NotYetMeasured);
        let told = slope(&study(edit, 3, 0.01, 20.0)).measured;
        assert!(told.contains("0.20 is left, 20.0 nats of 100."), "{told}");
    }
}
