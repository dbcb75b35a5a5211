"""What low rank costs, from a study's rows.parquet with DuckDB: the median inflation of each target, n and
rank as a table, and against n/d as a figure.

    python with_duckdb.py data/logit-growth inflation.png
"""
import sys
from pathlib import Path

import duckdb
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DEFAULTS = ["data/logit-growth", "inflation.png"]
# Over the seeds whose fit reached its error.
MEDIANS = """
    SELECT target, n, rank, median(inflation), count(*)
    FROM read_parquet(?)
    WHERE err IS NULL
      AND outcome IN ('converged', 'step-limit')
      AND kl_nats <= CAST(1.01 AS DOUBLE) * tolerance
      AND inflation IS NOT NULL
    GROUP BY target, n, rank
    ORDER BY target, n, rank
"""


def medians(study):
    """Tuples of target, n, rank, median inflation and seeds."""
    return duckdb.execute(MEDIANS, [str(Path(study) / "rows.parquet")]).fetchall()


def draw(table, picture):
    targets = sorted({target for target, *_ in table})
    _, axes = plt.subplots(1, len(targets), figsize=(1 + 3 * len(targets), 3.4), sharex=True,
                           sharey=True, squeeze=False, layout="constrained")
    for panel, target in zip(axes[0], targets):
        # A line for every rank, an empty one too, so that a rank has one colour.
        for rank in sorted({cell[2] for cell in table}):
            line = [cell for cell in table if cell[0] == target and cell[2] == rank]
            panel.loglog([n / rank for _, n, *_ in line], [cell[3] for cell in line], "o-",
                         label=f"rank {rank}")
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
    if not table:
        sys.exit(f"{study}: no fit that reached a tolerance")
    print("target,n,rank,inflation,seeds")
    for target, n, rank, inflation, seeds in table:
        print(f'"{target}",{n},{rank},{inflation:.6g},{seeds}')
    draw(table, picture)
