"""Speech, a byte a sample of 8 kHz by μ-law: `speech.py TEXT`. Needs espeak-ng, and zstd for a text that ends in .zst.

The synthesiser reads the text aloud; its samples are brought to 8 kHz and coded as ITU-T G.711 says. What is for validation
is of the text after that for training.
"""
import math
import operator
import sys
import wave
from io import BytesIO
from pathlib import Path

from places import run, write_parts

RATE = 8000
TRAIN_S, VALID_S = 1200, 120
VOICE = ["-v", "en-gb", "-s", "160"]
# Characters that are read at once.
PASSAGE = 4000
# G.711's μ-law, of numbers of 14 bits.
BIAS, LARGEST = 33, 8158
# The low-pass filter: half of its sound is left at this frequency, and it sees so many samples to each side.
CUTOFF, REACH = 3600, 48


def mu_law(value):
    """The byte that stands for a whole number from −8192 to 8191: sign, segment and step, inverted as they are sent."""
    size = min(abs(value), LARGEST) + BIAS
    segment = size.bit_length() - 6
    step = (size >> (segment + 1)) & 0xF
    return (0xFF if value >= 0 else 0x7F) - (segment << 4 | step)


CODES = bytes(mu_law(value) for value in range(-8192, 8192))


def filters(rate):
    """Taps by phase: a sinc of the cutoff under a Hann window, for places between two samples."""
    phases = RATE // math.gcd(rate, RATE)
    for phase in range(phases):
        offsets = [at - REACH + 1 - phase / phases for at in range(2 * REACH)]
        taps = [math.sin(2 * math.pi * CUTOFF / rate * t) / (math.pi * t) if t else 2 * CUTOFF / rate
                for t in offsets]
        taps = [tap * math.cos(math.pi * t / (2 * REACH)) ** 2 for tap, t in zip(taps, offsets)]
        yield [tap / sum(taps) for tap in taps]


def resampled(samples, rate):
    """Samples of 16 bits at `rate` as codes at RATE."""
    taps = list(filters(rate))
    padded = [0] * (REACH - 1) + list(samples) + [0] * REACH
    codes = bytearray()
    for at in range(len(samples) * RATE // rate):
        whole, part = divmod(at * rate, RATE)
        value = sum(map(operator.mul, taps[part * len(taps) // RATE], padded[whole:whole + 2 * REACH]))
        codes.append(CODES[min(max(round(value / 4), -8192), 8191) + 8192])
    return bytes(codes)


def spoken(text):
    """The samples of a text read aloud, and their rate."""
    sound = run("espeak-ng", *VOICE, "--stdin", "--stdout", input=text.encode())
    with wave.open(BytesIO(sound)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        # Written to a pipe, the header does not know how many there are.
        data = file.readframes(len(sound) // 2)
    return memoryview(data).cast("h"), file.getframerate()


def passages(text):
    """Paragraphs, put together to passages."""
    passage = ""
    for paragraph in text.split("\n\n"):
        passage += " ".join(paragraph.split()) + "\n\n"
        if len(passage) >= PASSAGE:
            yield passage
            passage = ""


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: speech.py TEXT, a .txt or .txt.zst")
    path = Path(sys.argv[1])
    text = run("zstd", "-dc", path) if path.suffix == ".zst" else path.read_bytes()
    left = passages(text.decode())
    parts = []
    for seconds in (TRAIN_S, VALID_S):
        part = b""
        while len(part) < seconds * RATE:
            passage = next(left, None)
            if passage is None:
                sys.exit(f"{path}: read aloud it is shorter than {TRAIN_S + VALID_S} seconds; give a longer text")
            part += resampled(*spoken(passage))
        parts.append(part[:seconds * RATE])
    write_parts("speech", *parts)


if __name__ == "__main__":
    main()
