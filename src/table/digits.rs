//! Numbers as people read them: so many significant digits, and no more.

/// `value` with `digits` significant digits, as a plain decimal where that is short, else as
/// `1.2e-7`. NaN and infinities are spelt out.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "NaN".to_owned() } else { format!("{value}") };
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.max(1);
    let written = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    let rounded: f64 = written.parse().unwrap_or(value);
    format!("{rounded:.decimals$}")
}

/// `1 head`, `2 heads`; `1 study`, `2 studies`.
pub fn plural(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// [`plural`] of a range: `3 seeds`, or `1–3 seeds` where the ends differ.
pub fn plural_range(least: usize, most: usize, noun: &str) -> String {
    let from = if least < most { format!("{least}–") } else { String::new() };
    from + &plural(most, noun)
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn keeps_the_digits_asked_for() {
        for (value, digits, expected) in [
            (0.058_123, 3, "0.0581"),
            (12.0, 3, "12.0"),
            (61_234.0, 3, "61200"),
            (9.999, 3, "10.0"),
            (-0.5, 2, "-0.50"),
            (1.0e-7, 2, "1.0e-7"),
            (2.5e8, 2, "2.5e8"),
            (0.0, 3, "0"),
            (f64::NAN, 3, "NaN"),
        ] {
            assert_eq!(significant(value, digits), expected, "{value} to {digits}");
        }
    }
}
