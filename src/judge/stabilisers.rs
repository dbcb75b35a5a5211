//! Verdicts on LS-attention against the stabilisers of others: perplexity, and the time to reach theirs.
//!
//! The paper tells of two others, and each of its two numbers is against one of them: 2/5 of the perplexity "achieved by
//! one method", 1/20 of the time to reach "the other". Here are five. To pick, of five, the one that a bound is met
//! against would be to choose the rival after the race, so a bound counts as met where it is against every one.

use super::claims::Claim;
use super::pairs::{Pairs, PairsOfSetting, difference};
use super::scale::of_runs;
use super::verdict::{Verdict, Word};
use crate::table::{Interval, TrainingRun, Trainings, plural, significant};

/// The stabilisers of others.
const STABILISERS: [&str; 5] = ["qk-norm", "sigma-reparam", "softcap", "qk-clip", "z-loss"];
/// Two fifths, and what still rounds to it: "nearly 2/5" are the paper's words.
pub(super) const TWO_FIFTHS: f64 = 0.45;
/// A twentieth, and what still rounds to it.
pub(super) const TWENTIETH: f64 = 0.075;
/// A ratio above this is no gain to tell of: within 5 per cent.
const NO_GAIN: f64 = 0.95;

/// The verdicts of a study that has runs of stabilisers.
pub(crate) fn stabilisers(study: &Trainings) -> Vec<Verdict> {
    vec![two_fifths(study), twentieth(study)]
}

/// Where a ratio against one stabiliser, at one setting, lies in 95 % intervals; none with fewer than two seeds.
type Within = Option<(f64, f64)>;

/// The word for a ratio that is to be `bound` or less.
fn word(within: &[Within], bound: f64) -> Word {
    let every = |holds: &dyn Fn((f64, f64)) -> bool| within.iter().all(|w| w.is_some_and(holds));
    if within.iter().all(Option::is_none) {
        // One seed, of which nothing but that it was seen is told.
        Word::Qualified
    } else if every(&|(_, high)| high <= bound) {
        Word::Confirmed
    } else if every(&|(low, _)| low > bound) {
        Word::Refuted
    } else if within.iter().flatten().any(|(_, high)| *high < NO_GAIN) {
        Word::Qualified
    } else {
        Word::NotYetMeasured
    }
}

fn missing(claim: Claim) -> Verdict {
    let why = "Needs finished runs of ls and of other stabilisers, of the same seeds.";
    Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
}

/// What stands at the end of both sentences.
fn ending(study: &Trainings, seeds: &str) -> String {
    let compared =
        study.runs.iter().filter(|run| run.arm == "ls" || STABILISERS.contains(&&*run.arm));
    format!("{seeds} each, 95 % intervals, {}.", of_runs(compared))
}

/// How many seeds arms have with ls: `3 seeds`, or `1 to 3 seeds`; none where there is no arm.
fn seeds_of(found: &[(&str, Pairs)]) -> Option<String> {
    let seeds = || found.iter().map(|(_, pairs)| pairs.seeds());
    let (least, most) = (seeds().min()?, seeds().max()?);
    let from = if least < most { format!("{least} to ") } else { String::new() };
    Some(from + &plural(most, "seed"))
}

/// What a sentence says where no word comes of its intervals.
const UNDECIDED: &str = " The intervals do not decide.";

/// The least ratio of perplexities that any model can have to a stabiliser's here: e to the corpus's entropy less its
/// loss. None where the entropy of a corpus is not known, as of a text.
fn least_ratio(study: &Trainings) -> Option<f64> {
    let of_others = study.runs.iter().filter(|run| STABILISERS.contains(&&*run.arm));
    let ratios: Option<Vec<f64>> = of_others
        .map(|run| Some((run.corpus_entropy_nats? - run.valid_loss_nats?).exp()))
        .collect();
    ratios?.into_iter().reduce(f64::min)
}

/// The ratio of perplexities, `ls` over each stabiliser of others: e to the difference in loss, seed by seed, with
/// Student's interval over seeds.
///
/// *Not yet measured*: the intervals hold both 2/5 and no gain, no stabiliser's runs, or none of `ls`; or the corpus's own
/// entropy leaves no room for such a ratio.
fn two_fifths(study: &Trainings) -> Verdict {
    let found: Vec<(&str, Pairs)> = STABILISERS
        .iter()
        .filter_map(|&arm| Some((arm, Pairs::of(study, ["ls", arm], |run| run.valid_loss_nats)?)))
        .collect();
    let Some(seeds) = seeds_of(&found) else {
        return missing(Claim::TwoFifths);
    };
    let settings =
        || found.iter().flat_map(|(arm, pairs)| pairs.settings.iter().map(move |s| (*arm, s)));
    let ratio = |pairs: &PairsOfSetting| pairs.interval(difference).map(Interval::exp);
    let within: Vec<Within> = settings().map(|(_, s)| ratio(s).map(|i| (i.low, i.high))).collect();
    let room = least_ratio(study).filter(|least| *least > TWO_FIFTHS);
    let word = room.map_or_else(|| word(&within, TWO_FIFTHS), |_| Word::NotYetMeasured);
    let each: Vec<String> = settings()
        .map(|(arm, pairs)| format!("{} of {arm}'s", pairs.shown(difference, f64::exp, 3)))
        .collect();
    let why = match (room, word) {
        (Some(least), _) => format!(
            " The corpus's own entropy leaves no ratio under {}: two fifths could not show.",
            significant(least, 2)
        ),
        (None, Word::NotYetMeasured) => UNDECIDED.to_owned(),
        _ => String::new(),
    };
    let measured =
        format!("ls's perplexity is {}. {}{why}", each.join(", "), ending(study, &seeds));
    Verdict::over(
        Claim::TwoFifths,
        measured,
        word,
        found.iter().flat_map(|(_, pairs)| pairs.seeds_each()),
    )
}

/// The time in which `ls` first has a stabiliser's final perplexity, over that stabiliser's, seed by seed. What else a
/// machine does slows runs, so the pace of either lies between those of its two fastest seeds, and the ratio between the
/// two that these leave. That it was reached is known at evaluations only: the time lies between the last
/// one without and the first one with it, and an interval goes from the lower end of Student's for the former to the
/// upper end of that for the latter. Where it was not reached, the former is the whole run, the latter endless.
///
/// *Not yet measured*: as for perplexity, or without evaluations.
fn twentieth(study: &Trainings) -> Verdict {
    let found: Vec<(&str, Pairs)> = STABILISERS
        .iter()
        .filter_map(|&arm| {
            let share = |ours: &TrainingRun, theirs: &TrainingRun| share(study, ours, theirs);
            Some((arm, Pairs::by(study, ["ls", arm], share)?))
        })
        .collect();
    let Some(seeds) = seeds_of(&found) else {
        return missing(Claim::Twentieth);
    };
    let (mut within, mut each): (Vec<Within>, Vec<String>) = (Vec::new(), Vec::new());
    for (arm, pairs) in &found {
        for setting in &pairs.settings {
            let seeds = setting.seeds.len();
            let reached = setting.seeds.iter().filter(|(_, _, with)| with.is_finite()).count();
            let without = setting.interval(|without, _| without.ln()).map(Interval::exp);
            let with = setting.interval(|_, with| with.ln()).map(Interval::exp);
            let ends = (
                without.map_or(0.0, |without| without.low),
                with.map_or(f64::INFINITY, |with| with.high),
            );
            within.push((seeds > 1).then_some(ends));
            let ends = match setting.seeds[..] {
                [(_, without, with)] => (without, with),
                _ => ends,
            };
            let [low, high] = [ends.0, ends.1].map(|share| significant(share, 2));
            each.push(if reached == seeds {
                format!("[{low}, {high}] of {arm}'s time")
            } else {
                format!("{arm}'s in {reached} of {}, [{low}, {high}]", plural(seeds, "seed"))
            });
        }
    }
    let word = word(&within, TWENTIETH);
    let measured = format!(
        "ls reaches the final perplexity of others in {}. CPU time, {}{}",
        each.join(", "),
        ending(study, &seeds),
        if word == Word::NotYetMeasured { UNDECIDED } else { "" }
    );
    Verdict::over(
        Claim::Twentieth,
        measured,
        word,
        found.iter().flat_map(|(_, pairs)| pairs.seeds_each()),
    )
}

/// The time of `ours` at its last evaluation that is not as good as `theirs` in the end, and at the first that is, over
/// the time of `theirs`; the second is infinite where it never is.
fn share(study: &Trainings, ours: &TrainingRun, theirs: &TrainingRun) -> Option<(f64, f64)> {
    let &(last, goal) = theirs.log.valid_loss.last()?;
    let (ours_fastest, ours_next) = study.paces(&ours.run);
    let (theirs_fastest, theirs_next) = study.paces(&theirs.run);
    let evaluated = &ours.log.valid_loss;
    let first = evaluated.iter().position(|(_, loss)| *loss <= goal);
    let step = |at: usize| evaluated.get(at).map(|(step, _)| *step);
    let without = match first.unwrap_or(evaluated.len()) {
        0 => 0.0,
        at => step(at - 1)?,
    };
    let with = first.and_then(step).unwrap_or(f64::INFINITY);
    let is_timed = last * theirs_fastest > 0.0 && !evaluated.is_empty();
    is_timed.then(|| {
        (without * ours_fastest / (last * theirs_next), with * ours_next / (last * theirs_fastest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RunLog;

    fn runs(arm: &str, losses: &[f64]) -> Vec<TrainingRun> {
        let one = |(seed, loss): (usize, &f64)| TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            valid_loss_nats: Some(*loss),
            log: RunLog {
                // Each evaluation halves what is above the end.
                valid_loss: (1..=10)
                    .map(|at| (10.0 * f64::from(at), loss + 0.5f64.powi(at) - 0.5f64.powi(10)))
                    .collect(),
                seconds_per_step: 0.1,
                ..RunLog::default()
            },
            ..TrainingRun::default()
        };
        losses.iter().enumerate().map(one).collect()
    }

    fn study(arms: &[(&str, &[f64])]) -> Trainings {
        let runs = arms.iter().flat_map(|(arm, losses)| runs(arm, losses)).collect();
        Trainings { runs, failed: 0 }
    }

    #[test]
    fn perplexity_against_stabilisers_has_every_word() {
        let word = |norm: &[f64], cap: &[f64]| {
            two_fifths(&study(&[("ls", &[1.0; 3]), ("qk-norm", norm), ("softcap", cap)])).word
        };
        assert_eq!(word(&[2.0; 3], &[2.1; 3]), Word::Confirmed);
        assert_eq!(word(&[2.0; 2], &[2.1; 2]), Word::Qualified, "two seeds");
        assert_eq!(word(&[2.0; 3], &[1.1; 3]), Word::Qualified, "against one only");
        assert_eq!(word(&[1.1; 3], &[1.2; 3]), Word::Refuted, "a gain far from 2/5");
        assert_eq!(word(&[0.9; 3], &[0.9; 3]), Word::Refuted);
        assert_eq!(word(&[1.1; 2], &[1.2; 2]), Word::Qualified, "two seeds");
        assert_eq!(word(&[0.5, 1.5, 2.5], &[0.5, 1.5, 2.5]), Word::NotYetMeasured, "far apart");
        assert_eq!(word(&[2.0], &[2.0]), Word::SeenOnce, "one seed");
        let several = study(&[("ls", &[1.0; 3]), ("qk-norm", &[2.0; 3]), ("softcap", &[2.0])]);
        assert!(two_fifths(&several).measured.contains("1 to 3 seeds each"));
        assert_eq!(word(&[], &[]), Word::NotYetMeasured);
    }

    #[test]
    fn a_corpus_without_room_for_two_fifths_does_not_refute_them() {
        let told = |entropy: f64| {
            let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", &[1.2; 3])]);
            study.runs.iter_mut().for_each(|run| run.corpus_entropy_nats = Some(entropy));
            two_fifths(&study)
        };
        assert_eq!(told(0.3).word, Word::Refuted, "a ratio of 0.41 is to be had");
        let Verdict { word, measured, .. } = told(0.9);
        assert_eq!(word, Word::NotYetMeasured);
        assert!(
            measured.ends_with("leaves no ratio under 0.74: two fifths could not show."),
            "{measured}"
        );
    }

    #[test]
    fn times_of_seeds_that_disagree_widen_the_ratio() {
        let word = |next: f64| {
            let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", &[1.2; 3])]);
            for run in study.runs.iter_mut().filter(|run| run.arm == "qk-norm" && run.seed > 0) {
                run.log.seconds_per_step = next;
            }
            twentieth(&study).word
        };
        assert_eq!(word(0.11), Word::Refuted, "between 0.18 and 0.3");
        assert_eq!(word(0.4), Word::Qualified, "from 0.05 on");
    }

    #[test]
    fn time_against_stabilisers_has_every_word() {
        let word = |theirs: &[f64], pace: f64| {
            let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", theirs)]);
            for run in study.runs.iter_mut().filter(|run| run.arm == "ls") {
                run.log.seconds_per_step = pace;
            }
            twentieth(&study).word
        };
        // ls is there at its first evaluation: within a tenth of the time, at half a second's hundredth in 0.05.
        assert_eq!(word(&[2.5; 3], 0.05), Word::Confirmed);
        assert_eq!(word(&[2.5; 2], 0.05), Word::Qualified, "two seeds");
        assert_eq!(word(&[2.5; 3], 0.1), Word::Qualified, "up to a tenth");
        // At its third: between 0.2 and 0.3.
        assert_eq!(word(&[1.2; 3], 0.1), Word::Refuted);
        assert_eq!(word(&[0.5; 3], 0.1), Word::Refuted, "never reached");
        assert_eq!(word(&[2.5; 3], 1.0), Word::NotYetMeasured, "from nothing to all of the time");
        assert_eq!(word(&[2.5], 0.05), Word::SeenOnce, "one seed");
        assert_eq!(word(&[], 0.1), Word::NotYetMeasured);
        let never = twentieth(&study(&[("ls", &[1.0; 3]), ("qk-norm", &[0.5; 3])]));
        assert!(never.measured.contains("qk-norm's in 0 of 3 seeds, [1.0, inf]"), "{never:?}");
        let third = twentieth(&study(&[("ls", &[1.0; 3]), ("qk-norm", &[1.2; 3])]));
        assert!(third.measured.contains("[0.20, 0.30] of qk-norm's time"), "{third:?}");
    }
}
