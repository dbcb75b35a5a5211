"""The table: each bar, what was measured against it, and whether it is reached."""

import pathlib
import statistics

# What limits it, from a profile taken by hand.
PROFILE = pathlib.Path(__file__).with_name("profile.md")
GIB = 2**30
# The sizes that the bars are set at: tokens, head dimension, window; a local head's shorter and longer sequence.
N, RANK, WINDOW = 2048, 64, 50
SHORT, LONG = 4096, 65536


class Rows:
    """The rows by what they measure; a quantity of a round is None where one of its parts has no result."""

    def __init__(self, rows):
        self.rows = rows
        self.rounds = sorted({row.round for row in rows})

    def of(self, round_, what, side=None, **fields):
        """The rows of a round with a result."""
        return [
            row
            for row in self.rows
            if not row.err and row.round == round_ and row.what == what and side in (None, row.side)
            and all(getattr(row, name) == value for name, value in fields.items())
        ]  # fmt: skip

    def one(self, round_, column, *key, **fields):
        found = self.of(round_, *key, **fields)
        return getattr(found[0], column) if found else None

    def median(self, of_round):
        """The median over the rounds of a function of the round."""
        values = [v for v in map(of_round, self.rounds) if v is not None]
        return statistics.median(values) if values else None


def quotient(numerator, denominator):
    return None if numerator is None or denominator is None else numerator / denominator


def lines(rows):
    """The table's lines: what, bar (empty where none is set), ours, the other, ratio or None, unit of the ratio."""
    table = Rows(rows)

    def against(title, bar, sides, what="evaluation", **fields):
        def theirs(round_):
            seconds = [table.one(round_, "eval_s", what, side, **fields) for side in sides]
            return None if None in seconds else min(seconds)

        ours = lambda round_: table.one(round_, "eval_s", what, "rank-study", **fields)
        ratio = table.median(lambda r: quotient(theirs(r), ours(r)))
        return title, bar, seconds_text(table.median(ours)), seconds_text(table.median(theirs)), ratio, "×"

    yield against("f32 against PyTorch eager", "≥ 6", ["torch-eager"], dtype="f32")
    yield against("f64 against PyTorch eager", "≥ 6", ["torch-eager"], dtype="f64")
    compiled = ["torch-compile", "jax-jit"]
    yield against("f32 against the faster of torch.compile and JAX jit", "≥ 1.8", compiled, dtype="f32")

    def share(dtype):
        def rate(r):
            return max((row.value for row in table.of(r, "gemm", dtype=dtype)), default=None)

        def ours(r):
            return quotient(3e-9 * N * N * RANK, table.one(r, "eval_s", "evaluation", "rank-study", dtype=dtype))

        ratio = table.median(lambda r: quotient(ours(r), rate(r)))
        return rate_text(table.median(ours)), rate_text(table.median(rate)), ratio, ""

    yield "f32 share of the machine's GEMM rate, at 3·n²·d flops", "≥ 0.55", *share("f32")
    times = lambda n: lambda r: table.one(r, "eval_s", "local", "rank-study", n=n)
    growth = table.median(lambda r: quotient(quotient(times(LONG)(r), times(SHORT)(r)), LONG / SHORT))
    longest, shortest = (seconds_text(table.median(times(n))) for n in (LONG, SHORT))
    yield (f"local head, n = {LONG} against {SHORT}: time over linear", "≤ 2", longest, shortest, growth, "×")
    memory = table.median(lambda r: table.one(r, "peak_rss_bytes", "memory", "rank-study"))
    yield (f"peak memory, n = {LONG}, causal f32", "≤ 1", "", "", quotient(memory, GIB), "GiB")
    for case, cap in sorted({(row.case, row.cap) for row in rows if row.what == "fit"}):
        yield against(f"time to scipy's kl_nats, {case}, cap {cap:g}", "≥ 10", ["scipy"], "fit", case=case, cap=cap)
    yield against("f64 against the faster of torch.compile and JAX jit", "", compiled, dtype="f64")
    for dtype in ("f32", "f64"):
        yield against(f"{dtype} against PyTorch eager, tuned", "", ["torch-eager-tuned"], dtype=dtype)
        yield against(f"{dtype} against numpy, gradient by hand", "", ["numpy"], dtype=dtype)
    yield "f64 share of the machine's GEMM rate, at 3·n²·d flops", "", *share("f64")
    for side in ("torch-blocks", "torch-gather"):
        for n in (SHORT, LONG):
            yield against(f"local head, n = {n}, f32 against {side}", "", [side], "local", n=n)


def seconds_text(seconds):
    return "" if seconds is None else f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def rate_text(rate):
    return "" if rate is None else f"{rate:.1f} GFLOP/s"


def reached(bar, ratio):
    if ratio is None:
        return "not measured"
    if not bar:
        return ""
    sense, bound = bar.split()
    return "yes" if (ratio >= float(bound) if sense == "≥" else ratio <= float(bound)) else "no"


def write_table(path, rows, head):
    text = [head, "", "| what | bar | rank-study | other | ratio | reached |", "|---|---|---|---|---|---|"]
    for what, bar, ours, theirs, ratio, unit in lines(rows):
        shown = "" if ratio is None else f"{ratio:.3g} {unit}".strip()
        bar_text = f"{bar} {unit}".strip() if bar else ""
        text.append(f"| {what} | {bar_text} | {ours} | {theirs} | {shown} | {reached(bar, ratio)} |")
    text += ["", PROFILE.read_text(encoding="utf-8").rstrip()]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
