"""What transformers makes of the heads of a published model in a GGUF: SmolLM2-135M-Instruct, Gemma 3 270M.

    python tests/reference/decoders/generate.py runs/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf smollm2
    python tests/reference/decoders/generate.py runs/gemma3/gemma-3-270m-q4_k_m.gguf gemma3

Writes NAME-tokens.csv, the ids of ../published/llama/text.txt, and NAME-heads.csv, the largest logits of every head on them
over the pairs that a row sees, of weights dequantised by transformers. Versions as in ../published/requirements.txt.
"""

import csv
import sys
from pathlib import Path

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "published"))
from record import record  # noqa: E402

CONTROL = 3


def smollm2_ids(file: Path, text: str) -> list[int]:
    """The tokenizer that the file describes: "smollm" divides digits one by one, then bytes as GPT-2 does."""
    fields = GGUFReader(file).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    made = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    types = fields["tokenizer.ggml.token_type"].contents()
    control = [token for token, kind in zip(tokens, types) if kind == CONTROL]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return made.encode(text, add_special_tokens=False).ids


def gemma3_ids(file: Path, text: str) -> list[int]:
    """The tokenizer that transformers makes of the file, with the token that precedes every passage."""
    made = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    return [made.bos_token_id, *made(text, add_special_tokens=False)["input_ids"]]


def main() -> None:
    file, name = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    text = (HERE.parent / "published" / "llama" / "text.txt").read_bytes().decode()
    ids = {"smollm2": smollm2_ids, "gemma3": gemma3_ids}[name](file, text)
    with open(HERE / f"{name}-tokens.csv", "w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([["token"], *([one] for one in ids)])
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    found = record(model, ids)
    seen = torch.tril(torch.ones(len(ids), len(ids), dtype=torch.bool))
    with open(HERE / f"{name}-heads.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["layer", "head", "least_logit", "max_logit"])
        layer = 0
        while (logits := found.get(f"logits.{layer}")) is not None:
            for head, z in enumerate(logits):
                rows.writerow([layer, head, f"{z[seen].min():.6f}", f"{z[seen].max():.6f}"])
            layer += 1


if __name__ == "__main__":
    main()
