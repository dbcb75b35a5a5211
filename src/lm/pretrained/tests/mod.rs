//! Compares published models with plain loops in float64, and tests the messages for unreadable models.

mod fixture;
mod reference;
mod refusals;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use ndarray::{Array2, Axis, s};
use safetensors::tensor::Dtype;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::lm::{LmError, Probed as _};
use crate::targets::{HeadKind, Visibility};
use fixture::{C, CONTEXT, HEADS, HIDDEN, LAYERS, VOCABULARY, words_tokenizer};

pub(crate) use fixture::Published;

const TOKENS: [u32; 8] = [3, 16, 0, 7, 7, 11, 2, 5];
const D: usize = C / HEADS;

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

/// The formulas of both models in float64, as scalar loops.
mod plain {
    use super::*;

    pub(super) type Rows = Vec<Vec<f64>>;

    struct Plain<'m> {
        model: &'m Published,
        gelu: fn(f64) -> f64,
        epsilon: f64,
        causal: bool,
        /// Whether matrices are stored as outputs × inputs.
        transposed: bool,
    }

    pub(super) fn gelu(x: f64) -> f64 {
        // erf by Simpson's rule.
        let end = x / 2f64.sqrt();
        let steps = 2000;
        let h = end / f64::from(steps);
        let mut sum = 1.0 + (-end * end).exp();
        for i in 1..steps {
            let t = f64::from(i) * h;
            sum += if i % 2 == 1 { 4.0 } else { 2.0 } * (-t * t).exp();
        }
        let erf = 2.0 / std::f64::consts::PI.sqrt() * sum * h / 3.0;
        x * (1.0 + erf) / 2.0
    }

    pub(super) fn tanh_gelu(x: f64) -> f64 {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
        x * (1.0 + u.tanh()) / 2.0
    }

    impl Plain<'_> {
        fn weight(&self, name: &str, at: usize) -> f64 {
            f64::from(self.model.weights[name].1[at])
        }

        fn linear(&self, x: &Rows, name: &str, outputs: usize) -> Rows {
            let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
            let mut y = vec![vec![0.0; outputs]; x.len()];
            for (x, y) in x.iter().zip(&mut y) {
                for (o, y) in y.iter_mut().enumerate() {
                    *y = self.weight(&bias, o);
                    for (i, value) in x.iter().enumerate() {
                        let at = if self.transposed { o * x.len() + i } else { i * outputs + o };
                        *y += value * self.weight(&weight, at);
                    }
                }
            }
            y
        }

        fn norm(&self, x: &Rows, name: &str) -> Rows {
            let mut y = x.clone();
            for y in &mut y {
                let mean = y.iter().sum::<f64>() / C as f64;
                let variance = y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / C as f64;
                for (i, v) in y.iter_mut().enumerate() {
                    *v = (*v - mean) / (variance + self.epsilon).sqrt();
                    *v = *v * self.weight(&format!("{name}.weight"), i)
                        + self.weight(&format!("{name}.bias"), i);
                }
            }
            y
        }

        fn attention(&self, q: &Rows, k: &Rows, v: &Rows) -> Rows {
            let t = q.len();
            let mut y = vec![vec![0.0; C]; t];
            for head in 0..HEADS {
                for i in 0..t {
                    let seen = if self.causal { i + 1 } else { t };
                    let mut p = vec![0.0; seen];
                    for (j, p) in p.iter_mut().enumerate() {
                        let dot: f64 = (head * D..(head + 1) * D).map(|c| q[i][c] * k[j][c]).sum();
                        *p = (dot / (D as f64).sqrt()).exp();
                    }
                    let sum: f64 = p.iter().sum();
                    for c in head * D..(head + 1) * D {
                        for j in 0..seen {
                            y[i][c] += p[j] / sum * v[j][c];
                        }
                    }
                }
            }
            y
        }

        fn mlp(&self, x: &Rows, input: &str, output: &str) -> Rows {
            let mut hidden = self.linear(x, input, HIDDEN);
            for row in &mut hidden {
                for v in row {
                    *v = (self.gelu)(*v);
                }
            }
            self.linear(&hidden, output, C)
        }

        /// The sums of token and position embeddings.
        fn embedded(&self, token: &str, position: &str) -> Rows {
            let row = |name: &str, row: usize, c: usize| self.weight(name, row * C + c);
            let one = |(place, &t): (usize, &u32)| {
                (0..C).map(|c| row(token, t as usize, c) + row(position, place, c)).collect()
            };
            TOKENS.iter().enumerate().map(one).collect()
        }
    }

    fn plus(a: &Rows, b: &Rows) -> Rows {
        let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + b).collect();
        a.iter().zip(b).map(row).collect()
    }

    fn columns(x: &Rows, first: usize) -> Rows {
        x.iter().map(|row| row[first..first + C].to_vec()).collect()
    }

    /// X, Q and K of every layer.
    pub(super) fn gpt2(model: &Published, gelu: fn(f64) -> f64) -> Vec<[Rows; 3]> {
        let plain = Plain { model, gelu, epsilon: 1e-5, causal: true, transposed: false };
        let mut x = plain.embedded("wte.weight", "wpe.weight");
        let mut found = Vec::new();
        for layer in 0..LAYERS {
            let name = |part: &str| format!("h.{layer}.{part}");
            let input = plain.norm(&x, &name("ln_1"));
            let all = plain.linear(&input, &name("attn.c_attn"), 3 * C);
            let [q, k, v] = [0, C, 2 * C].map(|first| columns(&all, first));
            let gathered = plain.attention(&q, &k, &v);
            x = plus(&x, &plain.linear(&gathered, &name("attn.c_proj"), C));
            let input_of_mlp = plain.norm(&x, &name("ln_2"));
            x = plus(&x, &plain.mlp(&input_of_mlp, &name("mlp.c_fc"), &name("mlp.c_proj")));
            found.push([input, q, k]);
        }
        found
    }

    /// X, Q and K of every layer.
    pub(super) fn bert(model: &Published, gelu: fn(f64) -> f64) -> Vec<[Rows; 3]> {
        let plain = Plain { model, gelu, epsilon: 1e-12, causal: false, transposed: true };
        let [word, position, kind, norm] = [
            "word_embeddings.weight",
            "position_embeddings.weight",
            "token_type_embeddings.weight",
            "LayerNorm",
        ]
        .map(|part| format!("embeddings.{part}"));
        let mut x = plain.embedded(&word, &position);
        for row in &mut x {
            for (c, v) in row.iter_mut().enumerate() {
                *v += plain.weight(&kind, c);
            }
        }
        x = plain.norm(&x, &norm);
        let mut found = Vec::new();
        for layer in 0..LAYERS {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            let input = x.clone();
            let [q, k, v] = ["query", "key", "value"]
                .map(|part| plain.linear(&x, &name(&format!("attention.self.{part}")), C));
            let gathered = plain.attention(&q, &k, &v);
            x = plus(&x, &plain.linear(&gathered, &name("attention.output.dense"), C));
            x = plain.norm(&x, &name("attention.output.LayerNorm"));
            x = plus(&x, &plain.mlp(&x, &name("intermediate.dense"), &name("output.dense")));
            x = plain.norm(&x, &name("output.LayerNorm"));
            found.push([input, q, k]);
        }
        found
    }
}

fn assert_near(found: &Array2<f32>, expected: &plain::Rows, first: usize, what: &str) {
    for ((row, column), &found) in found.indexed_iter() {
        let off = (f64::from(found) - expected[row][first + column]).abs();
        assert!(off < 1e-4, "{what} at {row}, {column} differs by {off:e}");
    }
}

fn assert_all_near(model: &Published, visibility: Visibility, expected: &[[plain::Rows; 3]]) {
    let model = read(model);
    assert_eq!((model.layers(), model.heads(), model.context()), (LAYERS, HEADS, CONTEXT));
    let probes = model.probe(&TOKENS).unwrap();
    assert_eq!(probes.len(), LAYERS * HEADS);
    for (place, probe) in probes.iter().enumerate() {
        let (layer, head) = (place / HEADS, place % HEADS);
        assert_eq!((probe.layer, probe.head), (layer, head));
        assert_eq!((probe.visibility, probe.kind), (visibility, HeadKind::Global));
        let [x, q, k] = &expected[layer];
        let what = |part: &str| format!("{part} of layer {layer}, head {head}");
        assert_near(&probe.queries, q, head * D, &what("Q"));
        assert_near(&probe.keys, k, head * D, &what("K"));
        let stream = &probe.inputs.stream;
        assert_eq!(stream.dim(), (TOKENS.len(), C + 1));
        assert!(stream.index_axis(Axis(1), C).iter().all(|&one| one == 1.0));
        assert_near(&stream.slice(s![.., ..C]).to_owned(), x, 0, &what("X"));
        assert_eq!(probe.inputs.projected, [probe.queries.clone(), probe.keys.clone()]);
    }
    assert!(Arc::ptr_eq(&probes[0].inputs.stream, &probes[1].inputs.stream), "shared in a layer");
    let most = probes.iter().flat_map(|p| p.attention()).fold(0.0, f64::max);
    assert!(most > 0.7, "attention is far from uniform: {most}");
}

#[test]
fn heads_of_gpt2_are_those_of_plain_loops_in_float64() {
    let mut model = Published::gpt2();
    assert_all_near(&model, Visibility::Causal, &plain::gpt2(&model, plain::tanh_gelu));
    model.config["activation_function"] = json!("gelu");
    assert_all_near(&model, Visibility::Causal, &plain::gpt2(&model, plain::gelu));
}

#[test]
fn heads_of_bert_are_those_of_plain_loops_in_float64() {
    let model = Published::bert();
    assert_all_near(&model, Visibility::Bidirectional, &plain::bert(&model, plain::gelu));
}

#[test]
fn a_longer_passage_leaves_a_causal_head_s_first_rows_alone() {
    let model = read(&Published::gpt2());
    let pairs = model.probe(&TOKENS).unwrap().into_iter().zip(model.probe(&TOKENS[..5]).unwrap());
    for (long, short) in pairs {
        let off = &long.queries.slice(s![..5, ..]) - &short.queries;
        assert!(off.iter().all(|off| off.abs() < 1e-5));
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
    let cases = [
        (
            &gpt2,
            "model_type",
            json!("mamba"),
            "has model_type \"mamba\"; supported are gpt2, bert, gpt_neox, llama, mistral, qwen2, qwen3, gemma2, \
             gemma3_text, olmo2 and gpt_oss. Export its heads from PyTorch instead: \
             python/rank_study_export.py, docs/diagnose.md",
        ),
        (
            &gpt2,
            "model_type",
            Value::Null,
            "has no model_type; supported types are gpt2, bert, gpt_neox, llama, mistral, qwen2, qwen3, gemma2, gemma3_text, \
             olmo2 and gpt_oss",
        ),
        (
            &gpt2,
            "n_layer",
            Value::Null,
            "has no n_layer; use the config.json published with the model",
        ),
        (&gpt2, "n_layer", json!(0), "n_layer is 0; it must be a whole number of at least 1"),
        (&gpt2, "n_head", json!(5), "n_embd is 12; it must be a multiple of n_head, 5"),
        (
            &gpt2,
            "scale_attn_by_inverse_layer_idx",
            json!(true),
            "scale_attn_by_inverse_layer_idx is true; only false is supported",
        ),
        (
            &gpt2,
            "scale_attn_weights",
            json!(false),
            "scale_attn_weights is false; only true is supported",
        ),
        (
            &gpt2,
            "activation_function",
            json!("relu"),
            "activation_function is \"relu\"; only gelu, gelu_new, gelu_pytorch_tanh and silu are supported",
        ),
        (
            &gpt2,
            "layer_norm_epsilon",
            json!(-1),
            "layer_norm_epsilon is -1; it must be between 0 and 1",
        ),
        (
            &bert,
            "position_embedding_type",
            json!("relative_key"),
            "position_embedding_type is \"relative_key\"; only \"absolute\" is supported",
        ),
        (&bert, "is_decoder", json!(true), "is_decoder is true; only false is supported"),
    ];
    for (model, key, value, expected) in cases {
        let mut model = model.clone();
        model.config[key] = value;
        assert_eq!(said(written(&model).path()), format!("config.json: {expected}"));
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
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let unusable = said(folder.path());
    assert!(unusable.starts_with("tokenizer.json: "), "{unusable}");
    assert!(unusable.ends_with("; use the tokenizer.json published with the model"), "{unusable}");
}
