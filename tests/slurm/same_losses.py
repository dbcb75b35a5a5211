"""Holds the losses of two runs to each other: same_losses.py ONE OTHER."""

import csv
import sys


def losses(folder):
    with open(f"{folder}/steps.csv", newline="") as file:
        return [float(row["loss_nats"]) for row in csv.DictReader(file)]


one, other = map(losses, sys.argv[1:])
assert len(one) == len(other) > 0, (len(one), len(other))
off = max(abs(a - b) for a, b in zip(one, other))
assert off <= 1e-5, f"losses differ by {off:g}"
print(f"{len(one)} steps: losses differ by at most {off:g}")
