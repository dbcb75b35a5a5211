"""The command line `rank-study`."""

import os
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    # The native module computes on its own threads. Both are read when it is loaded.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["CANDLE_NUM_THREADS"] = "1"
    from ._native import run

    program = os.path.abspath(sys.argv[0])
    if program.endswith("__main__.py"):
        # `python -m rank_study`: scripts for a cluster name the program.
        program = os.path.join(os.path.dirname(sys.executable), "rank-study")
    sys.exit(run([program, *sys.argv[1:]]))


if __name__ == "__main__":
    main()
