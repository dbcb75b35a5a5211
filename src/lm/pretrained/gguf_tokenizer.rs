//! The tokenizer in a `.gguf` file, as a `tokenizer.json`.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use super::stored::GgufFile;
use crate::lm::LmError;

/// The pattern that splits text in Llama 3's tokenizer, with digits in groups of one to three.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The pattern in Qwen 2's tokenizer, which differs in that digits are single.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The type of tokens that do not stand for text.
const CONTROL: i32 = 3;
/// The largest number of bytes of a token that is merged of others.
const LONGEST: usize = 1024;
/// The type of tokens that are found in a text before it is split.
const OF_USER: i32 = 4;

impl GgufFile {
    /// The tokenizer described in the file, as a `tokenizer.json`; `None` if it says that it has none.
    pub(super) fn tokenizer(&self) -> Result<Option<Vec<u8>>, LmError> {
        let kind = self.text("tokenizer.ggml.model")?;
        if ["none", "no_vocab"].contains(&kind) {
            return Ok(None);
        }
        let tokens = self.words("tokenizer.ggml.tokens")?;
        let ids: HashMap<&str, u32> = tokens.iter().copied().zip(0..).collect();
        let (normalizer, before, decoder, mut model) = match kind {
            "gpt2" => self.byte_pairs()?,
            "llama" => self.sentence_pieces(&tokens, &ids)?,
            other => {
                return Err(self.without(format!(
                    "has a tokenizer of type {other}; only gpt2 and llama are supported"
                )));
            }
        };
        let types = self.value("tokenizer.ggml.token_type").and_then(|v| v.to_vec().ok());
        let type_of = |at: usize| types?.get(at)?.to_i32().ok();
        let is_whole = |at: &usize| [Some(CONTROL), Some(OF_USER)].contains(&type_of(*at));
        let added = (0..tokens.len()).filter(is_whole).map(|at| {
            json!({ "id": at, "content": tokens[at], "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": type_of(at) == Some(CONTROL) })
        });
        model["type"] = "BPE".into();
        model["vocab"] = ids
            .iter()
            .map(|(token, id)| ((*token).to_owned(), (*id).into()))
            .collect::<Map<_, _>>()
            .into();
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added.collect::<Vec<_>>(),
            "normalizer": normalizer,
            "pre_tokenizer": before,
            "post_processor": null,
            "decoder": decoder,
            "model": model,
        });
        Ok(Some(tokenizer.to_string().into_bytes()))
    }

    /// Normaliser, split, decoder and model of GPT-2's kind: pairs of bytes, merged in a given order.
    fn byte_pairs(&self) -> Result<(Json, Json, Json, Json), LmError> {
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
            "gpt-2" | "default" | "olmo" | "mpt" => vec![bytes(true)],
            "smollm" | "starcoder" | "refact" | "command-r" => {
                vec![json!({ "type": "Digits", "individual_digits": true }), bytes(true)]
            }
            "llama-bpe" | "dbrx" => vec![split(LLAMA3), bytes(false)],
            "qwen2" | "stablelm2" => vec![split(QWEN2), bytes(false)],
            other => {
                return Err(self.without(format!(
                    "splits text as {other}; only gpt-2, olmo, mpt, smollm, starcoder, refact, command-r, llama-bpe, \
                     dbrx, qwen2 and stablelm2 are supported"
                )));
            }
        };
        let decoder = json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": true });
        let merges = self.words("tokenizer.ggml.merges")?;
        let model = json!({ "merges": merges, "ignore_merges": before == "llama-bpe" });
        let steps = json!({ "type": "Sequence", "pretokenizers": steps });
        Ok((Json::Null, steps, decoder, model))
    }

    /// The same of SentencePiece's kind: the pair whose token has the highest score is merged first. Spaces are ▁.
    fn sentence_pieces(
        &self,
        tokens: &[&str],
        ids: &HashMap<&str, u32>,
    ) -> Result<(Json, Json, Json, Json), LmError> {
        let scores = self.value("tokenizer.ggml.scores").and_then(|v| v.to_vec().ok());
        let score = |at: usize| scores?.get(at)?.to_f32().ok();
        let mut merges = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let score =
                score(at).ok_or_else(|| self.without("lacks scores of its tokens".to_owned()))?;
            // A longer token is not merged of others. In a damaged file it could take hours.
            if token.len() > LONGEST {
                continue;
            }
            let halves = token.char_indices().skip(1).map(|(place, _)| token.split_at(place));
            merges.extend(
                halves
                    .filter(|(left, right)| ids.contains_key(left) && ids.contains_key(right))
                    .map(|halves| (score, halves)),
            );
        }
        merges.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let merges: Vec<_> = merges.into_iter().map(|(_, (left, right))| [left, right]).collect();
        let is_prefixed = self
            .value("tokenizer.ggml.add_space_prefix")
            .is_none_or(|value| value.to_bool().unwrap_or(true));
        let replaced = |from: &str, by: &str| json!({ "type": "Replace", "pattern": { "String": from }, "content": by });
        let mut normalizers = vec![replaced(" ", "▁")];
        let mut decoders =
            vec![replaced("▁", " "), json!({ "type": "ByteFallback" }), json!({ "type": "Fuse" })];
        if is_prefixed {
            normalizers.insert(0, json!({ "type": "Prepend", "prepend": "▁" }));
            decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
        }
        let unknown = self.value("tokenizer.ggml.unknown_token_id").and_then(|v| v.to_u32().ok());
        let unknown = tokens.get(unknown.unwrap_or(0) as usize);
        let model = json!({ "merges": merges, "unk_token": unknown, "fuse_unk": true,
            "byte_fallback": true });
        Ok((
            json!({ "type": "Sequence", "normalizers": normalizers }),
            Json::Null,
            json!({ "type": "Sequence", "decoders": decoders }),
            model,
        ))
    }

    fn words(&self, key: &str) -> Result<Vec<&str>, LmError> {
        let all = self.value(key).and_then(|value| value.to_vec().ok());
        all.and_then(|all| all.iter().map(|v| v.to_string().ok().map(String::as_str)).collect())
            .ok_or_else(|| self.without(format!("has no {key}")))
    }

    /// The error that the file has no tokenizer that can be read, with the reason.
    fn without(&self, why: String) -> LmError {
        LmError::file(self.path(), format!("{why}; put the model's tokenizer.json beside it"))
    }
}
