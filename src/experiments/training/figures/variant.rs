//! Names and colours of training variants, shared by all figures.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use crate::experiments::training::tables::training::{TrainingRun, Trainings, arm_name};
use crate::experiments::training::{Settings, key_words};
use crate::figure::ticks::{natural, tick_label};
use crate::figure::{Ink, Key, Marker, Rgb, Shape, Stroke};
use crate::lm::TrainDefinition;
use crate::table::{groups, plural};

/// The attention of a model: its heads and stabiliser, its positions, its position bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant<'a> {
    arm: &'a str,
    positions: &'a str,
    bias: &'a str,
}

/// The default positions and bias, which no name mentions.
const PLAIN: (&str, &str) = ("learned", "none");

impl<'a> Variant<'a> {
    /// A variant with learned positions and no bias.
    pub(crate) const fn plain(arm: &'a str) -> Self {
        Self { arm, positions: PLAIN.0, bias: PLAIN.1 }
    }

    pub(crate) const fn of(arm: &'a str, positions: &'a str, bias: &'a str) -> Self {
        Self { arm, positions, bias }
    }

    pub(crate) fn new(arm: &'a str, positions: Option<&'a str>, bias: Option<&'a str>) -> Self {
        let or = |value: Option<&'a str>, plain| value.filter(|v| !v.is_empty()).unwrap_or(plain);
        Self { arm, positions: or(positions, PLAIN.0), bias: or(bias, PLAIN.1) }
    }

    pub(crate) fn of_training(run: &'a TrainingRun) -> Self {
        Self::new(run.arm(), Some(&run.of.model.positions), Some(&run.of.model.slopes))
    }

    /// The variant of a run whose rows have no column for positions, and the remaining words of its name; both are
    /// parsed from the name. Lengths and head dimensions are skipped, because titles have them.
    pub(crate) fn of_name(arm: &'a str, run: &'a str) -> (Self, String) {
        let (mut positions, mut bias) = PLAIN;
        let mut words: Vec<&str> = Vec::new();
        let is_size = |word: &str| word.trim_start_matches('d').parse::<usize>().is_ok();
        for word in run.strip_prefix(arm).unwrap_or(run).split('-').filter(|w| !w.is_empty()) {
            match word {
                "rotary" => positions = "rope",
                "sinusoidal" | "none" => positions = word,
                "sloped" => bias = "alibi",
                "alibi" => (positions, bias) = ("none", "alibi"),
                "slope" => {
                    words.retain(|word| *word != "learned");
                    bias = "learned";
                }
                word if words.is_empty() && is_size(word) => {}
                word => words.push(spelled(word)),
            }
        }
        (Self { arm, positions, bias }, words.join(" "))
    }

    /// The display name: `multi-head, RoPE`.
    pub(crate) fn name(&self) -> String {
        let arm = arm_name(self.arm);
        match (self.positions, self.bias) {
            PLAIN => arm.to_owned(),
            ("learned", "alibi") => format!("{arm}, ALiBi bias"),
            ("none", "alibi") => format!("{arm}, ALiBi alone"),
            ("learned", "learned") => format!("{arm}, learned position bias"),
            (positions, "none") => format!("{arm}, {}", positions_name(positions)),
            (positions, bias) => format!("{arm}, {positions} positions, {bias} bias"),
        }
    }

    /// The colour and marker of the variant, the same in every figure.
    pub(crate) fn ink(&self) -> Ink {
        let known = INKS.iter().find(|(variant, ..)| variant == self);
        if let Some(&(_, colour, marker)) = known {
            return Ink { colour, marker, stroke: Stroke::Solid };
        }
        // Any other combination has the colour of its variant, but a dashed line.
        let own = INKS.iter().find(|(variant, ..)| *variant == Self::plain(self.arm));
        let (colour, marker) = own.map_or((OTHER, Marker::Circle), |of| (of.1, of.2));
        let stroke = if *self == Self::plain(self.arm) { Stroke::Solid } else { Stroke::Dashed };
        Ink { colour, marker, stroke }
    }
}

/// The display name of positions: `RoPE`, `no positions`, `learned positions`.
pub(crate) fn positions_name(positions: &str) -> String {
    match positions {
        "rope" => "RoPE".to_owned(),
        "none" => "no positions".to_owned(),
        positions => format!("{positions} positions"),
    }
}

/// The colour of models that are no variant of a study.
const OTHER: Rgb = (85, 85, 85);

/// Okabe and Ito's colours for the variants that most figures compare, Tol's muted ones for the others. Markers differ
/// too, so that colour is never the only cue.
const INKS: &[(Variant<'static>, Rgb, Marker)] = &[
    (Variant::plain("mhsa"), (213, 94, 0), Marker::Circle),
    (Variant::plain("ls"), (0, 114, 178), Marker::Triangle),
    (Variant::of("mhsa", "rope", "none"), (230, 159, 0), Marker::Inverted),
    (Variant::of("mhsa", "learned", "alibi"), (86, 180, 233), Marker::Square),
    (Variant::of("mhsa", "learned", "learned"), (136, 34, 85), Marker::Diamond),
    (Variant::of("mhsa", "none", "alibi"), (51, 34, 136), Marker::Square),
    (Variant::of("mhsa", "sinusoidal", "none"), (153, 153, 51), Marker::Triangle),
    (Variant::of("mhsa", "none", "none"), (0, 0, 0), Marker::Circle),
    (Variant::of("ls", "rope", "none"), (0, 51, 102), Marker::Square),
    (Variant::plain("local-only"), (0, 158, 115), Marker::Diamond),
    (Variant::plain("layer-alternating"), (204, 121, 167), Marker::Square),
    (Variant::plain("qk-norm"), (170, 68, 153), Marker::Inverted),
    (Variant::plain("sigma-reparam"), (136, 85, 34), Marker::Square),
    (Variant::plain("softcap"), (68, 68, 68), Marker::Triangle),
    (Variant::plain("qk-clip"), (68, 170, 153), Marker::Diamond),
    (Variant::plain("z-loss"), (187, 153, 204), Marker::Circle),
    (Variant::plain("gam"), (204, 102, 119), Marker::Inverted),
];

/// The labels and inks of all runs of a study.
pub(crate) struct Looks(BTreeMap<String, (String, Ink)>);

impl Looks {
    /// Labels each run by its variant and the settings in which it differs from most runs of its variant.
    pub(crate) fn from_study(study: &Trainings) -> Self {
        let mut firsts: Vec<&TrainingRun> = study.by_run().map(|seeds| &seeds[0]).collect();
        let all = firsts.clone();
        firsts.sort_by_cached_key(|run| natural(&label(run, &all)));
        let mut labels: Vec<String> = firsts.iter().map(|run| label(run, &firsts)).collect();
        if labels.iter().any(|label| is_too_long(label)) {
            labels = firsts.iter().map(|run| run.name_at_any_rate().to_owned()).collect();
        }
        let first = firsts.first().map(|run| Variant::of_training(run));
        // Runs of one variant only would have its one colour.
        let is_alone = firsts.iter().all(|run| Some(Variant::of_training(run)) == first);
        let look = |(at, run): (usize, &&TrainingRun)| {
            let alike = |other: &TrainingRun| {
                (other.of.context, other.of.recall) == (run.of.context, run.of.recall)
                    && other.name() != run.name()
            };
            let same = |other: usize| labels[other] == labels[at] && alike(firsts[other]);
            let mut name = labels[at].clone();
            let own = name_beyond_arm(run);
            // Rows do not record every setting; then the rest of the run's name distinguishes it.
            if (0..firsts.len()).any(same) && !own.is_empty() {
                name = format!("{name}, {own}");
            }
            if run.is_so_far() && firsts.iter().any(|run| !run.is_so_far()) {
                name.push_str(" (unfinished)");
            }
            let variant = Variant::of_training(run);
            let is_before = |other: usize| {
                Variant::of_training(firsts[other]) == variant && labels[other] != labels[at]
            };
            let before: BTreeSet<&String> =
                (0..at).filter(|&other| is_before(other)).map(|other| &labels[other]).collect();
            let again = (0..at).filter(|&other| same(other)).count();
            let (nth, is_one) = (before.len() + again, labels.iter().all(|one| *one == labels[0]));
            let ink = match is_alone && !is_one {
                true => Ink::numbered(nth),
                false => variant.ink().other(nth),
            };
            (run.name().to_owned(), (name, ink))
        };
        Self(firsts.iter().enumerate().map(look).collect())
    }

    pub(crate) fn label<'a>(&'a self, run: &'a TrainingRun) -> &'a str {
        self.0.get(run.name()).map_or(run.name(), |look| &look.0)
    }

    pub(crate) fn ink(&self, run: &TrainingRun) -> Ink {
        self.0.get(run.name()).map_or_else(|| Variant::of_training(run).ink(), |look| look.1)
    }

    /// The legend: one entry per label, sorted by label.
    pub(crate) fn keys(&self, study: &Trainings) -> Vec<Key> {
        let alike = groups(&study.runs, |run| self.label(run)).into_iter();
        let key =
            |runs: Vec<&TrainingRun>| Key::new(self.label(runs[0]), self.ink(runs[0]), Shape::Line);
        let mut keys: Vec<Key> = alike.map(key).collect();
        keys.sort_by_cached_key(|key| natural(&key.label));
        keys
    }
}

/// Whether a name leaves too little room for the line that it stands beside. Runs then go by the names in their definition.
pub(crate) fn is_too_long(label: &str) -> bool {
    label.chars().count() > 48
}

/// A word of a run's name, spelled out if it is too short to be clear.
fn spelled(word: &str) -> &str {
    match word {
        "rate" => "learning rate",
        word => word,
    }
}

/// The rest of a run's name without its variant and length: `mhsa-distilled` becomes `distilled`.
fn name_beyond_arm(run: &TrainingRun) -> String {
    let name = run.name().split(" (").next().unwrap_or_default();
    let rest = name.strip_prefix(run.arm()).unwrap_or(name);
    let length = run.of.context.to_string();
    rest.split('-')
        .filter(|word| !word.is_empty() && *word != length)
        .map(spelled)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Formats one setting of a run with its name and value.
type Setting = fn(&TrainingRun) -> Option<String>;

const SETTINGS: [Setting; 5] = [
    |run| Some(format!("d_head = {}", run.d_head())),
    |run| Some(format!("d_model = {}", run.of.model.d_model)),
    |run| Some(format!("window {}", run.of.model.window?)),
    |run| {
        let (global, all) = (run.of.model.global_heads, run.of.model.heads);
        (0 < global && global < all).then(|| plural(global, "global head"))
    },
    |run| Some(format!("learning rate {}", tick_label(run.learning_rate()?))),
];

fn label(run: &TrainingRun, all: &[&TrainingRun]) -> String {
    let variant = Variant::of_training(run);
    let alike: Vec<&&TrainingRun> =
        all.iter().filter(|other| Variant::of_training(other) == variant).collect();
    let mut label = variant.name();
    // Panels and axes already separate lengths and shares of recall.
    let is_beside = |other: &&&TrainingRun| {
        (other.of.context, other.of.recall) == (run.of.context, run.of.recall)
    };
    let beside: Vec<&&TrainingRun> = alike.iter().copied().filter(is_beside).collect();
    let mut add = |among: &[&&TrainingRun], is_flag: bool, setting: &dyn Fn(&TrainingRun) -> _| {
        let Some(own) = setting(run) else { return };
        let values: Vec<Option<String>> = among.iter().map(|other| setting(other)).collect();
        let count = values.iter().flatten().filter(|value| **value == own).count();
        let is_usual = 2 * count > values.len() && !is_flag;
        if values.iter().any(|value| value.as_ref() != Some(&own)) && !is_usual {
            label.push_str(", ");
            label.push_str(&own);
        }
    };
    SETTINGS.iter().for_each(|setting| add(&alike, false, setting));
    let standard = TrainDefinition::default().to_table().unwrap_or_default();
    for key in Settings::differing(beside.iter().map(|other| &other.settings)) {
        let is_named =
            NAMED.contains(&Settings::outer(key)) || Settings::is_implied_by_variant(key);
        let standard = standard.get(key).and_then(Value::as_bool);
        add(&beside, standard.is_some(), &|run| {
            let value = run.settings.get(key).filter(|_| !is_named)?;
            match standard {
                // Of a flag the default is usual, whatever most runs have.
                Some(standard) if value == standard.to_string() => None,
                Some(false) => Some(key_words(key)),
                _ => Some(format!("{} {value}", key_words(key))),
            }
        });
    }
    label
}

/// Keys that variants, [`SETTINGS`], titles, axes or the names of runs say, beside those that a variant implies.
const NAMED: [&str; 11] = [
    "arm",
    "context",
    "corpus",
    "d_head",
    "d_model",
    "heads",
    "learning_rate",
    "positions",
    "slopes",
    "steps",
    "text",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, arm: &str, heads: usize, window: usize) -> TrainingRun {
        let mut run = TrainingRun::made_up(name, arm, 1, 10.0, 2.0);
        let model = &mut run.of.model;
        (model.d_model, model.heads, model.window) = (64, heads, Some(window));
        model.global_heads = if arm == "mhsa" { heads } else { 1 };
        run
    }

    fn labels(runs: impl IntoIterator<Item = TrainingRun>) -> Vec<String> {
        let study = Trainings::made_up(runs);
        let looks = Looks::from_study(&study);
        study.runs.iter().map(|run| looks.label(run).to_owned()).collect()
    }

    #[test]
    fn runs_are_named_by_variant_and_by_what_differs() {
        let mut rope = run("mhsa-rotary", "mhsa", 4, 16);
        rope.of.model.positions = "rope".to_owned();
        let runs = [
            (run("ls", "ls", 4, 16), "LS-attention, window 16"),
            (run("ls-window-64", "ls", 4, 64), "LS-attention, window 64"),
            (run("mhsa", "mhsa", 4, 16), "multi-head"),
            (run("mhsa-d8", "mhsa", 8, 16), "multi-head, d_head = 8"),
            (run("mhsa-distilled", "mhsa", 4, 16), "multi-head, distilled"),
            (rope, "multi-head, RoPE"),
        ];
        let (runs, expected): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        assert_eq!(labels(runs.clone()), expected);
        let study = Trainings::made_up(runs);
        let looks = Looks::from_study(&study);
        let ink = |at: usize| looks.ink(&study.runs[at]);
        assert_eq!(ink(2).colour, ink(3).colour, "one colour per variant");
        assert_ne!(ink(2).stroke, ink(3).stroke, "runs of a variant differ in stroke");
        assert_ne!(ink(2).colour, ink(5).colour);
    }

    #[test]
    fn keys_that_differ_are_named_unless_they_are_too_many() {
        let with = |name: &str, key: &str, value: Value| {
            let mut run = run(name, "mhsa", 4, 16);
            run.settings.insert(key, &value);
            run
        };
        let decays =
            [("a", 0.0), ("b", 0.5)].map(|(name, decay)| with(name, "weight_decay", decay.into()));
        let expected = ["multi-head, weight decay 0.0", "multi-head, weight decay 0.5"];
        assert_eq!(labels(decays), expected);
        // A flag is named where it is set, even if it is in most runs.
        let flags = [("a", false), ("b", true), ("c", true)];
        let flags = labels(flags.map(|(name, flag)| with(name, "ternary", flag.into())));
        assert_eq!(flags[0], "multi-head");
        assert!(flags[1].starts_with("multi-head, ternary"), "{flags:?}");
        let many = [("a-0.01", 0.01), ("b", 0.5)].map(|(name, rate)| {
            let mut run = with(name, "weight_decay", rate.into());
            run.settings.insert("final_learning_rate", &rate.into());
            run.settings.insert("label_noise", &rate.into());
            run.of.learning_rate = rate;
            run
        });
        assert_eq!(labels(many), ["a", "b"]);
    }

    #[test]
    fn names_of_runs_give_variant_and_the_rest() {
        for (arm, run, variant, rest) in [
            ("mhsa", "mhsa-256", "multi-head", ""),
            ("mhsa", "mhsa-rotary-d4", "multi-head, RoPE", ""),
            ("mhsa", "mhsa-learned-slope", "multi-head, learned position bias", ""),
            ("ls", "ls-window-64", "LS-attention", "window 64"),
            ("mhsa", "mhsa-distilled", "multi-head", "distilled"),
            ("llama", "SmolLM2-135M", "llama", "SmolLM2 135M"),
        ] {
            let found = Variant::of_name(arm, run);
            assert_eq!((found.0.name().as_str(), found.1.as_str()), (variant, rest), "{run}");
        }
    }

    #[test]
    fn no_two_variants_share_a_colour() {
        for (at, (_, colour, _)) in INKS.iter().enumerate() {
            assert!(INKS[at + 1..].iter().all(|(_, other, _)| other != colour), "{colour:?}");
        }
    }
}
