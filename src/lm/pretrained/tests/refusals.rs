//! Tests that incomplete folders and unsupported models are refused with a message in one line.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::fixture::HIDDEN;
use super::{Published, said, written};

/// The error message of a modified copy of a folder of tests/reference/published.
fn said_of(name: &str, change: impl FnOnce(&Path)) -> String {
    let folder = tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/published").join(name);
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    change(folder.path());
    said(folder.path())
}

/// Modifies the contents of a file.
fn change(path: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    fs::write(path, change(fs::read(path).unwrap())).unwrap();
}

fn change_json(path: &Path, edit: impl FnOnce(&mut Value)) {
    change(path, |bytes| {
        let mut value = serde_json::from_slice(&bytes).unwrap();
        edit(&mut value);
        value.to_string().into_bytes()
    });
}

#[test]
fn folders_that_are_not_whole_are_refused_in_a_line() {
    let shard = "model-00002-of-00003.safetensors";
    let index = "model.safetensors.index.json";
    let said = said_of("llama-sharded", |folder| fs::remove_file(folder.join(shard)).unwrap());
    assert!(
        said.starts_with("model.safetensors.index.json: places model.") && said.ends_with(
            "in model-00002-of-00003.safetensors, which is missing; download every shard of the model"
        ),
        "{said}"
    );
    let said = said_of("llama-sharded", |folder| {
        change_json(&folder.join(index), |index| {
            index["weight_map"]["model.layers.9.self_attn.q_proj.weight"] = json!(shard);
        });
    });
    assert!(
        said.ends_with("which has no such tensor; use both files of one published model"),
        "{said}"
    );
    let said = said_of("llama-sharded", |folder| {
        change_json(&folder.join(index), |index| {
            index["weight_map"]["model.norm.weight"] = json!("../model.safetensors");
        });
    });
    assert!(said.contains("in ../model.safetensors, which is missing"), "{said}");

    let said = said_of("llama", |folder| {
        change_json(&folder.join("config.json"), |config| config["vocab_size"] = json!(77));
    });
    assert!(said.contains("the model needs [77, 32]"), "{said}");
    // A tokenizer with a token that has no embedding.
    let said = said_of("llama", |folder| {
        change_json(&folder.join("tokenizer.json"), |tokenizer| {
            tokenizer["model"]["vocab"]["another"] = json!(50_000);
        });
    });
    assert_eq!(
        said,
        "tokenizer.json: has a token 50000, but the model has 379 embeddings; use the tokenizer.json published with the model"
    );
}

#[test]
fn what_is_not_implemented_is_refused_by_name() {
    let config = |name: &str, key: &'static str, value: Value| {
        said_of(name, move |folder| {
            change_json(&folder.join("config.json"), |config| config[key] = value);
        })
    };
    let scaled = json!({ "rope_type": "proportional", "rope_theta": 1e4, "factor": 2.0 });
    let said = config("llama", "rope_parameters", scaled);
    assert!(
        said.starts_with("config.json: rope_parameters: rope_type is \"proportional\""),
        "{said}"
    );
    let scaled = json!({ "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] });
    let said = config("llama", "rope_parameters", scaled);
    assert!(said.contains("short_factor has 1 numbers; it must have 4, all above 0"), "{said}");
    let scaled = json!({ "rope_type": "linear", "rope_theta": 1e4 });
    let said = config("llama", "rope_parameters", scaled);
    assert!(said.starts_with("config.json: rope_parameters: has no factor"), "{said}");
    let said = config("llama", "quantization_config", json!({ "quant_method": "gptq" }));
    assert!(said.contains("quantised by gptq"), "{said}");
    let said = config("qwen3", "layer_types", json!(["linear_attention", "full_attention"]));
    assert!(said.contains("linear_attention") || said.contains("layer_types names"), "{said}");
    let said = config("gemma3_text", "use_bidirectional_attention", json!(true));
    assert!(said.contains("use_bidirectional_attention is true"), "{said}");
    let said = config("llama", "hidden_act", json!("mish"));
    assert!(said.contains("hidden_act is \"mish\""), "{said}");
    let said = config("llama", "num_key_value_heads", json!(3));
    assert!(said.contains("must be a multiple of num_key_value_heads, 3"), "{said}");
    // Weights of an unsupported type.
    let said = said_of("olmo2", |folder| {
        change(&folder.join("model.safetensors"), |bytes| {
            let text = String::from_utf8_lossy(&bytes[8..]).contains("\"F32\"");
            assert!(text, "olmo2 is in float32");
            let at = bytes.windows(5).position(|w| w == b"\"F32\"").unwrap();
            let mut bytes = bytes;
            bytes[at..at + 5].copy_from_slice(b"\"I32\"");
            bytes
        });
    });
    assert!(
        said.contains("has no tensor ") && said.contains(" of float32, float16 or bfloat16"),
        "{said}"
    );

    let cut = |folder: &Path| change(&folder.join("model.gguf"), |b| b[..b.len() - 64].to_vec());
    assert!(said_of("llama-gguf", cut).contains("is cut off"));
    let other = |folder: &Path| {
        change(&folder.join("model.gguf"), |mut b| {
            let name = b"general.architecture";
            let at = b.windows(name.len()).position(|w| w == name).unwrap() + name.len() + 12;
            b[at..at + 5].copy_from_slice(b"mamba");
            b
        })
    };
    let said = said_of("llama-gguf", other);
    assert!(
        said.contains("general.architecture mamba; supported as .gguf are bert, command-r,"),
        "{said}"
    );
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let whose = "; use weights and config.json of one published model";
    let mut lacking = Published::gpt2();
    lacking.weights.remove("h.1.mlp.c_fc.bias");
    let what = "has no tensor h.1.mlp.c_fc.bias of float32, float16 or bfloat16";
    assert_eq!(said(written(&lacking).path()), format!("model.safetensors: {what}{whose}"));

    let mut other = Published::bert().renamed(|name| format!("bert.{name}"));
    other.config["intermediate_size"] = json!(HIDDEN + 1);
    let what =
        "bert.encoder.layer.0.intermediate.dense.weight is [20, 12], but the model needs [21, 12]";
    assert_eq!(said(written(&other).path()), format!("model.safetensors: {what}{whose}"));

    let folder = written(&Published::gpt2());
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    let what = "is missing, and so is model.safetensors.index.json; save the model with save_pretrained as safetensors";
    assert_eq!(said(folder.path()), format!("model.safetensors: {what}"));
    fs::write(folder.path().join("model.safetensors.index.json"), "{}").unwrap();
    let what = said(folder.path());
    assert!(what.starts_with("model.safetensors.index.json: missing field"), "{what}");
}
