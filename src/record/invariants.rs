//! Checks the invariants of rows.

/// Relative tolerance of a number that is computed from other numbers of its row.
pub const ROUNDING: f64 = 1e-6;

/// Checks rows against their invariants and collects the violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvariantChecker {
    place: String,
    /// The number of checks made.
    pub checks: usize,
    /// Each check that failed, in one line.
    pub breaches: Vec<String>,
}

impl InvariantChecker {
    /// Sets the row that the following breaches name.
    pub fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    /// Records a breach with the text of `otherwise` unless `holds`.
    pub fn holds(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.breaches.push(format!("{}: {}", self.place, otherwise()));
        }
    }

    /// Checks small ≤ large · (1 + `room`), with an absolute slack of 1e-9. A missing value or NaN is a breach.
    pub fn at_most(
        &mut self,
        what: &str,
        small: impl Into<Option<f64>>,
        large: impl Into<Option<f64>>,
        room: f64,
    ) {
        let (small, large) = (small.into(), large.into());
        let holds = |(small, large): (f64, f64)| small <= large + room * large.abs() + 1e-9;
        self.holds(small.zip(large).is_some_and(holds), || {
            format!("{what}: {} against {}", shown(small), shown(large))
        });
    }

    /// Checks that two numbers are equal up to the relative tolerance `room`.
    pub fn equal(
        &mut self,
        what: &str,
        one: impl Into<Option<f64>>,
        other: impl Into<Option<f64>>,
        room: f64,
    ) {
        let (one, other) = (one.into(), other.into());
        let holds = |(a, b): (f64, f64)| (a - b).abs() <= room * a.abs().max(b.abs()) + 1e-12;
        self.holds(one.zip(other).is_some_and(holds), || {
            format!("{what}: {} against {}", shown(one), shown(other))
        });
    }

    /// Checks that `value` is present exactly if `there_is_one`.
    pub fn there<T>(&mut self, column: &str, value: Option<&T>, there_is_one: bool) {
        self.holds(value.is_some() == there_is_one, || match there_is_one {
            true => format!("nothing in column {column}, which such a row has"),
            false => format!("something in column {column}, which such a row has not"),
        });
    }

    /// Checks that a number is finite and at least `least`.
    pub fn at_least(&mut self, column: &str, value: f64, least: f64) {
        self.holds(value.is_finite() && value >= least, || {
            format!("{column} is {value}, not a number from {least} on")
        });
    }

    /// Checks that a number is in the closed interval from `least` to `most`; NaN is not.
    pub fn within(&mut self, column: &str, value: f64, least: f64, most: f64) {
        self.holds((least..=most).contains(&value), || {
            format!("{column} is {value}, not from {least} to {most}")
        });
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}
