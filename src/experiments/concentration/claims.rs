//! Verdicts on how concentrated the attention of trained heads is.

use std::collections::BTreeSet;

use crate::claims::Verdict;
use crate::claims::estimate::{Estimate, shown};
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined, listed};
use crate::claims::{Claim, Group, Origin};
use crate::experiments::concentration::tables::{ConcentratedHead, Concentrations, FAR_MASS};
use crate::table::{Spread, plural, significant};

/// Bounds on the share of the far columns that hold 0.9 of a row's far mass. Up to the first a row is sparse, from the
/// second on it is not.
const TOKENS: [f64; 2] = [0.1, 0.25];
/// The ratio of a far part's rank to the rank of its shuffled entries from which the far part counts as unstructured.
const OF_SHUFFLED: f64 = 0.5;
/// If exp(entropy) of a far part exceeds this share of its columns, the far part is near to uniform attention. Uniform
/// attention has rank 2 by this measure in any model, so a low rank is no evidence there.
const NEAR_UNIFORM: f64 = 0.5;

pub(crate) const GLOBAL_IS_SPARSE: Claim = Claim {
    id: "GlobalIsSparse",
    text: "Beyond the window, LS-attention's global heads attend to few tokens",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d assumes it",
    rule: [
        "In the median global head of every model, {0} of the columns beyond the window or fewer \
            hold 0.9 of the mass there.",
        "{1} or more hold it in every model.",
    ],
    bounds: &[TOKENS[0], TOKENS[1], FAR_MASS],
    lacking: [
        "no global heads with mass beyond the window",
        "Needs global heads of ls with {2} or more of their mass beyond the window in every model.",
    ],
    ..Claim::PLAIN
};

pub(crate) const GLOBAL_IS_LOW_RANK: Claim = Claim {
    id: "GlobalIsLowRank",
    text: "Beyond the window, the attention of LS-attention's global heads has low rank",
    rule: [
        "In the median global head of every model, 0.9 of ‖·‖_F² beyond the window has a rank of at \
            most d_head, and exp(entropy) there is at most {0} of the columns: uniform attention has \
            rank 2.",
        "It takes {1} or more of the rank of the same entries in random order, in every model.",
    ],
    bounds: &[NEAR_UNIFORM, OF_SHUFFLED, FAR_MASS],
    ..GLOBAL_IS_SPARSE
};

/// The verdicts of a study of concentration.
pub(crate) fn concentration(study: &Concentrations) -> Vec<Verdict> {
    vec![sparse(study), low_rank(study)]
}

/// The share of the far columns that hold 0.9 of a row's far mass. It is the median of a model's global heads that have
/// 0.1 of their mass there, by model of LS-attention.
fn sparse(study: &Concentrations) -> Verdict {
    let Some(models) = Models::of(study, ConcentratedHead::far_tokens) else {
        return Verdict::lacking(GLOBAL_IS_SPARSE);
    };
    let share = |median: f64| Ruling::of_rule(median <= TOKENS[0], median >= TOKENS[1]);
    let ruling = Ruling::every(models.medians().map(share));
    let headline = format!("0.9 of far mass on {} of the columns (uniform: 0.9)", models.range());
    let of_mhsa = study.heads.iter().filter(|head| head.arm == "mhsa");
    let sentences = [
        format!(
            "Share of the columns beyond the window that hold 0.9 of a row's mass there: {}; uniform attention 0.9; multi-head \
             attention {}",
            models.by_run(),
            shown(Estimate::median(of_mhsa.filter_map(ConcentratedHead::far_tokens)), 2)
        ),
        format!("Medians over global heads; {}", models.scale(study)),
    ];
    Verdict::new(GLOBAL_IS_SPARSE, ruling, models.seeds(), headline, sentences)
}

/// The rank r at which the far part F of a head's attention has ‖F − F_r‖_F² ≤ 0.1 ‖F‖_F². It is the median of a
/// model's global heads that have 0.1 of their mass there, by model of LS-attention.
fn low_rank(study: &Concentrations) -> Verdict {
    // exp(entropy) of the far mass, as a share of the far columns: 1 if the mass is uniform.
    let effective =
        |head: &ConcentratedHead| Some(head.far()?.far_effective_tokens / head.found.far_columns);
    let models = Models::of(study, |head| Some(head.far()?.far_rank_90));
    let shares = Models::of(study, ConcentratedHead::far_rank_of_shuffled);
    let uniform = Models::of(study, effective);
    let (Some(models), Some(shares), Some(uniform)) = (models, shares, uniform) else {
        return Verdict::lacking(GLOBAL_IS_LOW_RANK);
    };
    let is_low = models.all.iter().all(|model| model.median <= model.d_head as f64);
    let is_near_uniform = uniform.medians().any(|median| median > NEAR_UNIFORM);
    let is_as_shuffled = shares.medians().all(|share| share >= OF_SHUFFLED);
    let ruling = Ruling::of_rule(is_low, is_as_shuffled).in_part_if(is_near_uniform);
    let headline = format!("rank {} holds 0.9 of far ‖·‖² (uniform attention: 2)", models.range());
    let global = study.heads.iter().filter(|head| head.arm == "ls" && head.is_global());
    let shuffled = global.filter_map(|head| Some(head.far()?.shuffled_rank_90));
    let sentences = [
        format!(
            "Rank that holds 0.9 of ‖·‖_F² beyond the window: {}; shuffled entries {}",
            models.by_run(),
            shown(Estimate::median(shuffled), 2)
        ),
        format!(
            "But uniform attention has rank 2, and exp(entropy) here is {} of the columns",
            uniform.range()
        ),
        models.scale(study),
    ];
    Verdict::new(GLOBAL_IS_LOW_RANK, ruling, models.seeds(), headline, sentences)
}

/// The models of LS-attention, each with the median of a value over its global heads.
struct Models {
    all: Vec<Model>,
}

struct Model {
    run: String,
    seed: u64,
    d_head: usize,
    median: f64,
}

impl Models {
    /// Returns `None` if there is no model, or if one has no value.
    fn of(
        study: &Concentrations,
        value: impl Fn(&ConcentratedHead) -> Option<f64>,
    ) -> Option<Self> {
        let one = |heads: Vec<&ConcentratedHead>| {
            let first = heads[0];
            let median = Spread::of(heads.iter().filter_map(|head| value(head)))?.median;
            let run = first.run.clone().unwrap_or_default();
            Some(Model { run, seed: first.seed, d_head: first.found.rank, median })
        };
        let all: Vec<Model> = study.global_of_ls().into_iter().map(one).collect::<Option<_>>()?;
        (!all.is_empty()).then_some(Self { all })
    }

    fn medians(&self) -> impl Iterator<Item = f64> {
        self.all.iter().map(|model| model.median)
    }

    /// The range of the medians.
    fn range(&self) -> String {
        from_to(self.medians(), 2)
    }

    /// The medians by run: `ls 0.41, 0.38, 0.40; ls-window-64 0.5`.
    fn by_run(&self) -> String {
        let runs = self.all.chunk_by(|a, b| a.run == b.run);
        let run = |models: &[Model]| {
            let each = models.iter().map(|model| significant(model.median, 2));
            format!("{} {}", models[0].run, joined(each, ", "))
        };
        joined(runs.map(run), "; ")
    }

    fn seeds(&self) -> Seeds {
        Seeds::all(self.all.iter().map(|model| model.seed).collect::<BTreeSet<u64>>().len())
    }

    fn scale(&self, study: &Concentrations) -> String {
        let of_ls = study.heads.iter().filter(|head| head.arm == "ls");
        let lengths = listed(of_ls.map(|head| head.found.n)).unwrap_or_default();
        format!("{} of LS-attention, n = {lengths}", plural(self.all.len(), "model"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus;
    use crate::experiments::concentration::tables::concentration_tests::heads as concentrated_heads;

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
