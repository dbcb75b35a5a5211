"""Small tokenizers of every kind that published models have, trained on a few lines.

Where transformers has a class of its own for a type (Llama, Gemma, Qwen2, GPT-2, GPT-NeoX, BERT), that
class builds the normaliser, the split and the decoder from a vocabulary and merges; where a hub's
models bring a tokenizer.json alone (Llama 3, OLMo 2, gpt-oss, Mistral), the same parts are put together here.
"""

import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, GemmaTokenizer, GPT2Tokenizer, LlamaTokenizer, PreTrainedTokenizerFast
from transformers import GPTNeoXTokenizer, Qwen2Tokenizer

# What the tokenizers are trained on, and what they are tried on: the second has words, digits, accents,
# spaces, scripts and emoji that the first has not.
CORPUS = [
    "The harbour lights were out, and the keeper's boat had gone with the tide.",
    "We didn't hear the bell; they'd have heard it, and so would the others.",
    "It's the third winter that the water has stood over the lower stones.",
    "In 1849 the wall was 12 feet high, in 1850 it was 15, and it cost 2300 pounds.",
    "Where is the letter that the captain wrote? I've read it; you'll read it too.",
    "Café, naïve, façade: the words on the sign were there before the war.",
    "    for line in the_list:\n        print(line, 10 * 20)\n",
    "HARBOUR and TIDE, Water and Stone, the Keeper and the Captain.",
    "12345 12345 12345 1234 123 1851 1851 I'LL WE'LL WE'RE I'LL\n\nthe\n\nthe\n\nTHE'LL",
]
TEXT = (
    "The keeper's café didn't open before 7:45 in 1851, and they'd sold 12345 tickets — "
    "“naïve”, said the captain.\n\n  I'LL wait; WE'RE here,\tthe others weren't.\r\n"
    "    if tide > 20:\n        print('water')\n\nŁódź, Ελλάδα, 東京の水, e\u0301t\u00e9 😀👩‍🚀 ½ x² the  end\n"
)

# The split of each family, as its tokenizer.json or its class states it.
LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT_OSS_SPLIT = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def trained(tokenizer, trainer):
    """The vocabulary and, of a BPE, the merges that training gives."""
    tokenizer.train_from_iterator(CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model.get("merges", [])]


def byte_pairs(pre_tokenizer, specials, merges=72):
    """A byte-level BPE: the 256 bytes, then the merges, special tokens before or after as published."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=alphabet, show_progress=False)
    vocab, pairs = trained(tokenizer, trainer)
    return vocab | {token: len(vocab) + i for i, token in enumerate(specials)}, pairs


def sentence_pieces(specials, size=120):
    """A BPE as SentencePiece makes it: special tokens, the 256 bytes as <0x..>, then the pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    pieces, pairs = trained(tokenizer, trainer)
    head = specials + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = sorted(pieces, key=pieces.get)
    return {token: i for i, token in enumerate(head + pieces)}, pairs


def packaged(tokenizer, **specials):
    """A tokenizer.json without a class of its own."""
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials)


def llama():
    return LlamaTokenizer(*sentence_pieces(["<unk>", "<s>", "</s>"]))


def mistral():
    """The older form of a SentencePiece BPE: the leading ▁ and the spaces by a normaliser, no split."""
    vocab, merges = sentence_pieces(["<unk>", "<s>", "</s>"])
    model = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return packaged(tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def gemma():
    return GemmaTokenizer(*sentence_pieces(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]))


def byte_level(pattern, specials, **roles):
    """Llama 3's form: words that are in the vocabulary are taken whole, before any merge."""
    vocab, merges = byte_pairs(split(pattern), specials)
    tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=True))
    tokenizer.pre_tokenizer = split(pattern)
    tokenizer.decoder = decoders.ByteLevel()
    return packaged(tokenizer, **roles)


def llama3():
    specials = ["<|begin_of_text|>", "<|end_of_text|>"]
    return byte_level(LLAMA3_SPLIT, specials, bos_token=specials[0], eos_token=specials[1])


def olmo2():
    specials = ["<|endoftext|>", "<|pad|>"]
    return byte_level(LLAMA3_SPLIT, specials, eos_token=specials[0], pad_token=specials[1])


def gpt_oss():
    specials = ["<|startoftext|>", "<|return|>"]
    return byte_level(GPT_OSS_SPLIT, specials, bos_token=specials[0], eos_token=specials[1])


def qwen2():
    return Qwen2Tokenizer(*byte_pairs(Qwen2Tokenizer().backend_tokenizer.pre_tokenizer, ["<|endoftext|>"]))


def gpt2():
    return GPT2Tokenizer(*byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]))


def roberta():
    """GPT-2's, with special tokens first: positions count from the padding token's id."""
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab, merges = byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False), [])
    vocab = {token: place for place, token in enumerate(specials + sorted(vocab, key=vocab.get))}
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return packaged(tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def gpt_neox():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return GPTNeoXTokenizer(*byte_pairs(split, ["<|endoftext|>", "<|padding|>"]))


def bert():
    """WordPiece from counts, since its trainer breaks ties by a hash table: letters, words, endings."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    text = normalizer.normalize_str("\n".join(CORPUS))
    words = [word for word, _ in splitter.pre_tokenize_str(text)]
    letters = sorted(set("".join(words)))
    often = sorted(set(words) - set(letters), key=lambda word: (-words.count(word), word))[:40]
    endings = sorted({"##" + word[-2:] for word in words if len(word) > 3})
    pieces = specials + letters + ["##" + letter for letter in letters] + often + endings
    return BertTokenizer({token: i for i, token in enumerate(pieces)})
