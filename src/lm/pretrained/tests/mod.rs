//! Tests how the files of published models are read, and the messages for unreadable models.

mod fixture;
mod reference;
mod refusals;

use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use half::{bf16, f16};
use ndarray::Array2;
use safetensors::tensor::Dtype;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::lm::{HeadsOfLayer, LmError, Probed as _};
use fixture::{CONTEXT, VOCABULARY, words_tokenizer};

pub(crate) use fixture::Published;

const TOKENS: [u32; 8] = [3, 16, 0, 7, 7, 11, 2, 5];

pub(super) fn written(model: &Published) -> TempDir {
    let folder = tempdir().unwrap();
    model.write(folder.path(), Dtype::F32);
    folder
}

/// A model together with the folder from which it reads.
struct Opened {
    model: PretrainedModel,
    _folder: TempDir,
}

impl std::ops::Deref for Opened {
    type Target = PretrainedModel;

    fn deref(&self) -> &PretrainedModel {
        &self.model
    }
}

fn read(model: &Published) -> Opened {
    let folder = written(model);
    Opened { model: PretrainedModel::read(folder.path()).unwrap(), _folder: folder }
}

/// Queries, keys and layer input of every head.
fn numbers(model: &PretrainedModel) -> Vec<[Array2<f32>; 3]> {
    let probes = model.probe(&TOKENS).unwrap();
    probes.into_iter().map(|p| [p.queries, p.keys, (*p.inputs.stream).clone()]).collect()
}

#[test]
fn layers_probed_one_by_one_in_any_order_have_the_heads_of_one_pass() {
    let model = read(&Published::gpt2());
    let (layers, other) = (model.layers(), [TOKENS[1], TOKENS[0]]);
    let queries_of = |passages: &[Vec<u32>], layers: Range<usize>| {
        let mut found = Vec::new();
        let each = &mut |heads: HeadsOfLayer| {
            found.extend(heads.concat().into_iter().map(|head| head.queries));
            ControlFlow::Continue(())
        };
        model.probe_layers(passages, layers, each).unwrap();
        found
    };
    let passages = [TOKENS.to_vec(), other.to_vec()];
    let whole = queries_of(&passages, 0..layers);
    let heads = 2 * model.heads();
    assert_eq!(whole.len(), layers * heads);
    for layer in (0..layers).chain((0..layers).rev()) {
        queries_of(&[other.to_vec()], layer..layer + 1);
        let found = queries_of(&passages, layer..layer + 1);
        assert_eq!(found, whole[layer * heads..(layer + 1) * heads], "layer {layer}");
    }
}

#[test]
fn names_with_and_without_the_prefix_and_old_ones_read_the_same() {
    let (gpt2, bert) = (Published::gpt2(), Published::bert());
    let prefixed = gpt2.renamed(|name| format!("transformer.{name}"));
    assert_eq!(numbers(&read(&gpt2)), numbers(&read(&prefixed)));
    let expected = numbers(&read(&bert));
    assert_eq!(expected, numbers(&read(&bert.renamed(|name| format!("bert.{name}")))));
    let old = bert.renamed(|name| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        format!("bert.{}", name.replace("LayerNorm.bias", "LayerNorm.beta"))
    });
    assert_eq!(expected, numbers(&read(&old)));
    let (names, models) = (["gpt2", "bert"], [read(&gpt2), read(&bert)]);
    assert_eq!(models.each_ref().map(|opened| opened.name()), names);
}

#[test]
fn half_precision_reads_as_the_numbers_it_stands_for() {
    for model in [Published::gpt2(), Published::bert()] {
        let f16s = |x| f16::from_f32(x).to_f32();
        let bf16s = |x| bf16::from_f32(x).to_f32();
        for (dtype, rounded) in
            [(Dtype::F16, model.rounded(f16s)), (Dtype::BF16, model.rounded(bf16s))]
        {
            let folder = tempdir().unwrap();
            model.write(folder.path(), dtype);
            let found = numbers(&PretrainedModel::read(folder.path()).unwrap());
            assert_eq!(found, numbers(&read(&rounded)), "{dtype:?}");
            assert_ne!(found, numbers(&read(&model)), "{dtype:?} rounds");
        }
    }
}

#[test]
fn settings_that_a_configuration_leaves_out_are_the_usual_ones() {
    for mut model in [Published::gpt2(), Published::bert()] {
        let expected = numbers(&read(&model));
        let keys = model.config.as_object_mut().unwrap();
        for key in [
            "layer_norm_epsilon",
            "activation_function",
            "scale_attn_weights",
            "layer_norm_eps",
            "hidden_act",
            "position_embedding_type",
        ] {
            keys.remove(key);
        }
        assert_eq!(numbers(&read(&model)), expected);
    }
}

#[test]
fn a_text_is_encoded_whole_and_without_special_tokens() {
    let folder = written(&Published::bert());
    fs::write(folder.path().join("tokenizer.json"), words_tokenizer().to_string()).unwrap();
    let model = PretrainedModel::read(folder.path()).unwrap();
    assert_eq!(model.encode("the cat sat the cat sat").unwrap(), [4, 5, 6, 4, 5, 6]);
    assert_eq!(model.encode("dog").unwrap(), [1], "neither filled up nor between special tokens");
    assert!(!model.encode("[SEP]").unwrap().contains(&3), "text became a special token");
    assert_eq!(model.encode("").unwrap(), [0u32; 0]);
}

/// The error message of a folder, without its path.
pub(super) fn said(folder: &Path) -> String {
    let Err(error) = PretrainedModel::read(folder) else { panic!("the model was read") };
    one_line(&error, folder)
}

fn one_line(error: &LmError, folder: &Path) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn configurations_that_cannot_be_read_are_refused() {
    let (gpt2, bert) = (Published::gpt2(), Published::bert());
    for (model, key, value, expected) in [
        (&gpt2, "model_type", json!("mamba"), "model_type \"mamba\"; supported are bert, cohere,"),
        (&gpt2, "model_type", Value::Null, "has no model_type; supported types are bert, cohere,"),
        (&gpt2, "n_layer", Value::Null, "has no n_layer"),
        (&gpt2, "n_layer", json!(0), "n_layer is 0"),
        (&gpt2, "n_head", json!(5), "n_embd is 12; it must be a multiple of n_head, 5"),
        (&gpt2, "scale_attn_by_inverse_layer_idx", json!(true), "layer_idx is true"),
        (&gpt2, "scale_attn_weights", json!(false), "scale_attn_weights is false"),
        (&gpt2, "activation_function", json!("mish"), "activation_function is \"mish\""),
        (&gpt2, "layer_norm_epsilon", json!(-1), "layer_norm_epsilon is -1"),
        (&bert, "position_embedding_type", json!("relative_key"), "is \"relative_key\""),
        (&bert, "is_decoder", json!(true), "is_decoder is true; only false is supported"),
    ] {
        let mut model = model.clone();
        model.config[key] = value;
        let said = said(written(&model).path());
        assert!(said.starts_with("config.json: ") && said.contains(expected), "{said}");
    }
    let folder = written(&gpt2);
    fs::write(folder.path().join("config.json"), "[1]").unwrap();
    assert!(said(folder.path()).ends_with("; use the config.json published with the model"));
    let empty = tempdir().unwrap();
    assert!(!PretrainedModel::is_in(empty.path()) && PretrainedModel::is_in(folder.path()));
    assert!(said(empty.path()).starts_with("config.json: No such file"));
}

#[test]
fn passages_and_texts_that_cannot_be_read_are_refused() {
    let folder = written(&Published::bert());
    let model = PretrainedModel::read(folder.path()).unwrap();
    let refused = |tokens: &[u32]| one_line(&model.probe(tokens).unwrap_err(), folder.path());
    let expected = "the passage has 11 tokens; it must have 1 to 10, the model's context";
    assert_eq!(refused(&[0; CONTEXT + 1]), expected);
    assert_eq!(refused(&[]), expected.replace("11", "0"));
    let expected = "token 17 is outside the model's vocabulary of 17; use the tokenizer.json published with the model";
    assert_eq!(refused(&[1, VOCABULARY as u32]), expected);

    let error = model.encode("text").unwrap_err();
    let expected = "tokenizer.json: is missing; save the model's tokenizer as tokenizer.json beside its weights";
    assert_eq!(one_line(&error, folder.path()), expected);
    fs::write(folder.path().join("vocab.txt"), "a").unwrap();
    let error = one_line(&model.encode("text").unwrap_err(), folder.path());
    assert!(error.contains("vocab.txt") && error.contains("save_pretrained"), "{error}");
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let unusable = said(folder.path());
    assert!(unusable.starts_with("tokenizer.json: "), "{unusable}");
    assert!(unusable.ends_with("; use the tokenizer.json published with the model"), "{unusable}");
}
