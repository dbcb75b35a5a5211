//! Verdicts on how concentrated the attention of trained heads is.

use std::collections::BTreeSet;

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::from_to;
use super::scale::listed;
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{ConcentratedHead, Concentrations, FAR_MASS, Spread, plural, significant};

pub(super) const GLOBAL_IS_SPARSE: Claim = Claim {
    id: "GlobalIsSparse",
    text: "Beyond the window, LS-attention's global heads attend to few tokens",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d assumes it",
    rule: || Rule {
        confirmed: format!(
            "In the median global head of every model, {} of the columns beyond the window or \
            fewer hold 0.9 of the mass there.",
            TOKENS[0]
        ),
        refuted: format!("{} or more hold it in every model.", TOKENS[1]),
    },
    ..Claim::PLAIN
};

pub(super) const GLOBAL_IS_LOW_RANK: Claim = Claim {
    id: "GlobalIsLowRank",
    text: "Beyond the window, the attention of LS-attention's global heads has low rank",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d assumes it",
    rule: || Rule {
        confirmed: format!(
            "In the median global head of every model, 0.9 of ‖·‖_F² beyond the window has a rank \
            of at most d_head, and exp(entropy) there is at most {NEAR_UNIFORM} of the columns: \
            uniform attention has rank 2."
        ),
        refuted: format!(
            "It takes {OF_SHUFFLED} or more of the rank of the same entries in random order, in \
            every model."
        ),
    },
    ..Claim::PLAIN
};

/// The share of its far columns on which 0.9 of a row's far mass may lie where it is sparse, and from which on it is not.
const TOKENS: [f64; 2] = [0.1, 0.25];
/// The share of the rank of shuffled entries from which on a far part has no structure to speak of.
const OF_SHUFFLED: f64 = 0.5;
/// Where exp(entropy) of a far part is a larger share of its columns than this, it is near to uniform attention. That has a
/// rank of 2 by this measure whatever a model learns, so a low rank is no evidence there.
const NEAR_UNIFORM: f64 = 0.5;
/// The headline without rows.
const LACKING: &str = "no global heads with mass beyond the window";

/// The verdicts of such a study.
pub(crate) fn concentration(study: &Concentrations) -> Vec<Verdict> {
    vec![sparse(study), low_rank(study)]
}

/// On how many tokens 0.9 of a row's far mass lies, as a share of the far columns: the median of a model's global heads that have
/// 0.1 of their mass there, by model of LS-attention.
///
/// *Not measured*: no model, or one without such a head.
fn sparse(study: &Concentrations) -> Verdict {
    let claim = GLOBAL_IS_SPARSE;
    let Some(models) = Model::all(study, ConcentratedHead::far_tokens) else {
        return Verdict::lacking(claim, LACKING, needs());
    };
    let status = if models.iter().all(|model| model.median <= TOKENS[0]) {
        VerdictStatus::Confirmed
    } else if models.iter().all(|model| model.median >= TOKENS[1]) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let headline = format!(
        "0.9 of far mass on {} of the columns (uniform: 0.9), {}",
        from_to(models.iter().map(|model| model.median), 2),
        plural(seeds(&models), "seed")
    );
    let measured = format!(
        "Share of the columns beyond the window that hold 0.9 of a row's mass there: {}; uniform attention 0.9; multi-head \
         attention {}. Medians over global heads; {}.",
        listed_by_run(&models),
        over(&of_mhsa(study), ConcentratedHead::far_tokens),
        scale(study, &models),
    );
    Verdict::new(claim, [headline, measured], status, seeds(&models))
}

/// exp(entropy) of the far mass over the number of far columns: 1 where it is uniform.
fn effective(head: &ConcentratedHead) -> Option<f64> {
    Some(head.far()?.far_effective_tokens / head.found.far_columns)
}

/// The rank r at which the far part F of a head's attention has ‖F − F_r‖_F² ≤ 0.1 ‖F‖_F²: the median of a model's global heads that
/// have 0.1 of their mass there, by model of LS-attention.
///
/// *Not measured*: no model, or one without such a head.
fn low_rank(study: &Concentrations) -> Verdict {
    let claim = GLOBAL_IS_LOW_RANK;
    let rank = |head: &ConcentratedHead| head.far().map(|far| far.far_rank_90);
    let models = Model::all(study, rank);
    let shares = Model::all(study, ConcentratedHead::far_rank_of_shuffled);
    let uniform = Model::all(study, effective);
    let (Some(models), Some(shares), Some(uniform)) = (models, shares, uniform) else {
        return Verdict::lacking(claim, LACKING, needs());
    };
    let is_near_uniform = uniform.iter().any(|model| model.median > NEAR_UNIFORM);
    let status = if models.iter().all(|model| model.median <= model.d_head as f64) {
        if is_near_uniform { VerdictStatus::Qualified } else { VerdictStatus::Confirmed }
    } else if shares.iter().all(|model| model.median >= OF_SHUFFLED) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let uniform = from_to(uniform.iter().map(|model| model.median), 2);
    let headline = format!(
        "rank {} holds 0.9 of far ‖·‖²; uniform attention: 2; {}",
        from_to(models.iter().map(|model| model.median), 2),
        plural(seeds(&models), "seed")
    );
    let measured = format!(
        "Rank that holds 0.9 of ‖·‖_F² beyond the window: {}; shuffled entries {}. But uniform attention has rank 2, and \
         exp(entropy) here is {uniform} of the columns. {}.",
        listed_by_run(&models),
        over(&of_ls(study), |head| head.far().map(|far| far.shuffled_rank_90)),
        scale(study, &models),
    );
    Verdict::new(claim, [headline, measured], status, seeds(&models))
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
fn listed_by_run(models: &[Model]) -> String {
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
    format!("{} of LS-attention, n = {lengths}", plural(models.len(), "model"))
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
        let status = |seeds, share| sparse(&concentrated_heads("ls", seeds, share, 20.0)).status;
        assert_eq!(status(3, 0.08), VerdictStatus::Confirmed);
        assert_eq!(status(2, 0.08), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(3, 0.2), VerdictStatus::Qualified);
        assert_eq!(status(3, 0.4), VerdictStatus::Refuted);
        let mut mixed = concentrated_heads("ls", 3, 0.4, 20.0);
        mixed.heads.extend(
            concentrated_heads("ls", 1, 0.2, 20.0)
                .heads
                .into_iter()
                .map(|head| ConcentratedHead { run: Some("ls-window-64".to_owned()), ..head }),
        );
        assert_eq!(sparse(&mixed).status, VerdictStatus::Qualified, "one model is between");
        let mut near = concentrated_heads("ls", 3, 0.4, 20.0);
        near.heads.iter_mut().for_each(|head| head.found.far_mass = 0.05);
        assert_eq!(sparse(&near).status, VerdictStatus::NotMeasured, "nothing far");
        let measured = sparse(&concentrated_heads("ls", 3, 0.4, 20.0)).measured;
        assert!(measured.contains("0.40"), "{measured}");
    }

    #[test]
    fn low_rank_has_every_word() {
        let status = |arm, seeds, rank| low_rank(&concentrated_heads(arm, seeds, 0.3, rank)).status;
        assert_eq!(status("ls", 3, 16.0), VerdictStatus::Confirmed);
        assert_eq!(status("ls", 2, 16.0), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status("ls", 3, 17.0), VerdictStatus::Qualified);
        assert_eq!(status("ls", 3, 50.0), VerdictStatus::Refuted, "half of 100");
        assert_eq!(status("mhsa", 3, 16.0), VerdictStatus::NotMeasured);
        let uniform = low_rank(&concentrated_heads("ls", 3, 0.9, 16.0));
        assert_eq!(
            uniform.status,
            VerdictStatus::Qualified,
            "near to uniform attention, whose rank is low"
        );
    }
}
