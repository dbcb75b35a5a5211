"""The training step against PyTorch's: both sides in turn, in several rounds, and what came of it in data/bench-lm/.

    make bench-peers-step

One step is forward, backward, clip and update of the language model. In every round each side does each piece
of work once, in an order that turns with the rounds; times are medians of a run's steps, ratios are taken
within a round, and the table shows medians over the rounds. Exit 1 where something could not be measured.
"""

import argparse
import csv
import dataclasses
import os
import pathlib
import platform
import statistics
import sys
import time

import tomli_w

import machine
import sides
import table

OUT = sides.ROOT / "data" / "bench-lm"
# Sequences and tokens in each.
SIZES = [(4, 512), (1, 2048), (1, 4096)]
MODEL = {"layers": 6, "d-model": 192, "heads": 6, "vocab": 8192, "window": 50}
TORCH = "torch-sdpa"
WORK = [(sides.OURS, "mhsa"), (sides.OURS, "ls"), (TORCH, "mhsa"), (TORCH, "ls")]


@dataclasses.dataclass
class Row:
    """One measurement. An empty field has no value."""

    side: str
    arm: str
    batch: int
    context: int
    round: int
    threads: int
    step_s: float | None = None
    tokens_per_s: float | None = None
    peak_rss_bytes: int | None = None
    version: str = ""
    err: str = ""  # why there is no result


def measure(row, repeats):
    sizes = {"batch": row.batch, "context": row.context, **MODEL, "threads": row.threads, "repeats": repeats}
    flags = [word for name, value in sizes.items() for word in (f"--{name}", value)]
    command = [sides.PROGRAM, "bench", "step"] if row.side == sides.OURS else [sys.executable, sides.HERE / "torch_step.py"]
    try:
        found = sides.result([*command, "--arm", row.arm, *flags, "--json"])
    except sides.Failed as error:
        row.err = str(error)
        return
    row.step_s, row.tokens_per_s = found["step_s"], found["tokens_per_s"]
    row.peak_rss_bytes = found["peak_rss_bytes"]
    row.version = sides.version() if row.side == sides.OURS else f"torch {found['versions']['torch']}"


def ratio(rows, size, theirs, ours):
    """The median over the rounds of their time over ours."""
    ratios = []
    for number in {row.round for row in rows}:
        times = {
            (row.side, row.arm): row.step_s
            for row in rows
            if row.round == number and (row.batch, row.context) == size
        }
        quotient = table.quotient(times.get((TORCH, theirs)), times.get((sides.OURS, ours)))
        if quotient is not None:
            ratios.append(quotient)
    return statistics.median(ratios) if ratios else None


def median(rows, size, side, arm):
    chosen = (row for row in rows if (row.batch, row.context, row.side, row.arm) == (*size, side, arm))
    times = [row.step_s for row in chosen if row.step_s is not None]
    return statistics.median(times) if times else None


def write_table(path, rows, head):
    text = [head, "", "| what | bar | rank-study | PyTorch | ratio | reached |", "|---|---|---|---|---|---|"]
    for size in SIZES:
        # A short sequence has no bar for ls: the window is a tenth of it.
        pairs = [("mhsa", "mhsa", "≥ 1")]
        pairs += [("ls", "mhsa", "≥ 1.5"), ("ls", "ls", "≥ 2")] if size[1] > 512 else [("ls", "ls", "")]
        for ours, theirs, bar in pairs:
            found = ratio(rows, size, theirs, ours)
            shown = "" if found is None else f"{found:.3g} ×"
            times = [table.seconds_text(median(rows, size, *of)) for of in ((sides.OURS, ours), (TORCH, theirs))]
            what = f"{ours} against PyTorch's {theirs}, {size[0]} × {size[1]} tokens"
            text.append(f"| {what} | {bar and bar + ' ×'} | {times[0]} | {times[1]} | {shown} | {table.reached(bar, found)} |")
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def write(options, rows, start, wall_time_s):
    with open(options.out / "rows.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in rows)
    manifest = {
        "command": f"python benches/peers/run_step.py {' '.join(sys.argv[1:])}".strip(),
        **start,
        "ended": machine.now(),
        "wall_time_s": round(wall_time_s, 1),
        "threads": options.threads,
        "cpu": machine.cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "dtype": "float32",
        "rounds": options.rounds,
        "repeats": options.repeats,
        "model": MODEL,
        "versions": sorted({row.version for row in rows if row.version}),
    }
    (options.out / "manifest.toml").write_text(tomli_w.dumps(manifest))
    head = (
        f"One training step of {MODEL['layers']} layers, d_model {MODEL['d-model']}, {MODEL['heads']} heads, vocabulary "
        f"{MODEL['vocab']}, window {MODEL['window']}, {options.threads} threads, on {manifest['cpu']} ({manifest['cores']} "
        f"cores, load {start['load_before']:.1f} at the start): medians over {options.rounds} rounds, ratios taken within a "
        f"round. PyTorch's ls goes through a mask."
    )
    write_table(options.out / "table.md", rows, head)


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=10, help="steps in a run [default: 10]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="folder for rows, table and manifest")
    options = parser.parse_args()
    for name in ("rounds", "repeats", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; give at least 1")
    if not sides.PROGRAM.is_file():
        parser.error(f"no {sides.PROGRAM.relative_to(sides.ROOT)}; build it first: cargo build --release")
    return options


def main():
    options = flags()
    begun, load = time.perf_counter(), os.getloadavg()[0]
    start = {"started": machine.now(), "git_revision": machine.git_revision(), "load_before": load}
    if load > 0.5:
        print(f"the machine is busy (load {load:.1f}): times will be too long, and ratios noisy", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(options.rounds):
        for batch, context in SIZES:
            turn = number % len(WORK)
            for side, arm in WORK[turn:] + WORK[:turn]:
                row = Row(side, arm, batch, context, number, options.threads)
                measure(row, options.repeats)
                rows.append(row)
                outcome = row.err or table.seconds_text(row.step_s)
                print(f"round {number + 1}: {side} {arm} {batch} x {context}: {outcome}", file=sys.stderr, flush=True)
        # After every round, so that a run cut short leaves what it measured.
        write(options, rows, start, time.perf_counter() - begun)
    print((options.out / "table.md").read_text())
    return 1 if any(row.err for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
