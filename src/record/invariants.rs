//! Checks of what must be true of rows.

/// Relative tolerance of a number that is computed from others of its row.
pub const ROUNDING: f64 = 1e-6;

/// Checks rows against their invariants, and collects what does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvariantChecker {
    place: String,
    /// Checks made.
    pub checks: usize,
    /// Each check that failed, in one line.
    pub breaches: Vec<String>,
}

impl InvariantChecker {
    /// From here on, breaches are of this row.
    pub fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    /// Something is so.
    pub fn holds(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.breaches.push(format!("{}: {}", self.place, otherwise()));
        }
    }

    /// small ≤ large · (1 + `room`), but for what the smallest numbers lose; a value that is missing or NaN breaks it.
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

    /// Two numbers are the same but for `room`, as a share.
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

    /// A value stands where there is one, and only there.
    pub fn there<T>(&mut self, column: &str, value: Option<&T>, there_is_one: bool) {
        self.holds(value.is_some() == there_is_one, || match there_is_one {
            true => format!("nothing in column {column}, which such a row has"),
            false => format!("something in column {column}, which such a row has not"),
        });
    }

    /// A number is finite, and no less than another.
    pub fn at_least(&mut self, column: &str, value: f64, least: f64) {
        self.holds(value.is_finite() && value >= least, || {
            format!("{column} is {value}, not a number from {least} on")
        });
    }

    /// A number lies between two others, ends included; NaN does not.
    pub fn within(&mut self, column: &str, value: f64, least: f64, most: f64) {
        self.holds((least..=most).contains(&value), || {
            format!("{column} is {value}, not from {least} to {most}")
        });
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}
