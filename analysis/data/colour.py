"""Colour photographs, patches of 16 × 16 pixels of 3 bytes: `colour.py`. Needs Debian's apt-get and dpkg-deb, and djpeg.

A Debian package holds the photographs. Each is read at a quarter of its size, in which no trace of JPEG's blocks is left, and cut
into patches that do not overlap. Patches for validation are of other photographs than those for training.
"""
import random
import re
import tempfile
from pathlib import Path

from places import check, divided, run, write_parts

PACKAGE = "lomiri-wallpapers-16.04"
SHA256 = "a99ff6a3bfe451e4cc0682ecb3cc82e71740626d59e4845ae34a0a0e45421eab"
SIDE = 16
HELD = 3
SEED = 0


def pixels(ppm):
    """Width, height and bytes of a binary PPM file of 8 bits a channel."""
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", ppm)
    width, height = (int(number) for number in header.groups())
    data = ppm[header.end():]
    assert len(data) == 3 * width * height, f"{len(data)} bytes of {width} × {height} pixels"
    return width, height, data


def patches(ppm, side=SIDE):
    """The patches of a picture, row after row: each the bytes of its rows, red, green and blue in turn."""
    width, height, data = pixels(ppm)
    for top in range(0, height - side + 1, side):
        for left in range(0, width - side + 1, side):
            rows = (3 * ((top + row) * width + left) for row in range(side))
            yield b"".join(data[at:at + 3 * side] for at in rows)


def photographs(folder):
    """Every photograph of the package at a quarter of its size, in the order of their names."""
    run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", PACKAGE, cwd=folder)
    (package,) = folder.glob("*.deb")
    check(package, SHA256)
    run("dpkg-deb", "--extract", package, folder / "package")
    for path in sorted(folder.glob("package/usr/share/backgrounds/*.jpg")):
        yield run("djpeg", "-pnm", "-scale", "1/4", path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        train, valid = divided(photographs(Path(folder)), HELD, SEED)
    generator = random.Random(SEED)
    for part in (train, valid):
        part[:] = [patch for photograph in part for patch in patches(photograph)]
        generator.shuffle(part)
    write_parts("colour", b"".join(train), b"".join(valid))


if __name__ == "__main__":
    main()
