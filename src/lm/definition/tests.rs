//! Tests of training definitions: reading and refused values.

use toml::Value;

use super::*;
use crate::lm::LmError;
use crate::targets::HeadKind;

impl TrainDefinition {
    /// The definition with further settings, such as `arm=ls window=32`.
    pub(crate) fn with(mut self, settings: &str) -> Self {
        for setting in settings.split_whitespace() {
            self.set_one(setting).unwrap();
        }
        self
    }

    fn set_one(&mut self, setting: &str) -> Result<(), LmError> {
        let (key, value) = setting.split_once('=').unwrap();
        self.set(key, value)
    }
}

#[test]
fn a_definition_reads_back_as_written() {
    let read_back = |definition: &TrainDefinition| {
        let again = TrainDefinition::from_table(&definition.to_table().unwrap()).unwrap();
        assert_eq!(again, *definition);
    };
    let definition = TrainDefinition::default().with(
        "arm=ls window=32 learning_rate=1e-3 weight_decay=0 betas=[0.9,0.95] corpus.recall=0.5 \
         vocabulary=bpe:8192 keep_checkpoints=[100,200] diverged_above=12",
    );
    assert_eq!(definition.arm, Arm::Ls);
    assert_eq!(definition.weight_decay, 0.0);
    assert_eq!(definition.corpus.recall, 0.5);
    assert_eq!(definition.head_kinds()[0][1..], [HeadKind::Local { window: 32 }; 3]);
    assert_eq!(definition.local_tokens(), Some(32));
    assert_eq!(definition.clone().with("arm=mhsa").local_tokens(), None);
    assert_eq!(definition.head_dimension(), definition.d_model / definition.heads);
    let definition = definition.with("d_head=24");
    assert_eq!(definition.head_dimension(), 24);
    read_back(&definition);
    read_back(&TrainDefinition::default().with("recursions=3 arm=ls recursion_keys=shared"));

    let file = include_str!("../../../analysis/nanogpt-small.toml");
    assert_eq!(TrainDefinition::from_toml(file).unwrap().d_model, 128);
}

#[test]
fn an_unknown_key_names_the_nearest_one() {
    let mut definition = TrainDefinition::default();
    for (key, nearest) in [
        ("learning_rat", "learning_rate"),
        ("corpus.recal", "corpus.recall"),
        ("corpus.pair", "corpus.pairs"),
    ] {
        let error = definition.set(key, "1").unwrap_err().to_string();
        assert!(error.contains(&format!("{nearest:?}")) && error.contains(key), "{error}");
    }
}

/// The last setting of each entry is out of its own range, or does not go with the settings before it.
const REFUSED: &str = r#"
    d_model=66; window=0; context=0; steps=0; learning_rate=0; learning_rate=nan; dtype=float16;
    arm=lsa; valid_fraction=1; test_fraction=0.9; vocabulary=bpe:12; keep_checkpoints=[0];
    diverged_above=nan; layers=three; layers=-1; corpus.recall=1.5; softcap=0; qk_clip=-1; z_loss=0;
    loss_exponent=0; loss_exponent=1.5; label_noise=1; stabilisers=["layer-norm"]; positions=sinusoid;
    arm=qk-clip stabilisers=["qk-norm","softcap"]; arm=layer-alternating layers=1;
    positions=rope d_model=60; positions=rope d_head=15; d_head=1 heads=65537;
    heads=1 arm=gam heads=4; heads=1 arm=gam d_head=16; heads=1 arm=gam positions=rope;
    heads=1 arm=gam slopes=alibi; heads=1 arm=gam optimiser=muon; heads=1 arm=gam ternary=true;
    heads=1 arm=gam stabilisers=["softcap"]; heads=1 arm=gam memory_slots=0;
    heads=1 arm=gam recursions=2; layers=2 recursions=2; recursions=1025; router=expert;
    recursion_keys=shared; router_scale=0.5; causal_validation=false; recursions=2 router_loss=0.5;
    recursions=2 router=token router_scale=-1; recursions=2 router=token causal_validation=false;
    recursions=2 router=token slopes=alibi; recursions=2 router=expert arm=ls; corpus.order=30
"#;

#[test]
fn a_wrong_value_is_refused_in_one_line_that_names_its_key() {
    for settings in REFUSED.split(';').map(str::trim) {
        let (before, last) = settings.rsplit_once(' ').unwrap_or(("", settings));
        let before = TrainDefinition::default().with(before);
        let mut definition = before.clone();
        let error = definition.set_one(last).unwrap_err().to_string();
        let (key, _) = last.split_once('=').unwrap();
        assert!(error.contains(key.trim_start_matches("corpus.")), "{settings}: {error}");
        assert!(error.len() < 200 && error.lines().count() == 1, "{settings}: {error}");
        assert_eq!(definition, before, "{settings}");
    }
}

#[test]
fn stabilisers_go_with_each_other_with_local_heads_and_without_attention() {
    let both = r#"arm=ls stabilisers=["qk-norm","softcap"]"#;
    let definition = TrainDefinition::default().with(both);
    assert!(definition.has(Stabiliser::QkNorm) && definition.has(Stabiliser::Softcap));
    assert_eq!(definition.head_kinds()[0][1], HeadKind::Local { window: 16 });
    TrainDefinition::default().with(r#"heads=1 arm=gam stabilisers=["z-loss"]"#);
}

#[test]
fn a_manifest_may_have_removed_keys_with_their_defaults_and_no_others() {
    let written = TrainDefinition { steps: 7, ..TrainDefinition::default() };
    let read = |settings: &[(&str, Value)]| {
        let mut table = written.to_table().unwrap();
        for (key, value) in settings {
            let (part, key) = match key.split_once('.') {
                Some((part, key)) => (table[part].as_table_mut().unwrap(), key),
                None => (&mut table, *key),
            };
            part.insert(key.to_owned(), value.clone());
        }
        TrainDefinition::from_manifest(&table)
    };
    let defaults = [
        ("visibility", "causal".into()),
        ("objective", "next-token".into()),
        ("mask_share", 0.15.into()),
        ("records", 0.into()),
        ("corpus.columns", 0.into()),
    ];
    assert_eq!(read(&defaults).unwrap(), written);
    for (key, value) in [
        ("visibility", "bidirectional".into()),
        ("objective", "masked".into()),
        ("mask_share", 0.2.into()),
        ("records", 784.into()),
        ("patch", "28x3x3".into()),
        ("corpus.columns", 28.into()),
    ] {
        let error = read(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
    // A definition is not a manifest.
    assert!(TrainDefinition::from_toml("records = 0").is_err());
}
