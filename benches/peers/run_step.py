"""The language model against PyTorch's: both sides in turn, in several rounds, and what came of it in data/bench-lm/.

    make bench-peers-step

One training step is forward, backward, clip and update. In every round each side does each piece of work once, in
an order that turns with the rounds; times are medians of a run's steps, ratios are taken within a round, and
the table shows medians over the rounds. Beside it our own mhsa and ls in memory and while decoding. Exit 1 where
something could not be measured.
"""

import csv
import dataclasses
import statistics
import sys

import tomli_w

import comparison
import sides
import table

OUT = sides.ROOT / "data" / "bench-lm"
# Sequences and tokens in each.
SIZES = [(4, 512), (1, 2048), (1, 4096)]
MODEL = {"layers": 6, "d-model": 192, "heads": 6, "vocab": 8192, "window": 50}
TORCH = "torch-sdpa"
WORK = [(sides.OURS, "mhsa"), (sides.OURS, "ls"), (TORCH, "mhsa"), (TORCH, "ls")]
# nanoGPT's small CPU setting: its steps are so short that what surrounds the products shows.
SMALL = {"layers": 4, "d-model": 128, "heads": 4, "vocab": 65, "window": 16}
SMALL_SIZE = (12, 64)
# How many times as fast as PyTorch's arm a step of ours has to be, by size, our arm and PyTorch's. A short sequence has
# no bar for ls: the window is a tenth of it.
BARS = {
    (4, 512): {("mhsa", "mhsa"): "≥ 1.3", ("ls", "ls"): ""},
    (1, 2048): {("mhsa", "mhsa"): "≥ 1.3", ("ls", "mhsa"): "≥ 1.7", ("ls", "ls"): "≥ 2.8"},
    (1, 4096): {("mhsa", "mhsa"): "≥ 1.4", ("ls", "mhsa"): "≥ 2.2", ("ls", "ls"): "≥ 6"},
}
SMALL_BAR = "≥ 1.1"
# A long context, and its window.
LONG = {"context": 8192, "window": 100}
CACHES = [512, 2048, 8192]


@dataclasses.dataclass
class Row:
    """One measurement. An empty field has no value."""

    # step, small (a step of nanoGPT's small setting), memory (a step of a long context) or decode (a token after
    # `context` others)
    what: str
    side: str
    arm: str
    batch: int
    context: int
    window: int
    round: int
    threads: int
    seconds: float | None = None
    peak_rss_bytes: int | None = None
    cache_bytes: int | None = None
    version: str = ""
    err: str = ""  # why there is no result


def measure(row, repeats):
    sizes = {**(SMALL if row.what == "small" else MODEL), "window": row.window, "threads": row.threads, "repeats": repeats}
    if row.what in ("decode", "small"):
        # They take milliseconds: more of them.
        sizes["repeats"] *= 5
    if row.what == "decode":
        sizes["cache"] = row.context
    else:
        sizes |= {"batch": row.batch, "context": row.context}
    flags = [word for name, value in sizes.items() for word in (f"--{name}", value)]
    bench = "decode" if row.what == "decode" else "step"
    command = [sides.PROGRAM, "bench", bench] if row.side == sides.OURS else [sys.executable, sides.HERE / "torch_step.py"]
    try:
        found = sides.result([*command, "--variant", row.arm, *flags, "--json"])
    except sides.Failed as error:
        row.err = str(error)
        return
    row.seconds = found[f"{bench}_s"]
    row.peak_rss_bytes, row.cache_bytes = found.get("peak_rss_bytes"), found.get("cache_bytes")
    row.version = sides.version() if row.side == sides.OURS else f"torch {found['versions']['torch']}"


def work(number, threads):
    """The measurements of a round, in its order."""
    for batch, context in SIZES:
        turn = number % len(WORK)
        for side, arm in WORK[turn:] + WORK[:turn]:
            yield Row("step", side, arm, batch, context, MODEL["window"], number, threads)
    for side, arm in ((sides.OURS, "mhsa"), (TORCH, "mhsa"), (sides.OURS, "ls")):
        yield Row("small", side, arm, *SMALL_SIZE, SMALL["window"], number, threads)
    for arm in ("ls", "mhsa"):
        if number == 0:
            yield Row("memory", sides.OURS, arm, 1, LONG["context"], LONG["window"], number, threads)
        for cache in CACHES:
            yield Row("decode", sides.OURS, arm, 1, cache, LONG["window"], number, threads)


def quotients(rows, over, under):
    """The median over the rounds of one measurement's time over another's, each (what, batch, context, side, arm)."""
    ratios = []
    for number in {row.round for row in rows}:
        times = {key(row): row.seconds for row in rows if row.round == number}
        quotient = table.quotient(times.get(over), times.get(under))
        if quotient is not None:
            ratios.append(quotient)
    return statistics.median(ratios) if ratios else None


def key(row):
    return (row.what, row.batch, row.context, row.side, row.arm)


def median(rows, of):
    times = [row.seconds for row in rows if key(row) == of and row.seconds is not None]
    return statistics.median(times) if times else None


def one(rows, of, field):
    return next((getattr(row, field) for row in rows if key(row) == of), None)


def write_table(path, rows, head):
    text = [head, "", "| what | bar | rank-study | PyTorch | ratio | reached |", "|---|---|---|---|---|---|"]
    for size in SIZES:
        for (ours, theirs), bar in BARS[size].items():
            under, over = ("step", *size, sides.OURS, ours), ("step", *size, TORCH, theirs)
            found = quotients(rows, over, under)
            shown = "" if found is None else f"{found:.3g} ×"
            times = [table.seconds_text(median(rows, of)) for of in (under, over)]
            what = f"{ours} against PyTorch's {theirs}, {size[0]} × {size[1]} tokens"
            text.append(f"| {what} | {bar and bar + ' ×'} | {times[0]} | {times[1]} | {shown} | {table.reached(bar, found)} |")
    for arm in ("mhsa", "ls"):
        under, over = ("small", *SMALL_SIZE, sides.OURS, arm), ("small", *SMALL_SIZE, TORCH, "mhsa")
        found = quotients(rows, over, under)
        shown = "" if found is None else f"{found:.3g} ×"
        times = [table.seconds_text(median(rows, of)) for of in (under, over)]
        what = f"{arm} against PyTorch's mhsa, nanoGPT's small setting"
        text.append(f"| {what} | {SMALL_BAR} × | {times[0]} | {times[1]} | {shown} | {table.reached(SMALL_BAR, found)} |")
    text += ["", "| what | bar | ls | mhsa | ls of mhsa | reached |", "|---|---|---|---|---|---|"]
    long = LONG["context"]
    both = [("memory", 1, long, sides.OURS, arm) for arm in ("ls", "mhsa")]
    gib = [table.quotient(one(rows, of, "peak_rss_bytes"), 2**30) for of in both]
    shown = ["" if size is None else f"{size:.2f} GiB" for size in gib]
    share = table.quotient(*gib)
    share = "" if share is None else f"{share:.2f} ×"
    text.append(f"| peak memory, 1 × {long} | ls ≤ 3 GiB | {shown[0]} | {shown[1]} | {share} | {table.reached('≤ 3', gib[0])} |")
    for cache in CACHES:
        both = [("decode", 1, cache, sides.OURS, arm) for arm in ("ls", "mhsa")]
        found = quotients(rows, *both)
        times = [table.seconds_text(median(rows, of)) for of in both]
        bar = "≤ 0.64" if cache == long else ""
        shown = "" if found is None else f"{found:.3g} ×"
        what = f"decode, a token after {cache}"
        text.append(f"| {what} | {bar and bar + ' ×'} | {times[0]} | {times[1]} | {shown} | {table.reached(bar, found)} |")
        sizes = [one(rows, of, "cache_bytes") for of in both]
        mib = ["" if size is None else f"{size / 2**20:.2f} MiB" for size in sizes]
        found = table.quotient(*sizes)
        # One global head of all tokens and the others of a window each.
        heads, window = MODEL["heads"], LONG["window"]
        wanted = (cache + (heads - 1) * min(window, cache)) / (heads * cache)
        shown = "" if found is None else f"{found:.3g} ×"
        held = "" if found is None else "yes" if abs(found - wanted) < 1e-9 else "no"
        text.append(f"| its cache | {wanted:.3g} × | {mib[0]} | {mib[1]} | {shown} | {held} |")
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def write(options, rows, begun):
    with open(options.out / "rows.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in rows)
    manifest = {
        **begun.manifest(options),
        "dtype": "float32",
        "model": MODEL,
        "small": SMALL,
        "versions": sorted({row.version for row in rows if row.version}),
    }
    (options.out / "manifest.toml").write_text(tomli_w.dumps(manifest))
    head = (
        f"{MODEL['layers']} layers, d_model {MODEL['d-model']}, {MODEL['heads']} heads, vocabulary {MODEL['vocab']}, window "
        f"{MODEL['window']} ({LONG['window']} in the second table), float32, {begun.where(options)} Steps are forward, "
        f"backward, clip and update; PyTorch's ls goes through a mask. nanoGPT's small setting: {SMALL_SIZE[0]} × {SMALL_SIZE[1]} "
        f"characters, {SMALL['layers']} layers, d_model {SMALL['d-model']}, {SMALL['heads']} heads, {SMALL['vocab']} symbols."
    )
    write_table(options.out / "table.md", rows, head)


def main():
    options = comparison.flags(__doc__, OUT, 10)
    begun, rows = comparison.Begun(), []
    for number in range(options.rounds):
        for row in work(number, options.threads):
            measure(row, options.repeats)
            rows.append(row)
            outcome = row.err or table.seconds_text(row.seconds)
            place = f"{row.what} {row.side} {row.arm} {row.batch} x {row.context}"
            print(f"round {number + 1}: {place}: {outcome}", file=sys.stderr, flush=True)
        # After every round, so that a run cut short leaves what it measured.
        write(options, rows, begun)
    print((options.out / "table.md").read_text())
    return 1 if any(row.err for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
