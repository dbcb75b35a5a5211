//! What a definition's arm means: which heads see what, and which stabilisers act.

use super::{TrainDefinition, require};
use crate::lm::{Arm, LmError, Positions, Stabiliser};
use crate::pattern::HeadKind;

impl TrainDefinition {
    /// What each head sees, layer by layer.
    pub fn head_kinds(&self) -> Vec<Vec<HeadKind>> {
        (0..self.layers).map(|layer| self.layer_kinds(layer)).collect()
    }

    /// The heads that see everything, in the layer that has most of them: the column `global_heads`.
    pub fn most_global_heads(&self) -> usize {
        let global =
            |kinds: &Vec<HeadKind>| kinds.iter().filter(|kind| **kind == HeadKind::Global).count();
        self.head_kinds().iter().map(global).max().unwrap_or(0)
    }

    fn layer_kinds(&self, layer: usize) -> Vec<HeadKind> {
        let global = match self.arm {
            Arm::Ls => self.global_heads,
            Arm::LocalOnly => 0,
            Arm::LayerAlternating if layer.is_multiple_of(2) => 0,
            _ => self.heads,
        };
        let mut kinds = vec![HeadKind::Global; global];
        kinds.resize(self.heads, HeadKind::Local { window: self.window });
        kinds
    }

    /// Whether a stabiliser acts, by the arm's name or by the key `stabilisers`.
    pub fn has(&self, stabiliser: Stabiliser) -> bool {
        self.arm.stabiliser() == Some(stabiliser) || self.stabilisers.contains(&stabiliser)
    }

    /// Holds the arm and what belongs to it against what they may be.
    pub(super) fn check_arm(&self) -> Result<(), LmError> {
        require(
            self.arm != Arm::Ls || (1..=self.heads).contains(&self.global_heads),
            "global_heads",
            self.global_heads,
            &format!("must be 1 to heads = {} in arm ls; for none, set arm=local-only", self.heads),
        )?;
        require(
            self.arm != Arm::LayerAlternating || self.layers >= 2,
            "layers",
            self.layers,
            "must be at least 2 in arm layer-alternating",
        )?;
        let d_head = self.d_model / self.heads;
        require(
            self.positions != Positions::Rope || d_head.is_multiple_of(2),
            "d_model",
            self.d_model,
            &format!("gives {d_head} channels a head; positions = rope needs an even number"),
        )?;
        for (key, value) in
            [("softcap", self.softcap), ("qk_clip", self.qk_clip), ("z_loss", self.z_loss)]
        {
            require(value.is_finite() && value > 0.0, key, value, "must be above 0")?;
        }
        for undoes in [Stabiliser::QkNorm, Stabiliser::SigmaReparam] {
            require(
                !(self.has(Stabiliser::QkClip) && self.has(undoes)),
                "stabilisers",
                "qk-clip",
                "scales weights whose scale qk-norm and sigma-reparam take away; leave one out",
            )?;
        }
        Ok(())
    }
}
