//! Tables made from plausible rows: their figures, their notes, their faults.

mod plausible;

use rank_study::{Growth, Layouts, Rows, Trainings};

#[test]
fn logit_growth_tells_reached_from_censored() {
    let folder = tempfile::tempdir().unwrap();
    plausible::logit_growth(folder.path());
    let growth = Growth::of(&Rows::of_fits(folder.path()).unwrap()).unwrap();
    assert_eq!(growth.cells.len(), 36);
    assert_eq!(growth.failed, 1);
    let hardest = &growth.cells[8];
    assert_eq!((hardest.n, hardest.rank, hardest.reached(), hardest.unreached()), (256, 4, 0, 3));
    assert_eq!(hardest.needed(), None);
    assert!(hardest.floor().is_some());
    let [slopes, cells] = &growth.tables()[..] else { panic!("two tables") };
    insta::assert_snapshot!(slopes.to_markdown());
    insta::assert_snapshot!(cells.to_markdown());
    assert_eq!(cells.to_csv().lines().count(), 37);
}

#[test]
fn layouts_count_parameters_over_heads() {
    let folder = tempfile::tempdir().unwrap();
    plausible::layouts(folder.path());
    let layouts = Layouts::of(&Rows::of_fits(folder.path()).unwrap()).unwrap();
    assert!(layouts.cells.iter().all(|cell| cell.parameters() == Some(5120)));
    insta::assert_snapshot!(layouts.tables()[0].to_markdown());
}

#[test]
fn trainings_read_their_logs() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    let rows = Rows::of_trainings(folder.path()).unwrap();
    let trainings = Trainings::of(folder.path(), &rows).unwrap();
    assert_eq!(trainings.runs[0].log.train_loss.len(), 1500);
    assert!(trainings.runs[0].log.max_logit_local.len() == 1500, "ls has local heads");
    assert!(trainings.runs[1].log.max_logit_local.is_empty(), "mhsa has none");
    insta::assert_snapshot!(trainings.tables()[0].to_markdown());
}

#[test]
fn a_study_of_the_wrong_kind_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    plausible::layouts(folder.path());
    let error = Growth::of(&Rows::of_fits(folder.path()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no finished row has a tolerance"), "{error}");
    let error = Rows::of_trainings(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no column \"run\""), "{error}");
}

#[test]
fn a_missing_log_is_named() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    std::fs::remove_file(folder.path().join("ls/s0/heads.parquet")).unwrap();
    let rows = Rows::of_trainings(folder.path()).unwrap();
    let error = Trainings::of(folder.path(), &rows).unwrap_err().to_string();
    assert!(error.contains("heads.parquet") && error.contains("--resume"), "{error}");
}
