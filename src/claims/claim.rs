//! The type of a claim. Claims are the paper's (Hajra 2025, *Short-Range Dependency Effects on Transformer Instability and
//! a Decomposed Attention Solution*, arXiv 2505.15548) or predictions that this project made before its rows. Each constant is
//! in the file that decides it.

use std::fmt;

/// The least number of learning rates for a variant to count as tuned. Its best rate must be neither the lowest nor the
/// highest of them.
pub(crate) const RATES: usize = 3;

/// A measurable claim with the rule that decides it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// A unique identifier.
    pub id: &'static str,
    /// The claim in one sentence.
    pub text: &'static str,
    /// The part of the work to which it belongs.
    pub group: Group,
    /// The source of the claim.
    pub origin: Origin,
    /// The place in the paper, or what the claim follows from.
    pub place: &'static str,
    /// The paper's number, if it gives one.
    pub paper_says: Option<&'static str>,
    /// The conditions that confirm and refute the claim, with `{0}`, `{1}`, … for the bounds.
    pub(crate) rule: [&'static str; 2],
    /// The numbers that replace `{0}`, `{1}`, … in the rule.
    pub(crate) bounds: &'static [f64],
    /// Whether the claim compares variants, each of which must be tuned.
    pub(crate) needs_tuning: bool,
    /// A headline and a sentence for studies that lack the rows that the rule needs; bounds as in the rule.
    pub(crate) lacking: [&'static str; 2],
    /// A headline and a sentence for when no study measures the claim: what exists instead, and why it is not enough.
    pub(crate) not_measured: [&'static str; 2],
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Claim {}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Claim {
    /// Default values for claims.
    pub(crate) const PLAIN: Self = Self {
        id: "",
        text: "",
        group: Group::SyntheticTargets,
        origin: Origin::Paper,
        place: "",
        paper_says: None,
        rule: [""; 2],
        bounds: &[],
        needs_tuning: false,
        lacking: [""; 2],
        not_measured: ["no study measures it", "No study here measures it."],
    };

    /// The rule as text, with its bounds and the condition on tuning filled in.
    pub fn rule(&self) -> Rule {
        let tuned = match self.needs_tuning {
            true => format!(
                " Each variant was tried at {RATES} learning rates or more, its best one not at an end."
            ),
            false => String::new(),
        };
        let [confirmed, refuted] = self.rule.map(|text| self.with_bounds(text) + &tuned);
        Rule { confirmed, refuted }
    }

    /// Replaces `{0}`, `{1}`, … in `text` by the claim's bounds.
    pub(crate) fn with_bounds(&self, text: &str) -> String {
        let bounds = self.bounds.iter().enumerate();
        bounds.fold(text.to_owned(), |text, (at, bound)| {
            text.replace(&format!("{{{at}}}"), &bound.to_string())
        })
    }
}

/// The part of the work to which a claim belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
pub enum Group {
    /// Fits of low-rank logits to synthetic attention matrices.
    #[default]
    #[strum(to_string = "Synthetic targets")]
    SyntheticTargets,
    /// Training runs: logits, losses, divergence.
    Training,
    /// Heads of models that were trained here.
    #[strum(to_string = "Trained heads")]
    TrainedHeads,
    /// Heads of published models.
    #[strum(to_string = "Published models")]
    PublishedModels,
    /// Time and memory.
    Cost,
}

impl Group {
    /// Every group, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::SyntheticTargets,
        Self::Training,
        Self::TrainedHeads,
        Self::PublishedModels,
        Self::Cost,
    ];

    /// The heading of the group.
    pub fn title(self) -> &'static str {
        self.into()
    }
}

/// The source of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper, in words or numbers.
    Paper,
    /// No source states it: it follows from the paper's argument that rank is the cause.
    Derived,
    /// Another paper.
    Other,
    /// This project.
    Here,
}

/// The rule of a claim. Intervals are 95 % intervals over seeds unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The condition that confirms the claim.
    pub confirmed: String,
    /// The condition that refutes the claim.
    pub refuted: String,
}

/// The conditions that apply to all rules, in sentences.
pub const OF_ALL_RULES: &str = "A verdict holds at the scale of its rows. Confirmed and refuted need three seeds or more in \
     every setting. Results in between, or of two seeds, are qualified. One seed in every setting is always \"single seed\". \"Not measured\" \
     means no rows, or rows in which the claim could not have shown itself. Variants that were compared at one shared \
     learning rate are qualified at most.";
