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

/// Loss and gradient norm before clipping.
type Steps = [(f64, f64); 12];

/// What changes in the definition, and what tests/reference/replay.py prints (torch 2, float64).
const PYTORCH: [(&[(&str, &str)], Steps); 13] = [
    (
        &[],
        [
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
        ],
    ),
    (
        &[("arm", "qk-clip"), ("qk_clip", "0.2")],
        [
            (2.812916, 4.023003),
            (2.106991, 2.134256),
            (1.621095, 1.936240),
            (1.137707, 2.188557),
            (0.891833, 3.188063),
            (0.612528, 1.195397),
            (0.457305, 0.939633),
            (0.361692, 0.735704),
            (0.303429, 0.631406),
            (0.267409, 0.567152),
            (0.246466, 0.529702),
            (0.234312, 0.512658),
        ],
    ),
    (
        &[("arm", "sigma-reparam")],
        [
            (2.802307, 4.853745),
            (2.176272, 1.919075),
            (1.823110, 1.422932),
            (1.322941, 1.733250),
            (1.083454, 2.870319),
            (0.773567, 1.675680),
            (0.594218, 1.391518),
            (0.480211, 0.952730),
            (0.405881, 0.750747),
            (0.361940, 0.698295),
            (0.335391, 0.663365),
            (0.318747, 0.637804),
        ],
    ),
    (
        &[("arm", "z-loss"), ("z_loss", "0.1")],
        [
            (2.812916, 4.462652),
            (2.132138, 2.292323),
            (1.742789, 2.118783),
            (1.364009, 1.924324),
            (1.000881, 1.768229),
            (0.751637, 0.954453),
            (0.623102, 0.868189),
            (0.587755, 0.792777),
            (0.588176, 0.776569),
            (0.575523, 0.737863),
            (0.558414, 0.698122),
            (0.546323, 0.682879),
        ],
    ),
    (
        &[("heads", "1"), ("arm", "gam"), ("memory_slots", "24")],
        [
            (3.192389, 3.537479),
            (2.375390, 2.725032),
            (1.584098, 1.779546),
            (1.020488, 1.546665),
            (0.682769, 1.232290),
            (0.486647, 1.004520),
            (0.372805, 0.837063),
            (0.303503, 0.712099),
            (0.259597, 0.624783),
            (0.232179, 0.566423),
            (0.215874, 0.530144),
            (0.206143, 0.508002),
        ],
    ),
    (
        &[("arm", "mhsa"), ("ternary", "true")],
        [
            (3.144110, 4.470976),
            (2.457657, 3.071148),
            (1.822367, 1.917187),
            (1.390379, 1.873365),
            (1.030970, 1.745090),
            (0.771287, 1.548791),
            (0.582997, 1.135715),
            (0.471719, 0.916921),
            (0.397878, 0.814082),
            (0.357162, 0.760803),
            (0.331809, 0.708406),
            (0.317461, 0.699789),
        ],
    ),
    (
        &[("arm", "mhsa"), ("loss_exponent", "0.5")],
        [
            (2.812916, 1.193749),
            (2.075853, 0.753310),
            (1.585498, 0.790156),
            (1.135696, 0.882943),
            (0.789965, 0.889986),
            (0.531860, 0.761077),
            (0.414679, 0.725799),
            (0.343332, 0.634546),
            (0.299068, 0.567096),
            (0.271338, 0.560535),
            (0.251741, 0.539368),
            (0.238633, 0.518653),
        ],
    ),
    (
        &[
            ("arm", "mhsa"),
            ("layers", "3"),
            ("recursions", "3"),
            ("router", "expert"),
            ("router_scale", "0.5"),
            ("router_loss", "0.2"),
        ],
        [
            (3.073257, 4.560975),
            (2.043615, 2.470109),
            (1.432532, 2.101805),
            (0.936850, 2.176412),
            (0.763660, 3.050858),
            (0.560270, 1.319309),
            (0.426653, 0.925167),
            (0.353585, 0.848340),
            (0.304584, 0.768906),
            (0.272728, 0.688621),
            (0.254674, 0.653308),
            (0.243718, 0.628323),
        ],
    ),
    (
        &[
            ("arm", "mhsa"),
            ("layers", "3"),
            ("recursions", "3"),
            ("router", "expert"),
            ("recursion_keys", "shared"),
            ("router_scale", "0.5"),
            ("router_loss", "0.2"),
        ],
        [
            (3.078822, 4.570401),
            (2.045292, 2.479584),
            (1.429036, 2.113890),
            (0.936191, 2.249389),
            (0.758904, 2.684482),
            (0.548920, 1.273667),
            (0.416753, 0.922164),
            (0.346334, 0.835496),
            (0.299750, 0.759860),
            (0.268849, 0.683116),
            (0.250971, 0.644782),
            (0.240134, 0.615945),
        ],
    ),
    (
        &[
            ("arm", "mhsa"),
            ("layers", "3"),
            ("recursions", "3"),
            ("router", "token"),
            ("router_scale", "0.5"),
            ("router_loss", "0.2"),
        ],
        [
            (3.086883, 5.005465),
            (2.020230, 2.522195),
            (1.431935, 2.167409),
            (0.979392, 3.029916),
            (0.788572, 2.677846),
            (0.590522, 1.366487),
            (0.429395, 0.993481),
            (0.345160, 0.805361),
            (0.295491, 0.732552),
            (0.263532, 0.667383),
            (0.243939, 0.610968),
            (0.232170, 0.586159),
        ],
    ),
    (
        &[("arm", "mhsa"), ("optimiser", "muon")],
        [
            (2.812916, 4.023003),
            (2.564164, 3.441027),
            (2.169847, 2.570794),
            (1.756317, 2.056863),
            (1.441518, 2.018521),
            (1.172702, 1.936526),
            (0.956378, 1.703848),
            (0.795881, 1.503944),
            (0.684793, 1.372317),
            (0.613026, 1.283200),
            (0.569369, 1.226714),
            (0.542469, 1.189374),
        ],
    ),
    (
        &[("arm", "qk-clip"), ("qk_clip", "0.2"), ("optimiser", "muon")],
        [
            (2.812916, 4.023003),
            (2.604995, 3.516554),
            (2.207365, 2.620728),
            (1.793681, 2.039313),
            (1.487741, 2.018799),
            (1.226178, 2.033822),
            (1.005798, 1.876469),
            (0.837262, 1.659181),
            (0.719140, 1.480039),
            (0.643164, 1.373862),
            (0.597269, 1.322871),
            (0.569078, 1.286120),
        ],
    ),
    (
        &[("upstream_steps", "5"), ("upstream_learning_rate", "2e-2")],
        [
            (3.210714, 3.946300),
            (1.874613, 1.867925),
            (1.410682, 1.808395),
            (0.999822, 1.101699),
            (0.861855, 0.996324),
            (3.471893, 4.271242),
            (3.061580, 4.138882),
            (2.394527, 2.804268),
            (1.795692, 2.302833),
            (1.390834, 1.996342),
            (1.140832, 1.725392),
            (1.036227, 1.572567),
        ],
    ),
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
    for (settings, expected) in PYTORCH {
        let mut definition = TrainDefinition::from_toml(DEFINITION).unwrap();
        for (key, value) in settings {
            definition.set(key, value).unwrap();
        }
        let corpus = match definition.upstream_steps > 0 {
            true => upstream(&definition),
            false => Corpus::from_text(&definition, TEXT).unwrap(),
        };
        let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
        for (step, (loss_nats, grad_norm)) in expected.into_iter().enumerate() {
            let found = trainer.step().unwrap();
            let off = ((found.loss_nats - loss_nats).abs() / loss_nats)
                .max((found.grad_norm - grad_norm).abs() / grad_norm);
            let step = step + 1;
            assert!(off < 5e-5, "{settings:?}, step {step}: {found:?}, not {expected:?}");
        }
    }
}
