"""What makes the data, held against tables and made-up files: `make test-data`."""
import contextlib
import io
import json
import math
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import books
import colour
import digits
import places
import speech

# G.711, table 2a: the least values of the segments' first steps, and what a code of each segment stands for at its
# first step, in steps of 14 bits.
FIRST = [1, 31, 95, 223, 479, 991, 2015, 4063]


def decoded(code):
    """What a μ-law code stands for: the middle of its step (G.711, table 2a)."""
    flipped = 0xFF - code
    segment, step = flipped >> 4 & 7, flipped & 0xF
    value = ((2 * step + 33) << segment) - 33
    return -value if flipped & 0x80 else value


class MuLaw(unittest.TestCase):
    def test_every_value_has_the_code_of_the_table(self):
        # Code n of a sign, from 0, ends where its step does: one of 1, 15 of 2, then 16 of 4, 8 … 256.
        ends = [1] + [1 + 2 * (at + 1) for at in range(15)]
        for segment in range(1, 8):
            ends += [ends[-1] + (2 << segment) * (at + 1) for at in range(16)]
        self.assertEqual((len(ends), ends[-1]), (128, 8159))
        self.assertEqual([ends[16 * segment - 1] for segment in range(1, 8)], FIRST[1:])
        number = 0
        for value in range(8192):
            number += value >= ends[min(number, 126)] and number < 127
            self.assertEqual(speech.mu_law(value), 0xFF - number, value)
            if value:
                self.assertEqual(speech.mu_law(-value), 0x7F - number, -value)

    def test_a_code_is_that_of_the_value_in_the_middle_of_its_step(self):
        # G.711, table 2a, column 8, by hand.
        for code, value in [(0x80, 8031), (0x8F, 4191), (0x9F, 2079), (0xAF, 1023), (0xBF, 495), (0xCF, 231),
                            (0xDF, 99), (0xEF, 33), (0xFE, 2), (0xFF, 0), (0x00, -8031), (0x7E, -2)]:
            self.assertEqual((decoded(code), speech.mu_law(value)), (value, code))
        for code in set(range(256)) - {0x7F}:
            self.assertEqual(speech.mu_law(decoded(code)), code)


class Resampling(unittest.TestCase):
    def test_a_tone_of_the_band_keeps_its_frequency_and_size_and_one_above_is_gone(self):
        rate, size = 22050, 8000
        for hertz, wanted in [(440, size), (2500, size), (5500, 0)]:
            tone = [round(size * math.sin(2 * math.pi * hertz * at / rate)) for at in range(rate // 4)]
            codes = speech.resampled(tone, rate)
            self.assertEqual(len(codes), len(tone) * 8000 // rate)
            # Ends see the silence before and after.
            values = [4 * decoded(code) for code in codes][50:-50]
            turns = [2 * math.pi * hertz * (at + 50) / 8000 for at in range(len(values))]
            sines = 2 * sum(v * math.sin(t) for v, t in zip(values, turns)) / len(values)
            rest = max(abs(v - sines * math.sin(t)) for v, t in zip(values, turns))
            self.assertLess(abs(sines - wanted), 0.02 * size, hertz)
            # A step of the code's last segments but one is 1/16 to 1/32 of the value.
            self.assertLess(rest, 0.04 * size, hertz)

    def test_passages_are_the_whole_text_in_order(self):
        text = "\n\n".join(f"paragraph {at} " + "word " * 200 for at in range(30))
        read = list(speech.passages(text))
        self.assertGreater(len(read), 3)
        words = " ".join(read).split()
        self.assertEqual(words, text.split()[:len(words)])


class Digits(unittest.TestCase):
    def test_every_gray_level_comes_back(self):
        numbers = [round(level / 255, 3) for level in range(256)]
        self.assertEqual(digits.levels(numbers), bytes(range(256)))

    def test_a_package_gives_the_digits_that_are_in_it(self):
        wanted = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "package.tgz"
            with tarfile.open(path, "w:gz") as package:
                for digit in range(10):
                    data = bytes((at * (digit + 3)) % 256 for at in range(2 * digits.PIXELS))
                    wanted += [data[:digits.PIXELS], data[digits.PIXELS:]]
                    text = json.dumps({"data": [round(b / 255, 3) for b in data]}).encode()
                    entry = tarfile.TarInfo(f"package/src/digits/{digit}.json")
                    entry.size = len(text)
                    package.addfile(entry, io.BytesIO(text))
            self.assertEqual(list(digits.digits(path)), wanted)
            with self.assertRaisesRegex(SystemExit, "the package has changed"):
                places.check(path, "0" * 64)


class Patches(unittest.TestCase):
    def test_patches_are_the_picture_cut_in_squares(self):
        width, height, side = 9, 7, 3
        data = bytes(range(3 * width * height))
        found = list(colour.patches(b"P6\n9 7\n255\n" + data, side))
        self.assertEqual(len(found), 3 * 2)
        pixel = lambda row, column: data[3 * (row * width + column):][:3]
        for at, patch in enumerate(found):
            top, left = at // 3 * side, at % 3 * side
            rows = [pixel(top + row, left + column) for row in range(side) for column in range(side)]
            self.assertEqual(patch, b"".join(rows))


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


class Files(unittest.TestCase):
    def test_parts_share_no_record_and_lose_none(self):
        records = [bytes([at]) for at in range(100)]
        train, valid = places.divided(records, 10, 0)
        self.assertEqual((len(train), len(valid)), (90, 10))
        self.assertEqual(sorted(train + valid), records)
        self.assertNotEqual(train + valid, records)
        self.assertEqual(places.divided(records, 10, 0), (train, valid))
        with self.assertRaisesRegex(SystemExit, "too few"):
            places.divided(records, 100, 0)

    def test_files_are_written_whole_and_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            printed = io.StringIO()
            with mock.patch.object(places, "OUT", Path(folder)), contextlib.redirect_stdout(printed):
                places.write_parts("digits", b"not them", b"nor these")
            self.assertEqual((Path(folder) / "digits.bin").read_bytes(), b"not them")
            self.assertEqual(len(list(Path(folder).iterdir())), 2)
            self.assertEqual(printed.getvalue().count("NOT as in SHA256SUMS"), 2)


if __name__ == "__main__":
    unittest.main()
