//! Text altered by what it is made of: numbers, words, fields and lines.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::alter;

/// What a number, a word or a value may become.
const VALUES: [&str; 40] = [
    "0", "-0", "1", "-1", "2", "nan", "NaN", "inf", "-inf", "Infinity", "1e300", "-1e300",
    "1e-320", "5e-324", "1e38", "1e999", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "99999999999999999999", "4294967296", "2147483647", "65536", "1000000",
    "0.5", "1.5", "-0.5", "0x10", "true", "false", "null", "", "\"\"", "\"x\"", "[]", "{}", "[[]]",
    "..", "/etc/passwd", "\u{1b}[31m",
];

/// How deep brackets are nested: beyond what a reader that calls itself may go.
const DEEP: usize = 20_000;
const LONG: usize = 100_000;

/// Alters text, or what was text.
pub fn alter(text: &mut Vec<u8>, other: &[u8], generator: &mut ChaCha8Rng) {
    let kind = generator.random_range(0..100);
    let places = match kind {
        0..30 => numbers(text),
        30..48 | 85..88 => words(text),
        48..56 | 62..68 | 72..80 | 88..91 => lines(text),
        56..62 | 68..72 | 80..85 => values(text),
        _ => return odd(text, generator),
    };
    let Some(place) = pick(&places, generator) else { return };
    match kind {
        0..40 => {
            let value = match generator.random_range(0..6) {
                0 => alter::extreme(generator).to_string(),
                _ => VALUES[generator.random_range(0..VALUES.len())].to_owned(),
            };
            text.splice(place, value.into_bytes());
        }
        40..62 => {
            let other = text[pick(&places, generator).unwrap()].to_vec();
            text.splice(place, other);
        }
        62..72 => {
            let times = [1, 1, 2, 30][generator.random_range(0..4)];
            let put = text[place.clone()].repeat(times);
            text.splice(place.end..place.end, put);
        }
        72..85 => drop(text.drain(place)),
        85..88 => {
            let at = generator.random_range(place);
            text[at] = [b'a', b'_', b'-', b'E', b'9', b'.', b' '][generator.random_range(0..7)];
        }
        _ => {
            let line = pick(&lines(other), generator).map(|line| other[line].to_vec());
            text.splice(place.start..place.start, line.unwrap_or_default());
        }
    }
}

/// What is no text's.
fn odd(text: &mut Vec<u8>, generator: &mut ChaCha8Rng) {
    let at = generator.random_range(0..=text.len());
    let longest: bool = generator.random_range(0..20) == 0;
    let count = if longest { DEEP } else { 200 };
    let put: Vec<u8> = match generator.random_range(0..12) {
        0 => b"[".repeat(count),
        1 => b"{\"a\":".repeat(count),
        2 => b"[".repeat(count).into_iter().chain(b"]".repeat(count)).collect(),
        3 => b"a.".repeat(count),
        4 => b"x".repeat(if longest { LONG } else { 1000 }),
        5 => b",".repeat(count),
        6 => vec![0xff, 0xfe],
        7 => vec![0xed, 0xa0, 0x80],
        8 => vec![0],
        9 => b"\r\n".to_vec(),
        10 => b"\"".to_vec(),
        _ => "\u{feff}\u{202e}\u{0301}".as_bytes().to_vec(),
    };
    text.splice(at..at, put);
}

fn pick(places: &[Range<usize>], generator: &mut ChaCha8Rng) -> Option<Range<usize>> {
    match places.len() {
        0 => None,
        count => Some(places[generator.random_range(0..count)].clone()),
    }
}

/// The places of bytes one after another that are of a kind.
fn runs(text: &[u8], is_of: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        match found.last_mut() {
            _ if !is_of(byte) => {}
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

fn words(text: &[u8]) -> Vec<Range<usize>> {
    runs(text, |byte| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte))
}

fn numbers(text: &[u8]) -> Vec<Range<usize>> {
    let is_number = |place: &Range<usize>| {
        let first = text[place.clone()].iter().find(|byte| !b"-+.".contains(byte));
        first.is_some_and(u8::is_ascii_digit)
    };
    words(text).into_iter().filter(is_number).collect()
}

/// What stands between separators: fields of a line, keys and values.
fn values(text: &[u8]) -> Vec<Range<usize>> {
    runs(text, |byte| !b",:=\n[]{}".contains(&byte))
}

/// Lines with their ends.
fn lines(text: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    let line = |line: &[u8]| {
        start += line.len();
        start - line.len()..start
    };
    text.split_inclusive(|&byte| byte == b'\n').map(line).collect()
}
