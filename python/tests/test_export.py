"""What is exported is what the model's own attention is made of, nothing about the model changes, and what cannot be
exported is refused in one line: `make test-export`."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
import textwrap
import unittest

import torch
import transformers as t
from safetensors import safe_open
from torch import Tensor

# The file alone: it needs no other part of the package.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rank_study"))

import export as exporter  # noqa: E402

SIZES = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
)
T5_SIZES = dict(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
GROUPED = SIZES | dict(num_key_value_heads=2)
WINDOW = 6
YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16)
CONFIGS: dict[str, t.PreTrainedConfig] = {
    "llama": t.LlamaConfig(**GROUPED),
    "llama-yarn": t.LlamaConfig(**GROUPED, rope_parameters=YARN),
    "qwen2": t.Qwen2Config(**GROUPED),
    "qwen3": t.Qwen3Config(**GROUPED, head_dim=8),
    "gemma2": t.Gemma2Config(
        **GROUPED, head_dim=8, sliding_window=WINDOW, attn_logit_softcapping=5.0, query_pre_attn_scalar=16
    ),
    "olmo2": t.Olmo2Config(**GROUPED, eos_token_id=2),
    "cohere": t.CohereConfig(**GROUPED, use_qk_norm=True, pad_token_id=0, bos_token_id=1, eos_token_id=2),
    "gpt_neox": t.GPTNeoXConfig(
        **SIZES, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)
    ),
    "gpt_oss": t.GptOssConfig(
        **GROUPED, head_dim=8, sliding_window=WINDOW, num_local_experts=2, num_experts_per_tok=1, rope_parameters=YARN
    ),
    "gpt2": t.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0),
    "bert": t.BertConfig(**SIZES),
    # With position biases; the last four do not call the attention interface.
    "t5": t.T5Config(**T5_SIZES),
    "umt5": t.UMT5Config(**T5_SIZES),
    "mpnet": t.MPNetConfig(**SIZES),
    "bloom": t.BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4),
    "mpt": t.MptConfig(d_model=32, n_heads=4, n_layers=2, vocab_size=64, max_seq_len=64),
    "falcon": t.FalconConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True),
}
BIASED = ("t5", "umt5", "mpnet", "bloom", "mpt", "falcon")
# Further types at small sizes, by the names that their configurations have for these.
SMALL = SIZES | dict(
    num_key_value_heads=2, head_dim=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, d_model=32, n_embd=32, n_layer=2,
    n_head=4, n_positions=64, num_layers=2, num_heads=4, ffn_dim=48, dim=32, hidden_dim=48, n_heads=4, n_layers=2,
    word_embed_proj_dim=32, embedding_size=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=48,
    decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, num_local_experts=2, num_experts=2,
    num_experts_per_tok=1, moe_intermediate_size=16, rotary_dim=4, sliding_window=WINDOW, window_size=WINDOW,
    attention_types=[[["global", "local"], 1]],
)  # fmt: skip
OTHERS = """mistral ministral qwen2_moe qwen3_moe mixtral gemma gemma3_text olmo olmo3 olmoe phi phi3 granite granitemoe smollm3
    starcoder2 stablelm nemotron cohere2 glm glm4 exaone4 helium ernie4_5 seed_oss apertus arcee bitnet gpt_neo gpt_bigcode
    opt biogpt xglm roberta xlm-roberta camembert distilbert electra modernbert ernie esm bart mbart pegasus
    minimax""".split()
REFUSED = "gptj codegen persimmon hunyuan_v1_dense deberta".split()
TOKENS = torch.randint(3, 60, (2, 20), generator=torch.Generator().manual_seed(1))


def model_of(name: str, attention: str = "eager") -> t.PreTrainedModel:
    """A small model far from its initialisation: gains off one, biases off zero, attention far from uniform."""
    torch.manual_seed(0)
    # Of two parts, one is exported at a time.
    auto = t.AutoModelForTextEncoding if name in ("t5", "umt5") else t.AutoModel
    model = auto.from_config(CONFIGS[name], attn_implementation=attention)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            elif auto is t.AutoModel:
                parameter.mul_(8)
    return model.eval()


class Exported:
    """A file: what it says of itself, and its tensors."""

    def __init__(self, path: str | pathlib.Path) -> None:
        with safe_open(path, "pt") as file:
            self.about = json.loads(file.metadata()[exporter.NOTE])
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}

    def of(self, layer: int, name: str) -> Tensor:
        return self.tensors[f"layers.{layer}.{name}"]

    def attention(self, about: dict) -> Tensor:
        """Attention (P, H, T, T) of a layer, from what is in the file alone."""
        layer = about["layer"]
        queries, keys = self.of(layer, "queries"), self.of(layer, "keys")
        keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
        logits = about["scale"] * queries @ keys.mT
        if about["softcap"]:
            logits = about["softcap"] * (logits / about["softcap"]).tanh()
        tokens = logits.shape[-1]
        lag = torch.arange(tokens)[:, None] - torch.arange(tokens)
        if f"layers.{layer}.position_bias" in self.tensors:
            logits = logits + self.of(layer, "position_bias")[:, tokens - 1 - lag]
        seen = lag >= 0 if about["causal"] else torch.ones_like(lag, dtype=torch.bool)
        if about["window"]:
            seen = seen & (lag.abs() < about["window"])
        logits = logits.masked_fill(~seen, -torch.inf)
        if f"layers.{layer}.sinks" in self.tensors:
            sinks = self.of(layer, "sinks")[:, None, None].expand(*logits.shape[:-1], 1)
            logits = torch.cat((logits, sinks), -1)
        return logits.softmax(-1)[..., :tokens]

    def made(self, about: dict, side: str) -> Tensor:
        """Queries or keys (P, H, T, D) from the stream by least squares, normalised and turned as the file says."""
        layer = about["layer"]
        after = self.of(layer, side)
        before = self.of(layer, f"{side}_before") if about["norm"] else self.turned(about, after, -1)
        stream = self.of(layer, "stream").flatten(0, 1)
        if about["bias"]:
            stream = torch.cat((stream, torch.ones(len(stream), 1)), 1)
        rows = before.transpose(1, 2).flatten(0, 1).flatten(1)
        made = (stream.double() @ torch.linalg.pinv(stream.double()) @ rows.double()).float()
        made = made.unflatten(1, before.shape[1::2]).unflatten(0, before.shape[::2]).transpose(1, 2)
        if norm := about["norm"]:
            axes = (-1,) if norm["over"] == "head" else (1, -1)
            made = made - made.mean(axes, keepdim=True) if norm["centred"] else made
            made = made * (made.square().mean(axes, keepdim=True) + norm["epsilon"]).rsqrt()
            made = made * self.of(layer, f"{side}_gains")[:, None]
        return self.turned(about, made, 1)

    def turned(self, about: dict, rows: Tensor, sign: int) -> Tensor:
        """Rows (P, H, T, D), turned by their positions, or back where `sign` is −1."""
        if about["pairs"] is None:
            return rows
        cos, sin = (self.of(about["layer"], name) for name in ("cos", "sin"))
        length = 1 if sign == 1 else cos.square() + sin.square()
        half = cos.shape[1]
        first, second = (
            (slice(0, half), slice(half, 2 * half))
            if about["pairs"] == "halves"
            else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        )
        turned = rows.clone()
        turned[..., first] = (rows[..., first] * cos - sign * rows[..., second] * sin) / length
        turned[..., second] = (rows[..., second] * cos + sign * rows[..., first] * sin) / length
        return turned


class ExportTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "heads.safetensors"

    def test_attention_is_the_model_s_own(self) -> None:
        for name in CONFIGS:
            with self.subTest(name):
                model = model_of(name)
                expected = model(input_ids=TOKENS, output_attentions=True).attentions
                exporter.export(model, TOKENS, self.path)
                file = Exported(self.path)
                self.assertEqual(file.about["tokens"], TOKENS.tolist())
                self.assertEqual([about["layer"] for about in file.about["heads"]], [0, 1])
                for about, own in zip(file.about["heads"], expected):
                    self.assertLess((file.attention(about) - own).abs().max(), 1e-5)

    def test_queries_and_keys_are_made_as_is_told(self) -> None:
        # More rows than the stream has channels, or any rows could be made of it.
        self.assertGreater(TOKENS.numel(), SIZES["hidden_size"] + 1)
        for name in CONFIGS:
            with self.subTest(name):
                exporter.export(model_of(name), TOKENS, self.path, layers=[1])
                file = Exported(self.path)
                for side in ("queries", "keys"):
                    (about,) = file.about["heads"]
                    own = file.of(1, side)
                    self.assertLess((file.made(about, side) - own).abs().max(), 1e-3 * own.abs().max())

    def test_half_precision_is_understood_too(self) -> None:
        for name in CONFIGS:
            with self.subTest(name):
                exporter.export(model_of(name), TOKENS, self.path)
                told = Exported(self.path).about["heads"]
                exporter.export(model_of(name).to(torch.bfloat16), TOKENS, self.path)
                self.assertEqual(Exported(self.path).about["heads"], told)

    def test_nothing_about_the_model_changes(self) -> None:
        for name in CONFIGS:
            for attention in ("eager", "sdpa"):
                if name in ("gpt_oss", "gemma2", "mpnet", "bloom", "mpt") and attention == "sdpa":
                    continue  # They have eager attention alone, or sinks and softcaps only there.
                with self.subTest(f"{name} {attention}"):
                    model = model_of(name, attention)
                    plain = model(input_ids=TOKENS).last_hidden_state
                    model.train()
                    next(model.children()).eval()
                    before = [module.training for module in model.modules()]
                    with exporter.capture(model, self.path):
                        captured = model(input_ids=TOKENS).last_hidden_state
                    self.assertTrue(plain.equal(captured))
                    self.assertEqual([module.training for module in model.modules()], before)
                    self.assertEqual(model.config._attn_implementation, attention)
                    hooks = [h for m in model.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks)]
                    self.assertEqual((hooks, exporter._RECORDERS), ([], {}))

    def test_compiled_and_checkpointed_models_have_the_same_heads(self) -> None:
        model = model_of("llama", "sdpa")
        exporter.export(model, TOKENS, self.path)
        expected = Exported(self.path).tensors
        model.gradient_checkpointing_enable()
        for other in (model.train(), torch.compile(model)):
            exporter.export(other, TOKENS, self.path)
            found = Exported(self.path)
            self.assertEqual(found.about["model"], "LlamaModel")
            for name, tensor in expected.items():
                self.assertTrue(tensor.equal(found.tensors[name]), name)

    def test_further_types_are_exported_or_refused(self) -> None:
        for name in (*OTHERS, *REFUSED):
            with self.subTest(name):
                torch.manual_seed(0)
                default = t.AutoConfig.for_model(name)
                # A size may have a second name.
                second = set(default.attribute_map.values()) if default.attribute_map else set()
                sizes = {k: v for k, v in SMALL.items() if k in default.to_dict() or k in default.attribute_map}
                for alias, own in default.attribute_map.items():
                    if own in second & sizes.keys():
                        sizes.pop(alias, None)
                config = t.AutoConfig.for_model(name, **sizes)
                model = t.AutoModel.from_config(config, attn_implementation="eager").eval()
                model = model.encoder if config.is_encoder_decoder else model
                with torch.no_grad():
                    for parameter in model.parameters():
                        # Biases and gains that say nothing are no test.
                        parameter.add_(0.3 * torch.randn_like(parameter)) if parameter.ndim == 1 else parameter.mul_(4)
                if name in REFUSED:
                    with self.assertRaises(exporter.ExportError):
                        exporter.export(model, TOKENS, self.path)
                    continue
                expected = model(input_ids=TOKENS, output_attentions=True).attentions
                exporter.export(model, TOKENS, self.path)
                file = Exported(self.path)
                for about in file.about["heads"]:
                    self.assertLess((file.attention(about) - expected[about["layer"]]).abs().max(), 1e-5)

    def test_models_of_plain_torch_are_exported(self) -> None:
        for function, norm in (("sdpa", False), ("softmax", False), ("sdpa", True)):
            with self.subTest(function, norm=norm):
                torch.manual_seed(0)
                model = PlainModel(function, norm)
                exporter.export(model, TOKENS, self.path)
                file = Exported(self.path)
                self.assertEqual(file.about["tokens"], TOKENS.tolist())
                with torch.no_grad():
                    x = model.input(TOKENS)
                    for about, attention in zip(file.about["heads"], model.attentions):
                        query, key, _ = attention.projected(x)
                        own = (query @ key.mT / 8**0.5).masked_fill(torch.ones(20, 20).triu(1) > 0, -torch.inf).softmax(-1)
                        self.assertLess((file.attention(about) - own).abs().max(), 1e-5)
                        self.assertTrue(about["causal"] and about["bias"])
                        x = x + attention(x)

    def test_models_of_images_and_sounds_have_places_for_tokens(self) -> None:
        small = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
        image = t.ViTModel(
            t.ViTConfig(**small, image_size=32, patch_size=8, attn_implementation="eager"), add_pooling_layer=False
        )
        sound = t.Wav2Vec2Model(
            t.Wav2Vec2Config(
                **small, conv_dim=(16, 16), conv_stride=(8, 4), conv_kernel=(8, 4), num_feat_extract_layers=2,
                num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=4, attn_implementation="eager",
            )
        )  # fmt: skip
        draw = torch.Generator().manual_seed(0)
        for model, inputs in (
            (image, {"pixel_values": torch.randn(2, 3, 32, 32, generator=draw)}),
            (sound, {"input_values": torch.randn(2, 800, generator=draw)}),
        ):
            with self.subTest(type(model).__name__), torch.no_grad():
                expected = model.eval()(**inputs, output_attentions=True).attentions
                with exporter.capture(model, self.path):
                    model(**inputs)
                file = Exported(self.path)
                rows = expected[0].shape[-1]
                self.assertEqual(file.about["tokens"], [list(range(rows)), list(range(rows, 2 * rows))])
                for about, own in zip(file.about["heads"], expected):
                    self.assertFalse(about["causal"])
                    self.assertLess((file.attention(about) - own).abs().max(), 1e-5)

    def test_padding_and_what_others_lack_are_left_out(self) -> None:
        for name in CONFIGS:
            exporter.export(model_of(name), TOKENS[:, :14], self.path)
            expected = Exported(self.path)
            # The second passage is longer; of a model that sees later tokens none may be.
            lengths = [14, 14 if name in ("bert", "t5", "umt5", "mpnet") else 17]
            for left in (False, True):
                if left and name in ("gpt2", "bert", "mpnet"):
                    continue  # Their tokens would lie at other positions.
                with self.subTest(name, left=left):
                    ids, mask = torch.zeros_like(TOKENS), torch.zeros_like(TOKENS)
                    for at, length in enumerate(lengths):
                        place = slice(20 - length, 20) if left else slice(0, length)
                        ids[at, place], mask[at, place] = TOKENS[at, :length], 1
                    model = model_of(name)
                    with exporter.capture(model, self.path), torch.no_grad():
                        model(input_ids=ids, attention_mask=mask)
                    file = Exported(self.path)
                    self.assertEqual(file.about["tokens"], TOKENS[:, :14].tolist())
                    self.assertEqual(file.about["left_out"], 12)
                    for about, other in zip(file.about["heads"], expected.about["heads"]):
                        self.assertEqual(about, other)
                        off = (file.attention(about) - expected.attention(other)).abs().max()
                        self.assertLess(off, 2e-5)
                        made = file.made(about, "queries") - file.of(about["layer"], "queries")
                        self.assertLess(made.abs().max(), 1e-3 * file.of(about["layer"], "queries").abs().max())

    def test_what_cannot_be_exported_is_refused_in_one_line(self) -> None:
        model = model_of("llama")

        def run(model: t.PreTrainedModel = model, **inputs: Tensor) -> None:
            with exporter.capture(model, self.path), torch.no_grad():
                model(**inputs)

        holed, shorter, other = torch.ones(3, *TOKENS.shape, dtype=torch.long)
        holed[0, 5:8], shorter[0, 15:], other[0, :] = 0, 0, 0
        bert = model_of("bert")
        shifted = torch.stack((torch.arange(20), torch.arange(3, 23)))
        # Its keys are multiplied with vectors of positions too.
        entangled = t.DebertaV2Model(t.DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["c2p"]))
        t5 = t.T5Model(CONFIGS["t5"])
        latent = t.DeepseekV3Model(
            t.DeepseekV3Config(
                **SIZES, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4,
                v_head_dim=8, n_routed_experts=2, first_k_dense_replace=2,
            )
        )  # fmt: skip
        bart = t.BartModel(
            t.BartConfig(vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4)
        )
        broken = model_of("llama")
        torch.nn.init.constant_(broken.layers[0].self_attn.q_proj.weight, torch.nan)
        for refused, why in (
            (lambda: exporter.export(broken, TOKENS, self.path), "are NaN or infinite; export an earlier step"),
            (lambda: exporter.export(model, TOKENS, self.path, layers=[2]), "the model has layers 0 to 1, not 2"),
            (lambda: exporter.export(model, [[1, 2], [3]], self.path), "passages have one length"),
            (lambda: exporter.export(model, [1, 2], self.path), r"tokens have shape \(2,\); give \(passages, T\)"),
            (lambda: exporter.export(torch.nn.Linear(2, 2), TOKENS, self.path), "Linear has no module that calls"),
            (lambda: run(input_ids=TOKENS, attention_mask=holed), "hides tokens within a passage"),
            (lambda: run(input_ids=TOKENS, attention_mask=other), "hides a whole passage"),
            (lambda: run(bert, input_ids=TOKENS, attention_mask=shorter), "tokens see later ones"),
            (lambda: run(input_ids=TOKENS, position_ids=shifted), "passages have different positions"),
            (lambda: exporter.export(entangled, TOKENS, self.path), "no function of j − i"),
            (lambda: exporter.export(t5, TOKENS, self.path), "are both layer 0; name the part of the model"),
            (lambda: exporter.export(latent, TOKENS, self.path), "no projection of its input"),
            (lambda: exporter.export(bart, TOKENS, self.path), "are both layer 0; name the part of the model"),
        ):
            with self.subTest(why), self.assertRaisesRegex(exporter.ExportError, why) as caught:
                refused()
            self.assertNotIn("\n", str(caught.exception))
        self.assertFalse(self.path.exists())

    def test_a_training_writes_a_file_every_so_many_steps(self) -> None:
        torch.manual_seed(0)
        model = t.GPT2LMHeadModel(CONFIGS["gpt2"])
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        passages = repeats(2)
        losses = []
        for step in range(1, 301):
            batch = repeats(16)
            loss = model(input_ids=batch, labels=batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if step % 100 == 0:
                exporter.export(model, passages, self.folder / f"step-{step:06}.safetensors", layers=[0, 1], step=step)
                self.assertTrue(model.training)
        self.assertLess(losses[-1], 0.8 * losses[0])
        files = [Exported(path) for path in sorted(self.folder.glob("*.safetensors"))]
        self.assertEqual([file.about["step"] for file in files], [100, 200, 300])
        self.assertFalse(files[0].of(0, "queries").equal(files[2].of(0, "queries")))

    def test_the_callback_of_the_docstring_works_as_it_stands(self) -> None:
        text = exporter.__doc__ or ""
        code = text[text.index("    class ExportHeads") : text.index("The format is")]
        names = {"transformers": t, "export": exporter}
        exec(textwrap.dedent(code), names)  # noqa: S102
        callback = names["ExportHeads"](repeats(2), every=20, folder=str(self.folder / "heads"), layers=[1])
        data = [{"input_ids": row, "labels": row} for row in repeats(64)]
        settings = t.TrainingArguments(
            output_dir=str(self.folder), max_steps=60, per_device_train_batch_size=8, learning_rate=1e-3, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        t.Trainer(
            model=t.GPT2LMHeadModel(CONFIGS["gpt2"]), args=settings, train_dataset=data, callbacks=[callback]
        ).train()
        steps = [Exported(path).about["step"] for path in sorted((self.folder / "heads").iterdir())]
        self.assertEqual(steps, [20, 40, 60])


class PlainAttention(torch.nn.Module):
    def __init__(self, function: str, norm: bool) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(32) if norm else torch.nn.Identity()
        self.all, self.function = torch.nn.Linear(32, 96), function

    def projected(self, x: Tensor) -> list[Tensor]:
        return [part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.all(self.norm(x)).split(32, -1)]

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.projected(x)
        if self.function == "sdpa":
            heads = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            logits = query @ key.transpose(-2, -1) / 8**0.5
            later = torch.ones(logits.shape[-2:]).triu(1) > 0
            heads = torch.nn.functional.softmax(logits.masked_fill(later, float("-inf")), dim=-1) @ value
        return heads.transpose(1, 2).flatten(2)


class PlainModel(torch.nn.Module):
    """A decoder of PyTorch alone, with learned positions."""

    def __init__(self, function: str, norm: bool) -> None:
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(64, 32), torch.nn.Embedding(64, 32)
        self.attentions = torch.nn.ModuleList(PlainAttention(function, norm) for _ in range(2))

    def input(self, ids: Tensor) -> Tensor:
        return self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.input(ids)
        for attention in self.attentions:
            x = x + attention(x)
        return x


def repeats(count: int) -> Tensor:
    """Passages whose second half is their first: (count, 24)."""
    half = torch.randint(1, 64, (count, 12))
    return torch.cat((half, half), 1)


if __name__ == "__main__":
    unittest.main()
