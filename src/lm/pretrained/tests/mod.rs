//! Tests how the files of published models are read.

mod fixture;
mod reference;
mod refusals;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use ndarray::{Array2, s};
use serde_json::json;

use super::*;
use crate::lm::{HeadsOfLayer, Probed as _};
use fixture::{change_json, copy_of, folder, rename_weights};

#[cfg(feature = "study")]
pub(crate) use fixture::Published;

/// Queries, keys and layer input of every head.
fn numbers(folder: &Path) -> Vec<[Array2<f32>; 3]> {
    let model = PretrainedModel::read(folder).unwrap();
    let probes = model.probe(&[3, 16, 0, 7, 7, 11, 2, 5]).unwrap();
    probes.into_iter().map(|p| [p.queries, p.keys, (*p.inputs.stream).clone()]).collect()
}

/// Layers after the requested ones are not read, and a shorter passage is a prefix of a longer one.
#[test]
fn layers_probed_one_by_one_in_any_order_have_the_heads_of_one_pass() {
    let model = PretrainedModel::read(&folder("llama-sharded")).unwrap();
    let (layers, heads) = (model.layers(), model.heads());
    let long: Vec<u32> = (0..9).collect();
    let passages = [long.clone(), long[..5].to_vec()];
    let of_layers = |passages: &[Vec<u32>], layers: Range<usize>| {
        let mut found = Vec::new();
        let each = &mut |of_layer: HeadsOfLayer| {
            found.extend(of_layer.concat().into_iter().map(|p| (p.layer, p.head, p.queries)));
            ControlFlow::Continue(())
        };
        model.probe_layers(passages, layers, each).unwrap();
        found
    };
    let whole = of_layers(&passages, 0..layers);
    assert_eq!(whole.len(), 2 * layers * heads);
    for layer in (0..layers).chain((0..layers).rev()) {
        of_layers(&passages[1..], layer..layer + 1);
        let found = of_layers(&passages, layer..layer + 1);
        assert_eq!(found, whole[2 * layer * heads..][..2 * heads], "layer {layer}");
        for ((_, _, long), (_, _, short)) in found.iter().zip(&found[heads..]) {
            let off = (&long.slice(s![..5, ..]) - short).fold(0.0f32, |most, v| most.max(v.abs()));
            assert!(off < 1e-5, "layer {layer}: {off}");
        }
    }
}

#[test]
fn names_with_and_without_the_prefix_and_old_ones_read_the_same() {
    let read_the_same = |model: &str, renamed: &dyn Fn(&str) -> String| {
        let copy = copy_of(model);
        rename_weights(copy.path(), |name| Some(renamed(name)));
        assert_eq!(numbers(copy.path()), numbers(&folder(model)), "{model}");
    };
    read_the_same("gpt2", &|name| name.replacen("transformer.", "", 1));
    read_the_same("bert", &|name| format!("bert.{name}"));
    read_the_same("bert", &|name| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        format!("bert.{}", name.replace("LayerNorm.bias", "LayerNorm.beta"))
    });
}

#[test]
fn settings_that_a_configuration_leaves_out_are_the_usual_ones() {
    for name in ["gpt2", "bert"] {
        let copy = copy_of(name);
        change_json(&copy.path().join("config.json"), |config| {
            for key in [
                "layer_norm_epsilon",
                "activation_function",
                "scale_attn_weights",
                "layer_norm_eps",
                "hidden_act",
                "position_embedding_type",
            ] {
                config.as_object_mut().unwrap().remove(key);
            }
        });
        assert_eq!(numbers(copy.path()), numbers(&folder(name)), "{name}");
    }
}

#[test]
fn a_text_is_encoded_whole_and_without_special_tokens() {
    let copy = copy_of("bert");
    change_json(&copy.path().join("tokenizer.json"), |tokenizer| {
        tokenizer["truncation"] = json!({ "direction": "Right", "max_length": 4,
            "strategy": "LongestFirst", "stride": 0 });
        tokenizer["padding"] = json!({ "strategy": { "Fixed": 4 }, "direction": "Right",
            "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]" });
    });
    let [altered, plain] =
        [copy.path(), &folder("bert")].map(|path| PretrainedModel::read(path).unwrap());
    let long = "a b c d e f g";
    assert_eq!(altered.encode(long).unwrap(), plain.encode(long).unwrap());
    assert!(altered.encode(long).unwrap().len() >= 7, "the text was cut");
    assert_eq!(altered.encode("a").unwrap().len(), 1, "filled up or between special tokens");
    assert!(!altered.encode("[SEP]").unwrap().contains(&3), "text became a special token");
    assert_eq!(altered.encode("").unwrap(), [0u32; 0]);
}
