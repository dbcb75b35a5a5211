//! The verdict on positions as the cause of large logits.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::predict::InputSet;
use crate::table::{LatticeOfHead, Lattices, Spread, plural, significant};

/// A share of log(needed / floor) from here on makes logits large.
const MAKES: f64 = 0.5;
/// A share up to here is next to nothing.
const NEXT_TO_NOTHING: f64 = 0.1;
/// A head is local with so much of its attention on the last 16 tokens.
const LOCAL: f64 = 0.8;

/// Whether it is telling positions apart that makes logits large: the share of log(needed / floor), with the head's inputs and
/// any rank, that goes where positions are given for nothing, in the largest local head of every `mhsa` model at its
/// last step.
///
/// What confirms is `line`, two columns, a number that cannot stand for the width of the inputs; what refutes is
/// `positions`, any function of the position, which saves no less.
///
/// - *confirmed*: a line takes away half or more in every one, three seeds or more;
/// - *refuted*: every function of the position together takes away a tenth or less in every one;
/// - *qualified*: anything between, or few seeds where it would be confirmed;
/// - *not yet measured*: no `mhsa` model with a local head and both sets of inputs.
pub(crate) fn positions(study: &Lattices) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let is_of_claim =
        |head: &LatticeOfHead| head.arm == "mhsa" && head.epsilon == epsilon && head.step == last;
    let models = study.largest(is_of_claim).len();
    let measured: Vec<(&LatticeOfHead, f64, f64)> = study
        .largest(|head| is_of_claim(head) && head.mass_within_16 >= LOCAL)
        .into_iter()
        .filter_map(|head| {
            let share = |set| head.share_saved_by(set);
            Some((head, share(InputSet::Line)?, share(InputSet::Positions)?))
        })
        .collect();
    let over = |value: &dyn Fn(&(&LatticeOfHead, f64, f64)) -> Option<f64>| {
        Spread::of(measured.iter().filter_map(value))
    };
    let (Some(line), Some(all)) =
        (over(&|(_, line, _)| Some(*line)), over(&|(.., all)| Some(*all)))
    else {
        let why = "Needs models of mhsa with a local head, fitted with a line and with every position given.";
        return Verdict::new(Claim::PositionsMakeLogits, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = if line.low >= MAKES {
        Word::Confirmed
    } else if all.high <= NEXT_TO_NOTHING {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let mut runs: Vec<&str> = measured.iter().map(|(head, ..)| head.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let seeds = runs
        .iter()
        .map(|run| measured.iter().filter(|(head, ..)| head.run == *run).count())
        .min()
        .unwrap_or(0);
    let shown = |spread: Option<Spread>, digits| {
        spread.map_or_else(|| "–".to_owned(), |spread: Spread| spread.shown(digits))
    };
    let percent = |of: &dyn Fn(&(&LatticeOfHead, f64, f64)) -> f64| {
        shown(over(&|one| Some(100.0 * of(one))), 2)
    };
    let proven = |set: InputSet| shown(over(&|(head, ..)| head.saved_by_proven(set)), 3);
    let left_out = match models - measured.len() {
        0 => String::new(),
        some => {
            format!(" {} without a local head among those fitted left out.", plural(some, "model"))
        }
    };
    let text = format!(
        "Given a line over positions for nothing, the attention of the largest local head (mass {} or more on the last 16) loses {} % of \
         log(needed / floor) at any rank, ε = {epsilon}; given any function of the position, {} %. Proven are {} times less with a \
         line, {} with any function. {} of {}, {} a setting.{left_out} Needed logits are upper bounds.",
        significant(LOCAL, 1),
        percent(&|(_, line, _)| *line),
        percent(&|(.., all)| *all),
        proven(InputSet::Line),
        proven(InputSet::Positions),
        plural(measured.len(), "model"),
        runs.join(", "),
        plural(seeds, "seed"),
    );
    Verdict::new(Claim::PositionsMakeLogits, text, word, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::RankLimit;
    use crate::table::{LatticeCorner, made_up_lattice as head};

    /// Heads that need 40 with their own inputs, so much with a line and with every position, and a floor of 4.
    fn study(line: f64, positions: f64, seeds: u64) -> Lattices {
        let one = |seed| {
            let mut head = head(seed, [40.0, 45.0], positions);
            head.corners.push(LatticeCorner {
                inputs: InputSet::Line,
                rank: RankLimit::Any,
                needed: Some(line),
                lower_bound: Some(4.0),
            });
            head
        };
        Lattices { heads: (0..seeds).map(one).collect(), failed: 0 }
    }

    #[test]
    fn positions_have_every_word() {
        assert_eq!(positions(&study(10.0, 5.0, 3)).word, Word::Confirmed);
        assert_eq!(positions(&study(10.0, 5.0, 2)).word, Word::Qualified, "two seeds");
        assert_eq!(positions(&study(30.0, 5.0, 3)).word, Word::Qualified, "a line is not enough");
        assert_eq!(positions(&study(39.0, 35.0, 3)).word, Word::Refuted);
        let mut global = study(10.0, 5.0, 3);
        global.heads.iter_mut().for_each(|head| head.mass_within_16 = 0.3);
        assert_eq!(positions(&global).word, Word::NotYetMeasured);
        global.heads[0].mass_within_16 = 0.9;
        let said = positions(&global).measured;
        assert!(said.contains("2 models without a local head"), "{said}");
        let said = positions(&study(10.0, 5.0, 3)).measured;
        assert!(said.contains("loses 60 % of") && said.contains("Proven are 3.60 times"), "{said}");
    }
}
