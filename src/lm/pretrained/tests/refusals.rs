//! Tests that incomplete folders and unsupported models are refused with a message in one line.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::fixture::{change_json, copy_of, rename_weights};
use crate::lm::{LmError, PretrainedModel, Probed as _};

/// The error message of a folder, without its path.
fn said(folder: &Path) -> String {
    let Err(error) = PretrainedModel::read(folder) else { panic!("the model was read") };
    one_line(&error, folder)
}

fn one_line(error: &LmError, folder: &Path) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text.replace(&format!("{}/", folder.display()), "")
}

/// The error message of a modified copy of a folder of tests/reference/published.
fn said_of(name: &str, change: impl FnOnce(&Path)) -> String {
    let copy = copy_of(name);
    change(copy.path());
    said(copy.path())
}

/// Modifies the contents of a file.
fn change(path: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    fs::write(path, change(fs::read(path).unwrap())).unwrap();
}

/// Writes bytes at a distance from the start of the first `place`.
fn put(mut bytes: Vec<u8>, place: &[u8], distance: usize, new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(place.len()).position(|window| window == place).unwrap() + distance;
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn configurations_that_cannot_be_read_are_refused_by_key_and_value() {
    let scaled = |of: &str| json!({ "rope_type": of, "rope_theta": 1e4, "short_factor": [1.0] });
    for (model, key, value, expected) in [
        ("gpt2", "model_type", json!("mamba"), "\"mamba\""),
        ("gpt2", "model_type", Value::Null, "no model_type"),
        ("gpt2", "n_layer", Value::Null, "no n_layer"),
        ("gpt2", "n_layer", json!(0), "n_layer is 0"),
        ("gpt2", "n_head", json!(5), "multiple of n_head, 5"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", json!(true), "layer_idx is true"),
        ("gpt2", "scale_attn_weights", json!(false), "scale_attn_weights is false"),
        ("gpt2", "activation_function", json!("mish"), "activation_function is \"mish\""),
        ("gpt2", "layer_norm_epsilon", json!(-1), "layer_norm_epsilon is -1"),
        ("bert", "position_embedding_type", json!("relative_key"), "\"relative_key\""),
        ("bert", "is_decoder", json!(true), "is_decoder is true"),
        ("llama", "rope_parameters", scaled("proportional"), "\"proportional\""),
        ("llama", "rope_parameters", scaled("longrope"), "short_factor has 1 numbers"),
        ("llama", "rope_parameters", scaled("linear"), "rope_parameters: has no factor"),
        ("llama", "quantization_config", json!({ "quant_method": "gptq" }), "gptq"),
        ("llama", "hidden_act", json!("mish"), "hidden_act is \"mish\""),
        ("llama", "num_key_value_heads", json!(3), "num_key_value_heads, 3"),
        ("qwen3", "layer_types", json!(["linear_attention", "full_attention"]), "layer_types"),
        ("gemma3_text", "use_bidirectional_attention", json!(true), "bidirectional_attention is"),
    ] {
        let said = said_of(model, |copy| {
            change_json(&copy.join("config.json"), |config| config[key] = value);
        });
        assert!(said.starts_with("config.json: ") && said.contains(expected), "{said}");
    }
    let said_of_list = said_of("gpt2", |copy| fs::write(copy.join("config.json"), "[1]").unwrap());
    assert!(said_of_list.starts_with("config.json: "), "{said_of_list}");
    let empty = tempdir().unwrap();
    assert!(
        !PretrainedModel::is_in(empty.path()) && PretrainedModel::is_in(copy_of("gpt2").path())
    );
    assert!(said(empty.path()).starts_with("config.json: "));
}

/// Asserts that the message of a modified copy begins with a file and contains further parts.
fn refused(name: &str, file: &str, parts: &[&str], change: impl FnOnce(&Path)) {
    let said = said_of(name, change);
    assert!(said.starts_with(&format!("{file}: ")), "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const TOKENIZER: &str = "tokenizer.json";

#[test]
fn weights_that_are_missing_or_of_another_shape_or_type_are_named() {
    let shard = "model-00002-of-00003.safetensors";
    refused("llama-sharded", INDEX, &[shard], |copy| fs::remove_file(copy.join(shard)).unwrap());
    for (key, file) in [
        ("model.layers.9.self_attn.q_proj.weight", shard),
        ("model.norm.weight", "../model.safetensors"),
    ] {
        refused("llama-sharded", INDEX, &[key, file], |copy| {
            change_json(&copy.join(INDEX), |index| index["weight_map"][key] = json!(file));
        });
    }
    for (name, key, value, parts) in [
        ("llama", "vocab_size", 77, &["[77, 32]"][..]),
        ("bert", "intermediate_size", 49, &["0.intermediate.dense.weight", "[48, 32]", "[49, 32]"]),
    ] {
        refused(name, WEIGHTS, parts, |copy| {
            change_json(&copy.join("config.json"), |config| config[key] = json!(value));
        });
    }
    let types = "float32, float16 or bfloat16";
    refused("gpt2", WEIGHTS, &["h.1.mlp.c_fc.bias", types], |copy| {
        rename_weights(copy, |name| {
            (!name.ends_with("h.1.mlp.c_fc.bias")).then(|| name.to_owned())
        });
    });
    refused("olmo2", WEIGHTS, &["no tensor", types], |copy| {
        change(&copy.join(WEIGHTS), |bytes| put(bytes, b"\"F32\"", 0, b"\"I32\""));
    });
    let gone = |copy: &Path| fs::remove_file(copy.join(WEIGHTS)).unwrap();
    refused("gpt2", WEIGHTS, &["is missing", INDEX], gone);
    refused("gpt2", INDEX, &["missing field"], |copy| {
        gone(copy);
        fs::write(copy.join(INDEX), "{}").unwrap();
    });
    let gguf = "model.gguf";
    refused("llama-gguf", gguf, &["cut off"], |copy| {
        change(&copy.join(gguf), |bytes| bytes[..bytes.len() - 64].to_vec());
    });
    refused("llama-gguf", gguf, &["general.architecture mamba"], |copy| {
        change(&copy.join(gguf), |bytes| put(bytes, b"general.architecture", 32, b"mamba"));
    });
}

#[test]
fn tokenizers_passages_and_texts_that_cannot_be_read_are_refused() {
    // A tokenizer with a token that has no embedding.
    refused("llama", TOKENIZER, &["50000", "379"], |copy| {
        change_json(&copy.join(TOKENIZER), |all| all["model"]["vocab"]["another"] = json!(50_000));
    });
    refused("gpt2", TOKENIZER, &[], |copy| fs::write(copy.join(TOKENIZER), "{}").unwrap());

    let copy = copy_of("bert");
    fs::remove_file(copy.path().join(TOKENIZER)).unwrap();
    let model = PretrainedModel::read(copy.path()).unwrap();
    for (tokens, parts) in
        [(&[0; 65][..], ["65", "64"]), (&[], ["0 tokens", "64"]), (&[1, 157], ["token 157", "157"])]
    {
        let error = one_line(&model.probe(tokens).unwrap_err(), copy.path());
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let unread = || one_line(&model.encode("text").unwrap_err(), copy.path());
    assert!(unread().starts_with("tokenizer.json: is missing"), "{}", unread());
    fs::write(copy.path().join("vocab.txt"), "a").unwrap();
    assert!(unread().contains("vocab.txt"), "{}", unread());
}
