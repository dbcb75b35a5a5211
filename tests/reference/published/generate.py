"""Small random models of every published type, and what transformers says of their heads.

    pip install -r tests/reference/published/requirements.txt
    python tests/reference/published/generate.py [NAME ...]

writes a folder a model beside this file: config.json, the weights and the tokenizer as `save_pretrained`
writes them, config-old.json (the same model as a hub's older config.json says it), or model.gguf alone;
expected.safetensors (record.py says what it holds) and text.txt. Every run writes the same bytes.
"""

import argparse
import json
import pathlib
import shutil
import zlib

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import gguf_models
import models
import vocabularies
from record import record

HERE = pathlib.Path(__file__).resolve().parent
LENGTH = 24
QUERY_KEY = ("q_proj", "k_proj", "qkv_proj", "query_key_value", "c_attn", ".query.", ".key.")


@torch.no_grad()
def randomise(model, seed, gain):
    """Weights far from an initialisation's: gains off one, biases and sinks off zero, logits well above one."""
    generator = torch.Generator().manual_seed(seed)

    def normal(parameter, mean, deviation):
        parameter.copy_(mean + deviation * torch.randn(parameter.shape, generator=generator))

    zero_centred = model.config.model_type.startswith(("gemma", "nemotron"))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            normal(parameter, 0.0, 0.3)
        elif name.endswith("sinks"):
            normal(parameter, 1.0, 1.0)
        elif name.endswith(("q_norm.weight", "k_norm.weight")):
            normal(parameter, gain - zero_centred, 0.3)
        elif parameter.dim() == 1:
            normal(parameter, 1.0 - zero_centred, 0.3)
        elif "position_embed" in name or "wpe" in name:
            normal(parameter, 0.0, 0.5)
        elif "embed" in name or "wte" in name:
            normal(parameter, 0.0, 1.0)
        else:
            # Conv1D and experts are stored (..., in, out), Linear (out, in).
            last = parameter.dim() == 2 and "c_" not in name
            inputs = parameter.shape[-1] if last else parameter.shape[-2]
            scale = gain if any(part in name for part in QUERY_KEY) else 1.0
            normal(parameter, 0.0, scale * inputs**-0.5)


def tokenise(folder):
    """The ids of text.txt by the tokenizer that transformers loads, which are those of tokenizer.json alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(vocabularies.TEXT, add_special_tokens=False)["input_ids"]
    file = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert ids == file.encode(vocabularies.TEXT, add_special_tokens=False).ids
    return ids


def check_spread(name, config, expected):
    """The models are worth testing on: no head near uniform, caps and sinks and windows at work."""
    layers = range(config.num_hidden_layers)
    largest = torch.stack([expected[f"logits.{layer}"].abs().amax(dim=(1, 2)) for layer in layers])
    assert 3 < largest.min() and largest.max() < 40, f"{name}: largest |logit| a head: {largest}"
    if cap := getattr(config, "attn_logit_softcapping", None):
        assert largest.min() > cap
    sunk = min(1 - expected[f"attention.{layer}"].sum(dim=-1).mean() for layer in layers)
    assert (sunk > 0.02) == (config.model_type == "gpt_oss"), sunk
    return f"max |logit| {largest.min():.1f} to {largest.max():.1f}, sunk {sunk:.2f}"


def check_old(case, about, folder, tokens, expected):
    """config-old.json, read by transformers, gives the same heads."""
    old = folder / "config-old.json"
    old.write_text(json.dumps(about | case.old, indent=2) + "\n")
    config = type(case.config).from_dict(json.loads(old.read_text()))
    model = case.model.from_pretrained(folder, config=config, dtype=torch.float32)
    again = record(model, tokens)
    for name, tensor in expected.items():
        assert torch.equal(tensor, again[name]), f"{case.name}: config-old.json gives another {name}"


def emptied(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "text.txt").write_text(vocabularies.TEXT, encoding="utf-8", newline="")
    return folder


def finish(folder, expected, tokenised, config):
    """Writes expected.safetensors, once the model is seen to be worth testing on."""
    save_file(expected | {"tokenised": torch.tensor(tokenised)}, folder / "expected.safetensors")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder.name}: {size / 1e3:.0f} KB, {check_spread(folder.name, config, expected)}")


def write_gguf(case):
    """A folder with model.gguf alone; what is expected is what transformers makes of that file."""
    folder = emptied(case.name)
    case.config.vocab_size = len(case.vocabulary)
    model = case.model(case.config)
    randomise(model, zlib.crc32(case.name.encode()), gain=1.7)
    gguf_models.write(folder / "model.gguf", case, model)
    loaded = case.model.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.float32)
    gguf_models.check_near(model, loaded)
    tokenised = gguf_models.tokenise(folder, case)
    finish(folder, record(loaded, tokenised[:LENGTH]), tokenised, loaded.config)


def write(case):
    folder = emptied(case.name)
    tokenizer = case.vocabulary()
    tokenizer.save_pretrained(folder)
    tokenised = tokenise(folder)

    about = {role: getattr(tokenizer, role) for role in ("bos_token_id", "eos_token_id", "pad_token_id")}
    about["vocab_size"] = len(tokenizer)
    case.config.update(about)
    model = case.model(case.config)
    randomise(model, zlib.crc32(case.name.encode()), case.gain)
    model.to(case.dtype).save_pretrained(folder, max_shard_size=case.shard)

    model = case.model.from_pretrained(folder, dtype=torch.float32)
    tokens = tokenised[:LENGTH]
    expected = record(model, tokens)
    if case.old:
        about["torch_dtype"] = str(case.dtype).removeprefix("torch.")
        check_old(case, about, folder, tokens, expected)
    finish(folder, expected, tokenised, case.config)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the models to write; all without any")
    names = parser.parse_args().names
    torch.set_num_threads(1)
    for case in models.cases():
        if not names or case.name in names:
            write(case)
    for case in gguf_models.cases():
        if not names or case.name in names:
            write_gguf(case)


if __name__ == "__main__":
    main()
