//! Tests of the tables of concentration, on synthetic heads.

use crate::experiments::concentration::tables::{ConcentratedHead, Concentrations};
use crate::experiments::concentration::{ConcentrationMeasurement, FarConcentration};
use crate::record::Rows;
use crate::table::Cell;
use crate::targets::HeadKind;

/// A global head for n = 512 and a window of 16. It holds 0.9 of its far mass on `share` of the far columns. 0.9 of its
/// far part's ‖·‖_F² has rank `rank`, or 100 after shuffling.
pub(crate) fn head(arm: &str, seed: u64, share: f64, rank: f64) -> ConcentratedHead {
    let far_columns = 367.5;
    ConcentratedHead {
        of: "runs".to_owned(),
        run: Some(arm.to_owned()),
        arm: arm.to_owned(),
        seed,
        step: 100,
        window: 16,
        found: ConcentrationMeasurement {
            layer: 0,
            head: 0,
            kind: HeadKind::Global,
            passage: 0,
            passages: 2,
            n: 512,
            rank: 16,
            columns: 384.5,
            far_columns,
            sink_mass: 0.01,
            far_mass: 0.6,
            effective_tokens: 100.0,
            tokens_90: 150.0,
            top_4: 0.1,
            top_16: 0.2,
            top_64: 0.5,
            rank_90: 40.0,
            rank_99: 120.0,
            stable_rank: 5.0,
            far: Some(FarConcentration {
                far_effective_tokens: 0.7 * share * far_columns,
                far_tokens_90: share * far_columns,
                far_top_4: 0.1,
                far_top_16: 0.2,
                far_top_64: 0.5,
                far_rank_90: rank,
                far_rank_99: 2.0 * rank,
                far_stable_rank: 4.0,
                shuffled_rank_90: 100.0,
                shuffled_rank_99: 200.0,
                shuffled_stable_rank: 3.0,
            }),
            wall_time_s: 0.1,
        },
    }
}

/// Three heads for each of `seeds` seeds; the median head has `share` and `rank`.
pub(crate) fn heads(arm: &str, seeds: u64, share: f64, rank: f64) -> Concentrations {
    let of_seed = |seed| [0.9, 1.0, 1.1].map(|times| head(arm, seed, times * share, times * rank));
    Concentrations { heads: (1..=seeds).flat_map(of_seed).collect(), failed: 0 }
}

#[test]
fn tables_have_uniform_attention_beside_the_heads() {
    let mut study = heads("ls", 2, 0.4, 20.0);
    let mut local = head("ls", 1, 0.4, 20.0);
    local.found.kind = HeadKind::Local { window: 16 };
    local.found.far = None;
    study.heads.push(local);
    let mut little = head("ls", 2, 0.01, 1.0);
    little.found.far_mass = 0.05;
    study.heads.push(little);
    let [far, whole] = <[_; 2]>::try_from(study.tables()).unwrap();
    let shown = |table: &super::Table, row: usize| -> Vec<String> {
        table.rows()[row].iter().map(Cell::shown).collect()
    };
    assert_eq!((far.rows().len(), whole.rows().len()), (2, 3));
    let uniform = shown(&far, 0);
    assert_eq!(uniform[..5], ["uniform", "global", "512", "16", "–"]);
    // exp(H) of uniform attention is the number of columns, and 0.9 of them hold 0.9 of the mass.
    assert_eq!(uniform[9], "1.00", "{uniform:?}");
    assert!(uniform[10].starts_with("0.90"), "{uniform:?}");
    // Rows of different lengths do not have rank one.
    assert_eq!(uniform[15], "2.00", "{uniform:?}");
    let heads = shown(&far, 1);
    assert_eq!(heads[5..7], ["7", "6"], "the one with little there is left out: {heads:?}");
    assert!(heads[10].starts_with("0.40"), "{heads:?}");
}

#[test]
fn a_model_is_looked_at_at_its_last_step() {
    let mut study = heads("ls", 1, 0.4, 20.0);
    study.heads[0].step = 50;
    let row = |head: &ConcentratedHead| crate::record::Row {
        study: "s".to_owned(),
        cell: format!("ls/s1/step-{}", head.step),
        of: crate::experiments::ModelKey {
            of: Some(head.of.clone()),
            run: "ls".to_owned(),
            arm: "ls".to_owned(),
            seed: Some(head.seed),
            corpus: None,
            layers: 1,
            d_model: Some(16),
            heads: 1,
            d_head: None,
            global_heads: Some(1),
            window: Some(16),
            context: 512,
            batch: None,
            steps: None,
            learning_rate: None,
            recall: None,
            step: Some(head.step),
        },
        found: head.found.clone(),
        settings: String::new(),
    };
    let rows = study.heads.iter().map(row).collect();
    let gathered = Concentrations::of(&Rows { path: "rows.csv".into(), rows, failed: 0 }).unwrap();
    assert_eq!(gathered.heads, study.heads[1..]);
    assert_eq!(gathered.uniform().len(), 1);
    assert_eq!(gathered.global_of_ls().len(), 1);
}
