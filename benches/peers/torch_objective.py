"""The objective in PyTorch, as a function of the logits, for autograd to differentiate."""

import math

import torch
import torch.nn.functional as F

from peer import CAP, HIDDEN, SLOPE


def tensors(data):
    """Q and K, which gradients are wanted in."""
    return tuple(torch.from_numpy(x).requires_grad_() for x in (data.q, data.k))


def dense(data):
    """Causal, over n x n: value(q, k)."""
    a, n, d = torch.from_numpy(data.target()), data.n, data.q.shape[1]
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)

    def value(q, k):
        z = (q / math.sqrt(d)) @ k.T
        return objective(z, hidden, a, n, data.negative_entropy)

    return value


def dense_fused_mask(data):
    """The same with the mask computed in place, for a compiler that fuses it: nothing of it is read from memory."""
    a, n, d = torch.from_numpy(data.target()), data.n, data.q.shape[1]

    def value(q, k):
        place = torch.arange(n)
        z = (q / math.sqrt(d)) @ k.T
        return objective(z, place[None, :] > place[:, None], a, n, data.negative_entropy)

    return value


def dense_few_passes(data):
    """The same with the operators that pass over n x n the least: a clipped |z| in one, dot products for sums."""
    a, n, d = torch.from_numpy(data.target()), data.n, data.q.shape[1]
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)

    def value(q, k):
        z = ((q / math.sqrt(d)) @ k.T).tril()
        log_p = torch.log_softmax(z.masked_fill(hidden, HIDDEN), dim=1)
        excess = F.softshrink(z, CAP).view(-1)
        likelihood, penalty = torch.dot(a.view(-1), log_p.view(-1)), torch.dot(excess, excess)
        return data.negative_entropy - likelihood / n + SLOPE / (2 * n) * penalty

    return value


def local_blocks(data):
    """A local head by blocks of `window` rows, each against its own block and the one before."""
    n, d, w = data.n, data.q.shape[1], data.window
    blocks = -(-n // w)
    tail = blocks * w - n
    row, column = torch.arange(w)[:, None], torch.arange(2 * w)[None, :]
    lag = row - (column - w)
    hidden = ((lag < 0) | (lag >= w)).repeat(blocks, 1, 1)
    hidden[0, :, :w] = True
    hidden[-1, w - tail :] = True
    a = torch.zeros(blocks, w, 2 * w, dtype=torch.from_numpy(data.band).dtype)
    band = F.pad(torch.from_numpy(data.band), (0, 0, 0, tail)).view(blocks, w, w)
    a.scatter_(2, (row + 1 + torch.arange(w)).expand(blocks, w, w), band)

    def value(q, k):
        rows = F.pad(q / math.sqrt(d), (0, 0, 0, tail)).view(blocks, w, d)
        tokens = F.pad(k, (0, 0, w, tail)).view(blocks + 1, w, d)
        z = rows @ torch.cat((tokens[:-1], tokens[1:]), dim=1).transpose(1, 2)
        return objective(z, hidden, a, n, data.negative_entropy)

    return value


def local_gather(data):
    """A local head by gathering every row's last `window` keys."""
    a, (n, d), w = torch.from_numpy(data.band), data.q.shape, data.window
    hidden = torch.arange(n)[:, None] - w + 1 + torch.arange(w) < 0

    def value(q, k):
        windows = F.pad(k, (0, 0, w - 1, 0)).unfold(0, w, 1)
        z = torch.einsum("nd,ndw->nw", q / math.sqrt(d), windows)
        return objective(z, hidden, a, n, data.negative_entropy)

    return value


def objective(z, hidden, a, n, negative_entropy):
    log_p = torch.log_softmax(z.masked_fill(hidden, HIDDEN), dim=-1)
    excess = (z.abs() - CAP).relu().masked_fill(hidden, 0.0)
    return negative_entropy - (a * log_p).sum() / n + SLOPE / (2 * n) * excess.square().sum()


def evaluation(value, q, k):
    """One evaluation: the value, its gradient in Q and its gradient in K."""

    def evaluate():
        loss = value(q, k)
        gradient_q, gradient_k = torch.autograd.grad(loss, (q, k))
        return loss.item(), gradient_q, gradient_k

    return evaluate
