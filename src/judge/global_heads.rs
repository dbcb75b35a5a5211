//! Verdicts on what the loss needs of global heads.

use std::collections::BTreeSet;

use super::claims::Claim;
use super::surgery::{by_run, intervals, seeds_told};
use super::verdict::{Verdict, Word};
use crate::predict::{Edit, EditedHeads};
use crate::table::{HARMLESS_NATS, Interval, OperatedModel, Surgeries};

/// The tokens a row, and the dimensions, that are to do.
const SIZE: usize = 16;

/// The verdicts of a study whose edits are of global heads alone.
pub(crate) fn global_heads(study: &Surgeries) -> Vec<Verdict> {
    let tokens = |edit: Edit| matches!(edit, Edit::FarLargest { count: SIZE, .. });
    let ranks = |edit: Edit| matches!(edit, Edit::FarTruncated { rank: SIZE, .. });
    vec![
        sizes_do(study, Claim::FewFarTokensDo, "far-top-k", &tokens),
        sizes_do(study, Claim::LowFarRankDoes, "far-rank-r", &ranks),
    ]
}

/// What LS-attention loses after `cut` of its global heads to 16 tokens a row, or dimensions, by model, in 95 % intervals over groups of
/// passages.
///
/// *Not yet measured*: no such models, or one without an interval.
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
        let why = format!(
            "Needs global heads of ls after {name} of {SIZE}, and with the last tokens of the window alone, on two groups of \
             passages or more."
        );
        return Verdict::new(claim, why, Word::NotYetMeasured, 0);
    };
    let needs_far = without.iter().all(|interval| interval.low > HARMLESS_NATS);
    let is_harmless = |interval: &Interval| interval.high < HARMLESS_NATS;
    let word = if needs_far && found.iter().all(is_harmless) {
        Word::Confirmed
    } else if found.iter().all(|interval| interval.low > HARMLESS_NATS) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let others = of_other_sizes(&of_ls(&|model| model.edit.name() == name));
    let rest = [
        ("spread evenly there", of_ls(&|m| matches!(m.edit, Edit::FarUniform { .. }))),
        ("as in the mean of other passages", of_ls(&|m| matches!(m.edit, Edit::FarMean { .. }))),
    ];
    let rest: Vec<String> = rest
        .iter()
        .filter(|(_, models)| !models.is_empty())
        .map(|(what, models)| format!("{what} {}", by_run(models)))
        .collect();
    let rest = match rest.is_empty() {
        true => String::new(),
        false => format!(" With the mass beyond the window {}.", rest.join("; ")),
    };
    let measured = format!(
        "After {name} of {SIZE} of its global heads ls loses, in nats per token: {}; where these keep the last tokens of the window alone, {}.{others}{rest} {}.",
        by_run(&cuts),
        by_run(&near),
        seeds_told(&cuts)
    );
    let seeds: BTreeSet<usize> = cuts.iter().map(|model| model.seed).collect();
    Verdict::new(claim, measured, word, seeds.len())
}

/// What is lost at the other sizes of one edit, by size.
fn of_other_sizes(models: &[&OperatedModel]) -> String {
    let sizes: BTreeSet<usize> = models.iter().filter_map(|model| model.edit.size()).collect();
    let told = sizes.into_iter().filter(|&size| size != SIZE).map(|size| {
        let of_size = models.iter().copied().filter(|model| model.edit.size() == Some(size));
        format!(" Of {size}: {}.", by_run(&of_size.collect::<Vec<_>>()))
    });
    told.collect()
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
        let word = |arm, seeds, delta, far| verdict(arm, seeds, delta, far).word;
        assert_eq!(word("ls", 3, 0.005, 0.2), Word::Confirmed);
        assert_eq!(word("ls", 2, 0.005, 0.2), Word::Qualified, "two seeds");
        assert_eq!(word("ls", 3, 0.005, 0.006), Word::Qualified, "nothing far is needed");
        assert_eq!(word("ls", 3, 0.0099, 0.2), Word::Qualified, "an interval across the bound");
        assert_eq!(word("ls", 3, 0.05, 0.2), Word::Refuted);
        assert_eq!(word("mhsa", 3, 0.05, 0.2), Word::NotYetMeasured);
        let told = verdict("ls", 3, 0.05, 0.2).measured;
        assert!(told.contains(" Of 4: ls 0.10 ["), "{told}");
    }

    #[test]
    fn what_is_not_there_is_not_measured() {
        let [tokens, ranks] =
            <[Verdict; 2]>::try_from(global_heads(&study("ls", 3, 0.05, 0.2))).unwrap();
        assert_eq!((tokens.word, ranks.word), (Word::Refuted, Word::NotYetMeasured));
        let mut all = study("ls", 3, 0.05, 0.2);
        all.models.iter_mut().for_each(|model| model.edited_heads = EditedHeads::All);
        assert_eq!(global_heads(&all)[0].word, Word::NotYetMeasured);
    }
}
