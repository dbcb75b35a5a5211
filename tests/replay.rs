//! Training steps against PyTorch's from the same weights on the same tokens.

use rank_study::{Corpus, TrainDefinition, Trainer};

const TEXT: &[u8] = b"To be, or not to be, that is the q";

/// A global and a local head a layer; the training half of the text is one window long.
const DEFINITION: &str = r#"
arm = "ls"
layers = 2
d_model = 32
heads = 2
global_heads = 1
window = 4
context = 16
batch = 2
steps = 12
learning_rate = 1e-2
warmup_steps = 3
eval_every = 100
eval_batches = 1
valid_fraction = 0.5
initial_deviation = 0.1
"#;

/// Loss and gradient norm before clipping, printed by tests/reference/replay.py (torch 2, float64).
const PYTORCH: [(f64, f64); 12] = [
    (2.830185, 4.071295),
    (2.057704, 2.119395),
    (1.530793, 1.867145),
    (1.022105, 2.024654),
    (0.687506, 1.412900),
    (0.475482, 0.996413),
    (0.356570, 0.823639),
    (0.286674, 0.713474),
    (0.242114, 0.576775),
    (0.216517, 0.532857),
    (0.200313, 0.492677),
    (0.190476, 0.465877),
];

#[test]
fn twelve_steps_of_a_mixed_model_follow_pytorch() {
    let definition = TrainDefinition::from_toml(DEFINITION).unwrap();
    let corpus = Corpus::from_text(&definition, TEXT).unwrap();
    let mut trainer = Trainer::new(&definition, &corpus).unwrap();
    for (step, (loss_nats, grad_norm)) in PYTORCH.into_iter().enumerate() {
        let found = trainer.step().unwrap();
        let off = ((found.loss_nats - loss_nats).abs() / loss_nats)
            .max((found.grad_norm - grad_norm).abs() / grad_norm);
        assert!(off < 2e-5, "step {}: {found:?} against {loss_nats}, {grad_norm}", step + 1);
    }
}
