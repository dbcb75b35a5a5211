use std::ops::{ControlFlow, Range};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::heads::Surgery;
use crate::lm::{
    Attend, HeadsOfLayer, LmError, Model, ModelShape, Probed, Split, Texts, TrainDefinition,
};
use crate::solver::{SearchOptions, SolverBudget};

const TOKENS: usize = 24;

/// A model that reads no texts.
struct Untrained(Model);

impl Probed for Untrained {
    fn context(&self) -> usize {
        TOKENS
    }

    fn layers(&self) -> usize {
        self.0.shape().layers()
    }

    fn heads(&self) -> usize {
        self.0.shape().heads[0].len()
    }

    fn tokens(&self, _: Option<&Texts>, _: Option<Split>, _: usize) -> Result<Vec<u32>, LmError> {
        Err(LmError::NoText)
    }

    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError> {
        for layer in layers {
            let of_layer = |passage: &Vec<u32>| {
                let heads = self.0.probe(passage)?.into_iter();
                Ok(heads.filter(|probe| probe.layer == layer).collect())
            };
            let heads = passages.iter().map(of_layer).collect::<Result<_, LmError>>()?;
            if each(heads).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn model(&self) -> Option<&Model> {
        Some(&self.0)
    }

    fn passage_loss(&self, passage: &[u32], attend: &mut Attend<'_>) -> Result<f64, LmError> {
        self.0.passage_loss(passage, attend)
    }
}

/// The rows of a small model with random weights after `edits`. The weights are large enough that attention is far from
/// uniform. Edits are learned on the first group.
fn rows(edits: &[Edit], fit_groups: usize) -> Vec<Row<InterventionMeasurement>> {
    let definition = TrainDefinition {
        layers: 2,
        d_model: 16,
        heads: 2,
        window: 7,
        context: TOKENS,
        arm: crate::lm::Arm::Ls,
        ..TrainDefinition::default()
    };
    let model = Untrained(Model::new(ModelShape::new(&definition, 19), 0.5, 3).unwrap());
    let passage = |at: u32| -> Vec<u32> {
        (0..TOKENS as u32).map(|i| (i * i * 7 + i / 3 + at * i + at) % 19).collect()
    };
    let groups = [vec![passage(0), passage(1)], vec![passage(2), passage(3)]];
    let effort =
        SolverBudget { iterations: 800, relative_decrease: 1e-5, ..SolverBudget::default() };
    let search = SearchOptions {
        starts: 0,
        polished: 1,
        passes: 0,
        rough: effort,
        fine: effort,
        ..SearchOptions::default()
    };
    let surgery = Surgery { model: &model, edits, fit_groups, search };
    let mut found = Vec::new();
    let ended = surgery.run(&groups[0], &groups, &AtomicBool::new(false), |operated| {
        found.push(operated);
        Ok(())
    });
    assert!(ended.unwrap());
    let of = ModelKey {
        seed: Some(3),
        d_model: Some(16),
        global_heads: Some(1),
        window: Some(7),
        ..ModelKey::of_published("ls", "ls", None, [2, 2, TOKENS], None)
    };
    let row = |found| Row {
        study: "s".to_owned(),
        cell: "ls/s3".to_owned(),
        of: of.clone(),
        found,
        settings: String::new(),
    };
    found.into_iter().map(row).collect()
}

fn breaches(rows: &[Row<InterventionMeasurement>]) -> Vec<String> {
    let mut check = InvariantChecker::default();
    rows.iter().for_each(|row| InterventionMeasurement::check_row(row, &mut check));
    InterventionMeasurement::check_cell(rows, &mut check);
    check.breaches
}

fn of(rows: &[Row<InterventionMeasurement>], edit: Edit) -> &InterventionMeasurement {
    rows.iter().map(|row| &row.found).find(|found| found.edit() == Some(edit)).unwrap()
}

#[test]
fn every_edit_gives_rows_that_hold_and_costs_what_it_must() {
    use Edit::{Lag, Own, Position, PositionAndLag, Ramp, Uniform};
    let fits = [(0.1, 8), (1e-6, 8), (0.1, 2), (0.1, TOKENS)];
    let cuts = [Edit::Largest { count: 3 }, Edit::Largest { count: TOKENS }];
    let windows = [Edit::Last { window: 3 }, Edit::Last { window: TOKENS }];
    let rounded = [2, 8].map(|bits| Edit::Rounded { bits });
    let rounded_qk = [2, 8].map(|bits| Edit::RoundedQueriesAndKeys { bits });
    let mut edits = vec![Uniform, Ramp, Position, Lag, PositionAndLag, Edit::KeyScores];
    edits.extend([cuts, windows, rounded, rounded_qk].concat());
    edits.extend(fits.map(|(epsilon, rank)| Edit::Fit { epsilon, rank }));
    let rows = rows(&edits, 1);
    assert_eq!(breaches(&rows), Vec::<String>::new());
    assert_eq!(rows.len(), 2 * (1 + edits.len()) - fits.len(), "fits are of one group");
    assert_eq!(of(&rows, Own).delta_loss_nats, 0.0);
    // Edits that keep all columns do not change the model.
    for edit in [cuts[1], windows[1]] {
        let found = of(&rows, edit);
        let off = found.delta_loss_nats.abs().max(found.total_variation);
        assert!(off < 1e-5, "{edit:?}: {off}");
    }
    // On the passages of the fit, a function is at most as far from attention as its special cases.
    let kl = |edit: Edit| of(&rows, edit).kl_nats.unwrap();
    for (wide, narrow) in [
        (Ramp, Uniform),
        (Position, Ramp),
        (Lag, Ramp),
        (PositionAndLag, Position),
        (PositionAndLag, Lag),
    ] {
        assert!(kl(wide) < kl(narrow) + 1e-6, "{wide:?} {}, {narrow:?} {}", kl(wide), kl(narrow));
    }
    // Fewer bits change more; at eight bits hardly anything changes.
    for [few, many] in [rounded, rounded_qk] {
        assert!(kl(few) > 10.0 * kl(many), "{few:?} {}, {many:?} {}", kl(few), kl(many));
        assert!(of(&rows, many).delta_loss_nats.abs() < 0.01);
    }
    // A fit is about as close as its ε, and a closer fit adds less loss.
    let [loose, strict, _, any_rank] =
        fits.map(|(epsilon, rank)| of(&rows, Edit::Fit { epsilon, rank }));
    assert_eq!((loose.reached, strict.reached), (Some(4), Some(4)));
    assert!(loose.kl_nats.unwrap() > 10.0 * strict.kl_nats.unwrap(), "{loose:?}");
    assert!(strict.delta_loss_nats.abs() < 0.01, "{strict:?}");
    assert!(of(&rows, Uniform).delta_loss_nats.abs() > 0.01);
    // A fit of any rank needs no larger logits, for which it uses all of ε.
    assert!((any_rank.kl_nats.unwrap() - 0.1).abs() < 1e-6, "{any_rank:?}");
    assert!(any_rank.max_abs_logit_after <= loose.max_abs_logit_after, "{any_rank:?}, {loose:?}");
}

type Alteration = fn(&mut InterventionMeasurement);

#[test]
fn rows_that_were_altered_break_a_law() {
    let edits =
        [Edit::Last { window: 3 }, Edit::Fit { epsilon: 0.1, rank: 8 }, Edit::Rounded { bits: 4 }];
    let rows = rows(&edits, 2);
    assert_eq!(breaches(&rows), Vec::<String>::new());
    let alterations: [(&str, Alteration); 14] = [
        ("edit", |f| f.edit = "uniform".to_owned()),
        ("epsilon", |f| f.epsilon = Some(f.epsilon.unwrap_or(0.1) * 1e-6)),
        ("rank", |f| f.rank = f.rank.map_or(Some(3), |rank| Some(rank + 1))),
        ("size", |f| f.size = f.size.map_or(Some(2), |size| Some(size + 1))),
        ("group", |f| f.group += 1),
        ("n", |f| f.n += 1),
        ("loss_nats", |f| f.loss_nats += 0.01),
        ("delta_loss_nats", |f| f.delta_loss_nats += 0.01),
        ("max_abs_logit_before", |f| f.max_abs_logit_before += 0.1),
        ("max_abs_logit_after", |f| f.max_abs_logit_after = Some(0.0)),
        ("max_abs_logit_of_largest", |f| f.max_abs_logit_of_largest = None),
        ("kl_nats", |f| f.kl_nats = f.kl_nats.map_or(Some(0.1), |_| None)),
        ("total_variation", |f| f.total_variation = 1.1),
        ("reached", |f| f.reached = f.reached.map_or(Some(1), |reached| Some(reached - 1))),
    ];
    for (column, alter) in alterations {
        for at in 0..rows.len() {
            let mut altered = rows.clone();
            alter(&mut altered[at].found);
            let edit = &rows[at].found.edit;
            assert!(!breaches(&altered).is_empty(), "{column} of {edit}");
        }
    }
}
