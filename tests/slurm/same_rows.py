"""Whether the studies in two folders have the same rows, in the same order, in every column but times and the number
of threads that they were taken on.

same_rows.py FOLDER OTHER
"""

import csv
import pathlib
import sys


def rows(path):
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    timeless = [at for at, name in enumerate(header) if not name.endswith("_s") and name != "threads"]
    return [[line[at] for at in timeless] for line in [header, *lines]]


one, other = map(pathlib.Path, sys.argv[1:])
studies = sorted(path.parent.name for path in one.glob("*/rows.csv"))
wrong, count = [], 0
if studies != sorted(path.parent.name for path in other.glob("*/rows.csv")):
    wrong.append("not the same studies")
for study in studies:
    if not (other / study / "rows.csv").exists():
        continue
    here, there = (rows(folder / study / "rows.csv") for folder in (one, other))
    count += len(here) - 1
    if here != there:
        different = next((pair for pair in zip(here, there) if pair[0] != pair[1]), None)
        if different is None:
            wrong.append(f"{study}: {len(here)} and {len(there)} lines")
            continue
        values = [f"{name}: {a} and {b}" for name, a, b in zip(here[0], *different) if a != b]
        wrong.append(f"{study}: {different[0][1]}: {', '.join(values)}")
if wrong or not studies:
    sys.exit("\n".join(wrong or [f"no rows in {one}"]))
print(f"{len(studies)} studies, {count} rows: the same but for times")
