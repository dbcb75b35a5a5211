//! Durations in words.

use rank_study::study::Span;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
/// A unit is used until there are so many of it.
const OF_A_UNIT: f64 = 1.5;

/// Seconds as a person says them: `48 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// What lies between two durations, no finer than is known: `2 to 4 min`, `about 20 s`.
pub fn span(of: Span) -> String {
    let most = of.most_s;
    let (unit_s, unit, step) = match most {
        _ if most < OF_A_UNIT * MINUTE => (1.0, "s", 5.0),
        _ if most < OF_A_UNIT * HOUR => (MINUTE, "min", 1.0),
        _ if most < OF_A_UNIT * DAY => (HOUR, "h", 1.0),
        _ => (DAY, "d", 1.0),
    };
    let rounded = |seconds: f64| (seconds / unit_s / step).round() * step;
    let (least, most) = (rounded(of.least_s), rounded(most).max(step));
    match least {
        _ if least == most => format!("about {most} {unit}"),
        0.0 => format!("up to {most} {unit}"),
        _ => format!("{least} to {most} {unit}"),
    }
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
    fn a_span_says_no_more_than_is_known() {
        for (least_s, most_s, text) in [
            (0.2, 1.0, "up to 5 s"),
            (18.0, 21.0, "about 20 s"),
            (31.0, 62.0, "30 to 60 s"),
            (50.0, 140.0, "1 to 2 min"),
            (130.0, 250.0, "2 to 4 min"),
            (3000.0, 5000.0, "50 to 83 min"),
            (20_000.0, 100_000.0, "6 to 28 h"),
            (200_000.0, 400_000.0, "2 to 5 d"),
        ] {
            assert_eq!(span(Span { least_s, likely_s: least_s, most_s }), text);
        }
    }
}
