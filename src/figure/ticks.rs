//! Tick positions and tick labels of axes.

/// One tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Value on the axis.
    pub value: f64,
    /// Text of the label.
    pub label: String,
}

impl Tick {
    fn at(value: f64) -> Self {
        Self { value, label: tick_label(value) }
    }
}

/// Maximum number of ticks per axis.
const MOST: usize = 7;

/// Ticks of a linear axis: round numbers, at most seven.
pub(crate) fn linear_ticks(low: f64, high: f64) -> Vec<Tick> {
    let span = high - low;
    if !(span.is_normal() && span > 0.0) {
        return vec![Tick::at(low)];
    }
    let decade = 10f64.powf((span / 6.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| span / step <= 6.0).unwrap_or(10.0 * decade);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).take(MOST).map(|at| Tick::at(at as f64 * step)).collect()
}

/// Ticks of a logarithmic axis: powers of ten, or 1–3, 1–2–5 or 1–2–3–5 in every decade. Takes the coarsest of these
/// with at least four ticks, or else with three. A range too narrow for them gets linear ticks.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    const MARKS: [&[f64]; 4] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 5.0]];
    let has_decades = low.is_normal() && low > 0.0 && high.is_finite();
    for least in [4, 3].into_iter().filter(|_| has_decades) {
        for marks in MARKS {
            let ticks = log_ticks_at(low, high, marks);
            if ticks.len() >= least {
                let every = ticks.len().div_ceil(MOST);
                return ticks.into_iter().step_by(every).collect();
            }
        }
    }
    linear_ticks(low, high)
}

fn log_ticks_at(low: f64, high: f64, marks: &[f64]) -> Vec<Tick> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    decades
        .flat_map(|decade| marks.iter().map(move |mark| mark * 10f64.powi(decade)))
        .filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value))
        .map(Tick::at)
        .collect()
}

/// Ticks of a logarithmic axis at the measured values, without those that would overlap.
pub(crate) fn ticks_at_values(values: &[f64]) -> Vec<Tick> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let gap = (last / first).ln() / (MOST as f64 + 0.5);
    let mut ticks: Vec<Tick> = Vec::new();
    for &value in &sorted {
        if ticks.last().is_none_or(|tick| (value / tick.value).ln() >= gap) {
            ticks.push(Tick::at(value));
        }
    }
    ticks
}

/// Formats a number for an axis: short and plain (`1,000`, `0.05`), or as a power (`10⁻⁴`).
pub(crate) fn tick_label(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10();
    if (-4.0 - 1e-9..6.0 - 1e-9).contains(&exponent) {
        let rounded = format!("{value:.6}");
        return thousands(rounded.trim_end_matches('0').trim_end_matches('.')).replace('-', "−");
    }
    let power = (exponent + 1e-9).floor() as i32;
    let mantissa = value / 10f64.powi(power);
    let raised = format!("10{}", superscript(power));
    if (mantissa - 1.0).abs() < 1e-6 {
        return raised;
    }
    let mantissa = format!("{mantissa:.2}");
    format!("{}×{raised}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a sequence length for titles and captions: `n = 1,024`.
pub(crate) fn length(n: usize) -> String {
    format!("n = {}", thousands(&n.to_string()))
}

/// A sentence for a caption that explains the symbols in the `titles` of targets.
pub(crate) fn symbols<'a>(titles: impl Iterator<Item = &'a str>) -> String {
    const SYMBOLS: [(&str, &str); 7] = [
        ("w", "window"),
        ("τ", "decay length"),
        ("α", "concentration"),
        ("σ", "spread"),
        ("k", "tokens"),
        ("c", "clusters"),
        ("m", "landmarks"),
    ];
    let titles: Vec<&str> = titles.collect();
    let is_used =
        |symbol: &str| titles.iter().any(|title| title.contains(&format!(" {symbol} = ")));
    let used = SYMBOLS.iter().filter(|(symbol, _)| is_used(symbol));
    let each: Vec<String> = used.map(|(symbol, what)| format!("{symbol} {what}")).collect();
    if each.is_empty() { String::new() } else { format!(" In titles: {}.", each.join(", ")) }
}

/// Sort key for labels: words as text and numbers by value, so that `d_head = 8` precedes `d_head = 16`.
pub(crate) fn natural(label: &str) -> Vec<(String, u64)> {
    let word = |word: &str| {
        let word = word.trim_end_matches([',', ':']).to_lowercase();
        match word.replace(',', "").parse::<f64>() {
            Ok(number) if number >= 0.0 => (String::new(), number.to_bits()),
            _ => (word, 0),
        }
    };
    label.split_whitespace().map(word).collect()
}

fn thousands(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: Vec<char> = whole.chars().collect();
    let mut text = String::new();
    for (at, digit) in digits.iter().enumerate() {
        let after = digits.len() - at;
        if at > 0 && after.is_multiple_of(3) && digits[at - 1] != '-' {
            text.push(',');
        }
        text.push(*digit);
    }
    if fraction.is_empty() { text } else { format!("{text}.{fraction}") }
}

fn superscript(power: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raise = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    power.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn numbers_are_written_short() {
        for (value, label) in [
            (1_000_000.0, "10⁶"),
            (1500.0, "1,500"),
            (0.001, "0.001"),
            (0.0003, "0.0003"),
            (0.0001, "0.0001"),
            (0.00002, "2×10⁻⁵"),
            (-2.5, "−2.5"),
            (128.0, "128"),
        ] {
            assert_eq!(tick_label(value), label);
        }
        assert_eq!([64, 1024, 16_384].map(length), ["n = 64", "n = 1,024", "n = 16,384"]);
    }

    #[test]
    fn captions_explain_the_symbols_of_titles() {
        let of = |titles: &[&'static str]| symbols(titles.iter().copied());
        assert_eq!(of(&["decay-band, w = 32, τ = 8"]), " In titles: w window, τ decay length.");
        assert_eq!(of(&["prefix", "induction, vocabulary = 32"]), "");
    }

    #[test]
    fn labels_are_sorted_by_words_and_numbers() {
        let sorted = [
            "multi-head",
            "multi-head: n = 256, d_head = 16",
            "multi-head: n = 1,024, d_head = 8",
            "multi-head: n = 1,024, d_head = 16",
            "multi-head, RoPE: n = 512, d_head = 4",
        ];
        assert!(sorted.is_sorted_by_key(|label| natural(label)));
    }

    #[test]
    fn logarithmic_ticks_are_neither_few_nor_crowded() {
        assert_eq!(labels(&log_ticks(0.9, 6.0)), ["1", "2", "3", "5"]);
        assert_eq!(labels(&log_ticks(0.8, 40.0)), ["1", "3", "10", "30"]);
        assert_eq!(labels(&log_ticks(1e-3, 1.0)), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(log_ticks(1e-12, 1e6).len(), 7);
        assert_eq!(labels(&log_ticks(3.4, 24.0)), ["5", "10", "20"]);
        assert_eq!(labels(&log_ticks(1.0, 1.3)), ["1", "1.1", "1.2", "1.3"]);
    }

    #[test]
    fn linear_ticks_are_round() {
        let quarters = ["0", "250", "500", "750", "1,000", "1,250", "1,500"];
        assert_eq!(labels(&linear_ticks(0.0, 1500.0)), quarters);
        assert_eq!(labels(&linear_ticks(0.0, 61.0)), ["0", "20", "40", "60"]);
    }

    #[test]
    fn whatever_the_ends_of_an_axis_are_its_ticks_are_few() {
        let sizes = [0.0, 5e-324, 1e-320, f64::MIN_POSITIVE, 1.0, 1e300, f64::MAX, f64::INFINITY];
        let ends = [&[f64::NAN], &sizes[..], &sizes.map(|size| -size)].concat();
        for (low, high) in ends.iter().flat_map(|&low| ends.iter().map(move |&high| (low, high))) {
            for ticks in [linear_ticks(low, high), log_ticks(low, high)] {
                assert!(ticks.len() <= MOST, "{low:e} {high:e}: {ticks:?}");
            }
        }
    }

    #[test]
    fn measured_values_are_ticks_unless_they_touch() {
        assert_eq!(labels(&ticks_at_values(&[64.0, 256.0, 128.0, 64.0])), ["64", "128", "256"]);
        assert_eq!(labels(&ticks_at_values(&[100.0, 101.0, 1000.0])), ["100", "1,000"]);
    }
}
