"""What transformers says of a model's heads: logits, attention and the layers' inputs, in float32.

The logits are taken where every model of transformers hands Q and K over: an attention function of
our own, registered with its AttentionInterface, computes eager attention from them and keeps the
scores. The probabilities are those of the model's own eager attention, in a second run; that both
runs agree shows that the recorded logits are the ones the model's attention is made of.
"""

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

AGREEMENT = 2e-6

_records = []


def _recorded_attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **options):
    """Eager attention in the order mask(softcap(scale QK^T)), with a learned sink a head where there is one."""
    groups = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(groups, dim=1)
    value = value.repeat_interleave(groups, dim=1)
    logits = query @ key.transpose(2, 3) * scaling
    scores = logits
    if (softcap := options.get("softcap")) is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if attention_mask is not None:
        scores = scores + attention_mask
    if (sinks := options.get("s_aux")) is not None:
        column = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    attention = scores.softmax(dim=-1)[..., : key.shape[2]]
    _records.append((logits[0], attention[0]))
    return (attention @ value).transpose(1, 2).contiguous(), attention


def _uniform_attention(module, query, key, value, attention_mask, **options):
    """Eager attention, whose rows are then spread evenly over the tokens that they may see; a sink keeps its share."""
    _, attention = _recorded_attention(module, query, key, value, attention_mask, **options)
    seen = torch.ones_like(attention) if attention_mask is None else (attention_mask == 0).expand_as(attention).float()
    attention = attention.sum(dim=-1, keepdim=True) * seen / seen.sum(dim=-1, keepdim=True)
    value = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
    return (attention @ value).transpose(1, 2).contiguous(), attention


for _name, _function in (("recorded", _recorded_attention), ("uniform", _uniform_attention)):
    AttentionInterface.register(_name, _function)
    AttentionMaskInterface.register(_name, eager_mask)


@torch.no_grad()
def record(model, tokens):
    """The named tensors of expected.safetensors for a model in float32 and a list of token ids.

    logits.l (H, T, T) is scale QK^T of every pair, before softcap and mask; attention.l (H, T, T) the
    probabilities, where a row with a sink sums to less than one; hidden.l (T, C) what enters layer l. For a
    language model losses (2) is the mean cross-entropy of the tokens after the first: with the model's own
    attention, and with uniform attention in every head.
    """
    assert model.dtype == torch.float32, model.dtype
    model.eval()
    ids = torch.tensor([tokens])
    _records.clear()
    model.set_attn_implementation("recorded")
    model(input_ids=ids)
    model.set_attn_implementation("eager")
    outputs = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
    layers = model.config.num_hidden_layers
    assert len(_records) == len(outputs.attentions) == layers == len(outputs.hidden_states) - 1
    expected = {"tokens": ids[0]}
    for layer, (logits, attention) in enumerate(_records):
        own = outputs.attentions[layer][0]
        off = (own - attention).abs().max().item()
        assert off < AGREEMENT, f"layer {layer}: recorded and eager attention differ by {off}"
        expected[f"logits.{layer}"] = logits.contiguous()
        expected[f"attention.{layer}"] = own.contiguous()
        expected[f"hidden.{layer}"] = outputs.hidden_states[layer][0].contiguous()
    if "CausalLM" in type(model).__name__ or "LMHead" in type(model).__name__:
        losses = []
        for attention in ("eager", "uniform"):
            model.set_attn_implementation(attention)
            losses.append(model(input_ids=ids, labels=ids).loss)
        expected["losses"] = torch.stack(losses)
        model.set_attn_implementation("eager")
    return expected
