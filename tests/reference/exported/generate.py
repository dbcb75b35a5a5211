"""Heads of the small models of tests/reference/published as python/rank_study/export.py writes them.

    pip install -r tests/reference/published/requirements.txt
    python tests/reference/exported/generate.py [NAME ...]

writes NAME.safetensors beside this file, from float32 on the processor. Its passages are those that `rank-study predict
tests/reference/published/NAME --text .../text.txt --tokens N` looks at; the first begins with the tokens of
expected.safetensors. Every run writes the same bytes.

Models with a position bias are not in tests/reference/published: t5 and bloom have random weights, and their attention on
the first passage is in attention/NAME.safetensors.
"""

import argparse
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BloomConfig, BloomModel, PreTrainedModel, T5Config, T5EncoderModel

HERE = pathlib.Path(__file__).resolve().parent
PUBLISHED = HERE.parent / "published"
sys.path.insert(0, str(HERE.parents[2] / "python" / "rank_study"))

import export  # noqa: E402

# Passages of a long text lie this many of their lengths apart; those of a short one follow one another.
STRIDE = 4
# Layers and tokens of a passage. Of passages with few more tokens than the stream has channels, what heads need is a
# matter of the search; the heads of bert are held to those on the 24 tokens of expected.safetensors, no more.
MODELS = {
    "llama-yarn": ([1], 96),
    "gpt2": ([0, 1], 64),
    "bert": ([1], 24),
    "qwen3": ([1], 96),
    "olmo2": ([1], 96),
    "gemma2": ([1], 96),
    "gpt_neox": ([1], 96),
    "gpt_oss": ([1], 96),
}


BIASED = ("t5", "bloom")


def biased(name: str) -> PreTrainedModel:
    torch.manual_seed(0)
    if name == "t5":
        config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=3)
        return T5EncoderModel._from_config(config, attn_implementation="eager").eval()
    model = BloomModel(BloomConfig(vocab_size=64, hidden_size=24, n_layer=2, n_head=3)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 if parameter.ndim == 1 else 8)
    return model


def write_biased(name: str) -> None:
    model = biased(name)
    tokens = torch.randint(3, 60, (2, 24), generator=torch.Generator().manual_seed(1))
    export.export(model, tokens, HERE / f"{name}.safetensors", layers=[1], name=name)
    with torch.no_grad():
        attention = model(input_ids=tokens[:1], output_attentions=True).attentions[1]
    save_file({"attention": attention[0].contiguous()}, HERE / "attention" / f"{name}.safetensors")


def passages(folder: pathlib.Path, length: int) -> list[list[int]]:
    """Two passages of the text; none of these tokenizers puts a token before it that a causal model is given."""
    text = load_file(folder / "expected.safetensors")["tokenised"].tolist()
    stride = STRIDE * length if len(text) >= 2 * STRIDE * length else length
    return [text[first : first + length] for first in (0, stride)]


def write(name: str) -> None:
    folder, path = PUBLISHED / name, HERE / f"{name}.safetensors"
    layers, length = MODELS[name]
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    export.export(model, passages(folder, length), path, layers=layers, name=name)
    print(f"{name}: {path.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help="models to write; all where none is named")
    torch.set_num_threads(1)
    for chosen in parser.parse_args().names or (*MODELS, *BIASED):
        write_biased(chosen) if chosen in BIASED else write(chosen)
