"""What low rank costs, from a study's rows.parquet with polars: the median inflation of each target, n and
rank as a table, and against n/d as a figure.

    python with_polars.py data/logit-growth inflation.png
"""
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import polars as pl
from polars import col

DEFAULTS = ["data/logit-growth", "inflation.png"]


def medians(study):
    """One row a target, n and rank, over the seeds whose fit reached its error."""
    reached = (
        col("err").is_null()
        & col("outcome").is_in(["converged", "step-limit"])
        & (col("kl_nats") <= 1.01 * col("tolerance"))
        & col("inflation").is_not_null()
    )
    return (
        pl.scan_parquet(Path(study) / "rows.parquet")
        .filter(reached)
        .group_by("target", "n", "rank")
        .agg(col("inflation").median(), pl.len().alias("seeds"))
        .sort("target", "n", "rank")
        .collect()
    )


def draw(table, picture):
    targets = table["target"].unique(maintain_order=True)
    _, axes = plt.subplots(1, len(targets), figsize=(1 + 3 * len(targets), 3.4), sharex=True,
                           sharey=True, squeeze=False, layout="constrained")
    for panel, target in zip(axes[0], targets):
        # A line for every rank, an empty one too, so that a rank has one colour.
        for rank in table["rank"].unique().sort():
            line = table.filter(col("target") == target, col("rank") == rank)
            panel.loglog(line["n"] / rank, line["inflation"], "o-", label=f"rank {rank}")
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_title(target, size=8)
        panel.set_xlabel("n/d")
    axes[0, 0].set_ylabel("inflation")
    axes[0, 0].legend()
    plt.savefig(picture, dpi=150)


if __name__ == "__main__":
    study, picture = sys.argv[1:] + DEFAULTS[len(sys.argv) - 1:]
    table = medians(study)
    if table.is_empty():
        sys.exit(f"{study}: no fit that reached a tolerance")
    print("target,n,rank,inflation,seeds")
    for target, n, rank, inflation, seeds in table.iter_rows():
        print(f'"{target}",{n},{rank},{inflation:.6g},{seeds}')
    draw(table, picture)
