//! Checks of the rows of a study of flatness.

use crate::experiments::CheckpointKey;
use crate::lm::{EIGENVALUE_TOLERANCE, FlatnessMeasurement};
use crate::record::{InvariantChecker, Measurement, Row};
use crate::solver::Outcome;

impl Measurement for FlatnessMeasurement {
    type Key = CheckpointKey;

    const NAME: &'static str = "flatness";
    const VERSION: u32 = 1;

    fn outcome(&self) -> String {
        let is_converged = self.eigenvalue_residual <= EIGENVALUE_TOLERANCE;
        let outcome = if is_converged { Outcome::Converged } else { Outcome::StepLimit };
        outcome.name().to_owned()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let f = &row.found;
        check.within("n", f.n as f64, 2.0, row.of.model.context as f64);
        check.within("classifier_accuracy", f.classifier_accuracy, 0.0, 1.0);
        check.at_least("loss_nats", f.loss_nats, 0.0);
        check.at_least("max_abs_logit", f.max_abs_logit, 0.0);
        check.at_least("trace_error", f.trace_error, 0.0);
        check.at_least("eigenvalue_residual", f.eigenvalue_residual, 0.0);
        check.at_least("classifier_loss_nats", f.classifier_loss_nats, 0.0);
        // An eigenvalue lies within the residual of θ, and the mean of all is at most the largest.
        let mean = (f.trace - 5.0 * f.trace_error) / f.parameters as f64;
        let most = f.largest_eigenvalue + f.eigenvalue_residual * f.largest_eigenvalue.abs();
        check.at_most("the mean eigenvalue is above the largest", mean, most, 0.0);
    }
}
