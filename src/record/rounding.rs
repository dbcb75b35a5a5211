//! How finely rows tell times: as files have them, so that rows and manifests can be held against each other.

/// A time in s, to the microsecond.
pub fn to_microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// A time in s, to the millisecond.
pub fn to_milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
