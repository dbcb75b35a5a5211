//! Data of one head on one passage for a page: pictures of attention and logits, and for each query the keys with most
//! attention.

use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ndarray::ArrayView1;

use crate::figure::style::signed;
use crate::figure::{LEAST_ATTENTION, Rgb, attention_colour};
use crate::lm::HeadProbe;
use crate::targets::Visibility;

/// Number of rows computed at once.
const ROWS: usize = 128;
/// Maximum length of a passage, because keys are stored in 16 bits.
pub const MOST_TOKENS: usize = 1 << 16;
/// Byte of the logit 0. Byte 1 is −`most` and 255 is `most`; byte 0 means that the mask excludes the whole block.
const ZERO: f64 = 128.0;

/// Bytes of a page that pictures and keys may take in base64; with the rest, the page stays under 10 MB.
const BUDGET: usize = 9_200_000;
/// Detail of the heads that are most worth a look.
const FINE: Detail = Detail { bins: 256, keys: 8, every: 1 };
/// Details for the other heads; the first that fits the budget is used.
const OTHERS: [Detail; 7] = [
    Detail { bins: 128, keys: 6, every: 1 },
    Detail { bins: 128, keys: 4, every: 1 },
    Detail { bins: 96, keys: 4, every: 1 },
    Detail { bins: 80, keys: 3, every: 1 },
    Detail { bins: 64, keys: 2, every: 1 },
    Detail { bins: 48, keys: 2, every: 2 },
    Detail { bins: 32, keys: 1, every: 4 },
];

/// Resolution of a head on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// Maximum number of rows and columns of its pictures.
    pub bins: usize,
    /// Number of keys listed per query.
    pub keys: usize,
    /// Keys are listed for every `every`-th query, from the first on.
    pub every: usize,
}

impl Detail {
    /// Details of `fine` heads and of the other `heads - fine`, for passages of `tokens` tokens.
    pub fn of(heads: usize, fine: usize, tokens: usize, is_causal: bool) -> [Self; 2] {
        let bytes = |detail: Self| detail.bytes(tokens, is_causal);
        let fits = |fine_as: Self, other: Self| {
            fine * bytes(fine_as) + (heads - fine) * bytes(other) <= BUDGET
        };
        let other = OTHERS.into_iter().find(|&other| fits(FINE, other));
        match other {
            Some(other) => [FINE, other],
            // With this many heads and tokens, all heads get the same detail.
            None => {
                let mut least = OTHERS[OTHERS.len() - 1];
                while !fits(least, least) && least.bins > 1 {
                    (least.bins, least.every) = (least.bins / 2, 2 * least.every);
                }
                [least; 2]
            }
        }
    }

    /// Upper bound of the bytes of a head in base64, before compression.
    fn bytes(self, tokens: usize, is_causal: bool) -> usize {
        let side = tokens.div_ceil(self.block(tokens));
        let entries = if is_causal { side * (side + 1) / 2 } else { side * side };
        (2 * entries + 3 * self.keys * tokens.div_ceil(self.every)).div_ceil(3) * 4
    }

    /// Number of rows and columns of the attention matrix per pixel of a picture.
    pub fn block(self, tokens: usize) -> usize {
        tokens.div_ceil(self.bins).max(1)
    }
}

/// A head on a passage, quantised to bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    /// Number of rows and columns of the pictures.
    pub side: usize,
    /// Number of rows and columns of the passage per row and column of the pictures.
    pub block: usize,
    /// Whether the pictures contain only the columns up to each row's own, because the mask is causal.
    pub is_causal: bool,
    /// Largest |z| on the passage.
    pub most: f64,
    /// Largest attention in each block, row by row: see [`attention_of_byte`].
    pub attention: Vec<u8>,
    /// Logit with the largest magnitude in each block: see [`logit_of_byte`].
    pub logits: Vec<u8>,
    /// Number of keys listed per query.
    pub keys: usize,
    /// Keys are listed for every `every`-th query, from the first on.
    pub every: usize,
    /// Keys with most attention for each listed query, in descending order.
    pub top: Vec<u16>,
    /// Attention of these keys, times 255.
    pub weights: Vec<u8>,
}

/// Attention of a byte on a logarithmic scale; byte 0 stands for values below [`LEAST_ATTENTION`].
pub(super) fn attention_of_byte(byte: u8) -> f64 {
    match byte {
        0 => 0.0,
        byte => LEAST_ATTENTION.powf(1.0 - f64::from(byte) / 255.0),
    }
}

/// Logit of a byte, as a share of the head's largest |z|; `None` if the mask excludes the whole block.
pub(super) fn logit_of_byte(byte: u8) -> Option<f64> {
    (byte > 0).then(|| (f64::from(byte) - ZERO) / (255.0 - ZERO))
}

/// Colours of the 256 bytes, for pictures of attention and of logits.
pub(super) fn colours() -> [Vec<Rgb>; 2] {
    let logit = |byte| logit_of_byte(byte).map_or((255, 255, 255), signed);
    [
        (0..=255).map(|byte| attention_colour(attention_of_byte(byte))).collect(),
        (0..=255).map(logit).collect(),
    ]
}

impl Look {
    /// Computes the pictures and keys of a head.
    pub fn of(probe: &HeadProbe, detail: Detail) -> Self {
        let tokens = probe.queries.nrows();
        let is_causal = probe.visibility == Visibility::Causal;
        let block = detail.block(tokens);
        let side = tokens.div_ceil(block);
        let place = |row: usize, column: usize| match is_causal {
            true => row * (row + 1) / 2 + column,
            false => row * side + column,
        };
        let entries = place(side - 1, side - 1) + 1;
        let mut attention = vec![0.0_f64; entries];
        let mut logits: Vec<Option<f64>> = vec![None; entries];
        let keys = detail.keys.min(tokens);
        let (mut top, mut weights) = (Vec::new(), Vec::new());
        for first in (0..tokens).step_by(ROWS) {
            let rows: Vec<usize> = (first..(first + ROWS).min(tokens)).collect();
            let (p, z) = (probe.attention_of(&rows), probe.logits_of(&rows));
            for ((&row, p), z) in rows.iter().zip(p.rows()).zip(z.rows()) {
                for (column, (&p, &z)) in p.iter().zip(&z).enumerate() {
                    if !z.is_finite() {
                        continue;
                    }
                    let place = place(row / block, column / block);
                    attention[place] = attention[place].max(p);
                    let farthest = &mut logits[place];
                    if farthest.is_none_or(|other| z.abs() > other.abs()) {
                        *farthest = Some(z);
                    }
                }
                if row % detail.every == 0 {
                    for key in largest(p, keys) {
                        top.push(key as u16);
                        weights.push((255.0 * p[key]).round() as u8);
                    }
                }
            }
        }
        let most = logits.iter().flatten().fold(0.0, |most: f64, z| most.max(z.abs()));
        let scaled = |z: &Option<f64>| match *z {
            None => 0,
            Some(_) if most == 0.0 => ZERO as u8,
            Some(z) => (ZERO + (255.0 - ZERO) * z / most).round() as u8,
        };
        Self {
            side,
            block,
            is_causal,
            most,
            attention: attention.into_iter().map(byte_of_attention).collect(),
            logits: logits.iter().map(scaled).collect(),
            keys,
            every: detail.every,
            top,
            weights,
        }
    }

    /// Packs the data as deflated base64: attention, logits, low bytes of the keys, their high bytes, weights.
    pub fn packed(&self) -> std::io::Result<String> {
        let [low, high]: [Vec<u8>; 2] =
            [0, 1].map(|byte| self.top.iter().map(|key| key.to_le_bytes()[byte]).collect());
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        for part in [&self.attention, &self.logits, &low, &high, &self.weights] {
            encoder.write_all(part)?;
        }
        Ok(BASE64_STANDARD.encode(encoder.finish()?))
    }
}

fn byte_of_attention(p: f64) -> u8 {
    match p < LEAST_ATTENTION {
        true => 0,
        false => (255.0 * (1.0 - p.ln() / LEAST_ATTENTION.ln())).round().max(1.0) as u8,
    }
}

/// Indices of the `count` largest entries in descending order; of equal entries the later (nearer) key comes first.
fn largest(p: ArrayView1<'_, f64>, count: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(count + 1);
    for (at, value) in p.iter().enumerate() {
        if found.len() == count && *value < p[found[count - 1]] {
            continue;
        }
        let place = found.partition_point(|&other| p[other] > *value);
        found.insert(place, at);
        found.truncate(count);
    }
    found
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;
    use crate::experiments::ramp::tables::tests::probe;

    const DETAIL: Detail = Detail { bins: 4, keys: 3, every: 2 };

    #[test]
    fn every_byte_of_a_picture_is_the_blocks_largest() {
        let probe = probe();
        let look = Look::of(&probe, DETAIL);
        assert_eq!((look.side, look.block, look.is_causal), (4, 3, true));
        assert_eq!((look.attention.len(), look.logits.len()), (10, 10));
        let (p, z) = (probe.attention(), probe.logits());
        let blocks = (0..4_usize).flat_map(|row| (0..=row).map(move |column| (row, column)));
        for (at, (row, column)) in blocks.enumerate() {
            let of_block = || {
                let rows = 3 * row..(3 * row + 3).min(10);
                rows.flat_map(move |i| {
                    (3 * column..(3 * column + 3).min(i + 1)).map(move |j| [i, j])
                })
            };
            let most = of_block().map(|pair| p[pair]).fold(0.0, f64::max);
            let told = attention_of_byte(look.attention[at]);
            let holds = match most < LEAST_ATTENTION {
                true => told == 0.0,
                false => (told / most - 1.0).abs() < 0.015,
            };
            assert!(holds, "{told} for {most}");
            let far = of_block().map(|pair| z[pair]).max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let told = look.most * logit_of_byte(look.logits[at]).unwrap();
            assert!((told - far.unwrap()).abs() <= 0.0041 * look.most, "{told} for {far:?}");
        }
        assert!(look.most > 0.0 && look.logits.iter().any(|&byte| byte == 255 || byte == 1));
    }

    #[test]
    fn the_keys_of_a_query_are_those_with_most_attention() {
        let probe = probe();
        let look = Look::of(&probe, DETAIL);
        let p = probe.attention();
        assert_eq!((look.top.len(), look.weights.len()), (5 * 3, 5 * 3));
        for (at, keys) in look.top.chunks(3).enumerate() {
            let row = p.row(2 * at);
            let mut sorted: Vec<f64> = row.to_vec();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for (place, &key) in keys.iter().enumerate() {
                assert_eq!(row[usize::from(key)], sorted[place]);
                let told = f64::from(look.weights[3 * at + place]) / 255.0;
                assert!((told - sorted[place]).abs() <= 0.002);
            }
        }
        assert_eq!(largest(arr1(&[0.2, 0.5, 0.2, 0.1]).view(), 2), [1, 2], "of equals the nearer");
    }

    #[test]
    fn bytes_and_what_they_stand_for_go_both_ways() {
        for byte in 1..=255 {
            assert_eq!(byte_of_attention(attention_of_byte(byte)), byte);
        }
        assert_eq!([0.0, 0.9e-3].map(byte_of_attention), [0, 0]);
        assert_eq!([0, 1, 128, 255].map(logit_of_byte), [None, Some(-1.0), Some(0.0), Some(1.0)]);
        let [attention, logits] = colours();
        assert_eq!([attention[0], logits[0], logits[128]], [(255, 255, 255); 3]);
    }

    #[test]
    fn what_all_heads_take_stays_within_the_budget() {
        for heads in [8, 270, 1024, 4 * 1024] {
            for tokens in [64, 1024, 8192] {
                for is_causal in [true, false] {
                    let fine = heads.min(16);
                    let [first, rest] = Detail::of(heads, fine, tokens, is_causal);
                    let took = fine * first.bytes(tokens, is_causal)
                        + (heads - fine) * rest.bytes(tokens, is_causal);
                    assert!(took <= BUDGET, "{heads} heads of {tokens} tokens take {took}");
                    assert!(first.bins >= rest.bins && first.keys >= rest.keys);
                }
            }
        }
        // Thirty layers of nine heads at n = 1,024.
        let expected = [FINE, Detail { bins: 96, keys: 4, every: 1 }];
        assert_eq!(Detail::of(270, 16, 1024, true), expected);
    }
}
