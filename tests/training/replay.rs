//! Training steps against PyTorch's from the same weights on the same tokens.

use std::fs;

use rank_study::lm::{Corpus, Device, Texts, TrainDefinition, Trainer};

const TEXT: &[u8] = b"To be, or not to be, that is the q";
const UPSTREAM_TEXT: &[u8] = b"Whether 'tis nobler in the mind to";

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

/// What changes in the definition in each variant of tests/reference/replay.csv, which replay.py beside it prints (torch 2,
/// float64).
const VARIANTS: [(&str, &str); 14] = [
    ("ls", ""),
    ("qk-clip", "arm=qk-clip qk_clip=0.2"),
    ("sigma-reparam", "arm=sigma-reparam"),
    ("z-loss", "arm=z-loss z_loss=0.1"),
    ("ternary", "arm=mhsa ternary=true"),
    ("loss-exponent", "arm=mhsa loss_exponent=0.5"),
    ("gam", "heads=1 arm=gam memory_slots=24"),
    ("expert", "arm=mhsa layers=3 recursions=3 router=expert router_scale=0.5 router_loss=0.2"),
    (
        "expert with shared keys",
        "arm=mhsa layers=3 recursions=3 router=expert recursion_keys=shared router_scale=0.5 router_loss=0.2",
    ),
    ("token", "arm=mhsa layers=3 recursions=3 router=token router_scale=0.5 router_loss=0.2"),
    ("muon", "arm=mhsa optimiser=muon"),
    ("muon with qk-clip", "arm=qk-clip qk_clip=0.2 optimiser=muon"),
    ("ternary with trilm", "arm=mhsa ternary=true schedule=trilm"),
    ("re-warmed", "upstream_steps=5 upstream_learning_rate=2e-2"),
];

/// A folder with both texts.
fn upstream(definition: &TrainDefinition) -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("upstream")).unwrap();
    fs::write(folder.path().join("text.txt"), TEXT).unwrap();
    fs::write(folder.path().join("upstream/text.txt"), UPSTREAM_TEXT).unwrap();
    let texts = Texts::find(folder.path(), None).unwrap();
    Corpus::from_texts(definition, &texts, folder.path()).unwrap()
}

#[test]
fn twelve_steps_follow_pytorch() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/replay.csv");
    let read = csv::Reader::from_path(path).unwrap().into_deserialize().collect::<Result<_, _>>();
    let reference: Vec<(String, usize, f64, f64)> = read.unwrap();
    assert_eq!(reference.len(), 12 * VARIANTS.len());
    for ((variant, settings), steps) in VARIANTS.into_iter().zip(reference.chunks(12)) {
        let mut definition = TrainDefinition::from_toml(DEFINITION).unwrap();
        for setting in settings.split_whitespace() {
            let (key, value) = setting.split_once('=').unwrap();
            definition.set(key, value).unwrap();
        }
        let corpus = match definition.upstream_steps > 0 {
            true => upstream(&definition),
            false => Corpus::from_text(&definition, TEXT).unwrap(),
        };
        let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
        for (step, (of, at, loss_nats, grad_norm)) in (1..).zip(steps) {
            assert_eq!((of.as_str(), *at), (variant, step));
            let found = trainer.step().unwrap();
            let off = ((found.loss_nats - loss_nats).abs() / loss_nats)
                .max((found.grad_norm - grad_norm).abs() / grad_norm);
            assert!(off < 5e-5, "{variant}, step {step}: {found:?} is off by {off:e}");
        }
    }
}
