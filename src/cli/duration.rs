//! Durations formatted for people.

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
/// Estimates change to the next larger unit from this number of it on.
const OF_A_UNIT: f64 = 1.5;

/// Formats seconds: `48 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// Formats an estimate of seconds, rounded to its precision: `about 20 s`, `about 4 min`.
pub fn about(seconds: f64) -> String {
    let (unit_s, unit, step) = match seconds {
        _ if seconds < OF_A_UNIT * MINUTE => (1.0, "s", 5.0),
        _ if seconds < OF_A_UNIT * HOUR => (MINUTE, "min", 1.0),
        _ if seconds < OF_A_UNIT * DAY => (HOUR, "h", 1.0),
        _ => (DAY, "d", 1.0),
    };
    format!("about {} {unit}", ((seconds / unit_s / step).round() * step).max(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_says_them() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.6, "1 min 0 s"),
            (200.0, "3 min 20 s"),
            (7500.0, "2 h 5 min"),
            (273_600.0, "3 d 4 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn an_estimate_is_rounded() {
        for (seconds, text) in [
            (0.2, "about 5 s"),
            (88.0, "about 90 s"),
            (200.0, "about 3 min"),
            (7500.0, "about 2 h"),
            (273_600.0, "about 3 d"),
        ] {
            assert_eq!(about(seconds), text);
        }
    }
}
