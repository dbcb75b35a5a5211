//! Verdicts on what the loss needs of global heads.

use std::collections::BTreeSet;

use super::claim::{Claim, Group, Origin, Rule};
use super::surgery::{groups, intervals, of_means};
use super::verdict::{Verdict, VerdictStatus};
use crate::predict::{Edit, EditedHeads};
use crate::table::{HARMLESS_NATS, Interval, OperatedModel, Surgeries, plural, significant};

pub(super) const FEW_FAR_TOKENS_DO: Claim = Claim {
    id: "FewFarTokensDo",
    text: "LS-attention loses nothing when global heads keep 16 tokens per query beyond the \
            window",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d assumes it",
    rule: || Rule {
        confirmed: format!(
            "In every model the interval over passages of the added loss lies below \
            {HARMLESS_NATS} nats per token, and that of the window alone above: far context is \
            needed."
        ),
        refuted: format!("It lies above {HARMLESS_NATS} nats in every model."),
    },
    ..Claim::PLAIN
};

pub(super) const LOW_FAR_RANK_DOES: Claim = Claim {
    id: "LowFarRankDoes",
    text: "LS-attention loses nothing when global attention beyond the window is truncated to \
            rank 16",
    ..FEW_FAR_TOKENS_DO
};

/// The tokens per query, and the rank, that are to be enough.
const SIZE: usize = 16;

/// The verdicts of a study whose edits are of global heads alone.
pub(crate) fn global_heads(study: &Surgeries) -> Vec<Verdict> {
    let tokens = |edit: Edit| matches!(edit, Edit::FarLargest { count: SIZE, .. });
    let ranks = |edit: Edit| matches!(edit, Edit::FarTruncated { rank: SIZE, .. });
    vec![
        sizes_do(study, FEW_FAR_TOKENS_DO, "far-top-k", &tokens),
        sizes_do(study, LOW_FAR_RANK_DOES, "far-rank-r", &ranks),
    ]
}

/// What LS-attention loses after `cut` of its global heads to 16 tokens a row, or dimensions, by model, in 95 % intervals over groups of
/// passages.
///
/// *Not measured*: no such models, or one without an interval.
fn sizes_do(study: &Surgeries, claim: Claim, name: &str, cut: &dyn Fn(Edit) -> bool) -> Verdict {
    let of_ls = |is_it: &dyn Fn(&OperatedModel) -> bool| -> Vec<&OperatedModel> {
        let models = study.models.iter().filter(|model| {
            model.arm == "ls" && model.edited_heads == EditedHeads::Global && is_it(model)
        });
        models.collect()
    };
    let cuts = of_ls(&|model| cut(model.edit));
    let near =
        of_ls(&|model| model.window.is_some_and(|window| model.edit == Edit::Last { window }));
    let (Some(found), Some(without)) = (intervals(&cuts), intervals(&near)) else {
        let needs = format!(
            "Needs ls after {name} of {SIZE} in its global heads, and with the last tokens of the window alone, on two groups \
             of passages or more."
        );
        return Verdict::lacking(claim, "no such attention replacement", needs);
    };
    let needs_far = without.iter().all(|interval| interval.low > HARMLESS_NATS);
    let is_harmless = |interval: &Interval| interval.high < HARMLESS_NATS;
    let status = if needs_far && found.iter().all(is_harmless) {
        VerdictStatus::Confirmed
    } else if found.iter().all(|interval| interval.low > HARMLESS_NATS) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let seeds: BTreeSet<usize> = cuts.iter().map(|model| model.seed).collect();
    let seeds = seeds.len();
    let (lost, near) = (of_means(&found), of_means(&without));
    let headline =
        format!("loss rises by {lost} nats; window alone {near}; {}", plural(seeds, "seed"));
    let need = match needs_far {
        true => "",
        false => ": far context is hardly needed",
    };
    let measured = format!(
        "With {name} of {SIZE} in global heads, the loss of LS-attention rises by {lost} nats per token (intervals end at {} or lower); \
         with the window alone by {near}{need}. {}; {}.",
        significant(
            found.iter().map(|interval| interval.high).fold(f64::NEG_INFINITY, f64::max),
            2
        ),
        plural(found.len(), "model"),
        groups(&cuts).replacen("Intervals", "intervals", 1)
    );
    Verdict::new(claim, [headline, measured], status, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seeds of ls that lose `delta` where far parts are cut, and `far` where they are gone.
    fn study(arm: &str, seeds: usize, delta: f64, far: f64) -> Surgeries {
        let model = |seed: usize, edit: Edit, delta: f64| OperatedModel {
            of: "runs".to_owned(),
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            step: 100,
            n: 512,
            window: Some(8),
            d_head: Some(16),
            heads: 12,
            edit,
            edited_heads: EditedHeads::Global,
            deltas: vec![0.9 * delta, delta, 1.1 * delta],
            before: 10.0,
            after: Some(10.0),
            after_of_largest: Some(10.0),
            kl_nats: None,
            total_variation: 0.1,
            reached: None,
        };
        let models = (0..seeds).flat_map(|seed| {
            [
                model(seed, Edit::FarLargest { count: 16, from: 8 }, delta),
                model(seed, Edit::FarLargest { count: 4, from: 8 }, 2.0 * delta),
                model(seed, Edit::Last { window: 8 }, far),
            ]
        });
        Surgeries { models: models.collect(), failed: 0 }
    }

    #[test]
    fn few_tokens_have_every_word() {
        let verdict =
            |arm, seeds, delta, far| global_heads(&study(arm, seeds, delta, far))[0].clone();
        let status = |arm, seeds, delta, far| verdict(arm, seeds, delta, far).status;
        assert_eq!(status("ls", 3, 0.005, 0.2), VerdictStatus::Confirmed);
        assert_eq!(status("ls", 2, 0.005, 0.2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(
            status("ls", 3, 0.005, 0.006),
            VerdictStatus::Qualified,
            "nothing far is needed"
        );
        assert_eq!(
            status("ls", 3, 0.0099, 0.2),
            VerdictStatus::Qualified,
            "an interval across the bound"
        );
        assert_eq!(status("ls", 3, 0.05, 0.2), VerdictStatus::Refuted);
        assert_eq!(status("mhsa", 3, 0.05, 0.2), VerdictStatus::NotMeasured);
        let measured = verdict("ls", 3, 0.05, 0.2).measured;
        assert!(measured.contains("0.050") && measured.contains("0.20"), "{measured}");
    }

    #[test]
    fn what_is_not_there_is_not_measured() {
        let [tokens, ranks] =
            <[Verdict; 2]>::try_from(global_heads(&study("ls", 3, 0.05, 0.2))).unwrap();
        assert_eq!(
            (tokens.status, ranks.status),
            (VerdictStatus::Refuted, VerdictStatus::NotMeasured)
        );
        let mut all = study("ls", 3, 0.05, 0.2);
        all.models.iter_mut().for_each(|model| model.edited_heads = EditedHeads::All);
        assert_eq!(global_heads(&all)[0].status, VerdictStatus::NotMeasured);
    }
}
