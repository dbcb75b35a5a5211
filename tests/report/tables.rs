//! Tables made from plausible rows: their figures, their notes, their faults.

use crate::plausible;

use rank_study::experiments::fits::tables::growth::Growth;
use rank_study::experiments::training::TrainingMeasurement;
use rank_study::record::Rows;

#[test]
fn logit_growth_tells_reached_from_censored() {
    let growth = plausible::growth();
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
    let layouts = plausible::layout_tables();
    assert!(layouts.cells.iter().all(|cell| cell.parameters() == 5120));
    insta::assert_snapshot!(layouts.tables()[0].to_markdown());
}

#[test]
fn trainings_read_their_logs_and_name_a_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    let trainings = plausible::trainings(folder.path()).unwrap();
    let log = &trainings.runs[0].log;
    assert_eq!(log.train_loss.len(), 100);
    assert_eq!(log.max_logit_local.len(), 100, "ls has local heads");
    assert!(trainings.runs[1].log.max_logit_local.is_empty(), "mhsa has none");
    insta::assert_snapshot!(trainings.tables()[0].to_markdown());
    std::fs::remove_file(folder.path().join("ls/s0/curve.csv")).unwrap();
    let error = plausible::trainings(folder.path()).unwrap_err().to_string();
    assert!(error.contains("curve.csv"), "{error}");
}

#[test]
fn a_study_of_the_wrong_kind_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    plausible::layouts(folder.path());
    let folders = [folder.path().to_owned()];
    let error = Growth::of(&Rows::read(&folders).unwrap()).unwrap_err().to_string();
    assert!(error.contains("tolerance"), "{error}");
    let error = Rows::<TrainingMeasurement>::read(&folders).unwrap_err().to_string();
    assert!(error.contains("\"run\""), "{error}");
}
