"""What low rank costs, from a study's rows.csv with pandas: the median inflation of each target, n and
rank as a table, and against n/d as a figure.

    python with_pandas.py data/logit-growth inflation.png
"""
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

DEFAULTS = ["data/logit-growth", "inflation.png"]


def medians(study):
    """One row a target, n and rank, over the seeds whose fit reached its error."""
    rows = pd.read_csv(Path(study) / "rows.csv")
    rows = rows[rows["err"].isna() & rows["outcome"].isin(["converged", "step-limit"])]
    rows = rows[rows["kl_nats"] <= 1.01 * rows["tolerance"]].dropna(subset="inflation")
    cells = rows.groupby(["target", "n", "rank"], sort=True)["inflation"]
    return cells.agg(inflation="median", seeds="size").reset_index()


def draw(table, picture):
    targets = table["target"].unique()
    _, axes = plt.subplots(1, len(targets), figsize=(1 + 3 * len(targets), 3.4), sharex=True,
                           sharey=True, squeeze=False, layout="constrained")
    for panel, target in zip(axes[0], targets):
        of_target = table[table["target"] == target]
        # A line for every rank, an empty one too, so that a rank has one colour.
        for rank in sorted(table["rank"].unique()):
            line = of_target[of_target["rank"] == rank]
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
    if table.empty:
        sys.exit(f"{study}: no fit that reached a tolerance")
    print("target,n,rank,inflation,seeds")
    for cell in table.itertuples():
        print(f'"{cell.target}",{cell.n},{cell.rank},{cell.inflation:.6g},{cell.seeds}')
    draw(table, picture)
