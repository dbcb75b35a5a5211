//! Verdicts on trained models whose attention is replaced.

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::interventions::tables::{HARMLESS_NATS, OperatedModel, Surgeries};
use crate::heads::Edit;
use crate::table::{Estimate, plural};

/// The KL at which the logits of trained heads are decomposed.
const EPSILON: f64 = 0.01;
/// The most that moving the keys' scores to a bias may add to the loss, in nats per token, to count as little.
const LOSES_LITTLE: f64 = 0.02;
/// From here on the added loss counts as much.
const LOSES_MUCH: f64 = 0.2;
/// The bits whose harm is decided.
const BITS: usize = 4;
/// The share of the largest logit that may remain.
const FALLS_TO: f64 = 0.5;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] =
    &[SMALL_ERROR_IS_HARMLESS, KEY_SCORES_ARE_A_BIAS, FOUR_BITS_ARE_HARMLESS];

pub(crate) const SMALL_ERROR_IS_HARMLESS: Claim = Claim {
    id: "SmallErrorIsHarmless",
    text: "Predicted here: a KL of 0.01 nats in every head's attention does not harm the model",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: [
        "In every model the interval over passages of the loss that free fits at a KL of {0} add \
            lies below {1} nats per token.",
        "It lies above in every model.",
    ],
    bounds: &[EPSILON, HARMLESS_NATS],
    lacking: ["no such fits", "Needs fits at a KL of {0} on two groups of passages or more."],
    ..Claim::PLAIN
};

pub(crate) const KEY_SCORES_ARE_A_BIAS: Claim = Claim {
    id: "KeyScoresAreABias",
    text: "Predicted here: large QKᵀ is mostly one score per key, which a bias outside QKᵀ can replace",
    place: "predicted here, one score per key",
    rule: [
        "In every model the added loss is at most {0} nats per token by its interval over passages, \
            and max |QKᵀ| falls to {2} times or less.",
        "The interval lies above {1} nats in every model, or max |QKᵀ| stays above {2} times in every model.",
    ],
    bounds: &[LOSES_LITTLE, LOSES_MUCH, FALLS_TO],
    lacking: [
        "no such attention replacement",
        "Needs mhsa after the edit key-scores on two groups of passages or more.",
    ],
    ..SMALL_ERROR_IS_HARMLESS
};

pub(crate) const FOUR_BITS_ARE_HARMLESS: Claim = Claim {
    id: "FourBitsAreHarmless",
    text: "Matrices rounded to four bits after training do not harm the model",
    place: "asked of Kaushal et al. 2024, arXiv 2407.12327",
    rule: [
        "In every model the interval over passages of the loss that rounding all matrices of blocks to {0} bits adds \
            lies below {1} nats per token.",
        "It lies above in every model.",
    ],
    bounds: &[BITS as f64, HARMLESS_NATS],
    lacking: [
        "no such rounding",
        "Needs matrices rounded to {0} bits, on two groups of passages or more.",
    ],
    ..SMALL_ERROR_IS_HARMLESS
};

/// The verdicts of a study.
pub(crate) fn verdicts(study: &Surgeries) -> Vec<Verdict> {
    let has_rounded = study.models.iter().any(|model| matches!(model.edit, Edit::Rounded { .. }));
    match has_rounded {
        true => vec![four_bits(study)],
        false => vec![small_error(study), key_scores(study)],
    }
}

/// The models of one edit, with the added loss of each and its 95 % interval over groups of passages.
struct Edited<'m> {
    models: Vec<&'m OperatedModel>,
    losses: Vec<Estimate>,
}

impl<'m> Edited<'m> {
    /// Collects the models of an edit. Returns `None` if there is no such model, or if one has no interval.
    fn of(study: &'m Surgeries, is_one: impl Fn(&OperatedModel) -> bool) -> Option<Self> {
        let models: Vec<&OperatedModel> =
            study.models.iter().filter(|model| is_one(model)).collect();
        let losses = models.iter().map(|model| model.interval());
        let losses: Vec<Estimate> = losses.collect::<Option<_>>()?;
        (!losses.is_empty()).then_some(Self { models, losses })
    }

    /// Combines the rulings on the loss of every model.
    fn every(&self, ruling: impl Fn(&Estimate) -> Ruling) -> Ruling {
        Ruling::every(self.losses.iter().map(ruling))
    }

    /// The range of the mean losses.
    fn means(&self) -> String {
        from_to(self.losses.iter().map(|loss| loss.value), 2)
    }

    /// The models of each run and step, one per seed.
    fn runs(&self) -> impl Iterator<Item = &[&'m OperatedModel]> {
        self.models.chunk_by(|a, b| a.run() == b.run())
    }

    /// The losses of each run's seeds: `mhsa-256 0.013 [0.011, 0.016], 0.011 [0.008, 0.014]`.
    fn by_run(&self) -> String {
        let mut losses = self.losses.iter();
        let runs = self.runs().map(|seeds| {
            let each = losses.by_ref().take(seeds.len()).map(|loss| loss.shown(2));
            format!("{} {}", seeds[0].of.run, joined(each, ", "))
        });
        joined(runs, "; ")
    }

    fn seeds(&self) -> Seeds {
        Seeds::of_settings(self.runs().map(<[_]>::len))
    }
}

/// The loss that fits at ε = 0.01 and the heads' own rank add, by model.
fn small_error(study: &Surgeries) -> Verdict {
    let is_fit = |model: &OperatedModel| {
        let fit = model.edit.fit();
        fit.is_some_and(|(epsilon, rank)| {
            epsilon == EPSILON && (rank >= model.n || Some(rank) == model.of.head_dimension())
        })
    };
    let Some(fits) = Edited::of(study, is_fit) else {
        return Verdict::lacking(SMALL_ERROR_IS_HARMLESS);
    };
    let ruling = fits.every(|loss| loss.at_most(HARMLESS_NATS));
    let headline = format!("loss changes by {} nats per token", fits.means());
    let groups = fits.models.iter().map(|model| model.deltas.len()).min().unwrap_or(0);
    let sentences = [
        format!(
            "Loss added by free fits at a KL of {EPSILON} in place of all attention, nats per token: {}",
            fits.by_run()
        ),
        format!("Intervals over {} of passages", plural(groups, "group")),
    ];
    Verdict::new(SMALL_ERROR_IS_HARMLESS, ruling, fits.seeds(), headline, sentences)
}

/// The loss that the edit `key-scores` adds to mhsa, and the share of the largest logit that remains.
fn key_scores(study: &Surgeries) -> Verdict {
    let is_one = |model: &OperatedModel| model.of.arm == "mhsa" && model.edit == Edit::KeyScores;
    let Some(edited) = Edited::of(study, is_one) else {
        return Verdict::lacking(KEY_SCORES_ARE_A_BIAS);
    };
    let left: Vec<f64> =
        edited.models.iter().filter_map(|model| Some(model.after? / model.before)).collect();
    let loss = edited.every(|loss| loss.beyond(LOSES_LITTLE, LOSES_MUCH));
    let falls = |left: &f64| Ruling::of_rule(*left <= FALLS_TO, *left > FALLS_TO);
    let ruling = Ruling::both([loss, Ruling::every(left.iter().map(falls))]);
    let left = from_to(left, 2);
    let headline = format!("loss changes by {} nats, {left} of max |QKᵀ| is left", edited.means());
    let sentences = [
        format!(
            "Loss added by a bias in place of each key's score under the mean query, nats per token: {}",
            edited.by_run()
        ),
        format!("Of max |QKᵀ/√d| {left} is left"),
    ];
    Verdict::new(KEY_SCORES_ARE_A_BIAS, ruling, edited.seeds(), headline, sentences)
}

/// The loss that rounding all matrices to four bits adds, and the logits then.
fn four_bits(study: &Surgeries) -> Verdict {
    let is_four = |model: &OperatedModel| model.edit == Edit::Rounded { bits: BITS };
    // Runs with fewer seeds than the others are no evidence beside them.
    let seeds = |of: &OperatedModel| {
        study.models.iter().filter(|model| is_four(model) && model.run() == of.run()).count()
    };
    let most = study.models.iter().map(seeds).max().unwrap_or(0);
    let is_one = |model: &OperatedModel| is_four(model) && seeds(model) == most;
    let Some(edited) = Edited::of(study, is_one) else {
        return Verdict::lacking(FOUR_BITS_ARE_HARMLESS);
    };
    let ruling = edited.every(|loss| loss.at_most(HARMLESS_NATS));
    let times = edited.models.iter().filter_map(|model| Some(model.after? / model.before));
    let sentences = [
        format!("Loss added by rounding to {BITS} bits, nats per token: {}", edited.by_run()),
        format!("Max |QKᵀ/√d| is then {} times as large", from_to(times, 2)),
    ];
    let headline = format!("loss changes by {} nats per token", edited.means());
    Verdict::new(FOUR_BITS_ARE_HARMLESS, ruling, edited.seeds(), headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::ModelKey;

    /// One model per seed, with three groups of passages about `delta` apart.
    fn study(edit: Edit, seeds: usize, delta: f64, after: f64) -> Surgeries {
        let of = ModelKey::of_published("mhsa-256", "mhsa", None, [3, 4, 256], Some(6000));
        let model = OperatedModel {
            of: ModelKey { d_model: Some(64), ..of },
            n: 256,
            edit,
            deltas: vec![0.9 * delta, delta, 1.1 * delta],
            before: 100.0,
            after: Some(after),
            after_of_largest: Some(after),
            kl_nats: Some(0.01),
            total_variation: 0.02,
            reached: edit.fit().map(|_| 12),
        };
        Surgeries { models: vec![model; seeds], failed: 0 }
    }

    #[test]
    fn a_small_error_has_every_word() {
        let fit = Edit::Fit { epsilon: 0.01, rank: 16 };
        let status = |seeds, delta| small_error(&study(fit, seeds, delta, 50.0)).status;
        assert_eq!(status(3, 0.005), Confirmed);
        assert_eq!(status(2, 0.005), Qualified, "two seeds");
        assert_eq!(status(3, 0.0099), Qualified, "the interval holds 0.01");
        assert_eq!(status(3, 0.05), Refuted);
        let mut mixed = study(fit, 3, 0.05, 50.0);
        mixed.models[1].deltas = vec![0.001, 0.001, 0.002];
        assert_eq!(small_error(&mixed).status, Qualified);
        let lower = Edit::Fit { epsilon: 0.01, rank: 4 };
        assert_eq!(small_error(&study(lower, 3, 0.005, 50.0)).status, NotMeasured);
        mixed.models[1].deltas = vec![0.001];
        assert_eq!(small_error(&mixed).status, NotMeasured, "one group");
    }

    #[test]
    fn rounding_has_every_status() {
        let status = |bits, seeds, delta| {
            verdicts(&study(Edit::Rounded { bits }, seeds, delta, 100.0))[0].status
        };
        assert_eq!(status(4, 3, 0.005), Confirmed);
        assert_eq!(status(4, 2, 0.005), Qualified, "two seeds");
        assert_eq!(status(4, 3, 0.05), Refuted);
        assert_eq!(status(3, 3, 0.05), NotMeasured, "other bits");
    }

    #[test]
    fn key_scores_have_every_status() {
        let study = |seeds, delta, after| study(Edit::KeyScores, seeds, delta, after);
        let status = |seeds, delta, after| key_scores(&study(seeds, delta, after)).status;
        assert_eq!(status(3, 0.01, 20.0), Confirmed);
        assert_eq!(status(2, 0.01, 20.0), Qualified, "two seeds");
        assert_eq!(status(3, 0.01, 60.0), Refuted, "the logits stay");
        assert_eq!(status(3, 0.1, 20.0), Qualified);
        assert_eq!(status(3, 0.5, 20.0), Refuted);
        let mut mixed = study(3, 0.01, 20.0);
        mixed.models[0].after = Some(60.0);
        assert_eq!(key_scores(&mixed).status, Qualified, "one model keeps them");
        mixed.models.iter_mut().for_each(|model| model.of.arm = "ls".to_owned());
        assert_eq!(key_scores(&mixed).status, NotMeasured, "no global heads alone");
    }
}
