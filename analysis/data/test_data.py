"""Tests of the scripts that make the texts, on made-up files: `make test-data`."""
import contextlib
import io
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import books
import packages


class Books(unittest.TestCase):
    def test_white_space_is_made_uniform_and_words_are_left(self):
        for book, wanted in [
            (b"# Title: A\r\n\r\n\r\n\r\nWords.\r\n", b"# Title: A\n\nWords."),
            (b" \none  \ntwo \n\n\nthree\n\n", b"one\ntwo\n\nthree"),
            # A line of spaces ends a run of empty lines.
            (b"a song\r\n    \r\n    \r\n**CAROL**", b"a song\n\n\n**CAROL**"),
            ("a\u2014b\n  c".encode(), "a\u2014b\n  c".encode()),
        ]:
            self.assertEqual(books.folded(book), wanted)

    def test_books_are_read_in_order_from_the_commit_and_not_from_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*arguments):
                config = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
                return subprocess.run(["git", *config, *arguments], cwd=folder, check=True, capture_output=True).stdout

            git("init", "--quiet")
            for file, book in [("Ann/Two: a tale.md", b"second\r\n"), ("Z\u00f6e/One.md", "fi\u0155st".encode())]:
                (Path(folder) / file).parent.mkdir()
                (Path(folder) / file).write_bytes(book)
            git("add", ".")
            git("commit", "--quiet", "--message", "books")
            commit = git("rev-parse", "HEAD").decode().strip()
            (Path(folder) / "Ann/Two: a tale.md").write_bytes(b"changed")
            found = books.text(folder, commit, ["Z\u00f6e/One.md", "Ann/Two: a tale.md"])
            self.assertEqual(found, "fi\u0155st\n\n\nsecond".encode())

    def test_no_book_is_in_both_lists_or_twice_in_one(self):
        parts = {part: books.titles(part) for part in ("train", "valid")}
        self.assertEqual({part: len(files) for part, files in parts.items()}, {"train": 179, "valid": 6})
        files = parts["train"] + parts["valid"]
        self.assertEqual(len(set(files)), len(files))
        for file in files:
            self.assertRegex(file, r"^[^/]+/[^/]+\.md$")


class Packages(unittest.TestCase):
    def test_modules_are_in_order_of_path_without_tables_and_other_alphabets(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder) / "a-1-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as files:
                files.writestr("a/two.py", "two = 2\r\n\r\n\r\n\r\n# end  \r\n")
                files.writestr("a/one.py", "one = 1\n")
                files.writestr("a/empty.py", "\n")
                files.writestr("a/other.py", "# \u00e9\n")
                files.writestr("a/table.py", "x = 1\n" * packages.MOST_BYTES)
                files.writestr("a/notes.txt", "notes")
            self.assertEqual(packages.text([wheel]), b"one = 1\n\n\ntwo = 2\n\n# end")

    def test_no_package_is_in_both_lists(self):
        names = [line.split("==")[0] for part in ("train", "valid")
                 for line in (books.HERE / f"packages-{part}.txt").read_text().splitlines()]
        self.assertEqual(len(set(names)), len(names))


class Files(unittest.TestCase):
    def test_files_are_written_whole_and_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            printed = io.StringIO()
            with mock.patch.object(books, "OUT", Path(folder)), contextlib.redirect_stdout(printed):
                books.write("pg-books-train.txt", b"another text")
            self.assertEqual([file.read_bytes() for file in Path(folder).iterdir()], [b"another text"])
            self.assertIn("NOT as in SHA256SUMS", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
