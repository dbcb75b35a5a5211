//! Verdicts on trained models whose attention is replaced.

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::from_to;
use super::verdict::{Verdict, VerdictStatus};
use crate::predict::Edit;
use crate::table::{
    HARMLESS_NATS, Interval, OperatedModel, Spread, Surgeries, plural, significant,
};

pub(super) const SMALL_ERROR_IS_HARMLESS: Claim = Claim {
    id: "SmallErrorIsHarmless",
    text: "Predicted here: a KL of 0.01 nats in every head's attention does not harm the model",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: || Rule {
        confirmed: format!(
            "In every model the interval over passages of the loss that free fits at a KL of \
            {EPSILON} add lies below {HARMLESS_NATS} nats per token."
        ),
        refuted: "It lies above in every model.".to_owned(),
    },
    ..Claim::PLAIN
};

pub(super) const RAMP_IS_A_SLOPE: Claim = Claim {
    id: "RampIsASlope",
    text: "Predicted here: a linear position bias outside QKᵀ can replace the ramp in QKᵀ",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: || Rule {
        confirmed: format!(
            "In every model the added loss is at most {SLOPE_LOSES_LITTLE} nats per token by its \
            interval over passages, and max |QKᵀ| falls to {FALLS_TO} times or less."
        ),
        refuted: format!("The interval lies above {SLOPE_LOSES_MUCH} nats in every model."),
    },
    ..Claim::PLAIN
};

/// The KL at which the logits of trained heads are decomposed.
const EPSILON: f64 = 0.01;
/// A slope in the place of the ramp loses at most this, in nats per token.
const SLOPE_LOSES_LITTLE: f64 = 0.02;
/// From here on it loses much.
const SLOPE_LOSES_MUCH: f64 = 0.2;
/// The share of the largest logit that may be left.
const FALLS_TO: f64 = 0.5;

/// The verdicts of such a study.
pub(crate) fn surgery(study: &Surgeries) -> Vec<Verdict> {
    vec![small_error(study), slope(study)]
}

/// What fits at ε = 0.01 of the heads' own rank cost, by model, in 95 % intervals over groups of passages.
///
/// *Not measured*: no such fits, or a model without an interval.
fn small_error(study: &Surgeries) -> Verdict {
    let claim = SMALL_ERROR_IS_HARMLESS;
    let fits: Vec<&OperatedModel> = study
        .models
        .iter()
        .filter(|m| m.edit.fit().is_some_and(|(e, rank)| e == EPSILON && Some(rank) == m.d_head))
        .collect();
    let Some(intervals) = intervals(&fits) else {
        let needs = format!("Needs fits at a KL of {EPSILON} on two groups of passages or more.");
        return Verdict::lacking(claim, "no such fits", needs);
    };
    let status = if intervals.iter().all(|interval| interval.high < HARMLESS_NATS) {
        VerdictStatus::Confirmed
    } else if intervals.iter().all(|interval| interval.low > HARMLESS_NATS) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let headline = format!(
        "loss rises by {} nats per token, {}",
        of_means(&intervals),
        plural(seeds_of(&fits), "seed")
    );
    let measured = format!(
        "Loss added by free fits at a KL of {EPSILON} in place of all attention, nats per token: {}. {}.",
        by_run(&fits),
        groups(&fits)
    );
    Verdict::new(claim, [headline, measured], status, seeds_of(&fits))
}

/// What mhsa loses where the direction of the position's linear trend is taken out of the keys' input and each head gets a slope over
/// the lag, and what is left of its largest logit.
///
/// *Not measured*: no such model, or one without an interval.
fn slope(study: &Surgeries) -> Verdict {
    let claim = RAMP_IS_A_SLOPE;
    let after = |edit: Edit| -> Vec<&OperatedModel> {
        study.models.iter().filter(|m| m.arm == "mhsa" && m.edit == edit).collect()
    };
    let sloped = after(Edit::FlatSlope { degree: 1 });
    let Some(intervals) = intervals(&sloped) else {
        let needs = "Needs mhsa after flat+slope of degree 1 on two groups of passages or more.";
        return Verdict::lacking(claim, "no such attention replacement", needs);
    };
    let left = |model: &OperatedModel| model.after.map(|after| after / model.before);
    let falls = sloped.iter().all(|model| left(model).is_some_and(|left| left < FALLS_TO));
    let status = if falls && intervals.iter().all(|i| i.high <= SLOPE_LOSES_LITTLE) {
        VerdictStatus::Confirmed
    } else if intervals.iter().all(|interval| interval.low > SLOPE_LOSES_MUCH) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let shown = |values: Vec<f64>, digits| {
        Spread::of(values).map_or_else(|| "–".to_owned(), |spread| spread.shown(digits))
    };
    let left = shown(sloped.iter().filter_map(|model| left(model)).collect(), 2);
    let headline = format!(
        "loss rises by {} nats, {left} of max |QKᵀ| is left, {}",
        of_means(&intervals),
        plural(seeds_of(&sloped), "seed")
    );
    let lost = |edit: Edit| {
        let models = after(edit);
        let means = models.iter().map(|model| model.delta());
        (!models.is_empty()).then(|| from_to(means, 2))
    };
    let flat = lost(Edit::Flat { degree: 1 });
    let alone = lost(Edit::DetrendedSlope { degree: 1 });
    let others = [("without the bias", flat), ("with only the trend removed", alone)];
    let others = others.into_iter().filter_map(|(how, lost)| Some(format!("; {how} {}", lost?)));
    let measured = format!(
        "Loss added by a linear bias in place of the keys' trend, nats per token: {}{}. Of max |QKᵀ/√d| {left} is left.",
        by_run(&sloped),
        others.collect::<String>()
    );
    Verdict::new(claim, [headline, measured], status, seeds_of(&sloped))
}

/// The means of intervals, from the least to the greatest.
pub(super) fn of_means(intervals: &[Interval]) -> String {
    from_to(intervals.iter().map(|interval| interval.mean), 2)
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

/// Over what intervals are.
pub(super) fn groups(models: &[&OperatedModel]) -> String {
    let groups = models.iter().map(|model| model.deltas.len()).min().unwrap_or(0);
    format!("Intervals over {} of passages", plural(groups, "group"))
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
        let status = |seeds, delta| small_error(&study(fit, seeds, delta, 50.0)).status;
        assert_eq!(status(3, 0.005), VerdictStatus::Confirmed);
        assert_eq!(status(2, 0.005), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(3, 0.0099), VerdictStatus::Qualified, "the interval holds 0.01");
        assert_eq!(status(3, 0.05), VerdictStatus::Refuted);
        let mut mixed = study(fit, 3, 0.05, 50.0);
        mixed.models[1].deltas = vec![0.001, 0.001, 0.002];
        assert_eq!(small_error(&mixed).status, VerdictStatus::Qualified);
        let lower = Edit::Fit { epsilon: 0.01, rank: 4 };
        assert_eq!(small_error(&study(lower, 3, 0.005, 50.0)).status, VerdictStatus::NotMeasured);
        mixed.models[1].deltas = vec![0.001];
        assert_eq!(small_error(&mixed).status, VerdictStatus::NotMeasured, "one group");
    }

    #[test]
    fn a_slope_has_every_word() {
        let edit = Edit::FlatSlope { degree: 1 };
        let status = |seeds, delta, after| slope(&study(edit, seeds, delta, after)).status;
        assert_eq!(status(3, 0.01, 20.0), VerdictStatus::Confirmed);
        assert_eq!(status(2, 0.01, 20.0), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(3, 0.01, 60.0), VerdictStatus::Qualified, "the logits stay");
        assert_eq!(status(3, 0.1, 20.0), VerdictStatus::Qualified);
        assert_eq!(status(3, 0.5, 20.0), VerdictStatus::Refuted);
        let mut local = study(edit, 3, 0.01, 20.0);
        local.models.iter_mut().for_each(|model| model.arm = "ls".to_owned());
        assert_eq!(slope(&local).status, VerdictStatus::NotMeasured);
        let measured = slope(&study(edit, 3, 0.01, 20.0)).measured;
        assert!(measured.contains("0.20"), "{measured}");
    }
}
