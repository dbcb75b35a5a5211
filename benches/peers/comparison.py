"""What both comparisons share: their flags, and the facts that their manifests tell."""

import argparse
import os
import pathlib
import platform
import sys
import time

import machine
import sides


def flags(doc, out, repeats, add=lambda parser: None, positive=()):
    """The options of a comparison; `add` adds its own, of which those named `positive` must be at least 1."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=repeats, help=f"of the work, in a run [default: {repeats}]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=out, help="folder for rows, table and manifest")
    add(parser)
    options = parser.parse_args()
    for name in ("rounds", "repeats", "threads", *positive):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; give at least 1")
    if not sides.PROGRAM.is_file():
        parser.error(f"no {sides.PROGRAM.relative_to(sides.ROOT)}; build it first: cargo build --release")
    options.out.mkdir(parents=True, exist_ok=True)
    return options


class Begun:
    """A comparison's beginning: before anything is written, or the results themselves would make the
    revision dirty."""

    def __init__(self):
        self.clock, self.load = time.perf_counter(), os.getloadavg()[0]
        self.started, self.git_revision = machine.now(), machine.git_revision()
        if self.load > 0.5:
            busy = f"the machine is busy (load {self.load:.1f}): times will be too long, and ratios noisy"
            print(busy, file=sys.stderr)

    def manifest(self, options):
        return {
            "command": f"python benches/peers/{pathlib.Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".strip(),
            "version": sides.version().removeprefix("rank-study "),
            "started": self.started,
            "git_revision": self.git_revision,
            "load_before": self.load,
            "ended": machine.now(),
            "wall_time_s": round(time.perf_counter() - self.clock, 1),
            "threads": options.threads,
            "cpu": machine.cpu(),
            "cores": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.machine()}",
            "rounds": options.rounds,
            "repeats": options.repeats,
        }

    def where(self, options):
        """On what and how it was measured, for a table's head."""
        return (
            f"{options.threads} threads, on {machine.cpu()} ({len(os.sched_getaffinity(0))} cores, load {self.load:.1f} at "
            f"the start): medians over {options.rounds} rounds, ratios taken within a round."
        )
