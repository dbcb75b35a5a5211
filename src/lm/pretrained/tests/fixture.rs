//! Small published models with random weights, for tests.

use std::collections::BTreeMap;
use std::path::Path;

use half::{bf16, f16};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

/// Channels, heads, layers, context, hidden channels and vocabulary of both models.
pub(crate) const C: usize = 12;
pub(crate) const HEADS: usize = 3;
pub(crate) const LAYERS: usize = 3;
pub(crate) const CONTEXT: usize = 10;
pub(crate) const HIDDEN: usize = 20;
pub(crate) const VOCABULARY: usize = 17;

/// The contents of the files of a published model.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) config: Value,
    /// Dimensions and elements by name.
    pub(crate) weights: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Published {
    pub(crate) fn gpt2() -> Self {
        let config = json!({
            "model_type": "gpt2", "n_layer": LAYERS, "n_head": HEADS, "n_embd": C, "n_inner": HIDDEN,
            "n_positions": CONTEXT, "vocab_size": VOCABULARY, "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new", "scale_attn_weights": true, "torch_dtype": null,
        });
        let mut shapes = vec![
            ("wte.weight".to_owned(), vec![VOCABULARY, C]),
            ("wpe.weight".to_owned(), vec![CONTEXT, C]),
        ];
        for layer in 0..LAYERS {
            let parts: [(&str, &[usize]); 12] = [
                ("ln_1.weight", &[C]),
                ("ln_1.bias", &[C]),
                ("attn.c_attn.weight", &[C, 3 * C]),
                ("attn.c_attn.bias", &[3 * C]),
                ("attn.c_proj.weight", &[C, C]),
                ("attn.c_proj.bias", &[C]),
                ("ln_2.weight", &[C]),
                ("ln_2.bias", &[C]),
                ("mlp.c_fc.weight", &[C, HIDDEN]),
                ("mlp.c_fc.bias", &[HIDDEN]),
                ("mlp.c_proj.weight", &[HIDDEN, C]),
                ("mlp.c_proj.bias", &[C]),
            ];
            shapes.extend(parts.map(|(part, shape)| (format!("h.{layer}.{part}"), shape.to_vec())));
        }
        Self { config, weights: random(shapes) }
    }

    pub(crate) fn bert() -> Self {
        let config = json!({
            "model_type": "bert", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "hidden_size": C, "intermediate_size": HIDDEN, "max_position_embeddings": CONTEXT,
            "vocab_size": VOCABULARY, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
            "hidden_act": "gelu", "position_embedding_type": "absolute",
        });
        let embeddings: [(&str, &[usize]); 5] = [
            ("embeddings.word_embeddings.weight", &[VOCABULARY, C]),
            ("embeddings.position_embeddings.weight", &[CONTEXT, C]),
            ("embeddings.token_type_embeddings.weight", &[2, C]),
            ("embeddings.LayerNorm.weight", &[C]),
            ("embeddings.LayerNorm.bias", &[C]),
        ];
        let mut shapes: Vec<(String, Vec<usize>)> =
            embeddings.map(|(name, shape)| (name.to_owned(), shape.to_vec())).into();
        for layer in 0..LAYERS {
            let parts: [(&str, &[usize]); 16] = [
                ("attention.self.query.weight", &[C, C]),
                ("attention.self.query.bias", &[C]),
                ("attention.self.key.weight", &[C, C]),
                ("attention.self.key.bias", &[C]),
                ("attention.self.value.weight", &[C, C]),
                ("attention.self.value.bias", &[C]),
                ("attention.output.dense.weight", &[C, C]),
                ("attention.output.dense.bias", &[C]),
                ("attention.output.LayerNorm.weight", &[C]),
                ("attention.output.LayerNorm.bias", &[C]),
                ("intermediate.dense.weight", &[HIDDEN, C]),
                ("intermediate.dense.bias", &[HIDDEN]),
                ("output.dense.weight", &[C, HIDDEN]),
                ("output.dense.bias", &[C]),
                ("output.LayerNorm.weight", &[C]),
                ("output.LayerNorm.bias", &[C]),
            ];
            let name = |part| format!("encoder.layer.{layer}.{part}");
            shapes.extend(parts.map(|(part, shape)| (name(part), shape.to_vec())));
        }
        Self { config, weights: random(shapes) }
    }

    /// A copy with renamed weights.
    pub(crate) fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        let weights = self.weights.iter().map(|(old, weight)| (name(old), weight.clone()));
        Self { config: self.config.clone(), weights: weights.collect() }
    }

    /// A copy with rounded weights.
    pub(crate) fn rounded(&self, round: impl Fn(f32) -> f32) -> Self {
        let mut rounded = self.clone();
        for (_, data) in rounded.weights.values_mut() {
            data.iter_mut().for_each(|x| *x = round(*x));
        }
        rounded
    }

    /// Writes `config.json` and `model.safetensors`, the weights in `dtype`.
    pub(crate) fn write(&self, folder: &Path, dtype: Dtype) {
        std::fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        let bytes = |x: &f32| match dtype {
            Dtype::F16 => f16::from_f32(*x).to_le_bytes().to_vec(),
            Dtype::BF16 => bf16::from_f32(*x).to_le_bytes().to_vec(),
            _ => x.to_le_bytes().to_vec(),
        };
        let stored: Vec<(&String, &Vec<usize>, Vec<u8>)> = self
            .weights
            .iter()
            .map(|(name, (shape, data))| (name, shape, data.iter().flat_map(bytes).collect()))
            .collect();
        let views = stored.iter().map(|(name, shape, data)| {
            (name.as_str(), TensorView::new(dtype, shape.to_vec(), data).unwrap())
        });
        let file = serialize(views, None).unwrap();
        std::fs::write(folder.join("model.safetensors"), file).unwrap();
    }

    /// Writes the model in float32 together with [`words_tokenizer`].
    #[cfg(feature = "study")]
    pub(crate) fn write_with_tokenizer(&self, folder: &Path) {
        self.write(folder, Dtype::F32);
        std::fs::write(folder.join("tokenizer.json"), words_tokenizer().to_string()).unwrap();
    }
}

/// A tokenizer with words as tokens. Like that of a sentence encoder, it truncates, pads and adds special tokens.
pub(crate) fn words_tokenizer() -> Value {
    let special = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true })
    };
    json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0 },
        "padding": { "strategy": { "Fixed": 4 }, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]" },
        "added_tokens": [special(0, "[PAD]"), special(2, "[CLS]"), special(3, "[SEP]")],
        "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "decoder": null,
        "model": { "type": "WordLevel", "unk_token": "[UNK]",
            "vocab": { "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "the": 4, "cat": 5, "sat": 6 } },
    })
}

/// Gains around 1, everything else around 0; attention is far from uniform.
fn random(shapes: Vec<(String, Vec<usize>)>) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut generator = ChaCha8Rng::seed_from_u64(7);
    let mut draw = |(name, shape): (String, Vec<usize>)| {
        let gain = shape.len() == 1 && name.ends_with("weight");
        let count = shape.iter().product();
        let data = (0..count).map(|_| {
            let normal: f32 = StandardNormal.sample(&mut generator);
            if gain { 1.0 + 0.3 * normal } else { 0.5 * normal }
        });
        let data = data.collect();
        (name, (shape, data))
    };
    shapes.into_iter().map(&mut draw).collect()
}
