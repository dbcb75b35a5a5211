//! Tests of training definitions: reading, refused values and messages.

use toml::{Table, Value};

use super::*;
use crate::targets::HeadKind;

#[test]
fn a_definition_reads_back_as_written() {
    let mut definition = TrainDefinition::default();
    for (key, value) in [
        ("arm", "ls"),
        ("window", "32"),
        ("learning_rate", "1e-3"),
        ("weight_decay", "0"),
        ("betas", "[0.9, 0.95]"),
        ("corpus.recall", "0.5"),
        ("vocabulary", "bpe:8192"),
        ("keep_checkpoints", "[100, 200]"),
        ("diverged_above", "12"),
    ] {
        definition.set(key, value).unwrap();
    }
    assert_eq!(definition.arm, Arm::Ls);
    assert_eq!(definition.weight_decay, 0.0);
    assert_eq!(definition.corpus.recall, 0.5);
    assert_eq!(definition.head_kinds()[0][1..], [HeadKind::Local { window: 32 }; 3]);
    assert_eq!(definition.local_tokens(), Some(32));
    let global = TrainDefinition { arm: Arm::Mhsa, ..definition.clone() };
    assert_eq!(global.local_tokens(), None);
    assert_eq!(definition.head_dimension(), definition.d_model / definition.heads);
    definition.set("d_head", "24").unwrap();
    assert_eq!(definition.head_dimension(), 24);
    let again = TrainDefinition::from_table(&definition.to_table().unwrap()).unwrap();
    assert_eq!(again, definition);
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

#[test]
fn a_wrong_value_is_refused_in_one_line_that_names_its_key() {
    for (key, value) in [
        ("d_model", "66"),
        ("window", "0"),
        ("context", "0"),
        ("steps", "0"),
        ("learning_rate", "0"),
        ("learning_rate", "nan"),
        ("dtype", "float16"),
        ("arm", "lsa"),
        ("valid_fraction", "1"),
        ("test_fraction", "0.9"),
        ("vocabulary", "bpe:12"),
        ("keep_checkpoints", "[0]"),
        ("diverged_above", "nan"),
        ("layers", "three"),
        ("layers", "-1"),
        ("corpus.recall", "1.5"),
        ("softcap", "0"),
        ("qk_clip", "-1"),
        ("z_loss", "0"),
        ("loss_exponent", "0"),
        ("loss_exponent", "1.5"),
        ("label_noise", "1"),
        ("stabilisers", r#"["layer-norm"]"#),
        ("positions", "sinusoid"),
    ] {
        let mut definition = TrainDefinition::default();
        let error = definition.set(key, value).unwrap_err().to_string();
        let name = key.rsplit('.').next().unwrap();
        assert!(error.contains(name), "{key}={value}: {error}");
        assert!(error.len() < 200, "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(definition, TrainDefinition::default());
    }
}

#[test]
fn a_manifest_may_have_removed_keys_with_their_defaults_and_no_others() {
    let written = TrainDefinition { steps: 7, ..TrainDefinition::default() };
    let read = |of_run: &[(&str, Value)], of_corpus: &[(&str, Value)]| {
        let mut table = written.to_table().unwrap();
        let owned = |keys: &[(&str, Value)]| {
            keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Table>()
        };
        table["corpus"].as_table_mut().unwrap().extend(owned(of_corpus));
        table.extend(owned(of_run));
        TrainDefinition::from_manifest(&table)
    };
    let defaults = [
        ("visibility", "causal".into()),
        ("objective", "next-token".into()),
        ("mask_share", 0.15.into()),
        ("records", 0.into()),
    ];
    assert_eq!(read(&defaults, &[("columns", 0.into())]).unwrap(), written);
    for (key, value) in [
        ("visibility", "bidirectional".into()),
        ("objective", "masked".into()),
        ("mask_share", 0.2.into()),
        ("records", 784.into()),
        ("patch", "28x3x3".into()),
    ] {
        let error = read(&[(key, value)], &[]).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
    let error = read(&[], &[("columns", 28.into())]).unwrap_err().to_string();
    assert!(error.contains("corpus.columns"), "{error}");
    // A definition is not a manifest.
    assert!(TrainDefinition::from_toml("records = 0").is_err());
}

#[test]
fn the_definitions_that_come_with_the_project_read() {
    let nanogpt = include_str!("../../../analysis/nanogpt-small.toml");
    assert_eq!(TrainDefinition::from_toml(nanogpt).unwrap().d_model, 128);
    let study: Table = include_str!("../../../analysis/lm-head-size.toml").parse().unwrap();
    let shared = study["train"].as_table().unwrap();
    assert_eq!(TrainDefinition::from_table(shared).unwrap().context, 512);
}

#[test]
fn stabilisers_go_with_any_heads_and_with_each_other() {
    let mut definition = TrainDefinition::default();
    definition.set("arm", "ls").unwrap();
    definition.set("stabilisers", r#"["qk-norm", "softcap"]"#).unwrap();
    assert!(definition.has(Stabiliser::QkNorm) && definition.has(Stabiliser::Softcap));
    assert_eq!(definition.head_kinds()[0][1], HeadKind::Local { window: 16 });
    let error = definition.set("arm", "qk-clip").unwrap_err().to_string();
    assert!(
        error.starts_with("stabilisers has no effect with qk-norm")
            && error.contains("(qk-clip found)"),
        "{error}"
    );
}

#[test]
fn settings_that_need_each_other_say_so() {
    for (settings, said) in [
        ([("positions", "rope"), ("d_model", "60")], "d_model gives d_head = 15 (60 found)"),
        ([("positions", "rope"), ("d_head", "15")], "d_head gives d_head = 15"),
        ([("d_head", "1"), ("heads", "65537")], "heads must be at most 65536"),
        (
            [("arm", "layer-alternating"), ("layers", "1")],
            "layers must be at least 2 with arm = layer-alternating (1 found)",
        ),
    ] {
        let mut definition = TrainDefinition::default();
        definition.set(settings[0].0, settings[0].1).unwrap();
        let error = definition.set(settings[1].0, settings[1].1).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn without_attention_keys_of_attention_are_refused() {
    let mut definition = TrainDefinition { heads: 1, ..TrainDefinition::default() };
    definition.set("arm", "gam").unwrap();
    for (key, value) in [
        ("heads", "4"),
        ("d_head", "16"),
        ("positions", "rope"),
        ("slopes", "alibi"),
        ("optimiser", "muon"),
        ("ternary", "true"),
        ("stabilisers", r#"["softcap"]"#),
        ("memory_slots", "0"),
    ] {
        let error = definition.set(key, value).unwrap_err().to_string();
        assert!(error.starts_with(key), "{key}={value}: {error}");
    }
    definition.set("stabilisers", r#"["z-loss"]"#).unwrap();
}

#[test]
fn keys_of_recursion_that_need_each_other_say_so() {
    for (set, key, value) in [
        (&[][..], "router", "expert"),
        (&[], "recursion_keys", "shared"),
        (&[], "router_scale", "0.5"),
        (&[], "causal_validation", "false"),
        (&[("layers", "2")], "recursions", "2"),
        (&[], "recursions", "1025"),
        (&[("heads", "1"), ("arm", "gam")], "recursions", "2"),
        (&[("recursions", "2")], "router_loss", "0.5"),
        (&[("recursions", "2"), ("router", "token")], "router_scale", "-1"),
        (&[("recursions", "2"), ("router", "token")], "causal_validation", "false"),
        (&[("recursions", "2"), ("router", "token")], "slopes", "alibi"),
        (&[("recursions", "2"), ("router", "expert")], "arm", "ls"),
    ] {
        let mut definition = TrainDefinition::default();
        set.iter().for_each(|(key, value)| definition.set(key, value).unwrap());
        let error = definition.set(key, value).unwrap_err().to_string();
        assert!(error.contains(" found)") && error.lines().count() == 1, "{key}={value}: {error}");
    }
    let mut definition = TrainDefinition::default();
    definition.set("recursions", "3").unwrap();
    definition.set("arm", "ls").unwrap();
    definition.set("recursion_keys", "shared").unwrap();
    let again = TrainDefinition::from_table(&definition.to_table().unwrap()).unwrap();
    assert_eq!(again, definition);
}
