"""What test.sh asks of a study's tables and pictures: `check.py STUDY FOLDER`.

The medians are those of the study's own table, where it has one, and no picture is blank.
"""
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
from with_pandas import medians


def agree(study):
    """Compares with tables/cells.csv, which names targets in other words: cells of one n and rank are
    compared in order of their inflation."""
    own = pd.read_csv(study / "tables" / "cells.csv")
    place = ["n", "rank", "inflation"]
    own, ours = (table.dropna(subset="inflation").sort_values(place)[place]
                 for table in (own, medians(study)))
    assert len(own) == len(ours) > 0, f"{len(ours)} cells, but {len(own)} in cells.csv"
    apart = np.abs(own.to_numpy() / ours.to_numpy() - 1).max()
    assert apart <= 1e-9, f"cells.csv differs by {apart:.2e} of a value"
    return f"{len(ours)} medians are those of cells.csv (largest difference {apart:.1e})"


def not_blank(picture):
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    inked = (pixels.min(axis=2) < 0.8).mean()
    coloured = (np.ptp(pixels, axis=2) > 0.2).mean()
    assert inked > 0.005 and coloured > 0.0005, f"{picture}: {inked:.2%} inked, {coloured:.2%} coloured"
    return f"{picture.name}: {inked:.1%} inked, {coloured:.1%} coloured"


if __name__ == "__main__":
    study, folder = map(Path, sys.argv[1:])
    if (study / "tables" / "cells.csv").exists():
        print(agree(study))
    else:
        print(f"no {study}/tables/cells.csv to compare with: `rank-study table {study.name}` makes it")
    for name in ["pandas", "polars", "duckdb", "r"]:
        print(not_blank(folder / f"{name}.png"))
