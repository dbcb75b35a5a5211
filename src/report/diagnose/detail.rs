//! Resolution of the pictures on a page, limited so that the page stays small.

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

#[cfg(test)]
mod tests {
    use super::*;

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
