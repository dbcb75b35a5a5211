"""The commands of both sides, all in one place, and how they are run."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = ROOT / "target" / "release" / "rank-study"

OURS = "rank-study"
# glibc returns a matrix of 32 MiB to the system when it is freed; with these it is kept for the next one.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 30)}

# Of one causal evaluation: the script with its flags, and what it adds to the environment.
DENSE = {
    "torch-eager": (["torch_eager.py"], {}),
    "torch-eager-tuned": (["torch_eager.py", "--form", "few-passes"], KEEP_MEMORY),
    "torch-compile": (["torch_compile.py"], {}),
    "jax-jit": (["jax_jit.py"], {}),
    "numpy": (["scipy_numpy.py"], {}),
}
# Of one evaluation of a local head.
LOCAL = {
    "torch-blocks": (["torch_eager.py", "--form", "local-blocks"], {}),
    "torch-gather": (["torch_eager.py", "--form", "local-gather"], {}),
}


class Failed(Exception):
    """A command that gave no result, in one line."""


def output(command, environment=None):
    """Standard output of a command."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env=os.environ | (environment or {}),
            capture_output=True,
            text=True,
        )
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit {done.returncode} without a word"]
        # Our errors come first, with usage after them; Python's last, with the traceback before.
        line = lines[0] if command[0] == PROGRAM else lines[-1]
        raise Failed(line.replace(str(ROOT) + "/", ""))
    return done.stdout


def result(command, environment=None):
    """The JSON that a command prints."""
    text = output(command, environment)
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failed(f"no JSON from {pathlib.Path(command[0]).name} {' '.join(map(str, command[1:3]))}") from error


def size(n, rank, window, dtype, threads, repeats):
    return ["--n", n, "--rank", rank, "--window", window, "--dtype", dtype, "--threads", threads,
            "--repeats", repeats, "--json"]  # fmt: skip


def inputs(folder):
    return ["--target", folder / "target.npy", "--factors", folder] if folder else []


def evaluate(side, *of_size, local=False, folder=None):
    """One evaluation by a side, on the target and factors of a folder or on what the side draws itself."""
    if side == OURS:
        layout = ["--layout", f"local:{of_size[2]}"] if local else []
        return result([PROGRAM, "bench", "fit", *size(*of_size), *layout, *inputs(folder)])
    (script, *form), environment = (LOCAL if local else DENSE)[side]
    return result([sys.executable, HERE / script, *form, *size(*of_size), *inputs(folder)], environment)


def write_target(path, n, window, seed):
    """A target of the family dirichlet-band, drawn by rank-study."""
    output([PROGRAM, "target", "--family", "dirichlet-band", "--window", window, "--n", n, "--seed", seed,
            "--out", path])  # fmt: skip


def gemm_rates(threads):
    return result([sys.executable, HERE / "gemm_rate.py", "--threads", threads, "--json"])


def scipy_fit(case, cap, starts):
    """scipy's fit, on one thread: at n = 96 its products only lose by a second one."""
    return result([sys.executable, HERE / "scipy_fit.py", "--case", case, "--cap", cap, "--starts", starts,
                   "--threads", 1, "--json"])  # fmt: skip


def our_fit(case, rank, layout, cap, kl_nats, threads):
    """Seconds until rank-study reaches kl_nats within the cap as its users run it, start-up counted, and its kl_nats."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "fit", "--target", ROOT / f"tests/reference/{case}.npy", "--rank", rank,
                   "--layout", layout, "--max-logit", cap, "--out", folder, "--stop-at", kl_nats,
                   "--json", "--quiet"]  # fmt: skip
        begun = time.perf_counter()
        row = result(command, {"RAYON_NUM_THREADS": str(threads)})[0]
        seconds = time.perf_counter() - begun
    if row["kl_nats"] > kl_nats:
        raise Failed(f"kl_nats {kl_nats:.6g} not reached: {row['kl_nats']:.6g}")
    return seconds, row["kl_nats"]


def version():
    return output([PROGRAM, "--version"]).strip()
