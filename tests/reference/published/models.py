"""The models: one small random model a type and variant, as transformers' own classes make it.

`config` is in the form of the newest transformers. `old` is what a config.json on a hub says of the
same model, by hand, in the form of the release named in it; where it is None the two do not differ.
"""

import dataclasses
from typing import Callable

import torch
import transformers as t

import vocabularies

HIDDEN, LAYERS, HEADS, KEY_HEADS, HEAD_DIM, INTERMEDIATE = 32, 2, 4, 2, 8, 48
# Wavelengths of 6, 30, 140 and 660 positions: at 64 positions of training a scaling that leaves high
# frequencies alone and divides low ones does both, and has one between them.
ROPE_THETA, ORIGINAL_POSITIONS, POSITIONS, FACTOR = 500.0, 64, 256, 4.0
WINDOW = 6
# A size that a configuration does not have.
DROPPED = object()


@dataclasses.dataclass
class Case:
    name: str
    model: type
    config: t.PreTrainedConfig
    vocabulary: Callable
    old: dict | None = None
    dtype: torch.dtype = torch.float16
    shard: str = "50MB"
    # How much larger than the usual 1/sqrt(fan-in) the query and key weights are.
    gain: float = 1.7


def sizes(**others):
    return dict(
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
    ) | others


def published(release, model_type, architecture, **fields):
    """A config.json of a hub, but for what the tokenizer and the dtype of the weights say."""
    head = dict(architectures=[architecture], model_type=model_type)
    return head | dict(transformers_version=release, use_cache=True) | fields


def rope(kind="default", theta=ROPE_THETA, **fields):
    return dict(rope_type=kind, rope_theta=theta) | fields


def llama_cases():
    def case(name, release, rope_parameters, old_rope, new=(), old=(), vocabulary=vocabularies.llama, **options):
        fields = sizes(rms_norm_eps=1e-5, **dict(new))
        config = t.LlamaConfig(rope_parameters=rope_parameters, **fields)
        hub = published(release, "llama", "LlamaForCausalLM", hidden_act="silu", pretraining_tp=1)
        hub |= fields | old_rope | dict(old)
        return Case(name, t.LlamaForCausalLM, config, vocabulary, hub, **options)

    llama3 = dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=ORIGINAL_POSITIONS)
    yarn = dict(original_max_position_embeddings=ORIGINAL_POSITIONS, attention_factor=1.3, beta_fast=16.0)
    # Llama 2: before rope_theta had a name in config.json the base was always 10000.
    yield case("llama", "4.31.0", rope(theta=10000.0), dict(rope_scaling=None))
    # Before 4.43 rope_scaling had `type` where `rope_type` stands since.
    linear = dict(rope_scaling=dict(type="linear", factor=FACTOR), rope_theta=ROPE_THETA)
    yield case("llama-linear", "4.35.0", rope("linear", factor=FACTOR), linear)
    # Llama 3.1 and 3.2.
    scaled = dict(rope_scaling=dict(rope_type="llama3", factor=FACTOR, **llama3), rope_theta=ROPE_THETA)
    options = dict(vocabulary=vocabularies.llama3, dtype=torch.bfloat16, old=dict(eos_token_id=[329, 328]))
    untied = dict(tie_word_embeddings=False)
    yield case("llama-llama3", "4.43.0", rope("llama3", factor=FACTOR, **llama3), scaled, new=untied, **options)
    scaled = dict(rope_scaling=dict(type="yarn", factor=FACTOR, **yarn), rope_theta=ROPE_THETA)
    yield case("llama-yarn", "4.42.0", rope("yarn", factor=FACTOR, **yarn), scaled)
    biases = dict(attention_bias=True, mlp_bias=True)
    plain = dict(rope_scaling=None, rope_theta=ROPE_THETA)
    yield case("llama-biases", "4.42.0", rope(), plain, new=biases)
    # One key head, and heads wider than hidden / heads; head_dim is in config.json since 4.46.
    yield case("llama-mqa", "4.46.0", rope(), plain, new=dict(num_key_value_heads=1, head_dim=16))
    yield case("llama-sharded", "4.40.0", rope(), plain, shard="16KB")


def mistral_cases():
    fields = sizes(sliding_window=WINDOW, rms_norm_eps=1e-5)
    old = published("4.34.0", "mistral", "MistralForCausalLM", hidden_act="silu", rope_theta=ROPE_THETA, **fields)
    config = t.MistralConfig(rope_parameters=rope(), **fields)
    yield Case("mistral", t.MistralForCausalLM, config, vocabularies.mistral, old, dtype=torch.bfloat16)


def qwen_cases():
    # Layers from max_window_layers on have the window; before 4.53 there is no layer_types to say so.
    windows = dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1, rms_norm_eps=1e-6)
    fields = sizes(**windows)
    rest = dict(hidden_act="silu", attention_dropout=0.0, rope_theta=ROPE_THETA)
    old = published("4.40.1", "qwen2", "Qwen2ForCausalLM", **rest, **fields)
    config = t.Qwen2Config(rope_parameters=rope(), **fields)
    yield Case("qwen2", t.Qwen2ForCausalLM, config, vocabularies.qwen2, old, dtype=torch.bfloat16)
    # A window that is stated and not used, as Qwen publishes it; heads wider than hidden / heads. Saved
    # without its output head, so that names have no "model.", as in Qwen's embedding models.
    fields = sizes(head_dim=12, use_sliding_window=False, max_window_layers=2, rms_norm_eps=1e-6)
    rest |= dict(attention_bias=False, rope_scaling=None, sliding_window=None)
    old = published("4.51.0", "qwen3", "Qwen3Model", **rest, **fields)
    config = t.Qwen3Config(rope_parameters=rope(), **fields)
    yield Case("qwen3", t.Qwen3Model, config, vocabularies.qwen2, old)


def gemma_cases():
    fields = sizes(head_dim=HEAD_DIM, sliding_window=WINDOW, query_pre_attn_scalar=12, rms_norm_eps=1e-6)
    caps = dict(attn_logit_softcapping=5.0, final_logit_softcapping=30.0)
    rest = dict(attention_bias=False, attention_dropout=0.0)
    activation = dict(hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh")
    # Even layers have the window: a rule of the code then, not of the config.
    old = dict(rope_theta=ROPE_THETA, cache_implementation="hybrid", **rest, **activation)
    old = published("4.42.4", "gemma2", "Gemma2ForCausalLM", **old, **caps, **fields)
    config = t.Gemma2Config(rope_parameters=rope(), **caps, **fields)
    yield Case("gemma2", t.Gemma2ForCausalLM, config, vocabularies.gemma, old, gain=1.6)

    fields |= dict(num_hidden_layers=3, intermediate_size=24)
    scaling = dict(rope_type="linear", factor=8.0)
    bases = dict(rope_theta=20000.0, rope_local_base_freq=100.0)
    # Every second layer is global, with a base and a scaling of its own.
    caps = dict(attn_logit_softcapping=None, final_logit_softcapping=None)
    old = dict(hidden_activation="gelu_pytorch_tanh", sliding_window_pattern=2, rope_scaling=scaling)
    old = published("4.50.0", "gemma3_text", "Gemma3ForCausalLM", **old, **bases, **rest, **caps, **fields)
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    ropes = dict(sliding_attention=rope(theta=100.0), full_attention=rope(theta=20000.0, kind="linear", factor=8.0))
    config = t.Gemma3TextConfig(rope_parameters=ropes, layer_types=layers, **fields)
    yield Case("gemma3_text", t.Gemma3ForCausalLM, config, vocabularies.gemma, old, dtype=torch.bfloat16)


def gemmas_in_gguf():
    """A `.gguf` does not say what is usual: the scale; of Gemma 3 five local layers per global one, with a base of 10000."""
    fields = sizes(head_dim=HEAD_DIM, sliding_window=WINDOW, query_pre_attn_scalar=HEAD_DIM, rms_norm_eps=1e-6)
    options = dict(vocabulary=vocabularies.gemma, dtype=torch.bfloat16, gain=1.6)
    config = t.Gemma2Config(rope_parameters=rope(), attn_logit_softcapping=5.0, final_logit_softcapping=30.0, **fields)
    yield Case("gemma2-usual", t.Gemma2ForCausalLM, config, **options)
    fields |= dict(num_hidden_layers=6, intermediate_size=16, num_attention_heads=2, num_key_value_heads=1)
    ropes = dict(sliding_attention=rope(theta=10000.0), full_attention=rope(theta=20000.0, kind="linear", factor=8.0))
    layers = 5 * ["sliding_attention"] + ["full_attention"]
    config = t.Gemma3TextConfig(rope_parameters=ropes, layer_types=layers, **fields)
    yield Case("gemma3-usual", t.Gemma3ForCausalLM, config, **options)


def olmo2_cases():
    fields = sizes(intermediate_size=24, rms_norm_eps=1e-6)
    rest = dict(hidden_act="silu", attention_bias=False, rope_theta=ROPE_THETA, rope_scaling=None)
    old = published("4.47.0", "olmo2", "Olmo2ForCausalLM", **rest, **fields)
    config = t.Olmo2Config(rope_parameters=rope(), **fields)
    yield Case("olmo2", t.Olmo2ForCausalLM, config, vocabularies.olmo2, old, dtype=torch.float32)


def gpt_neox_cases():
    fields = sizes(layer_norm_eps=1e-5, tie_word_embeddings=False)
    del fields["num_key_value_heads"]
    for name, parallel, share in [("gpt_neox", True, 0.25), ("gpt_neox-sequential", False, 0.5)]:
        fields["use_parallel_residual"] = parallel
        # Pythia's: rotary_pct and rotary_emb_base until 4.56.
        old = dict(hidden_act="gelu", rotary_pct=share, rotary_emb_base=10000)
        old = published("4.24.0", "gpt_neox", "GPTNeoXForCausalLM", **old, **fields)
        config = t.GPTNeoXConfig(rope_parameters=rope(theta=10000.0, partial_rotary_factor=share), **fields)
        yield Case(name, t.GPTNeoXForCausalLM, config, vocabularies.gpt_neox, old)


def gpt_oss_cases():
    fields = sizes(
        head_dim=HEAD_DIM,
        intermediate_size=16,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=WINDOW,
        swiglu_limit=2.0,
        rms_norm_eps=1e-5,
        layer_types=["sliding_attention", "full_attention"],
    )
    yarn = dict(original_max_position_embeddings=ORIGINAL_POSITIONS, beta_fast=32.0, beta_slow=1.0, truncate=False)
    # As published, but for weights in bfloat16 instead of MXFP4.
    old = dict(hidden_act="silu", attention_bias=True, experts_per_token=2, initial_context_length=ORIGINAL_POSITIONS)
    old |= dict(rope_theta=ROPE_THETA, rope_scaling=dict(rope_type="yarn", factor=FACTOR, **yarn))
    old = published("4.55.0", "gpt_oss", "GptOssForCausalLM", **old, **fields)
    config = t.GptOssConfig(rope_parameters=rope("yarn", factor=FACTOR, **yarn), **fields)
    yield Case("gpt_oss", t.GptOssForCausalLM, config, vocabularies.gpt_oss, old, dtype=torch.bfloat16)


def older_cases():
    config = t.GPT2Config(n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_inner=INTERMEDIATE, n_positions=64)
    yield Case("gpt2", t.GPT2LMHeadModel, config, vocabularies.gpt2)
    fields = sizes(max_position_embeddings=64)
    del fields["num_key_value_heads"]
    yield Case("bert", t.BertModel, t.BertConfig(**fields), vocabularies.bert, dtype=torch.float32)


def llama_like_cases():
    """The types that differ from Llama in a few settings, in the form of the newest transformers alone."""

    def case(name, model, config, vocabulary=vocabularies.llama, dtype=torch.float16, gain=1.7, own=(), **fields):
        fields = sizes(**(dict(rope_parameters=rope()) | dict(own))) | fields
        fields = {key: value for key, value in fields.items() if value is not DROPPED}
        return Case(name, model, config(**fields), vocabulary, dtype=dtype, gain=gain)

    layers = ["sliding_attention", "full_attention"]
    partial = dict(rope_parameters=rope(partial_rotary_factor=0.5))
    yield case("gemma", t.GemmaForCausalLM, t.GemmaConfig, head_dim=12, dtype=torch.bfloat16, gain=1.6)
    yield case("olmo", t.OlmoForCausalLM, t.OlmoConfig)
    scaled = dict(rope_type="yarn", factor=FACTOR, original_max_position_embeddings=ORIGINAL_POSITIONS)
    scaled |= dict(attention_factor=1.2, rope_theta=ROPE_THETA)
    windows = dict(sliding_window=WINDOW, layer_types=layers)
    yield case("olmo3", t.Olmo3ForCausalLM, t.Olmo3Config, rope_parameters=scaled, **windows)
    yield case("exaone4", t.Exaone4ForCausalLM, t.Exaone4Config, head_dim=12, **windows)
    multipliers = dict(embedding_multiplier=1.5, attention_multiplier=0.3, residual_multiplier=0.6, logits_scaling=3.0)
    yield case("granite", t.GraniteForCausalLM, t.GraniteConfig, **multipliers)
    yield case("smollm3", t.SmolLM3ForCausalLM, t.SmolLM3Config, no_rope_layers=[1, 0], pad_token_id=0)
    yield case("phi3", t.Phi3ForCausalLM, t.Phi3Config, sliding_window=WINDOW, pad_token_id=0)
    factors = dict(short_factor=[1.0, 1.2, 1.5, 2.0], long_factor=[1.0, 2.0, 3.0, 4.0])
    longer = dict(rope_type="longrope", rope_theta=ROPE_THETA, **factors)
    longer |= dict(original_max_position_embeddings=ORIGINAL_POSITIONS)
    originals = dict(original_max_position_embeddings=ORIGINAL_POSITIONS)
    yield case("phi3-longrope", t.Phi3ForCausalLM, t.Phi3Config, rope_parameters=longer, pad_token_id=0, **originals)
    yield case("glm4", t.Glm4ForCausalLM, t.Glm4Config, head_dim=HEAD_DIM, pad_token_id=0, **partial)
    biases = dict(use_bias=True, sliding_window=WINDOW)
    yield case("starcoder2", t.Starcoder2ForCausalLM, t.Starcoder2Config, **biases)
    yield case("stablelm", t.StableLmForCausalLM, t.StableLmConfig, use_qkv_bias=True, **partial)
    yield case("nemotron", t.NemotronForCausalLM, t.NemotronConfig, dtype=torch.bfloat16, **partial)
    yield case("cohere", t.CohereForCausalLM, t.CohereConfig, logit_scale=0.25)
    # Every fourth layer is global, whatever a `.gguf` says.
    windows |= dict(num_hidden_layers=4, layer_types=3 * layers[:1] + layers[1:], intermediate_size=16)
    yield case("cohere2", t.Cohere2ForCausalLM, t.Cohere2Config, **windows)
    experts = dict(num_experts_per_tok=2, intermediate_size=16)
    yield case("mixtral", t.MixtralForCausalLM, t.MixtralConfig, num_local_experts=4, **experts)
    experts |= dict(num_experts=4, moe_intermediate_size=16, head_dim=12, norm_topk_prob=False)
    yield case("qwen3_moe", t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig, **experts)
    own = dict(num_key_value_heads=DROPPED, rope_parameters=DROPPED, max_position_embeddings=64)
    yield case("roberta", t.RobertaModel, t.RobertaConfig, vocabularies.roberta, own=own, pad_token_id=1)
    own |= dict(intermediate_size=DROPPED, ffn_dim=INTERMEDIATE, word_embed_proj_dim=HIDDEN)
    yield case("opt", t.OPTForCausalLM, t.OPTConfig, own=own)


def cases():
    families = [llama_cases, mistral_cases, qwen_cases, gemma_cases, olmo2_cases, gpt_neox_cases, gpt_oss_cases]
    for family in families + [older_cases, gemmas_in_gguf, llama_like_cases]:
        yield from family()
