//! A search's hold on one of its fits.

use std::sync::atomic::{AtomicBool, Ordering};

use super::watch::{FitName, FitProgress, FitState, Watch};

/// Tells the search's watch of a fit, and ends it with the search.
pub(super) struct Attendance<'a> {
    pub watch: &'a dyn Watch,
    pub name: FitName,
    /// Iterations of the fit at most.
    pub limit: usize,
    /// Whether the search is to end.
    pub ended: &'a AtomicBool,
}

impl Attendance<'_> {
    /// Tells of an iteration; whether the fit is to go on.
    pub fn goes_on(
        &self,
        cap: f64,
        iterations: usize,
        value: f64,
        state: &dyn Fn() -> FitState,
    ) -> bool {
        let at = FitProgress { fit: &self.name, cap, iterations, limit: self.limit, value };
        if !self.watch.goes_on(&at, state) {
            self.end_search();
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Ends every fit of the search after its iteration.
    pub fn end_search(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
