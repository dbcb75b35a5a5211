"""Python source code of published packages: `packages.py`. Needs pip.

Each list is a file of requirements with hashes, which pip checks. A text is the packages' modules in order of package and path.
Modules with characters beyond ASCII or of 100,000 bytes or more (generated tables) are left out.
"""
import sys
import tempfile
import zipfile
from pathlib import Path

import books

MOST_BYTES = 100_000


def modules(wheel):
    """The wheel's modules by path, without those that are left out."""
    with zipfile.ZipFile(wheel) as files:
        texts = (files.read(name) for name in sorted(files.namelist()) if name.endswith(".py"))
        return [text for text in texts if text.isascii() and len(text) < MOST_BYTES and text.strip()]


def text(wheels):
    """The modules of all wheels, in the wheels' order, with white space as in the books."""
    return books.BETWEEN.join(books.folded(module) for wheel in wheels for module in modules(wheel))


def main():
    for part in ("train", "valid"):
        with tempfile.TemporaryDirectory() as folder:
            books.run(
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                "--only-binary", ":all:", "--require-hashes", "--dest", folder,
                "--requirement", books.HERE / f"packages-{part}.txt",
            )
            books.write(f"python-{part}.txt", text(sorted(Path(folder).glob("*.whl"), key=lambda wheel: wheel.name.lower())))


if __name__ == "__main__":
    main()
