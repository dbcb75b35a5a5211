//! Files altered, from a generator's numbers alone.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::forms::Form;
use super::target::Whole;
use super::words;

/// Bytes that `mutatis` is given at a time: it looks at each.
const WINDOW: usize = 64;
/// Where a long file says what it is.
const TAIL: usize = 400;
/// The most bytes that an input may grow to, unless the whole file has more.
const LONGEST: usize = 1 << 20;
/// Numbers at the ends of what fields of a length can hold.
const EXTREMES: [u64; 16] = [
    0, 1, 2, 7, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000,
    0x100_0000_0000, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, 0xffff_ffff_ffff_fff8,
    0xffff_ffff_ffff_fffe, 0xffff_ffff_ffff_ffff,
];

/// A file, altered in one to six ways, also by what stands in other `files`.
pub fn altered(file: Whole, files: &[Whole], generator: &mut ChaCha8Rng) -> Vec<u8> {
    let Whole { mut bytes, form } = file;
    let other = &files[generator.random_range(0..files.len())].bytes;
    let longest = LONGEST.max(2 * bytes.len());
    // A few alterations leave most of a file whole, many reach what is read late.
    let times = [1, 1, 1, 2, 3, 6][generator.random_range(0..6)];
    for _ in 0..times {
        // One in four goes past what the form is: also a header's own length is altered.
        match form {
            Form::Text if generator.random_range(0..8) > 0 => {
                words::alter(&mut bytes, other, generator)
            }
            Form::Tail => {
                let mut tail = bytes.split_off(bytes.len().saturating_sub(TAIL));
                alter(&mut tail, &other[other.len().saturating_sub(TAIL)..], generator);
                bytes.extend(tail);
            }
            Form::Headed(kind) if generator.random_range(0..4) > 0 => {
                kind.alter(&mut bytes, other, generator)
            }
            _ => alter(&mut bytes, other, generator),
        }
        bytes.truncate(longest);
    }
    bytes
}

/// Alters bytes of which nothing is known.
pub fn alter(bytes: &mut Vec<u8>, other: &[u8], generator: &mut ChaCha8Rng) {
    let place = |length: usize, generator: &mut ChaCha8Rng| generator.random_range(0..=length);
    let at = place(bytes.len().saturating_sub(1), generator);
    if bytes.is_empty() {
        bytes.extend(other);
        return;
    }
    match generator.random_range(0..11) {
        0 | 1 => bytes[at] ^= 1 << generator.random_range(0..8),
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\n'][generator.random_range(0..7)],
        3 => bytes.truncate(at),
        4 => {
            let length = place((bytes.len() - at).min(64), generator);
            bytes.drain(at..at + length);
        }
        5 => {
            let length = place((bytes.len() - at).min(256), generator);
            let block = bytes[at..at + length].repeat([1, 2, 40][generator.random_range(0..3)]);
            bytes.splice(at..at, block);
        }
        6 => {
            let from = place(other.len(), generator);
            let length = place((other.len() - from).min(256), generator);
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, other[from..from + length].iter().copied());
        }
        7 => {
            let from = place(other.len(), generator);
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        8 => {
            let width = [1, 2, 4, 8][generator.random_range(0..4)].min(bytes.len() - at);
            let number = extreme(generator).to_le_bytes();
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        9 => {
            // One off what stands there.
            let width = 8.min(bytes.len() - at);
            let mut number = [0; 8];
            number[..width].copy_from_slice(&bytes[at..at + width]);
            let one = if generator.random() { 1 } else { u64::MAX };
            let number = u64::from_le_bytes(number).wrapping_add(one).to_le_bytes();
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        _ => {
            let end = (at + WINDOW).min(bytes.len());
            let mut window = bytes[at..end].to_vec();
            let seed = generator.random();
            if mutatis::Session::new().seed(seed).mutate(&mut window).is_ok() {
                bytes.splice(at..end, window);
            }
        }
    }
}

pub fn extreme(generator: &mut ChaCha8Rng) -> u64 {
    EXTREMES[generator.random_range(0..EXTREMES.len())]
}
