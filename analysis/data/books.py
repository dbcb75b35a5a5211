"""Books, English, of the public domain: `books.py [CLONE]`. Needs git.

Each list names a text's books in order; they are read from one commit of a public library of Markdown files, and their white
space is made uniform. CLONE is a clone of that library, where one is at hand; else the commit is fetched.
"""
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Git ignores it.
OUT = HERE.parent.parent / "runs" / "data"
# The hashes of the files that the project's rows were measured on.
SUMS = HERE / "SHA256SUMS"

LIBRARY = "https://github.com/mlschmitt/classic-books-markdown"
COMMIT = "944882722e9a96fa6cf2739dc2ea757e101f412f"
BETWEEN = b"\n\n\n"


def run(*command):
    """Returns what a command prints; ends the script if the command fails."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        sys.exit(f"no {command[0]}: analysis/data/README.md says what is needed")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, command))}: exit status {error.returncode}")


def write(file, data):
    """Writes a file to OUT and prints whether its hash is that of the file that the rows were measured on."""
    OUT.mkdir(parents=True, exist_ok=True)
    known = dict(line.split()[::-1] for line in SUMS.read_text().splitlines())
    part = OUT / f"{file}.part"
    part.write_bytes(data)
    part.rename(OUT / file)
    sha256 = hashlib.sha256(data).hexdigest()
    same = "as in SHA256SUMS" if known.get(file) == sha256 else "NOT as in SHA256SUMS"
    print(f"{OUT / file}: {len(data)} bytes, {sha256}, {same}")


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
