//! Verdicts on how concentrated the attention of trained heads is.

use std::collections::BTreeSet;

use super::claims::Claim;
use super::scale::listed;
use super::verdict::{Verdict, Word};
use crate::row::FarFound;
use crate::table::{ConcentratedHead, Concentrations, FAR_MASS, Spread, plural, significant};

/// The share of its far columns on which 0.9 of a row's far mass may lie where it is sparse, and from which on it is not.
pub(super) const TOKENS: [f64; 2] = [0.1, 0.25];
/// The share of the rank of shuffled entries from which on a far part has no structure to speak of.
pub(super) const OF_SHUFFLED: f64 = 0.5;

/// The verdicts of such a study.
pub(crate) fn concentration(study: &Concentrations) -> Vec<Verdict> {
    vec![sparse(study), low_rank(study)]
}

/// On how many tokens 0.9 of a row's far mass lies, as a share of the far columns: the median of a model's global heads that have
/// 0.1 of their mass there, by model of LS-attention.
///
/// *Not yet measured*: no model, or one without such a head.
fn sparse(study: &Concentrations) -> Verdict {
    let claim = Claim::GlobalIsSparse;
    let Some(models) = Model::all(study, ConcentratedHead::far_tokens) else {
        return Verdict::new(claim, needs(), Word::NotYetMeasured, 0);
    };
    let word = if models.iter().all(|model| model.median <= TOKENS[0]) {
        Word::Confirmed
    } else if models.iter().all(|model| model.median >= TOKENS[1]) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let effective =
        |head: &ConcentratedHead| Some(head.far()?.far_effective_tokens / head.found.far_columns);
    let measured = format!(
        "Global heads of ls spread 0.9 of a row's mass beyond the window over so much of the columns there: {} (the median head of each \
         model; evenly spread mass takes 0.9). exp(H) of it is {} of them, the 16 largest tokens hold {}. In heads of mhsa 0.9 takes {}. \
         Of the mass of global heads of ls {} lies there, {} on the first token. {}.",
        told(&models),
        over(&of_ls(study), effective),
        over(&of_ls(study), |head| head.far().map(|far| far.far_top_16)),
        over(&of_mhsa(study), ConcentratedHead::far_tokens),
        over(&of_ls(study), |head| Some(head.found.far_mass)),
        over(&of_ls(study), |head| Some(head.found.sink_mass)),
        scale(study, &models),
    );
    Verdict::new(claim, measured, word, seeds(&models))
}

/// The rank r at which the far part F of a head's attention has ‖F − F_r‖_F² ≤ 0.1 ‖F‖_F²: the median of a model's global heads that
/// have 0.1 of their mass there, by model of LS-attention.
///
/// *Not yet measured*: no model, or one without such a head.
fn low_rank(study: &Concentrations) -> Verdict {
    let claim = Claim::GlobalIsLowRank;
    let rank = |head: &ConcentratedHead| head.far().map(|far| far.far_rank_90);
    let models = Model::all(study, rank);
    let shares = Model::all(study, ConcentratedHead::far_rank_of_shuffled);
    let (Some(models), Some(shares)) = (models, shares) else {
        return Verdict::new(claim, needs(), Word::NotYetMeasured, 0);
    };
    let word = if models.iter().all(|model| model.median <= model.d_head as f64) {
        Word::Confirmed
    } else if shares.iter().all(|model| model.median >= OF_SHUFFLED) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let of_far =
        |value: fn(&FarFound) -> f64| over(&of_ls(study), move |head| head.far().map(value));
    let whole = |heads: &[&ConcentratedHead]| over(heads, |head| Some(head.found.rank_90));
    let measured = format!(
        "0.9 of ‖·‖_F² of what global heads of ls attend to beyond the window is held at rank {} (the median head of each model), 0.99 at {}. With \
         each row's entries in random order 0.9 takes {}, so the heads take {} of that. In heads of mhsa 0.9 takes {}. Of whole rows it \
         takes {} in global heads of ls, {} in its local ones, {} in heads of mhsa. {}.",
        told(&models),
        of_far(|far| far.far_rank_99),
        of_far(|far| far.shuffled_rank_90),
        told(&shares),
        over(&of_mhsa(study), rank),
        whole(&of_ls(study)),
        whole(&heads_of(study, |head| head.arm == "ls" && !head.is_global())),
        whole(&of_mhsa(study)),
        scale(study, &models),
    );
    Verdict::new(claim, measured, word, seeds(&models))
}

/// The median of a model's global heads.
struct Model {
    run: String,
    seed: u64,
    d_head: usize,
    median: f64,
}

impl Model {
    /// Of each model of LS-attention; none where there is no model, or one has no value.
    fn all(
        study: &Concentrations,
        value: impl Fn(&ConcentratedHead) -> Option<f64>,
    ) -> Option<Vec<Self>> {
        let one = |heads: Vec<&ConcentratedHead>| {
            let first = heads[0];
            let median = Spread::of(heads.iter().filter_map(|head| value(head)))?.median;
            let run = first.run.clone().unwrap_or_default();
            Some(Self { run, seed: first.seed, d_head: first.found.rank, median })
        };
        let models: Vec<Self> = study.global_of_ls().into_iter().map(one).collect::<Option<_>>()?;
        (!models.is_empty()).then_some(models)
    }
}

/// `ls 0.41, 0.38, 0.40; ls-window-64 0.5`.
fn told(models: &[Model]) -> String {
    let runs = models.chunk_by(|a, b| a.run == b.run);
    let run = |models: &[Model]| {
        let each: Vec<String> = models.iter().map(|model| significant(model.median, 2)).collect();
        format!("{} {}", models[0].run, each.join(", "))
    };
    runs.map(run).collect::<Vec<_>>().join("; ")
}

fn seeds(models: &[Model]) -> usize {
    models.iter().map(|model| model.seed).collect::<BTreeSet<u64>>().len()
}

fn heads_of(
    study: &Concentrations,
    is_one: impl Fn(&ConcentratedHead) -> bool,
) -> Vec<&ConcentratedHead> {
    study.heads.iter().filter(|head| is_one(head)).collect()
}

fn of_ls(study: &Concentrations) -> Vec<&ConcentratedHead> {
    heads_of(study, |head| head.arm == "ls" && head.is_global())
}

fn of_mhsa(study: &Concentrations) -> Vec<&ConcentratedHead> {
    heads_of(study, |head| head.arm == "mhsa")
}

/// The median of heads, with the least and the greatest.
fn over(heads: &[&ConcentratedHead], value: impl Fn(&ConcentratedHead) -> Option<f64>) -> String {
    let values = heads.iter().filter_map(|head| value(head));
    Spread::of(values).map_or_else(|| "–".to_owned(), |spread| spread.shown(2))
}

fn scale(study: &Concentrations, models: &[Model]) -> String {
    let of_ls = heads_of(study, |head| head.arm == "ls");
    let lengths = listed(of_ls.iter().map(|head| head.found.n)).unwrap_or_default();
    format!(
        "{} of ls, {}; n = {}; heads with {FAR_MASS} or more of their mass there; medians with (least–greatest) over heads",
        plural(models.len(), "model"),
        plural(seeds(models), "seed"),
        lengths
    )
}

fn needs() -> String {
    format!(
        "Needs global heads of ls with {FAR_MASS} or more of their mass beyond the window in every model."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::concentrated_heads;

    #[test]
    fn sparsity_has_every_word() {
        let word = |seeds, share| sparse(&concentrated_heads("ls", seeds, share, 20.0)).word;
        assert_eq!(word(3, 0.08), Word::Confirmed);
        assert_eq!(word(2, 0.08), Word::Qualified, "two seeds");
        assert_eq!(word(3, 0.2), Word::Qualified);
        assert_eq!(word(3, 0.4), Word::Refuted);
        let mut mixed = concentrated_heads("ls", 3, 0.4, 20.0);
        mixed.heads.extend(
            concentrated_heads("ls", 1, 0.2, 20.0)
                .heads
                .into_iter()
                .map(|head| ConcentratedHead { run: Some("ls-window-64".to_owned()), ..head }),
        );
        assert_eq!(sparse(&mixed).word, Word::Qualified, "one model is between");
        let mut near = concentrated_heads("ls", 3, 0.4, 20.0);
        near.heads.iter_mut().for_each(|head| head.found.far_mass = 0.05);
        assert_eq!(sparse(&near).word, Word::NotYetMeasured, "nothing far");
        let told = sparse(&concentrated_heads("ls", 3, 0.4, 20.0)).measured;
        assert!(told.contains("columns there: ls 0.40, 0.40, 0.40 (the"), "{told}");
    }

    #[test]
    fn low_rank_has_every_word() {
        let word = |arm, seeds, rank| low_rank(&concentrated_heads(arm, seeds, 0.3, rank)).word;
        assert_eq!(word("ls", 3, 16.0), Word::Confirmed);
        assert_eq!(word("ls", 2, 16.0), Word::Qualified, "two seeds");
        assert_eq!(word("ls", 3, 17.0), Word::Qualified);
        assert_eq!(word("ls", 3, 50.0), Word::Refuted, "half of 100");
        assert_eq!(word("mhsa", 3, 16.0), Word::NotYetMeasured);
        let told = low_rank(&concentrated_heads("ls", 3, 0.3, 20.0)).measured;
        assert!(told.contains("so the heads take ls 0.20, 0.20, 0.20 of that"), "{told}");
    }
}
