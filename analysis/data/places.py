"""Where the data go, and how they are written and told apart."""
import hashlib
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Git ignores it.
OUT = HERE.parent.parent / "runs" / "data"
# The hashes of the files that the project's rows were measured on.
SUMS = HERE / "SHA256SUMS"


def run(*command, **options):
    """What a command prints; ends with its own words where it fails."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout
    except FileNotFoundError:
        sys.exit(f"no {command[0]}: analysis/data/README.md says what is needed")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, command))}: exit status {error.returncode}")


def check(path, sha256):
    """Ends unless a file that was fetched is the one that the script was written for."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        sys.exit(f"{path.name}: SHA-256 {found}, not {sha256}: the package has changed")


def divided(records, held, seed):
    """Records shuffled with a seed, those for training and the last `held` for validation."""
    records = list(records)
    if not 0 < held < len(records):
        sys.exit(f"{len(records)} records, {held} of them for validation: too few")
    random.Random(seed).shuffle(records)
    return records[:-held], records[-held:]


def write(file, data):
    """A file of OUT, and what it hashes to beside what the project's rows are of."""
    OUT.mkdir(parents=True, exist_ok=True)
    known = dict(line.split()[::-1] for line in SUMS.read_text().splitlines())
    part = OUT / f"{file}.part"
    part.write_bytes(data)
    part.rename(OUT / file)
    sha256 = hashlib.sha256(data).hexdigest()
    same = "as in SHA256SUMS" if known.get(file) == sha256 else "NOT as in SHA256SUMS"
    print(f"{OUT / file}: {len(data)} bytes, {sha256}, {same}")


def write_parts(name, train, valid):
    """NAME.bin and NAME-valid.bin."""
    write(f"{name}.bin", train)
    write(f"{name}-valid.bin", valid)
