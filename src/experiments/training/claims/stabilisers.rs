//! Verdicts on LS-attention compared with other stabilisers: perplexity, and the time to reach theirs.
//!
//! The paper compares with two others, and each of its two numbers refers to one of them. They are 2/5 of the
//! perplexity "achieved by one method" and 1/20 of the time to reach "the other". This project has five. Choosing the
//! one that meets a bound would choose it after the rows, so a bound must be met against every one.

use super::scale_of_runs;
use crate::claims::Verdict;
use crate::claims::estimate::Estimate;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group};
use crate::experiments::training::claims::pairs::{Pairs, PairsOfSetting, are_alike, difference};
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::{plural, significant};

/// Stabilisers other than LS-attention.
const STABILISERS: [&str; 5] = ["qk-norm", "sigma-reparam", "softcap", "qk-clip", "z-loss"];
/// The largest number that still rounds to two fifths; the paper says "nearly 2/5".
const MOST_PERPLEXITY: f64 = 0.45;
/// The largest number that still rounds to a twentieth.
const MOST_TIME: f64 = 0.075;
/// A ratio above this counts as no gain: it is within 5 per cent.
const NO_GAIN: f64 = 0.95;
/// The sentence for intervals that decide nothing.
const UNDECIDED: &str = "The intervals decide nothing";

const LACKING: [&str; 2] = [
    "no finished runs of other stabilisers",
    "Needs finished runs of ls and of other stabilisers with the same seeds.",
];

pub(crate) const TWO_FIFTHS: Claim = Claim {
    id: "TwoFifths",
    text: "LS-attention's validation perplexity is 2/5 of another stabiliser's",
    group: Group::Training,
    place: "abstract, figures",
    paper_says: Some("2/5 of the perplexity"),
    rule: [
        "Against every stabiliser the whole interval of the ratio of perplexities is at most {0}.",
        "Against every stabiliser the whole interval lies above {0}, and the corpus's entropy allows \
            a lower ratio.",
    ],
    bounds: &[MOST_PERPLEXITY],
    needs_tuning: true,
    lacking: LACKING,
    ..Claim::PLAIN
};

pub(crate) const TWENTIETH: Claim = Claim {
    id: "Twentieth",
    text: "LS-attention reaches another stabiliser's perplexity in 1/20 of its GPU hours",
    group: Group::Cost,
    place: "abstract, figures",
    paper_says: Some("1/20 of the GPU hours"),
    rule: [
        "Not by CPU time, which is what is measured here. It is qualified where the claim could be \
            seen: evaluations at most 1/20 of a run apart, or a time that misses {0} against every \
            stabiliser.",
        "Not by CPU time; the paper counts GPU hours.",
    ],
    bounds: &[MOST_TIME],
    lacking: LACKING,
    ..Claim::PLAIN
};

/// The verdicts of a study that has runs of stabilisers.
pub(crate) fn stabilisers(study: &Trainings) -> Vec<Verdict> {
    vec![two_fifths(study), twentieth(study)]
}

/// Pairs of `ls` with every stabiliser that has an effect.
struct Rivals {
    tuned: Tuned,
    found: Vec<(&'static str, Pairs)>,
}

impl Rivals {
    /// Pairs the values of runs; `None` if there is no pair.
    fn of(
        study: &Trainings,
        values: impl Fn(&Trainings, &TrainingRun, &TrainingRun) -> Option<(f64, f64)>,
    ) -> Option<Self> {
        let tuned = Tuned::of(study, &[], |run| run.arm == "ls" || is_stabiliser(run));
        let against = |arm: &'static str| {
            let is_pair = |ls: &TrainingRun, other: &TrainingRun| {
                ls.arm == "ls" && other.arm == arm && are_alike(ls, other)
            };
            let values = |ls: &TrainingRun, other: &TrainingRun| values(&tuned.study, ls, other);
            Some((arm, Pairs::matching(&tuned.study, is_pair, values)?))
        };
        let acting = STABILISERS.into_iter().filter(|arm| acts(&tuned.study, arm));
        let found: Vec<(&str, Pairs)> = acting.filter_map(against).collect();
        (!found.is_empty()).then_some(Self { tuned, found })
    }

    /// Every setting with the name of the stabiliser.
    fn settings(&self) -> impl Iterator<Item = (&'static str, &PairsOfSetting)> {
        self.found.iter().flat_map(|(arm, pairs)| pairs.settings.iter().map(|one| (*arm, one)))
    }

    fn seeds(&self) -> Seeds {
        Seeds::of_settings(self.settings().map(|(_, setting)| setting.seeds.len()))
    }

    /// The scale of all compared runs, and whether they are tuned.
    fn scale(&self) -> [String; 2] {
        let runs = self.tuned.study.runs.iter();
        let compared = runs.filter(|run| run.arm == "ls" || is_stabiliser(run));
        [scale_of_runs(compared), self.tuned.note().to_owned()]
    }
}

fn is_stabiliser(run: &TrainingRun) -> bool {
    STABILISERS.contains(&&*run.arm)
}

/// Whether at least one run of a stabiliser differs from the run of multi-head attention of its seed and length. A
/// stabiliser that never acts, such as QK-clip below its threshold, is no other method.
fn acts(study: &Trainings, arm: &str) -> bool {
    let outcome = |run: &TrainingRun| (run.valid_loss_nats, run.peak_max_abs_logit);
    let is_plain = |run: &TrainingRun| {
        let mut plain = study.arm("mhsa");
        plain.any(|mhsa| {
            (mhsa.seed, mhsa.context) == (run.seed, run.context) && outcome(mhsa) == outcome(run)
        })
    };
    !study.arm(arm).all(is_plain)
}

/// The ruling on ratios that should be at most `bound` against every stabiliser. It is hidden if the intervals allow
/// both that and no gain.
fn ruling(ratios: &[Estimate], bound: f64) -> Ruling {
    let has_gain = |ratio: &Estimate| ratio.ends().is_some_and(|[_, high]| high < NO_GAIN);
    let every = Ruling::every(ratios.iter().map(|ratio| ratio.at_most(bound)));
    let is_open = !matches!(every, Ruling::Holds | Ruling::Fails);
    let is_one_seed = ratios.iter().all(|ratio| ratio.ends().is_none());
    every.hidden_if(is_open && !is_one_seed && !ratios.iter().any(has_gain))
}

/// The smallest ratio of perplexities to a stabiliser's that any model can reach: e to the corpus's entropy minus the
/// stabiliser's loss. `None` if the entropy of a corpus is unknown, as for a text.
fn least_ratio(study: &Trainings) -> Option<f64> {
    let of_others = study.runs.iter().filter(|run| is_stabiliser(run));
    let ratios: Option<Vec<f64>> = of_others
        .map(|run| Some((run.corpus_entropy_nats? - run.valid_loss_nats?).exp()))
        .collect();
    ratios?.into_iter().reduce(f64::min)
}

/// The ratio of perplexities, `ls` over each other stabiliser: e to the difference in loss, seed by seed, with
/// Student's interval over seeds.
///
/// *Not measured*: the intervals allow both 2/5 and no gain. Or there are no runs of a stabiliser or of `ls`, or the
/// corpus's entropy rules out such a ratio.
fn two_fifths(study: &Trainings) -> Verdict {
    let losses = |_: &Trainings, ls: &TrainingRun, other: &TrainingRun| {
        Some((ls.valid_loss_nats?, other.valid_loss_nats?))
    };
    let Some(rivals) = Rivals::of(study, losses) else { return Verdict::lacking(TWO_FIFTHS) };
    let ratio = |setting: &PairsOfSetting| setting.estimate(difference).exp();
    let ratios: Vec<Estimate> = rivals.settings().map(|(_, setting)| ratio(setting)).collect();
    let room = least_ratio(&rivals.tuned.study).filter(|least| *least > MOST_PERPLEXITY);
    let ruling = ruling(&ratios, MOST_PERPLEXITY)
        .hidden_if(room.is_some())
        .undecided_if(!rivals.tuned.is_tuned);
    let each = rivals
        .settings()
        .map(|(arm, setting)| format!("{} of {arm}'s", ratio(setting).shown_of_seeds(3)));
    let why = match (room, ruling) {
        (Some(least), _) => format!("The corpus allows {} at least", significant(least, 2)),
        (None, Ruling::Hidden) => UNDECIDED.to_owned(),
        _ => String::new(),
    };
    let headline = format!(
        "perplexity {}× that of {}{}",
        from_to(ratios.iter().map(|ratio| ratio.value), 2),
        plural(rivals.found.len(), "stabiliser"),
        if room.is_some() { "; corpus leaves no room" } else { "" }
    );
    let [scale, note] = rivals.scale();
    let perplexity = format!("LS-attention's perplexity is {}", joined(each, ", "));
    let sentences = [perplexity, scale, note, why];
    Verdict::new(TWO_FIFTHS, ruling, rivals.seeds(), headline, sentences)
}

/// The time in which `ls` first reaches a stabiliser's final perplexity, over that stabiliser's time, seed by seed.
/// Other load on the machine slows runs, so the two fastest seeds of each bound its pace, and with it the ratio.
/// Progress is known only at evaluations: the time lies between the last one before the goal and the first one at it.
/// An interval goes from the lower end of Student's for the former to the upper end for the latter. If the goal was not
/// reached, these are the whole run and infinity.
///
/// CPU time qualifies the claim at most, since the paper counts GPU hours.
///
/// *Not measured*: as for perplexity, or without evaluations. Or evaluations are further apart than a twentieth of a
/// run, unless the claim is refuted all the same.
fn twentieth(study: &Trainings) -> Verdict {
    let Some(rivals) = Rivals::of(study, share) else { return Verdict::lacking(TWENTIETH) };
    let ends: Vec<[f64; 2]> = rivals.settings().map(|(_, setting)| ends(setting)).collect();
    // For one seed only its own evaluations bound the ratio.
    let ratio = |((_, setting), ends): ((&str, &PairsOfSetting), &[f64; 2])| {
        let estimate = Estimate::range(ends[0], *ends);
        if setting.seeds.len() > 1 { estimate } else { estimate.without_ends() }
    };
    let ratios: Vec<Estimate> = rivals.settings().zip(&ends).map(ratio).collect();
    let study = &rivals.tuned.study;
    let spacing = spacing(study).filter(|spacing| *spacing > 1.0 / 20.0);
    let ruling = ruling(&ratios, MOST_TIME);
    let ruling = ruling
        .hidden_if(spacing.is_some() && ruling != Ruling::Fails)
        // The paper counts GPU hours; these are CPU times.
        .undecided_if(true);
    let each = rivals.settings().zip(&ends).map(|((arm, setting), ends)| {
        let shown = joined(ends.map(|share| significant(share, 2)), ", ");
        let seeds = setting.seeds.len();
        match setting.seeds.iter().filter(|(_, _, with)| with.is_finite()).count() {
            reached if reached == seeds => format!("[{shown}] ({arm})"),
            reached => {
                format!("[{shown}] ({arm}, {reached} of {} reach it)", plural(seeds, "seed"))
            }
        }
    });
    let coarse = match spacing {
        Some(spacing) => format!("Evaluations are {} of a run apart", significant(spacing, 2)),
        None if ruling == Ruling::Hidden => UNDECIDED.to_owned(),
        None => String::new(),
    };
    let headline = format!(
        "{} of the others' CPU time{}",
        from_to(ends.iter().flatten().copied(), 2),
        if spacing.is_some() { "; evaluations too coarse" } else { "" }
    );
    let [scale, note] = rivals.scale();
    let time = format!(
        "CPU time of LS-attention to others' final perplexity, over theirs: {}",
        joined(each, ", ")
    );
    Verdict::new(TWENTIETH, ruling, rivals.seeds(), headline, [time, scale, note, coarse])
}

/// The interval of the ratio of times at one setting, from the time before the goal to the time at it. Over seeds it
/// spans from the lower end of the former to the upper end of the latter.
fn ends(setting: &PairsOfSetting) -> [f64; 2] {
    if let [(_, without, with)] = setting.seeds[..] {
        return [without, with];
    }
    let end = |estimate: Estimate| estimate.exp().ends();
    [
        end(setting.estimate(|without, _| without.ln())).map_or(0.0, |[low, _]| low),
        end(setting.estimate(|_, with| with.ln())).map_or(f64::INFINITY, |[_, high]| high),
    ]
}

/// The largest gap between evaluations of a run of `ls`, as a share of its steps.
fn spacing(study: &Trainings) -> Option<f64> {
    let of_run = |run: &TrainingRun| {
        let steps: Vec<f64> = run.log.valid_loss.iter().map(|(step, _)| *step).collect();
        let gaps = steps.windows(2).map(|two| two[1] - two[0]);
        Some(steps.first().copied().into_iter().chain(gaps).reduce(f64::max)? / steps.last()?)
    };
    study.arm("ls").filter_map(of_run).reduce(f64::max)
}

/// The times of `ours` at the last evaluation before it reaches the final loss of `theirs` and at the first after, over
/// the time of `theirs`. The second is infinite if it never does.
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
    use crate::claims::VerdictStatus;
    use crate::experiments::training::claims::tuning::at_three_rates;
    use crate::experiments::training::tables::run_log::RunLog;

    fn runs(arm: &str, losses: &[f64]) -> Vec<TrainingRun> {
        let one = |(seed, loss): (usize, &f64)| TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            valid_loss_nats: Some(*loss),
            log: RunLog {
                // Each evaluation halves the excess over the final loss.
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

    /// The variants at three learning rates.
    fn study(arms: &[(&str, &[f64])]) -> Trainings {
        let runs = arms.iter().flat_map(|(arm, losses)| runs(arm, losses)).collect();
        at_three_rates(&Trainings { runs, failed: 0 })
    }

    #[test]
    fn perplexity_against_stabilisers_has_every_word() {
        let status = |norm: &[f64], cap: &[f64]| {
            two_fifths(&study(&[("ls", &[1.0; 3]), ("qk-norm", norm), ("softcap", cap)])).status
        };
        assert_eq!(status(&[2.0; 3], &[2.1; 3]), VerdictStatus::Confirmed);
        assert_eq!(status(&[2.0; 2], &[2.1; 2]), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(&[2.0; 3], &[1.1; 3]), VerdictStatus::Qualified, "against one only");
        assert_eq!(status(&[1.1; 3], &[1.2; 3]), VerdictStatus::Refuted, "a gain far from 2/5");
        assert_eq!(status(&[0.9; 3], &[0.9; 3]), VerdictStatus::Refuted);
        assert_eq!(status(&[1.1; 2], &[1.2; 2]), VerdictStatus::Qualified, "two seeds");
        assert_eq!(
            status(&[0.5, 1.5, 2.5], &[0.5, 1.5, 2.5]),
            VerdictStatus::NotMeasured,
            "far apart"
        );
        assert_eq!(status(&[2.0], &[2.0]), VerdictStatus::SingleSeed, "one seed");
        assert_eq!(status(&[], &[]), VerdictStatus::NotMeasured);
        let mut untuned = study(&[("ls", &[1.0; 3]), ("qk-norm", &[2.0; 3])]);
        untuned.runs.retain(|run| run.learning_rate == Some(3e-3));
        assert_eq!(two_fifths(&untuned).status, VerdictStatus::Qualified, "one learning rate");
    }

    #[test]
    fn a_stabiliser_that_never_acts_is_no_other_method() {
        let found = |cap: &[f64]| {
            let variants: [(&str, &[f64]); 4] =
                [("ls", &[1.0; 3]), ("mhsa", &[1.2; 3]), ("qk-norm", &[2.0; 3]), ("qk-clip", cap)];
            two_fifths(&study(&variants))
        };
        assert_eq!(found(&[1.2; 3]).status, VerdictStatus::Confirmed);
        assert!(!found(&[1.2; 3]).measured.contains("qk-clip"));
        assert_eq!(found(&[1.3; 3]).status, VerdictStatus::Qualified);
    }

    #[test]
    fn a_corpus_without_room_for_two_fifths_does_not_refute_them() {
        let judged = |entropy: f64| {
            let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", &[1.2; 3])]);
            study.runs.iter_mut().for_each(|run| run.corpus_entropy_nats = Some(entropy));
            two_fifths(&study)
        };
        assert_eq!(judged(0.3).status, VerdictStatus::Refuted, "a ratio of 0.41 is possible");
        let Verdict { status, measured, .. } = judged(0.9);
        assert_eq!(status, VerdictStatus::NotMeasured);
        assert!(measured.contains("0.74"), "{measured}");
    }

    /// The verdict if ls takes `pace` seconds per step, the other takes 0.1, and each run has `evaluations` evaluations.
    fn timed(theirs: &[f64], pace: f64, evaluations: usize) -> Verdict {
        let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", theirs)]);
        for run in &mut study.runs {
            if run.arm == "ls" {
                run.log.seconds_per_step = pace;
            }
            let end = run.log.valid_loss.last().map_or(0.0, |(_, loss)| *loss);
            let count = evaluations as f64;
            run.log.valid_loss = (1..=evaluations)
                .map(|at| (100.0 * at as f64 / count, end + 1.0 - at as f64 / count))
                .collect();
        }
        twentieth(&study)
    }

    #[test]
    fn cpu_time_against_stabilisers_qualifies_at_most() {
        // ls reaches the goal at the first of 100 evaluations, so within a hundredth of the time.
        assert_eq!(timed(&[2.5; 3], 0.1, 100).status, VerdictStatus::Qualified);
        assert_eq!(timed(&[0.5; 3], 0.1, 100).status, VerdictStatus::Qualified, "never reached");
        assert_eq!(
            timed(&[2.5; 3], 20.0, 100).status,
            VerdictStatus::NotMeasured,
            "up to twice the time"
        );
        assert_eq!(timed(&[2.5], 0.1, 100).status, VerdictStatus::SingleSeed, "one seed");
        assert_eq!(timed(&[], 0.1, 100).status, VerdictStatus::NotMeasured);
    }

    #[test]
    fn evaluations_further_apart_than_a_twentieth_cannot_show_it() {
        assert_eq!(timed(&[2.5; 3], 0.1, 10).status, VerdictStatus::NotMeasured);
        assert_eq!(
            timed(&[1.2; 3], 0.1, 10).status,
            VerdictStatus::Qualified,
            "missed all the same"
        );
    }

    #[test]
    fn the_time_lies_between_two_evaluations() {
        let measured = timed(&[1.15; 3], 0.1, 10).measured;
        assert!(measured.contains("[0.80, 0.90]"), "{measured}");
        let never = timed(&[0.5; 3], 0.1, 10).measured;
        assert!(never.contains("[1.0, inf]") && never.contains("0 of 3"), "{never}");
    }

    #[test]
    fn times_of_seeds_that_disagree_widen_the_ratio() {
        let measured = |next: f64| {
            let mut study = study(&[("ls", &[1.0; 3]), ("qk-norm", &[1.2; 3])]);
            for run in study.runs.iter_mut().filter(|run| run.arm == "qk-norm" && run.seed > 0) {
                run.log.seconds_per_step = next;
            }
            twentieth(&study).measured
        };
        assert!(measured(0.1).contains("[0.20, 0.30]"), "{}", measured(0.1));
        assert!(measured(0.4).contains("[0.050, 0.30]"), "{}", measured(0.4));
    }
}
