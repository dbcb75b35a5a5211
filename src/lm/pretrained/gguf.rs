//! Models in a `.gguf` file: converts its metadata to a `config.json`.

use std::sync::Arc;

use candle_core::quantized::gguf_file::Value;
use serde_json::{Map, Value as Json, json};

use super::config::Config;
use super::read;
use super::stored::GgufFile;
use super::transformer::Transformer;
use super::types::ModelType;
use super::weights::Weights;
use crate::lm::LmError;
use crate::lm::tensor_file::TensorSource as _;

/// The model in a file.
impl GgufFile {
    /// The model's type, with the weights of such a file.
    pub(super) fn model_type(&self) -> Result<ModelType, LmError> {
        let found = self.text("general.architecture")?;
        ModelType::of_gguf(found).map_err(|all| {
            let all = all.join(", ");
            self.wrong(format!(
                "has general.architecture {found}; supported as .gguf are {all}. Use its safetensors files, or \
                 export its heads from PyTorch: python/rank_study/export.py, docs/diagnose.md"
            ))
        })
    }

    /// Reads the model up to the last block.
    pub(super) fn model(self: &Arc<Self>, of: &ModelType) -> Result<Transformer, LmError> {
        let weights = Weights::from_gguf(self);
        let config = self.config(of, &weights)?;
        read::read(of, &config, &weights)
    }

    /// The equivalent `config.json`.
    fn config(&self, of: &ModelType, weights: &Weights) -> Result<Config, LmError> {
        let architecture = self.text("general.architecture")?;
        let mut values = Map::new();
        let own = |key: &str| format!("{architecture}.{key}");
        // Granite's factor is a divisor.
        let scaling = if of.name == "granite" { "logits_scaling" } else { "logit_scale" };
        for (usual, key) in [
            ("num_hidden_layers", "block_count"),
            ("hidden_size", "embedding_length"),
            ("intermediate_size", "feed_forward_length"),
            ("num_attention_heads", "attention.head_count"),
            ("num_key_value_heads", "attention.head_count_kv"),
            ("head_dim", "attention.key_length"),
            ("max_position_embeddings", "context_length"),
            ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
            ("rms_norm_eps", "attention.layer_norm_epsilon"),
            ("rope_theta", "rope.freq_base"),
            ("sliding_window", "attention.sliding_window"),
            ("sliding_window_pattern", "attention.sliding_window_pattern"),
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("clip_qkv", "attention.clamp_kqv"),
            ("use_parallel_residual", "use_parallel_residual"),
            ("embedding_multiplier", "embedding_scale"),
            ("attention_multiplier", "attention.scale"),
            ("residual_multiplier", "residual_scale"),
            (scaling, "logit_scale"),
        ] {
            if let Some(value) = self.value(&own(key)) {
                // A flag also reads as a number.
                let flag = value.to_bool().ok().map(Json::from);
                let value = flag
                    .or_else(|| whole(value).map(Json::from))
                    .or_else(|| value.to_f32().ok().map(Json::from));
                let value = value.ok_or_else(|| self.not_readable(&own(key)))?;
                values.insert(of.key(usual).to_owned(), value);
            }
        }
        for (key, table) in [("vocab_size", "token_embd"), ("type_vocab_size", "token_types")] {
            if let Some(&[size, _]) = weights.dimensions(&format!("{table}.weight")) {
                values.insert(key.to_owned(), json!(size));
            }
        }
        let scaling = own("rope.scaling.type");
        match self.value(&scaling).and_then(|value| value.to_string().ok()).map(String::as_str) {
            None | Some("none") => {}
            Some("linear") => {
                let key = own("rope.scaling.factor");
                let factor = self.value(&key).and_then(|value| value.to_f32().ok());
                let factor = factor.ok_or_else(|| self.not_readable(&key))?;
                let scaling = json!({ "rope_type": "linear", "factor": factor });
                values.insert("rope_scaling".to_owned(), scaling);
            }
            Some(found) => {
                return Err(self.wrong(format!(
                    "{scaling} is {found}; only none and linear are supported: use the model's safetensors files"
                )));
            }
        }
        let mut config = Config::from_values(self.path(), values);
        let count = |usual: &str| config.count(of.key(usual));
        let (c, heads) = (count("hidden_size")?, count("num_attention_heads")?);
        let d = config.count_if_there("head_dim")?.unwrap_or(c / heads);
        // What configurations say and these files do not.
        let scalar = match (&*of.name, count("num_hidden_layers")?) {
            ("gemma2", 46) | ("gemma3_text", 62) => c / heads,
            _ => d,
        };
        let turned = self.value(&own("rope.dimension_count")).and_then(whole);
        config.set("query_pre_attn_scalar", json!(scalar));
        if let Some(turned) = turned {
            config.set("partial_rotary_factor", json!(turned as f64 / d as f64));
        }
        Ok(config)
    }

    /// The token that precedes every passage, if the file says that one is added.
    pub(super) fn beginning(&self) -> Option<u32> {
        let is_added = self.value("tokenizer.ggml.add_bos_token")?.to_bool().ok()?;
        let token = self.value("tokenizer.ggml.bos_token_id").and_then(whole)?;
        is_added.then_some(u32::try_from(token).ok()?)
    }

    /// A text that identifies the file among others of its name: the names of its tensors.
    pub(super) fn description(&self) -> String {
        let mut said: Vec<&str> = self.names().collect();
        said.sort_unstable();
        said.join("\n")
    }

    pub(super) fn text(&self, key: &str) -> Result<&str, LmError> {
        let found = self.value(key).and_then(|value| value.to_string().ok());
        found.map(String::as_str).ok_or_else(|| self.not_readable(key))
    }

    fn not_readable(&self, key: &str) -> LmError {
        self.wrong(format!("has no readable {key}; download the file again"))
    }
}

/// An integer of any type.
fn whole(value: &Value) -> Option<u64> {
    value.to_u64().ok().or_else(|| {
        let signed = value.to_i32().ok().map(i64::from).or_else(|| value.to_i64().ok())?;
        u64::try_from(signed).ok()
    })
}
