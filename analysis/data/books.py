"""Books, English, of the public domain: `books.py [CLONE]`. Needs git.

Each list names a text's books in order; they are read from one commit of a public library of Markdown files, and their white
space is made uniform. CLONE is a clone of that library, where one is at hand; else the commit is fetched.
"""
import re
import sys
import tempfile
from pathlib import Path

from places import HERE, run, write

LIBRARY = "https://github.com/mlschmitt/classic-books-markdown"
COMMIT = "944882722e9a96fa6cf2739dc2ea757e101f412f"
BETWEEN = b"\n\n\n"


def folded(book):
    """A book with lines that end in LF alone, one empty line at most in a row, and no spaces at the ends of lines.

    Lines lose their spaces last: what held spaces still stands as an empty line of its own.
    """
    book = book.replace(b"\r\n", b"\n")
    book = re.sub(rb"\n{3,}", b"\n\n", book)
    return re.sub(rb" +\n", b"\n", book).strip()


def titles(part):
    """The files of the books for `train` or `valid`, in order."""
    return (HERE / f"books-{part}.list").read_text(encoding="utf-8").splitlines()


def text(clone, commit, files):
    """The books one after another, as the commit has them: what a checkout made of line ends is not seen."""
    return BETWEEN.join(folded(run("git", "-C", clone, "cat-file", "blob", f"{commit}:{file}")) for file in files)


def fetched(folder):
    """A repository with the commit alone in it."""
    run("git", "init", "--quiet", "--bare", folder)
    run("git", "-C", folder, "fetch", "--quiet", "--depth", "1", LIBRARY, COMMIT)
    return folder


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: books.py [CLONE], a clone of " + LIBRARY)
    with tempfile.TemporaryDirectory() as folder:
        clone = sys.argv[1] if len(sys.argv) == 2 else fetched(folder)
        for part in ("train", "valid"):
            write(f"pg-books-{part}.txt", text(clone, COMMIT, titles(part)))


if __name__ == "__main__":
    main()
