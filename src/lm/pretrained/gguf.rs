//! Models in a `.gguf` file: converts its metadata to a `config.json` and its tokenizer to a `tokenizer.json`.

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

/// The pattern that splits text in Llama 3's tokenizer, with digits in groups of one to three.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The pattern in Qwen 2's tokenizer, which differs in that digits are single.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The type of tokens that do not stand for text.
const CONTROL: i32 = 3;

/// The model in a file.
impl GgufFile {
    /// The model's type.
    pub(super) fn model_type(&self) -> Result<&'static ModelType, LmError> {
        let found = self.text("general.architecture")?;
        let known = ["llama", "qwen2", "qwen3"].contains(&found);
        ModelType::named(found).filter(|_| known).ok_or_else(|| {
            self.wrong(format!(
                "has general.architecture {found}; supported as .gguf are llama, qwen2 and qwen3. Use its \
                 safetensors files, or export its heads from PyTorch: python/rank_study/export.py, \
                 docs/diagnose.md"
            ))
        })
    }

    /// Reads the model up to the last block.
    pub(super) fn model(self: &Arc<Self>) -> Result<Transformer, LmError> {
        let of = self.model_type()?;
        let weights = Weights::from_gguf(self);
        let config = self.config(of.name, &weights)?;
        read::read(&of.in_gguf(), &config, &weights)
    }

    /// The equivalent `config.json`.
    fn config(&self, name: &str, weights: &Weights) -> Result<Config, LmError> {
        let mut values = Map::new();
        let own = |key: &str| format!("{name}.{key}");
        for (saved, key) in [
            ("num_hidden_layers", "block_count"),
            ("hidden_size", "embedding_length"),
            ("intermediate_size", "feed_forward_length"),
            ("num_attention_heads", "attention.head_count"),
            ("num_key_value_heads", "attention.head_count_kv"),
            ("head_dim", "attention.key_length"),
            ("max_position_embeddings", "context_length"),
            ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
            ("rope_theta", "rope.freq_base"),
        ] {
            if let Some(value) = self.value(&own(key)) {
                let number = whole(value).map(Json::from);
                let number = number.or_else(|| value.to_f32().ok().map(Json::from));
                let number = number.ok_or_else(|| self.not_readable(&own(key)))?;
                values.insert(saved.to_owned(), number);
            }
        }
        if let Some(&[size, _]) = weights.dimensions("token_embd.weight") {
            values.insert("vocab_size".to_owned(), json!(size));
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
        let config = Config::from_values(self.path(), values);
        // Refuses a rotation of only some of a head's channels.
        let d = match config.count_if_there("head_dim")? {
            Some(d) => d,
            None => config.count("hidden_size")? / config.count("num_attention_heads")?,
        };
        let turned = own("rope.dimension_count");
        if let Some(found) = self.value(&turned).and_then(whole).filter(|&r| r != d as u64) {
            return Err(self.wrong(format!(
                "{turned} is {found} of {d} channels; only a rotation of all channels is supported"
            )));
        }
        Ok(config)
    }

    /// The tokenizer described in the file, as a `tokenizer.json`.
    pub(super) fn tokenizer(&self) -> Result<Vec<u8>, LmError> {
        let wrong =
            |what: String| self.wrong(format!("{what}; put the model's tokenizer.json beside it"));
        let model = self.text("tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(wrong(format!("has a tokenizer of type {model}; only gpt2 is supported")));
        }
        let words = |key: &str| -> Result<Vec<&str>, LmError> {
            let all = self.value(key).and_then(|value| value.to_vec().ok());
            all.and_then(|all| all.iter().map(|v| v.to_string().ok().map(String::as_str)).collect())
                .ok_or_else(|| wrong(format!("has no {key}")))
        };
        let (tokens, merges) = (words("tokenizer.ggml.tokens")?, words("tokenizer.ggml.merges")?);
        let vocabulary: Map<String, Json> =
            tokens.iter().zip(0u32..).map(|(token, id)| ((*token).to_owned(), id.into())).collect();
        let bytes = |use_regex: bool| {
            json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": use_regex })
        };
        let split = |pattern: &str| {
            json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated",
                "invert": false })
        };
        let before = self.text("tokenizer.ggml.pre").unwrap_or("gpt-2");
        let steps = match before {
            "gpt-2" | "default" => vec![bytes(true)],
            "smollm" => vec![json!({ "type": "Digits", "individual_digits": true }), bytes(true)],
            "llama-bpe" => vec![split(LLAMA3), bytes(false)],
            "qwen2" => vec![split(QWEN2), bytes(false)],
            other => {
                return Err(wrong(format!(
                    "splits text as {other}; only gpt-2, smollm, llama-bpe and qwen2 are supported"
                )));
            }
        };
        let types = self.value("tokenizer.ggml.token_type").and_then(|v| v.to_vec().ok());
        let is_control = |at: usize| {
            types.and_then(|types| types.get(at)).and_then(|value| value.to_i32().ok())
                == Some(CONTROL)
        };
        let control = (0..tokens.len()).filter(|&at| is_control(at)).map(|at| {
            json!({ "id": at, "content": tokens[at], "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true })
        });
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": control.collect::<Vec<_>>(),
            "normalizer": null,
            "pre_tokenizer": { "type": "Sequence", "pretokenizers": steps },
            "post_processor": null,
            "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                "use_regex": true },
            "model": { "type": "BPE", "vocab": vocabulary, "merges": merges,
                "ignore_merges": before == "llama-bpe" },
        });
        Ok(tokenizer.to_string().into_bytes())
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

    fn text(&self, key: &str) -> Result<&str, LmError> {
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
