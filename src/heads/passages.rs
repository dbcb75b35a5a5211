//! The passages of a text that heads are probed on.

use crate::lm::{LmError, Probed, Split, Texts};

/// Passages are this many of their lengths apart, where the text is long enough; of records each begins where one does.
const STRIDE: usize = 4;

/// Groups of passages of equal length; a head's queries and keys are fitted to the passages of a group at once.
#[derive(Clone, Copy, Debug)]
pub struct Passages {
    /// Groups, each at other places of the text.
    pub groups: usize,
    /// Passages of a group.
    pub passages: usize,
    /// Tokens of a passage, with those that the model begins each with.
    pub tokens: usize,
    /// The part of the text that they are of; none for all of it.
    pub split: Option<Split>,
}

impl Passages {
    /// Their tokens, by group and passage, as `model` reads the texts, or the beginnings of its own passages.
    ///
    /// # Errors
    /// Texts that the model cannot read, or that are too short; more passages than a model with passages of its own has.
    pub fn of(
        &self,
        model: &dyn Probed,
        texts: Option<&Texts>,
    ) -> Result<Vec<Vec<Vec<u32>>>, LmError> {
        let Self { groups, passages, tokens, split } = *self;
        let wanted = passages.saturating_mul(groups);
        if let Some(own) = model.own_passages() {
            let found = own.len();
            let own = own.get(..wanted).ok_or(LmError::FewPassages { found, needed: wanted })?;
            let beginnings: Vec<_> =
                own.iter().map(|own| own[..tokens.min(own.len())].to_vec()).collect();
            return Ok(beginnings.chunks(passages).map(<[_]>::to_vec).collect());
        }
        let beginning = model.beginning();
        let tokens = tokens.saturating_sub(beginning.len()).max(1);
        let unit = model.record().unwrap_or(1);
        let [near, far] = [tokens, STRIDE * tokens].map(|stride| stride.next_multiple_of(unit));
        let (least, most) = (wanted.saturating_mul(near), wanted.saturating_mul(far));
        let read = model.tokens(texts, split, most)?;
        if read.len() < least {
            return Err(LmError::ShortText { found: read.len(), needed: least });
        }
        // A short text's passages follow one another.
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

    /// Reads tokens 0, 1, 2 and so on, of a text of so many, or of records.
    struct Counting(usize, Option<usize>);

    impl Probed for Counting {
        fn context(&self) -> usize {
            8
        }

        fn record(&self) -> Option<usize> {
            self.1
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
            let found = wanted.of(&Counting(text, None), None).unwrap();
            assert!(found.iter().flatten().all(|p| p.len() == 3 && p[2] == p[0] + 2));
            found.iter().flatten().map(|passage| passage[0]).collect()
        };
        assert_eq!(firsts(1000), [0, 12, 24, 36]);
        assert_eq!(firsts(48), [0, 12, 24, 36]);
        assert_eq!(firsts(47), [0, 3, 6, 9]);
        let error = wanted.of(&Counting(11, None), None).unwrap_err().to_string();
        assert!(error.contains("11 of the 12 tokens"), "{error}");
    }

    #[test]
    fn passages_of_records_begin_where_records_do() {
        let wanted = Passages { groups: 1, passages: 3, tokens: 3, split: None };
        let firsts = |text: usize| -> Vec<u32> {
            let found = wanted.of(&Counting(text, Some(5)), None).unwrap();
            found.iter().flatten().map(|passage| passage[0]).collect()
        };
        assert_eq!(firsts(1000), [0, 15, 30]);
        assert_eq!(firsts(15), [0, 5, 10]);
        let error = wanted.of(&Counting(14, Some(5)), None).unwrap_err().to_string();
        assert!(error.contains("14 of the 15 tokens"), "{error}");
    }
}
