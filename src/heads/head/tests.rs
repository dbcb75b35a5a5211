//! Tests that heads of every exported type become problems for the fit.

use std::path::Path;

use super::TrainedHead;
use crate::lm::{ExportedHeads, HeadProbe, Probed as _};
use crate::solver::Measured;

/// Applies one W_q and W_k to the layer's inputs, normalised and rotated as the file says; the result equals the head's own
/// queries and keys.
#[test]
fn an_exported_head_s_own_weights_are_a_point_of_what_its_inputs_make() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/exported");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !ExportedHeads::is_in(&path) {
            continue;
        }
        let heads = ExportedHeads::read(&path).unwrap();
        let layer = heads.held_layers()[0];
        let probes = heads.probe_layer(heads.own_passages().unwrap(), layer).unwrap();
        // Beside a position bias nothing is fitted.
        let is_fitted = probes[0][0].bias.is_none();
        for head in (0..heads.heads()).filter(|_| is_fitted) {
            let of_head: Vec<&HeadProbe> = probes.iter().map(|of| &of[head]).collect();
            let trained = TrainedHead::new(&of_head, None).unwrap();
            let own = Measured::of(&trained.problem, &trained.own).unwrap();
            let tied = Measured::of(&trained.problem, &trained.tied.at(&trained.point)).unwrap();
            let at = format!("{} head {head}", heads.name());
            assert_eq!(trained.problem.target().visibility(), of_head[0].visibility, "{at}");
            // With a softcap, the attention is not the softmax of the head's own logits.
            let is_own = own.kl_nats.abs() < 1e-9 || of_head[0].softcap.is_some();
            assert!(is_own, "{at}: {}", own.kl_nats);
            assert!((tied.kl_nats - own.kl_nats).abs() < 1e-6, "{at}: {}", tied.kl_nats);
            let off = tied.max_abs_logit / own.max_abs_logit - 1.0;
            assert!(off.abs() < 1e-5, "{at}: its largest logit is off by {off}");
            seen += 1;
        }
    }
    assert_eq!(seen, 8 * 4, "types × heads");
}
