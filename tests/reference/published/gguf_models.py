"""Small GGUF files, in the form that llama.cpp's converter gives to Llama- and Qwen2-type models.

What there differs from the safetensors of the same model: names, blocks of 32 weights quantised together,
metadata in place of config.json and tokenizer.json, and, of the llama architecture alone, the rows of
Q and K in another order, because it rotates neighbours where transformers rotates halves of a head.
"""

import dataclasses
import json

import gguf
import numpy as np
import transformers as t
from gguf import GGMLQuantizationType as Type
from tokenizers import Tokenizer, models, pre_tokenizers

import vocabularies
from models import POSITIONS, ROPE_THETA, rope, sizes

# Part of a layer: its name in transformers, in GGUF, and the type it is stored in.
PARTS = [
    ("input_layernorm", "attn_norm", Type.F32),
    ("self_attn.q_proj", "attn_q", Type.Q4_1),
    ("self_attn.k_proj", "attn_k", Type.Q8_0),
    ("self_attn.v_proj", "attn_v", Type.F16),
    ("self_attn.o_proj", "attn_output", Type.Q4_1),
    ("post_attention_layernorm", "ffn_norm", Type.F32),
    ("mlp.gate_proj", "ffn_gate", Type.Q4_1),
    ("mlp.up_proj", "ffn_up", Type.Q8_0),
    ("mlp.down_proj", "ffn_down", Type.Q4_1),
]
NORMAL, CONTROL = 1, 3


@dataclasses.dataclass
class Case:
    name: str
    architecture: str
    model: type
    config: t.PreTrainedConfig
    # llama.cpp's name of the split, the split itself, and a byte-level BPE trained with it.
    pre: str
    split: pre_tokenizers.PreTokenizer
    vocabulary: list
    merges: list
    specials: list


def smollm():
    """Every digit a token of its own, then GPT-2's split; special tokens come first."""
    digits = pre_tokenizers.Digits(individual_digits=True)
    split = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    vocab, merges = vocabularies.byte_pairs(split, [])
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return split, specials + sorted(vocab, key=vocab.get), merges, specials


def qwen2():
    """Without the normaliser of its tokenizer.json: neither llama.cpp nor a GGUF has one."""
    tokenizer = vocabularies.qwen2().backend_tokenizer
    model = json.loads(tokenizer.to_str())["model"]
    return tokenizer.pre_tokenizer, sorted(model["vocab"], key=model["vocab"].get), model["merges"], ["<|endoftext|>"]


def cases():
    fields = sizes(intermediate_size=64, rms_norm_eps=1e-5)
    config = t.LlamaConfig(rope_parameters=rope(), **fields)
    yield Case("llama-gguf", "llama", t.LlamaForCausalLM, config, "smollm", *smollm())
    config = t.Qwen2Config(rope_parameters=rope(), **fields)
    yield Case("qwen2-gguf", "qwen2", t.Qwen2ForCausalLM, config, "qwen2", *qwen2())


def interleaved(rows, heads):
    """The rows of each head so that row i of its first half is followed by row i of its second."""
    first, second = rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(0, 1)
    return np.stack([first, second], axis=2).reshape(rows.shape)


def tensors(case, model):
    """Name, values and stored type of every tensor of the file, in the order of SmolLM2's."""
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    yield "token_embd.weight", weights["model.embed_tokens.weight"], Type.Q8_0
    heads = {"attn_q": case.config.num_attention_heads, "attn_k": case.config.num_key_value_heads}
    for layer in range(case.config.num_hidden_layers):
        for theirs, name, stored in PARTS:
            for end in ("weight", "bias"):
                values = weights.get(f"model.layers.{layer}.{theirs}.{end}")
                if values is None:
                    continue
                if case.architecture == "llama" and name in heads:
                    values = interleaved(values, heads[name])
                yield f"blk.{layer}.{name}.{end}", values, Type.F32 if end == "bias" else stored
    yield "output_norm.weight", weights["model.norm.weight"], Type.F32


def write(path, case, model):
    config, tokens = case.config, case.vocabulary
    writer = gguf.GGUFWriter(path, case.architecture)
    writer.add_type("model")
    writer.add_name(case.name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(POSITIONS)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(ROPE_THETA)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    if case.architecture == "llama":
        writer.add_vocab_size(len(tokens))
        writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
        writer.add_add_space_prefix(False)
    writer.add_add_bos_token(False)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(case.pre)
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if token in case.specials else NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in case.merges])
    writer.add_eos_token_id(tokens.index(case.specials[-1]))
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, values, stored in tensors(case, model):
        writer.add_tensor(name, gguf.quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_near(model, loaded):
    """What is read back is what was written, but for rounding: nothing was permuted on the way."""
    for (name, ours), theirs in zip(model.state_dict().items(), loaded.state_dict().values(), strict=True):
        off = (ours - theirs).norm() / ours.norm()
        assert off < 0.08, f"{name} is off by {off}"


def tokenise(folder, case):
    """The ids of text.txt by the split that `pre` names, which transformers gives too."""
    vocab = {token: i for i, token in enumerate(case.vocabulary)}
    own = Tokenizer(models.BPE(vocab, [tuple(merge) for merge in case.merges]))
    own.pre_tokenizer = case.split
    loaded = t.AutoTokenizer.from_pretrained(folder, gguf_file="model.gguf")
    ids = loaded(vocabularies.TEXT, add_special_tokens=False)["input_ids"]
    # Of smollm's split transformers does not know; without digits in the merges there is no difference.
    assert ids == own.encode(vocabularies.TEXT).ids
    return ids
