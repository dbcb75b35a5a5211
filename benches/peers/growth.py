"""How the times of this program grow with what they depend on, and its share of the rate of a large product: data/bench-growth/.

    make bench-growth

A fit's evaluation and a training step against the sequence length n, screening against the number of layers, a table against the
number of rows. The exponent is that of a least-squares line through the logarithms; beside it stands that of the work. Times
are medians over the rounds. docs/img/performance.png draws the share of the rate of a large product.
"""

import csv
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import tomli_w

import comparison
import sides

OUT = sides.ROOT / "data" / "bench-growth"
FIGURE = sides.ROOT / "docs" / "img" / "performance.png"
COLUMNS = ["what", "variable", "size", "work", "round", "threads", "seconds", "flop_per_s", "product_flop_per_s"]
MODEL = ["--layers", 6, "--d-model", 192, "--heads", 6, "--vocab", 20000, "--window", 50]
FITS = [256, 512, 1024, 2048, 4096]
STEPS = [512, 1024, 2048, 4096, 8192]
LAYERS = [4, 8, 16, 32]
SEEDS = [50, 500, 5000]


def timed(command, folder=sides.ROOT):
    """Seconds that a command takes in a folder."""
    begun = time.perf_counter()
    subprocess.run([str(word) for word in command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def fits(threads):
    """One evaluation in float32 at rank 64, on rows that see all before them: 3 n² d operations, as in the comparison with PyTorch."""
    for n in FITS:
        command = [sides.PROGRAM, "bench", "fit", *sides.size(n, 64, 50, "f32", threads, max(8, 4096 * 8 // n))]
        seconds = sides.result(command)["eval_s"]
        yield {"what": "fit", "variable": "n", "size": n, "work": 3 * n * n * 64, "seconds": seconds}


def steps(threads, arm, repeats):
    for n in STEPS:
        command = [sides.PROGRAM, "bench", "step", "--variant", arm, "--batch", max(1, 2048 // n), "--context", n, *MODEL,
                   "--threads", threads, "--repeats", repeats, "--json"]  # fmt: skip
        found = sides.result(command)
        batch = found["batch"]
        yield {
            "what": f"step, {arm}",
            "variable": "n",
            "size": n,
            "work": found["flop"] / batch,
            "seconds": found["step_s"] / batch,
            "product_flop_per_s": found["product_flop_per_s"],
        }


def screenings(threads, folder):
    """All heads of random models of Llama's type, 256 tokens of the text in the repository."""
    for layers in LAYERS:
        model = folder / f"llama-{layers}"
        if not model.exists():
            sizes = ["--hidden", 512, "--intermediate", 1536, "--heads", 8, "--key-heads", 8, "--layers", layers]
            sides.output([sys.executable, sides.ROOT / "benches/random_llama.py", model, *sizes])
        with tempfile.TemporaryDirectory() as out:
            text = sides.ROOT / "analysis/data/tinyshakespeare.txt.zst"
            command = [sides.PROGRAM, "predict", model, "--text", text, "--screen", "--tokens", 256, "--passages", 1,
                       "--threads", threads, "--quiet", "--out", out]  # fmt: skip
            yield {"what": "screening", "variable": "layers", "size": layers, "work": layers, "seconds": timed(command)}


def tables(threads, folder):
    """The tables of studies of singular values that differ in the number of seeds."""
    (folder / "analysis").mkdir(exist_ok=True)
    for seeds in SEEDS:
        study = f"grown-{seeds}"
        definition = folder / "analysis" / f"{study}.toml"
        definition.write_text(
            f'study = "{study}"\nkind = "spectrum"\nview = "spectra"\npresets = []\ntitle = "Growth"\nquestion = "Time?"\n'
            f'[grid]\nn = [16]\nseed = {list(range(seeds))}\ntolerance = [0.13]\n[[target]]\nfamily = "uniform-band"\nwindow = 4\n'
        )
        timed([sides.PROGRAM, "sweep", definition, "--quiet", "--threads", threads], folder)
        rows = sum(1 for _ in (folder / "data" / study / "rows.csv").open()) - 1
        seconds = timed([sides.PROGRAM, "table", study, "--quiet"], folder)
        yield {"what": "table", "variable": "rows", "size": rows, "work": rows, "seconds": seconds}


def measured(options):
    threads, rows = options.threads, []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for turn in range(options.rounds):
            for parts in (
                fits(threads),
                steps(threads, "mhsa", options.repeats),
                steps(threads, "ls", options.repeats),
                screenings(threads, folder),
                tables(threads, folder),
            ):
                for row in parts:
                    if row["what"].startswith(("fit", "step")):
                        row["flop_per_s"] = row["work"] / row["seconds"]
                    rows.append({"round": turn, "threads": threads, **row})
                    print(row["what"], row["size"], f"{row['seconds']:.4g} s", flush=True)
    return rows


def medians(rows, of):
    """By what and size: the median of a function of the row."""
    found = {}
    for row in rows:
        found.setdefault((row["what"], row["variable"]), {}).setdefault(row["size"], []).append(of(row))
    return {key: {size: statistics.median(values) for size, values in sizes.items()} for key, sizes in found.items()}


def slope(points):
    """The exponent of a least-squares line through the logarithms."""
    x, y = ([math.log(value) for value in side] for side in zip(*points, strict=True))
    return statistics.linear_regression(x, y).slope


def write_table(rows, out):
    seconds, work = medians(rows, lambda row: row["seconds"]), medians(rows, lambda row: row["work"])
    lines = ["| what | against | from | to | exponent of the time | of the work |", "|---|---|---|---|---|---|"]
    for (what, variable), times in seconds.items():
        ends = [min(times), max(times)]
        shown = " | ".join(f"{variable} = {size:,}: {1e3 * times[size]:.3g} ms" for size in ends)
        of_work = slope(work[what, variable].items())
        lines.append(f"| {what} | {variable} | {shown} | {slope(times.items()):.2f} | {of_work:.2f} |")
    (out / "table.md").write_text("\n".join(lines) + "\n")


def draw(rows):
    product = statistics.median(row["product_flop_per_s"] for row in rows if row.get("product_flop_per_s"))
    rates = medians([row for row in rows if row.get("flop_per_s")], lambda row: row["flop_per_s"] / product)
    figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
    for marker, ((what, _), shares) in zip("osD", rates.items(), strict=False):
        sizes = sorted(shares)
        axes.plot(sizes, [shares[size] for size in sizes], marker=marker, label=what)
    axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set(xscale="log", xlabel="sequence length n", ylabel="share of a large product's rate", ylim=(0, 1.1))
    axes.set_xticks(FITS + STEPS[-1:], [f"{size:,}" for size in FITS + STEPS[-1:]])
    axes.minorticks_off()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, dpi=160)


def main():
    options = comparison.flags(__doc__, OUT, 5)
    begun = comparison.Begun()
    rows = measured(options)
    with (options.out / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    (options.out / "manifest.toml").write_text(tomli_w.dumps(begun.manifest(options)))
    write_table(rows, options.out)
    draw(rows)


if __name__ == "__main__":
    main()
