//! Computation of all pictures of a model's heads on one passage, with more detail for suspicious heads.

use rayon::prelude::*;

use super::look::{Detail, Look};
use super::model::DiagnosedModel;
use super::worry::worries;
use crate::lm::{HeadProbe, LmError, Probed};
use crate::targets::Visibility;

impl DiagnosedModel {
    /// Computes the pictures of all heads on a passage. `beside` is the total number of heads on the page. Suspicious
    /// heads get full detail, the others as much as the page's size allows.
    ///
    /// # Errors
    /// The model cannot read the passage.
    pub fn look(
        &mut self,
        model: &dyn Probed,
        passage: &[u32],
        beside: usize,
    ) -> Result<(), LmError> {
        let worth: Vec<(usize, usize)> =
            worries(self).iter().map(|head| (head.layer, head.found.head)).collect();
        let mut layers: Vec<usize> = self.heads.iter().map(|head| head.layer).collect();
        layers.dedup();
        let (tokens, share) = (passage.len(), beside.div_ceil(self.heads.len().max(1)));
        let heads = &mut self.heads;
        let seen = |probes: Vec<Vec<HeadProbe>>| {
            let Some(probes) = probes.into_iter().next() else { return Ok(true) };
            let is_causal = probes.iter().all(|probe| probe.visibility == Visibility::Causal);
            let [fine, other] =
                Detail::of(beside, (share * worth.len()).min(beside), tokens, is_causal);
            let looks: Vec<(usize, usize, Look)> = probes
                .par_iter()
                .map(|probe| {
                    let place = (probe.layer, probe.head);
                    let detail = if worth.contains(&place) { fine } else { other };
                    (place.0, place.1, Look::of(probe, detail))
                })
                .collect();
            for (layer, at, look) in looks {
                let head =
                    heads.iter_mut().find(|head| (head.layer, head.found.head) == (layer, at));
                if let Some(head) = head {
                    head.look = Some(look);
                }
            }
            Ok::<bool, LmError>(true)
        };
        model.each_layer(&[passage.to_vec()], &layers, seen)?;
        self.tokens = model
            .token_texts(passage)
            .unwrap_or_else(|| passage.iter().map(|token| format!("{token} ")).collect());
        Ok(())
    }
}
