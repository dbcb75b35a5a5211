//! Rounds times alike in rows and in manifests, so that both can be compared.

/// Rounds a time in s to the microsecond.
pub fn to_microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Rounds a time in s to the millisecond.
pub fn to_milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
