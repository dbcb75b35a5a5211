//! What a definition's arm means: which heads see what, and which stabilisers act.

use super::choices::{Arm, Stabiliser};
use super::keys::TrainDefinition;
use crate::pattern::{HeadKind, Patch};

impl TrainDefinition {
    /// What each head sees, layer by layer.
    pub fn head_kinds(&self) -> Vec<Vec<HeadKind>> {
        (0..self.layers).map(|layer| self.layer_kinds(layer)).collect()
    }

    /// The heads that see everything, in the layer that has most of them: the column `global_heads`.
    pub fn most_global_heads(&self) -> usize {
        let there = self.layers_by_kinds().into_iter().filter(|(layers, _)| *layers > 0);
        let global =
            |kinds: Vec<HeadKind>| kinds.iter().filter(|kind| **kind == HeadKind::Global).count();
        there.map(|(_, kinds)| global(kinds)).max().unwrap_or(0)
    }

    /// What each head of a layer sees, and of how many layers: a definition may have more than there is room for, until that
    /// is refused.
    pub(crate) fn layers_by_kinds(&self) -> [(usize, Vec<HeadKind>); 2] {
        // They differ by turns at most.
        let odd = self.layers / 2;
        [(self.layers - odd, self.layer_kinds(0)), (odd, self.layer_kinds(1))]
    }

    /// What a local head sees.
    fn local_kind(&self) -> HeadKind {
        match self.patch {
            Some(patch) => HeadKind::Patch(patch),
            None => HeadKind::Local { window: self.window },
        }
    }

    /// The tokens at and before its own that a local head sees at most: the column `window`.
    pub fn local_tokens(&self) -> usize {
        self.patch.map_or(self.window, Patch::tokens)
    }

    /// Whether a local head's window covers the whole context, so that it sees what a global one does.
    pub fn has_window_of_context(&self) -> bool {
        let covers =
            |kind: &HeadKind| matches!(kind, HeadKind::Local { window } if *window >= self.context);
        self.has_head(covers)
    }

    /// Whether some head is local, so that the key `window` acts.
    pub fn has_local_heads(&self) -> bool {
        self.has_head(|kind| matches!(kind, HeadKind::Local { .. }))
    }

    fn has_head(&self, is_it: impl Fn(&HeadKind) -> bool) -> bool {
        self.layers_by_kinds().iter().any(|(layers, kinds)| *layers > 0 && kinds.iter().any(&is_it))
    }

    fn layer_kinds(&self, layer: usize) -> Vec<HeadKind> {
        let global = match self.arm {
            Arm::Ls => self.global_heads,
            Arm::LocalOnly => 0,
            Arm::LayerAlternating if layer.is_multiple_of(2) => 0,
            _ => self.heads,
        };
        let mut kinds = vec![HeadKind::Global; global];
        kinds.resize(self.heads, self.local_kind());
        kinds
    }

    /// Whether a stabiliser acts, by the arm's name or by the key `stabilisers`.
    pub fn has(&self, stabiliser: Stabiliser) -> bool {
        self.arm.stabiliser() == Some(stabiliser) || self.stabilisers.contains(&stabiliser)
    }
}
