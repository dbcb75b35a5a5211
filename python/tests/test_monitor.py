"""The monitor of training loops, against attention computed by hand."""

from __future__ import annotations

import csv
import pathlib

import pytest

torch = pytest.importorskip("torch")

import rank_study  # noqa: E402
from rank_study import Monitor  # noqa: E402

F = torch.nn.functional
B, T, C, H, LAYERS = 3, 12, 16, 2, 2


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(C, 3 * C)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, H, C // H).permute(2, 0, 3, 1, 4)
        self.kept = (q.detach(), k.detach())
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return x + y.transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    """A stack of attention layers, with checkpoints if asked."""

    def __init__(self, checkpoints: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(Attention() for _ in range(LAYERS))
        self.checkpoints = checkpoints

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for layer in self.layers:
            if self.checkpoints:
                x = torch.utils.checkpoint.checkpoint(layer, x, mask, use_reentrant=False)
            else:
                x = layer(x, mask)
        return x


X = torch.randn(B, T, C, generator=torch.Generator().manual_seed(1)) * 4


def train(model: torch.nn.Module, steps: int, mask: torch.Tensor | None = None, **options: object) -> Monitor:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with Monitor(model, **options) as monitor:  # type: ignore[arg-type]
        for _ in range(steps):
            model(X, mask).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            model(X, mask)  # an evaluation is no step
            model.train()
    return monitor


def by_hand(layer: Attention, head: int, seen: torch.Tensor) -> dict[str, float]:
    q, k = (x[:, head].double() for x in layer.kept)
    z = q @ k.transpose(-1, -2) / (C // H) ** 0.5
    largest, ranges, entropies, firsts = 0.0, [], [], []
    for b in range(B):
        for i in range(T):
            row = z[b, i, seen[b, i]]
            if len(row):
                p = row.softmax(0)
                largest = max(largest, row.abs().max().item())
                ranges.append((row.max() - row.min()).item() / 2)
                entropies.append(-(p * p.log()).sum().item())
                firsts.append(p[0].item())
    return {
        "max_abs_logit": largest,
        "half_range": max(ranges),
        "entropy_nats": sum(entropies) / len(entropies),
        "first_token": sum(firsts) / len(firsts),
    }


@pytest.mark.parametrize("padded", [False, True])
def test_rows_are_those_of_attention_computed_by_hand(padded: bool) -> None:
    model = Model()
    seen = torch.ones(B, T, T, dtype=torch.bool).tril()
    if padded:
        # The second sequence begins with three tokens of padding.
        seen[1, :, :3] = False
    masked = seen | ~seen.any(-1, keepdim=True)
    monitor = train(model, 1, masked[:, None] if padded else None)
    model(X, masked[:, None] if padded else None)
    assert [(row["step"], row["layer"], row["head"]) for row in monitor.rows] == [
        (1, layer, head) for layer in range(LAYERS) for head in range(H)
    ]
    fresh = Model()
    fresh(X, masked[:, None] if padded else None)
    for row in monitor.rows:
        for name, value in by_hand(fresh.layers[row["layer"]], row["head"], masked).items():
            assert row[name] == pytest.approx(value, rel=1e-4), name
        assert 0 <= row["kl_bf16"] < 1


@pytest.mark.parametrize("padding", [0, 3])
def test_the_floor_is_that_of_the_first_sequences_attention(padding: int) -> None:
    class Layer(torch.nn.Module):
        def forward(self, q: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, scale=1.0)

    seen = torch.ones(T, T, dtype=torch.bool).tril()
    seen[:, :padding] = False
    q = X[:, None, :, :8].clone().requires_grad_()
    with Monitor(Layer(), tolerance=0.05) as monitor:
        monitor.model(q, seen.expand(B, 1, T, T))
    real = q[0, 0, padding:].detach().double()
    attention = (real @ real.T).masked_fill(~seen[padding:, padding:], -torch.inf).softmax(-1)
    (row,) = monitor.rows
    assert row["floor"] == pytest.approx(rank_study.floor(attention, 0.05), rel=1e-4)
    assert row["floor"] <= row["max_abs_logit"]


def test_training_is_not_changed() -> None:
    def weights(**options: object) -> list[torch.Tensor]:
        model = Model()
        train(model, 5, **options)
        return list(model.parameters())

    for one, other in zip(weights(every=1), weights(every=100)):
        assert torch.equal(one, other)


def test_it_looks_at_every_nth_step_and_at_the_layers_asked_for() -> None:
    monitor = train(Model(), 7, every=3, layers=[1])
    assert [(row["step"], row["layer"]) for row in monitor.rows[::H]] == [(1, 1), (4, 1), (7, 1)]


@pytest.mark.parametrize("wrapped", ["checkpoints", "compiled"])
def test_checkpoints_and_compilation_give_the_same_rows(wrapped: str) -> None:
    model = Model(checkpoints=wrapped == "checkpoints")
    module = torch.compile(model, backend="eager") if wrapped == "compiled" else model
    rows, plain = train(module, 2, every=1).rows, train(Model(), 2, every=1).rows
    assert len(rows) == len(plain)
    for one, other in zip(rows, plain):
        assert one == pytest.approx(other, rel=1e-4)


def _worker(rank: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(Model())
    with Monitor(model, every=1, log=f"{folder}/heads.csv") as monitor:
        for _ in range(2):
            model(X).square().mean().backward()
    assert len(monitor.rows) == (0 if rank else 2 * LAYERS * H)
    torch.distributed.destroy_process_group()


def test_of_several_workers_the_first_looks(tmp_path: pathlib.Path) -> None:
    torch.multiprocessing.spawn(_worker, (str(tmp_path),), nprocs=2)
    with (tmp_path / "heads.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * LAYERS * H


def test_grouped_queries_and_a_scale_are_taken() -> None:
    class Grouped(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, k, scale=0.5, enable_gqa=True, is_causal=True)

    q, k = torch.randn(1, 4, T, 8, requires_grad=True), torch.randn(1, 2, T, 8)
    model = Grouped()
    with Monitor(model) as monitor:
        model(q, k)
    for row in monitor.rows:
        z = 0.5 * q[0, row["head"]] @ k[0, row["head"] // 2].T
        assert row["max_abs_logit"] == pytest.approx(z.tril().abs().max().item(), rel=1e-5)


def test_rows_go_to_a_file_a_function_and_a_writer(tmp_path: pathlib.Path) -> None:
    class Writer:
        def __init__(self) -> None:
            self.scalars: list[tuple[str, float, int]] = []

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.scalars.append((name, value, step))

    taken: list[dict] = []
    writer = Writer()
    monitor = train(Model(), 2, every=1, log=tmp_path / "logs" / "heads.csv")
    assert train(Model(), 2, every=1, log=taken.extend).rows == taken
    train(Model(), 2, every=1, log=writer)
    with pytest.raises(FileExistsError, match="heads.csv"):
        Monitor(Model(), log=tmp_path / "logs" / "heads.csv")
    with (tmp_path / "logs" / "heads.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(row["max_abs_logit"]) for row in read] == [row["max_abs_logit"] for row in monitor.rows]
    named = {(name, step): value for name, value, step in writer.scalars}
    last = monitor.rows[-1]
    assert named[f"attention/layer{last['layer']}.head{last['head']}/half_range", 2] == last["half_range"]


def test_it_draws_a_line_per_head() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monitor = train(Model(), 4, every=2)
    lines = monitor.plot("half_range").get_lines()
    assert len(lines) == LAYERS * H
    assert list(lines[-1].get_ydata()) == [row["half_range"] for row in monitor.rows[LAYERS * H - 1 :: LAYERS * H]]
    with pytest.raises(ValueError, match="half_range"):
        monitor.plot("halfrange")


def test_it_writes_a_page_of_what_it_saw(tmp_path: pathlib.Path) -> None:
    monitor = train(Model(), 4, every=2)
    page = monitor.page(tmp_path / "heads")
    assert page.is_file()
    with (tmp_path / "heads" / "tables" / "heads.csv").open() as file:
        heads = {(int(row["layer"]), int(row["head"])): row for row in csv.DictReader(file)}
    assert len(heads) == LAYERS * H
    last = monitor.rows[-1]
    for column in ("max_abs_logit", "half_range", "floor", "entropy_nats"):
        assert float(heads[last["layer"], last["head"]][column]) == pytest.approx(last[column], rel=1e-5)
    monitor.page(tmp_path / "heads")  # it is written again as training goes on


def test_a_large_and_rising_logit_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    model = Model()
    with Monitor(model, every=1, alert=1.0):
        for factor in (1.0, 2.0):
            model(X * factor)
    said = capsys.readouterr().err
    assert said.count("max |logit|") == 1 and "step 2" in said


def test_a_model_whose_attention_is_not_seen_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="training mode"), Monitor(Model().eval()):
        pass
    model = torch.nn.Linear(C, C)
    with pytest.warns(UserWarning, match="sdpa"), Monitor(model):
        model(X)


def test_a_failing_log_is_raised_at_the_end_and_training_goes_on() -> None:
    def fails(rows: list[dict]) -> None:
        raise OSError("disk full")

    model = Model()
    with pytest.raises(OSError, match="disk full"), Monitor(model, every=1, log=fails):
        for _ in range(4):
            model(X)
