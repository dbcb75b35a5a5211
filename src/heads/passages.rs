//! Selects the passages of a text on which heads are probed.

use crate::lm::{LmError, Probed, Split, Texts};

/// Distance between the starts of passages in a long text, in passage lengths.
const STRIDE: usize = 4;

/// Groups of passages of equal length; a head is fitted to all passages of a group at once.
#[derive(Clone, Copy, Debug)]
pub struct Passages {
    /// The number of groups, each at other places of the text.
    pub groups: usize,
    /// The number of passages per group.
    pub passages: usize,
    /// Tokens per passage, including those that the model puts at the beginning of each.
    pub tokens: usize,
    /// The split of the text; `None` for the whole text.
    pub split: Option<Split>,
}

impl Passages {
    /// The tokens of all passages, by group and passage. `model` reads them from the texts, or they are the beginnings of the
    /// model's own passages.
    ///
    /// # Errors
    /// The model cannot read the texts, they are too short, or the model has its own passages but fewer than requested.
    pub fn of(
        &self,
        model: &dyn Probed,
        texts: Option<&Texts>,
    ) -> Result<Vec<Vec<Vec<u32>>>, LmError> {
        let Self { groups, passages, tokens, split } = *self;
        let wanted = passages.saturating_mul(groups);
        if let Some(own) = model.own_passages() {
            let found = own.len();
            let own = own
                .get(..wanted)
                .ok_or_else(|| LmError::too_few("the file", found, wanted, "passages"))?;
            let beginnings: Vec<_> =
                own.iter().map(|own| own[..tokens.min(own.len())].to_vec()).collect();
            return Ok(beginnings.chunks(passages).map(<[_]>::to_vec).collect());
        }
        let beginning = model.beginning();
        let tokens = tokens.saturating_sub(beginning.len()).max(1);
        let (near, far) = (tokens, STRIDE * tokens);
        let (least, most) = (wanted.saturating_mul(near), wanted.saturating_mul(far));
        let read = model.tokens(texts, split, most)?;
        if read.len() < least {
            return Err(LmError::too_few("the text", read.len(), least, "tokens"));
        }
        // The passages of a short text follow one another without gaps.
        let stride = if read.len() == most { far } else { near };
        let passage = |at: usize| [&beginning, &read[at * stride..][..tokens]].concat();
        let group =
            |group: usize| (group * passages..(group + 1) * passages).map(passage).collect();
        Ok((0..groups).map(group).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::{ControlFlow, Range};

    use super::*;
    use crate::lm::HeadsOfLayer;

    /// Reads tokens 0, 1, 2 and so on, from a text of this length.
    struct Counting(usize);

    impl Probed for Counting {
        fn context(&self) -> usize {
            8
        }

        fn layers(&self) -> usize {
            1
        }

        fn heads(&self) -> usize {
            1
        }

        fn tokens(
            &self,
            _: Option<&Texts>,
            _: Option<Split>,
            most: usize,
        ) -> Result<Vec<u32>, LmError> {
            Ok((0..self.0.min(most) as u32).collect())
        }

        fn probe_layers(
            &self,
            _: &[Vec<u32>],
            _: Range<usize>,
            _: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
        ) -> Result<(), LmError> {
            Ok(())
        }
    }

    #[test]
    fn passages_lie_apart_in_a_long_text_and_follow_one_another_in_a_short_one() {
        let wanted = Passages { groups: 2, passages: 2, tokens: 3, split: None };
        let firsts = |text: usize| -> Vec<u32> {
            let found = wanted.of(&Counting(text), None).unwrap();
            assert!(found.iter().flatten().all(|p| p.len() == 3 && p[2] == p[0] + 2));
            found.iter().flatten().map(|passage| passage[0]).collect()
        };
        assert_eq!(firsts(1000), [0, 12, 24, 36]);
        assert_eq!(firsts(48), [0, 12, 24, 36]);
        assert_eq!(firsts(47), [0, 3, 6, 9]);
        let error = wanted.of(&Counting(11), None).unwrap_err().to_string();
        assert!(error.contains("11 of the 12 tokens"), "{error}");
    }
}
