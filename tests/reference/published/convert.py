"""Writes model.gguf beside the safetensors of a model, by llama.cpp's own converter.

    python tests/reference/published/convert.py LLAMA_CPP NAME ...

LLAMA_CPP is a checkout of llama.cpp, or vendor/llama.cpp of the source package of llama-cpp-python; the committed
files are by that of 0.3.9, which also needs sentencepiece. Weights keep their values, so expected.safetensors holds for
both files. A tokenizer of SentencePiece's kind is written with scores that give the order of its merges; other
tokenizers are left out.
"""

import json
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
LLAMA_CPP = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(LLAMA_CPP / "gguf-py"), str(LLAMA_CPP)]

import convert_hf_to_gguf as converter  # noqa: E402
from gguf import LlamaFileType as Stored  # noqa: E402

NORMAL, CONTROL, BYTE = 1, 3, 6
TYPES = {"float16": Stored.MOSTLY_F16, "bfloat16": Stored.MOSTLY_BF16, "float32": Stored.ALL_F32}


def settings(folder):
    """config.json with the keys of older releases, which the converter reads."""
    found = json.loads((pathlib.Path(folder) / "config.json").read_text())
    rope = found.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    found |= {key: rope[key] for key in ("rope_theta", "partial_rotary_factor") if key in rope}
    found["rotary_pct"] = rope.get("partial_rotary_factor", 1.0)
    found["rope_scaling"] = rope if rope.get("rope_type", "default") != "default" else None
    return found | {"n_ctx": found.get("n_positions")}


def write_tokenizer(self):
    """Tokens and scores, as converters write those of Llama 2 and Gemma."""
    tokenizer = json.loads((self.dir_model / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    if not tokenizer["model"].get("byte_fallback"):
        return self.gguf_writer.add_tokenizer_model("none")
    tokens = sorted(vocabulary, key=vocabulary.get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    types = [CONTROL if token in special else BYTE if token.startswith("<0x") else NORMAL for token in tokens]
    self.gguf_writer.add_tokenizer_model("llama")
    self.gguf_writer.add_token_list(tokens)
    self.gguf_writer.add_token_scores([-float(place) for place in range(len(tokens))])
    self.gguf_writer.add_token_types(types)
    self.gguf_writer.add_unk_token_id(tokens.index("<unk>"))
    self.gguf_writer.add_add_space_prefix("prepend" in json.dumps(tokenizer))


def write(name):
    folder = HERE / name
    found = settings(folder)
    model = converter.ModelBase.from_model_architecture(found["architectures"][0])
    size = found["vocab_size"]
    model.set_vocab = write_tokenizer
    model._create_vocab_sentencepiece = lambda self: ([b""] * size, [0.0] * size, [1] * size)
    parameters = model.set_gguf_parameters

    def with_the_rest(self):
        """Converters of models with the usual base of RoPE, or the usual window, do not write it."""
        parameters(self)
        written = " ".join(self.gguf_writer.kv_data[0])
        if "rope_theta" in found and "rope.freq_base" not in written:
            self.gguf_writer.add_rope_freq_base(found["rope_theta"])
        if found.get("sliding_window") and "sliding_window" not in written:
            self.gguf_writer.add_sliding_window(found["sliding_window"])
        if found.get("n_inner"):
            # The converter of GPT-2 writes four times the channels, whatever the model has.
            self.gguf_writer.kv_data[0]["gpt2.feed_forward_length"].value = found["n_inner"]

    model.set_gguf_parameters = with_the_rest
    with torch.inference_mode():
        model(folder, TYPES[found["dtype"]], folder / "model.gguf", hparams=found).write()


converter.ModelBase.load_hparams = staticmethod(settings)
for name in sys.argv[2:]:
    write(name)
