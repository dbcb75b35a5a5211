//! Columns that each row of a head may attend to.

use std::ops::Range;

use crate::targets::{HeadKind, Visibility};

/// The columns that each row of one head attends to in a sequence.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    kind: HeadKind,
    visibility: Visibility,
    time: usize,
    /// The largest number of attended columns that end, or begin, with the row's own column.
    before: usize,
    after: usize,
}

impl Sight {
    /// For a head of this kind over `time` tokens.
    pub(super) fn new(kind: HeadKind, visibility: Visibility, time: usize) -> Self {
        let before = kind.window().map_or(time, |window| window.min(time));
        let after = match visibility {
            Visibility::Causal => 1,
            Visibility::Bidirectional => before,
        };
        Self { kind, visibility, time, before, after }
    }

    /// As [`HeadKind::columns`]: the contiguous range of columns that is computed for a row.
    #[inline(always)]
    pub(super) fn columns(&self, row: usize) -> Range<usize> {
        (row + 1).saturating_sub(self.before)..self.time.min(row + self.after)
    }
}

/// Ranges of attended columns within [`Sight::columns`] of a row, in ascending order; empty if the row attends to all of
/// them. The softmax of a row runs over these columns alone, moved next to each other.
#[derive(Default)]
pub(super) struct Segments(Vec<Range<usize>>);

impl Segments {
    /// Sets the ranges for another row.
    #[inline(always)]
    pub(super) fn look(&mut self, sight: &Sight, row: usize) {
        self.0.clear();
        if !sight.kind.is_contiguous() {
            self.look_at_patch(sight, row);
        }
    }

    fn look_at_patch(&mut self, sight: &Sight, row: usize) {
        let first = sight.columns(row).start;
        let seen = sight.kind.segments(row, sight.time, sight.visibility);
        self.0.extend(seen.map(|segment| segment.start - first..segment.end - first));
    }

    /// Whether the row attends to all of the columns.
    #[inline(always)]
    pub(super) fn are_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the values of the attended columns to the front and returns them.
    #[inline(always)]
    pub(super) fn together<'v>(&self, values: &'v mut [f32]) -> &'v mut [f32] {
        if self.are_all() {
            return values;
        }
        let mut count = 0;
        for segment in &self.0 {
            values.copy_within(segment.clone(), count);
            count += segment.len();
        }
        &mut values[..count]
    }

    /// Undoes [`Self::together`]; all other values become zero.
    #[inline(always)]
    pub(super) fn apart(&self, values: &mut [f32]) {
        if self.are_all() {
            return;
        }
        let mut left: usize = self.0.iter().map(Range::len).sum();
        let mut end = values.len();
        for segment in self.0.iter().rev() {
            left -= segment.len();
            values.copy_within(left..left + segment.len(), segment.start);
            values[segment.end..end].fill(0.0);
            end = segment.start;
        }
        values[..end].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Patch;

    #[test]
    fn a_sight_is_what_its_kind_sees_and_moves_what_is_seen_together_and_back() {
        let patch = |columns, rows, reach| HeadKind::Patch(Patch { columns, rows, reach });
        let kinds = [
            HeadKind::Global,
            HeadKind::Local { window: 1 },
            HeadKind::Local { window: 9 },
            HeadKind::Local { window: usize::MAX },
            patch(5, 2, 1),
            patch(7, 0, 3),
            patch(4, 9, 0),
        ];
        let mut segments = Segments::default();
        for kind in kinds {
            for visibility in [Visibility::Causal, Visibility::Bidirectional] {
                for time in [1, 8, 30] {
                    let sight = Sight::new(kind, visibility, time);
                    for row in 0..time {
                        let columns = sight.columns(row);
                        assert_eq!(columns, kind.columns(row, time, visibility));
                        let mut values: Vec<f32> =
                            columns.clone().map(|j| 1.0 + j as f32).collect();
                        segments.look(&sight, row);
                        let seen: Vec<usize> =
                            kind.segments(row, time, visibility).flatten().collect();
                        let expected: Vec<f32> = seen.iter().map(|&j| 1.0 + j as f32).collect();
                        assert_eq!(segments.together(&mut values), expected);
                        segments.apart(&mut values);
                        let value = |j| if seen.contains(&j) { 1.0 + j as f32 } else { 0.0 };
                        assert_eq!(values, columns.map(value).collect::<Vec<f32>>());
                    }
                }
            }
        }
    }
}
