//! Verdict on head size apart from head count: what each does to the peak logit of multi-head attention.

use super::scale_of_runs;
use crate::claims::verdict::Seeds;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::training::claims::training::LOGITS_ALIKE;
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::groups::by_key;
use crate::table::{Estimate, least_squares, significant};

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[MORE_DIMENSIONS_HELP];

pub(crate) const MORE_DIMENSIONS_HELP: Claim = Claim {
    id: "MoreDimensionsHelp",
    text: "At an equal number of heads, more dimensions per head give smaller logits",
    group: Group::Training,
    origin: Origin::Derived,
    place: "the rank argument, an intervention",
    rule: [
        "By least squares over the runs of a seed, a doubling of d_head at equal heads multiplies the peak by less \
            than 1/{0}, with the whole interval.",
        "The whole interval lies above 1/{0}.",
    ],
    bounds: &[LOGITS_ALIKE],
    needs_tuning: true,
    lacking: [
        "no runs that vary heads and d_head",
        "Needs runs of mhsa that vary the key d_head at equal heads, and heads at equal d_head.",
    ],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Trainings) -> Vec<Verdict> {
    vec![head_size(study)]
}

/// Least squares of log(peak max |logit|), and of the loss, on log₂ d_head and log₂ heads, over the runs of `mhsa` of each seed:
/// log peak = a + b·log₂ d_head + c·log₂ heads. e^b and e^c are what a doubling multiplies the peak by. Intervals are Student's
/// over seeds, since the runs of one seed read the same text in the same order.
fn head_size(study: &Trainings) -> Verdict {
    let tuned = Tuned::of_arms(study, &["mhsa"]);
    let runs: Vec<&TrainingRun> = tuned.study.arm("mhsa").collect();
    let fitted = |value: fn(&TrainingRun) -> Option<f64>| -> Option<[Estimate; 2]> {
        let point = |run: &&TrainingRun| {
            let sizes = [run.d_head(), run.of.model.heads].map(|size| (size as f64).log2());
            Some((run.of.seed, (sizes.to_vec(), value(run)?)))
        };
        let of_seeds = by_key(runs.iter().filter_map(point)).into_iter();
        let fits: Vec<Vec<f64>> =
            of_seeds.map(|(_, points)| least_squares(&points)).collect::<Option<_>>()?;
        let over_seeds = |k: usize| Estimate::mean(fits.iter().map(|fit| fit[k]));
        Some([over_seeds(0)?, over_seeds(1)?])
    };
    let Some([size, count]) = fitted(|run| run.peak().map(f64::ln)) else {
        return Verdict::lacking(MORE_DIMENSIONS_HELP);
    };
    let ruling = size.at_most(-LOGITS_ALIKE.ln()).undecided_if(!tuned.is_tuned);
    let [by_size, by_count] = [size, count].map(|log| log.exp().times(2));
    // From H heads of d to 2H heads of d/2 the log peak rises by c − b.
    let share = significant(100.0 * size.value / (size.value - count.value), 2);
    let losses = fitted(TrainingRun::loss);
    let losses = losses.map_or_else(String::new, |losses| {
        let [size, count] = losses.map(|loss| loss.apart(2, " nats"));
        format!("Loss by doubling d_head {size}, heads {count}")
    });
    let sentences = [
        format!("Size is {share} % of the rise from H heads to 2H of half the size"),
        losses,
        scale_of_runs(runs.iter().copied()),
        tuned.note().to_owned(),
    ];
    let seeds = Seeds::of_settings(tuned.study.by_run().map(<[_]>::len));
    let headline = format!("peak by doubling d_head: {by_size}; heads: {by_count}");
    Verdict::new(MORE_DIMENSIONS_HELP, ruling, seeds, headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::training::claims::tuning::at_three_rates;

    /// Runs whose peak is 100 · `size`^log₂ d_head · `count`^log₂ heads, but for a scatter of `size` between seeds.
    fn runs(size: f64, count: f64, seeds: u64) -> Trainings {
        let run = |(heads, d_head, seed): (usize, usize, u64)| {
            let [of_size, of_count] = [d_head, heads].map(|size| (size as f64).log2());
            let size = size * [1.0, 1.05, 0.95][seed as usize % 3];
            let peak = 100.0 * size.powf(of_size) * count.powf(of_count);
            let (name, loss) = (format!("heads-{heads}-{d_head}"), 2.0 + 0.01 * seed as f64);
            let mut run = TrainingRun::made_up(&name, "mhsa", seed, peak, loss);
            (run.of.model.heads, run.of.model.d_head) = (heads, Some(d_head));
            run
        };
        let sizes = [(4, 8), (4, 16), (4, 32), (8, 8), (8, 16), (2, 32)];
        let of_size = |(heads, d_head)| (0..seeds).map(move |seed| (heads, d_head, seed));
        Trainings::made_up(sizes.into_iter().flat_map(of_size).map(run))
    }

    #[test]
    fn head_size_has_every_status() {
        let status = |size, seeds| head_size(&at_three_rates(&runs(size, 1.5, seeds))).status;
        assert_eq!(status(0.6, 3), Confirmed);
        assert_eq!(status(0.6, 2), Qualified, "two seeds");
        assert_eq!(status(0.8, 3), Qualified, "the interval holds 1/1.25");
        assert_eq!(status(1.0, 3), Refuted);
        let mut at_one_rate = runs(0.6, 1.5, 3);
        assert_eq!(head_size(&at_one_rate).status, Qualified);
        at_one_rate.runs.retain(|run| run.of.model.heads == 4);
        assert_eq!(head_size(&at_one_rate).status, NotMeasured, "heads are equal");
    }

    #[test]
    fn size_and_count_are_told_apart() {
        let Verdict { headline, measured, .. } = head_size(&runs(0.5, 2.0, 3));
        assert!(headline.contains("0.50×") && headline.contains("2.0×"), "{headline}");
        assert!(measured.contains("50 %"), "{measured}");
    }
}
