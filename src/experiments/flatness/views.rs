//! The table, the figure and the verdicts of a study of flatness.

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::from_to;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiment::Analysed;
use crate::experiments::training::figures::variant::Variant;
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::lm::FlatnessMeasurement;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::sorted;
use crate::table::{RankCorrelation, Table, TableError, groups};

/// The correlation below which a relation is too weak to matter.
const WEAK: f64 = 0.3;

const PLAIN: Claim = Claim {
    group: Group::Training,
    lacking: ["fewer than three models", "Needs three models whose losses differ."],
    ..Claim::PLAIN
};

const LARGE_IS_SHARP: Claim = Claim {
    id: "LargeLogitsAreSharp",
    text: "At equal loss models with larger logits are sharper",
    origin: Origin::Here,
    place: "asked of Liu et al. 2022, arXiv 2210.14199",
    rule: [
        "Partial rank correlation of max |logit| and the trace of the Hessian over models, given the loss: the whole interval \
            lies above 0.",
        "The whole interval lies below {0}, and not above 0.",
    ],
    bounds: &[WEAK],
    ..PLAIN
};

const FLAT_IS_BETTER: Claim = Claim {
    id: "FlatIsBetterElsewhere",
    text: "At equal loss flatter models do better on another task",
    origin: Origin::Other,
    place: "Liu et al. 2022, arXiv 2210.14199",
    rule: [
        "Partial rank correlation of the trace of the Hessian and a linear classifier's accuracy over models, given the loss: \
            the whole interval lies below 0.",
        "The whole interval lies above 0.",
    ],
    ..PLAIN
};

/// The claims that [`analyse`] decides.
pub(crate) const CLAIMS: &[Claim] = &[LARGE_IS_SHARP, FLAT_IS_BETTER];

type FlatModel = Row<FlatnessMeasurement>;

fn variant(model: &FlatModel) -> Variant<'_> {
    let of = &model.of;
    Variant::new(&of.model.arm, of.positions.as_deref(), of.slopes.as_deref())
}

/// The table, the figure and the verdicts of a study.
pub(super) fn analyse(rows: &Rows<FlatnessMeasurement>) -> Result<Analysed, TableError> {
    let why = "no finished row has a model";
    let models = TableError::unless_empty(rows.rows.clone(), &rows.path, why, READ_ERR)?;
    let relations = relations(&models);
    let tables = vec![table(&models, rows.failed), correlations_table(&relations)];
    let figures = vec![figure(&models)];
    Ok(Analysed { tables, figures, verdicts: verdicts(&models, &relations) })
}

/// Two quantities of a model.
type Two = fn(&FlatnessMeasurement) -> [f64; 2];

/// The quantities that are correlated, by their columns.
const PAIRS: [([&str; 2], Two); 3] = [
    (["max_abs_logit", "trace"], |found| [found.max_abs_logit, found.trace]),
    (["max_abs_logit", "largest_eigenvalue"], |found| {
        [found.max_abs_logit, found.largest_eigenvalue]
    }),
    (["trace", "classifier_accuracy"], |found| [found.trace, found.classifier_accuracy]),
];

/// Spearman's ρ of two quantities over models.
struct Relation {
    /// Their columns.
    columns: [&'static str; 2],
    given_loss: Option<RankCorrelation>,
    at_one_rate: Option<RankCorrelation>,
}

/// The relations of [`PAIRS`], in their order.
fn relations(models: &[FlatModel]) -> [Relation; 3] {
    PAIRS.map(|(columns, of)| Relation {
        columns,
        given_loss: given_loss(models, of),
        at_one_rate: at_one_rate(models, of),
    })
}

/// Spearman's ρ of two quantities over models, given the loss.
fn given_loss(models: &[FlatModel], of: Two) -> Option<RankCorrelation> {
    let points = models.iter().map(|model| {
        let [x, y] = of(&model.found);
        [x, y, model.found.loss_nats]
    });
    RankCorrelation::given(&[points.collect()])
}

/// Spearman's ρ of two quantities among the models of each learning rate.
fn at_one_rate(models: &[FlatModel], of: Two) -> Option<RankCorrelation> {
    let points = |models: &Vec<&FlatModel>| models.iter().map(|model| of(&model.found)).collect();
    let groups: Vec<Vec<[f64; 2]>> = by_rate(models).iter().map(points).collect();
    RankCorrelation::between(&groups, 0, 1)
}

/// The models of each learning rate: the higher it is, the flatter are the models.
fn by_rate(models: &[FlatModel]) -> Vec<Vec<&FlatModel>> {
    groups(sorted(models, rate), |model| rate(model).to_bits())
}

fn rate(model: &FlatModel) -> f64 {
    model.of.model.learning_rate.unwrap_or(f64::NAN)
}

/// The verdicts on [`CLAIMS`].
fn verdicts(models: &[FlatModel], [trace, _, accuracy]: &[Relation; 3]) -> Vec<Verdict> {
    let verdict = |claim, name: &str, of: &Relation, rule: fn(RankCorrelation) -> [bool; 2]| {
        let Some(found) = of.given_loss else { return Verdict::lacking(claim) };
        let [is_confirmed, is_refuted] = rule(found);
        let losses = from_to(models.iter().map(|model| model.found.loss_nats), 3);
        let of_rates = of.at_one_rate.map_or_else(String::new, |found| {
            format!("ρ among models of one learning rate, median over rates: {}", found.shown())
        });
        Verdict::new(
            claim,
            Ruling::of_rule(is_confirmed, is_refuted),
            Seeds::all(found.points).called("model"),
            format!("ρ of {name}, given the loss: {}", found.shown()),
            [format!("Losses of {losses} nats"), of_rates],
        )
    };
    vec![
        verdict(LARGE_IS_SHARP, "max |logit| and trace", trace, |found| {
            [found.low > 0.0, found.high < WEAK && found.low <= 0.0]
        }),
        verdict(FLAT_IS_BETTER, "trace and accuracy", accuracy, |found| {
            [found.high < 0.0, found.low > 0.0]
        }),
    ]
}

fn correlations_table(relations: &[Relation]) -> Table {
    let of_relation = |one: &Relation| {
        [("given the loss", one.given_loss), ("at one learning rate", one.at_one_rate)]
            .map(|(how, found)| (one.columns, how, found))
    };
    let all: Vec<_> = relations.iter().flat_map(of_relation).collect();
    Table::from_items("correlations", "Rank correlation (Spearman's ρ) over models", &all)
        .words("first", "first", |one| one.0[0])
        .words("second", "second", |one| one.0[1])
        .words("how", "how", |one| one.1)
        .numbers("rho", "ρ", |one| Some(one.2?.rho))
        .numbers("low", "95 % CI, low", |one| Some(one.2?.low))
        .numbers("high", "95 % CI, high", |one| Some(one.2?.high))
        .numbers("models", "models", |one| Some(one.2?.points))
        .note(
            "Given the loss: partial. At one learning rate: the median over rates. Intervals are of a bootstrap over models.",
        )
        .build()
}

fn table(models: &[FlatModel], failed: usize) -> Table {
    let key = |model: &FlatModel| {
        let of = &model.of.model;
        (of.of.clone(), of.run.clone(), of.step)
    };
    Table::from_groups("flatness", "Curvature of the loss at trained weights", groups(models, key))
        .words("run", "run", |model| &*model.of.model.run)
        .numbers("step", "step", |model| model.of.model.step)
        .sizes("models", "models")
        .medians("loss", "loss (nats)", |model| model.found.loss_nats)
        .medians("max_abs_logit", "max |logit|", |model| model.found.max_abs_logit)
        .medians("trace", "trace of H", |model| model.found.trace)
        .medians("trace_error", "its standard error", |model| model.found.trace_error)
        .medians("eigenvalue", "largest eigenvalue", |model| model.found.largest_eigenvalue)
        .medians("residual", "its residual", |model| model.found.eigenvalue_residual)
        .medians("accuracy", "classifier accuracy", |model| model.found.classifier_accuracy)
        .medians("loss_c", "classifier loss (nats)", |model| model.found.classifier_loss_nats)
        .note(
            "H: Hessian of the mean cross-entropy. A linear classifier of the mean hidden state names the part of the text \
             that a window is from, of six parts. Medians over models with (least–greatest).",
        )
        .note_failed(failed)
        .build()
}

fn figure(models: &[FlatModel]) -> Figure {
    let point = |model: &&FlatModel| (model.found.max_abs_logit, model.found.trace);
    let panel = |models: &Vec<&FlatModel>| {
        let ordered = sorted(models.iter().copied(), |model| variant(model).name());
        let series = groups(ordered, |model| variant(model).name()).into_iter().map(|models| {
            let first = variant(models[0]);
            let points = models.iter().map(point).collect();
            Series::new(&first.name(), first.ink(), Shape::Points, points)
        });
        let title = format!("learning rate {}", rate(models[0]));
        let x = Axis::log("max |logit|", models.iter().map(|model| point(model).0));
        let y = Axis::log("trace of the Hessian", models.iter().map(|model| point(model).1));
        Panel::new(&title, x, y, series.collect())
    };
    let panels: Vec<Panel> = by_rate(models).iter().map(panel).collect();
    Figure {
        name: "flatness".to_owned(),
        caption: "Trace of the loss's Hessian against max |logit|, on the same passages, by learning rate. Each point is one \
                  trained model. Higher is sharper."
            .to_owned(),
        keys: Key::of_series(panels.iter().flat_map(|panel| &panel.series), Shape::Points),
        panels,
    }
}

#[cfg(test)]
mod tests;
