"""Writes a folder of a Llama-type model with random weights in bfloat16: `python benches/random_llama.py FOLDER`.

The sizes are those of SmolLM2-1.7B's config.json; flags set others. Its tokens are bytes. Weights are normal with the deviation
that the configuration names, so a head's logits are small: the folder is for times and memory. Needs numpy.
"""

import argparse
import json
from pathlib import Path

import numpy as np


def tensors(size):
    """Yields the name and shape of each tensor, in the order of the file."""
    width, inner = size.hidden, size.intermediate
    keys = size.key_heads * width // size.heads
    yield "model.embed_tokens.weight", (size.vocabulary, width)
    for layer in range(size.layers):
        block = f"model.layers.{layer}"
        for name, shape in {
            "input_layernorm": (width,),
            "self_attn.q_proj": (width, width),
            "self_attn.k_proj": (keys, width),
            "self_attn.v_proj": (keys, width),
            "self_attn.o_proj": (width, width),
            "post_attention_layernorm": (width,),
            "mlp.gate_proj": (inner, width),
            "mlp.up_proj": (inner, width),
            "mlp.down_proj": (width, inner),
        }.items():
            yield f"{block}.{name}.weight", shape
    yield "model.norm.weight", (width,)


def bfloat16(values):
    """The bits of float32 values rounded to bfloat16, to the nearest."""
    return ((values.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def byte_tokenizer():
    """A tokenizer.json whose tokens are the 256 bytes, in the letters of GPT-2's byte-level vocabularies."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    letters = {byte: chr(byte) for byte in printed} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    by_byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    model = {"type": "BPE", "vocab": {letters[byte]: byte for byte in range(256)}, "merges": []}
    return {"version": "1.0", "added_tokens": [], "pre_tokenizer": by_byte, "decoder": by_byte, "model": model}


def main():
    read = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    read.add_argument("folder", type=Path)
    sizes = {"hidden": 2048, "intermediate": 8192, "layers": 24, "heads": 32, "key-heads": 32, "vocabulary": 49152}
    for name, size in sizes.items():
        read.add_argument(f"--{name}", type=int, default=size)
    size = read.parse_args()

    size.folder.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.hidden,
        "intermediate_size": size.intermediate,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.key_heads,
        "vocab_size": size.vocabulary,
        "max_position_embeddings": 8192,
        "rope_theta": 130000,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "torch_dtype": "bfloat16",
    }
    (size.folder / "config.json").write_text(json.dumps(config, indent=2))
    (size.folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))

    header, end = {}, 0
    for name, shape in tensors(size):
        begun, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begun, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    random = np.random.default_rng(1)
    with (size.folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for _, shape in tensors(size):
            # Norms have weights of 1, as at the start of a training.
            if len(shape) == 1:
                values = np.ones(shape, np.float32)
            else:
                values = 0.02 * random.standard_normal(shape, np.float32)
            file.write(bfloat16(values).tobytes())
    print(f"{end / 2e9:.2f} billion parameters, {end / 1e9:.1f} GB, in {size.folder}")


if __name__ == "__main__":
    main()
