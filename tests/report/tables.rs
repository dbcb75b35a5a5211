//! Tables made from plausible rows: their figures, their notes, their faults.

use crate::plausible;

use rank_study::experiments::fits::tables::growth::Growth;
use rank_study::experiments::fits::tables::layouts::Layouts;
use rank_study::experiments::training::TrainingMeasurement;
use rank_study::experiments::training::tables::training::Trainings;
use rank_study::record::Rows;

#[test]
fn logit_growth_tells_reached_from_censored() {
    let folder = tempfile::tempdir().unwrap();
    plausible::logit_growth(folder.path());
    let growth = Growth::of(&Rows::read(&[folder.path().to_owned()]).unwrap()).unwrap();
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
    let layouts = Layouts::of(&Rows::read(&[folder.path().to_owned()]).unwrap()).unwrap();
    assert!(layouts.cells.iter().all(|cell| cell.parameters() == 5120));
    insta::assert_snapshot!(layouts.tables()[0].to_markdown());
}

#[test]
fn trainings_read_their_logs() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    let rows = Rows::<TrainingMeasurement>::read(&[folder.path().to_owned()]).unwrap();
    let trainings = Trainings::of(&rows, folder.path().parent()).unwrap();
    let log = &trainings.runs[0].log;
    assert_eq!(log.train_loss.len(), 100);
    assert_eq!(log.max_logit_local.len(), 100, "ls has local heads");
    assert!(trainings.runs[1].log.max_logit_local.is_empty(), "mhsa has none");
    insta::assert_snapshot!(trainings.tables()[0].to_markdown());
}

#[test]
fn a_study_of_the_wrong_kind_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    plausible::layouts(folder.path());
    let error =
        Growth::of(&Rows::read(&[folder.path().to_owned()]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no finished row has a tolerance"), "{error}");
    let error =
        Rows::<TrainingMeasurement>::read(&[folder.path().to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no column \"run\""), "{error}");
}

#[test]
fn a_missing_log_is_named() {
    let folder = tempfile::tempdir().unwrap();
    plausible::lm_quick(folder.path());
    std::fs::remove_file(folder.path().join("ls/s0/curve.csv")).unwrap();
    let rows = Rows::<TrainingMeasurement>::read(&[folder.path().to_owned()]).unwrap();
    let data = folder.path().parent().unwrap();
    let error = Trainings::of(&rows, Some(data)).unwrap_err().to_string();
    assert!(error.contains("curve.csv") && error.contains("run its study again"), "{error}");
}

#[test]
fn rows_of_several_studies_make_one_table() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    folders.iter().for_each(|folder| plausible::logit_growth(folder.path()));
    let both = folders.each_ref().map(|folder| folder.path().to_owned());
    let growth = Growth::of(&Rows::read(&both).unwrap()).unwrap();
    assert_eq!(growth.cells.len(), 36);
    assert!(growth.cells.iter().all(|cell| cell.seeds.len() == 6), "three of each");
    assert_eq!(growth.failed, 2);
}
