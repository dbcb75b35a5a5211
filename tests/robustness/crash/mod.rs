//! What becomes of a command's files where the disk fails or the power is lost at any single operation on the disk: the
//! next run makes up for it, nothing that was finished is lost or there twice, and nothing torn is taken for whole.

mod double;
mod failing;
mod lost;
mod model;
mod scenario;

use scenario::{FIT, MERGE, PART, REPRODUCE, SWEEP, TOKENS, TRAIN, TRAININGS};

/// The program under a double, where it is started as such.
#[test]
fn child() {
    double::child(rank_study::run_command_line);
}

#[test]
fn a_sweep_that_lost_its_power() {
    lost::at_each_operation("crash-sweep", &SWEEP);
}

#[test]
fn a_training_that_lost_its_power() {
    lost::at_each_operation("crash-train", &TRAIN);
}

#[test]
fn a_fit_that_lost_its_power() {
    lost::at_each_operation("crash-fit", &FIT);
}

#[test]
fn a_reproduction_that_lost_its_power() {
    lost::at_each_operation("crash-reproduce", &REPRODUCE);
}

#[test]
fn a_merge_that_lost_its_power() {
    lost::at_each_operation("crash-merge", &MERGE);
}

#[test]
fn a_part_that_lost_its_power() {
    lost::at_each_operation("crash-part", &PART);
}

#[test]
fn a_study_of_trainings_that_lost_its_power() {
    lost::at_each_operation("crash-trainings", &TRAININGS);
}

#[test]
fn tokens_that_lost_their_power() {
    lost::at_each_operation("crash-tokens", &TOKENS);
}

#[test]
fn a_disk_that_fails_or_is_full() {
    failing::at_each_operation(&[SWEEP, TRAIN, FIT, REPRODUCE, MERGE, PART, TRAININGS, TOKENS]);
}
