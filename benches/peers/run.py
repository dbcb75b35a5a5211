"""The speed comparison: both sides in turn, in several rounds, and what came of it in data/bench-fit/.

    make bench-peers

In every round each side does each piece of work once, in an order that turns with the rounds; times are
medians of a run's evaluations, ratios are taken within a round, and the table shows medians over the
rounds. Exit 1 where something could not be measured, 3 where two sides compute different values.
"""

import pathlib
import sys
import tempfile

import numpy as np
import tomli_w

import comparison
import peer
import sides
import table
from rows import Row, write_csv
from scipy_fit import CASES
from table import LONG, N, RANK, SHORT, WINDOW

OUT = sides.ROOT / "data" / "bench-fit"
LAYOUTS = {"dense-local-n96": "global", "mixture-n96": "local:24+global"}
CAPS = [4.0, 8.0, 16.0]
WORK = ["evaluation", "gemm", "local", "memory", "fit"]
# How far two sides' values may lie apart, relative: the rounding of sums over n x n pairs.
AGREEMENT = {"f32": 1e-4, "f64": 1e-9}


class Comparison:
    """The rounds so far, the inputs that both sides read, and the values that they are held to."""

    def __init__(self, options, folder):
        self.options, self.rows, self.disagreements = options, [], []
        self.folders = {n: pathlib.Path(folder) / str(n) for n in (N, SHORT)}
        self.expected = {}
        if "evaluation" in options.work:
            self.prepare(N, "numpy", local=False)
        if "local" in options.work:
            self.prepare(SHORT, "torch-blocks", local=True)

    def prepare(self, n, side, local):
        """Writes target, Q and K, and has one side compute in float64 what all are held to."""
        folder = self.folders[n]
        folder.mkdir()
        sides.write_target(folder / "target.npy", n, WINDOW, self.options.seed)
        for name, x in zip("qk", peer.draw_factors(n, RANK, self.options.seed)):
            np.save(folder / f"{name}.npy", x[None])
        size = (n, RANK, WINDOW, "f64", self.options.threads, 1)
        self.expected[n] = sides.evaluate(side, *size, local=local, folder=folder)

    def round(self, number):
        for what in self.options.work:
            getattr(self, what)(number)

    def turned(self, names, number):
        chosen = [name for name in names if not self.options.sides or name in self.options.sides]
        turn = number % max(len(chosen), 1)
        return chosen[turn:] + chosen[:turn]

    def evaluation(self, number):
        for dtype in ("f32", "f64"):
            rows = [
                self.evaluate("evaluation", side, number, N, dtype, folder=self.folders[N])
                for side in self.turned([sides.OURS, *sides.DENSE], number)
            ]
            add_ratios(rows)

    def local(self, number):
        for n in (SHORT, LONG):
            rows = [
                self.evaluate("local", side, number, n, "f32", local=True, folder=self.folders.get(n))
                for side in self.turned([sides.OURS, *sides.LOCAL], number)
            ]
            add_ratios(rows)

    def memory(self, number):
        # One evaluation of 65,536 x 65,536 pairs is long, and its peak does not vary: once is enough.
        if number == 0 and (not self.options.sides or sides.OURS in self.options.sides):
            self.evaluate("memory", sides.OURS, number, LONG, "f32", repeats=1)

    def evaluate(self, what, side, number, n, dtype, local=False, folder=None, repeats=None):
        threads = self.options.threads
        row = Row(what, side, number, dtype, n, RANK, WINDOW, threads)

        def measure():
            size = (n, RANK, WINDOW, dtype, threads, repeats or self.options.repeats)
            found = sides.evaluate(side, *size, local=local, folder=folder)
            row.eval_s, row.value = found["eval_s"], found["value"]
            row.peak_rss_bytes = found.get("peak_rss_bytes")
            row.version = versions(found) if side != sides.OURS else sides.version()
            if folder:
                self.hold(row, found, self.expected[n])

        return self.add(row, measure)

    def hold(self, row, found, expected):
        """Notes every quantity of the result that is not what was computed in float64."""
        for name in ("value", "gradient_q_norm", "gradient_k_norm"):
            if name in found:
                apart = abs(found[name] / expected[name] - 1)
                if not apart <= AGREEMENT[row.dtype]:
                    self.disagreements.append(
                        f"{row.what}, {row.side}, {row.dtype}: {name} is {found[name]!r}, not {expected[name]!r} "
                        f"({apart:.1e} apart, {AGREEMENT[row.dtype]:g} allowed)"
                    )

    def gemm(self, number):
        row = Row("gemm", "numpy, torch", number, "", threads=self.options.threads)
        try:
            rates = sides.gemm_rates(self.options.threads)
        except sides.Failed as error:
            row.err = str(error)
            self.rows.append(row)
            return
        for rate in rates:
            shape = f"{rate['rows']}x{rate['inner']}x{rate['columns']}"
            self.rows.append(
                Row("gemm", rate["side"], number, rate["dtype"], threads=rate["threads"], case=shape,
                    eval_s=rate["seconds"], value=rate["gflop_per_s"], version=rate["version"])  # fmt: skip
            )

    def fit(self, number):
        for case, (rank, _) in CASES.items():
            for cap in CAPS:
                theirs = Row("fit", "scipy", number, "f64", d=rank, threads=1, case=case, cap=cap)
                ours = Row("fit", sides.OURS, number, "f64", d=rank, threads=self.options.threads, case=case, cap=cap)

                def measure_theirs():
                    found = sides.scipy_fit(case, cap, self.options.scipy_starts)
                    theirs.n, theirs.eval_s, theirs.value = found["n"], found["fit_s"], found["kl_nats"]
                    theirs.version = versions(found)

                def measure_ours():
                    if theirs.value is None:
                        raise sides.Failed("scipy's kl_nats is not known")
                    fitted = sides.our_fit(case, rank, LAYOUTS[case], cap, theirs.value, self.options.threads)
                    ours.n, (ours.eval_s, ours.value), ours.version = theirs.n, fitted, sides.version()

                add_ratios([self.add(theirs, measure_theirs), self.add(ours, measure_ours)])

    def add(self, row, measure):
        """Keeps a row, with the error of a measurement that failed."""
        try:
            measure()
        except sides.Failed as error:
            row.err = str(error)
        self.rows.append(row)
        parts = (row.what, row.side, row.case, row.dtype, row.n, row.cap)
        place = " ".join(str(part) for part in parts if part not in ("", None))
        outcome = row.err or table.seconds_text(row.eval_s)
        print(f"round {row.round + 1}: {place}: {outcome}", file=sys.stderr, flush=True)
        return row


def add_ratios(rows):
    ours = next((row.eval_s for row in rows if row.side == sides.OURS), None)
    for row in rows:
        row.ratio = table.quotient(row.eval_s, ours)


def versions(found):
    return ", ".join(f"{name} {version}" for name, version in found["versions"].items())


def add_flags(parser):
    parser.add_argument("--seed", type=int, default=0, help="of target and factors")
    parser.add_argument("--scipy-starts", type=int, default=1, help="starts of scipy's fit [default: 1]")
    parser.add_argument("--work", nargs="+", choices=WORK, default=WORK)
    parser.add_argument("--sides", nargs="+", choices=[sides.OURS, *sides.DENSE, *sides.LOCAL], help="only these")


def main():
    options = comparison.flags(__doc__, OUT, 9, add_flags, ["scipy_starts"])
    begun = comparison.Begun()
    with tempfile.TemporaryDirectory() as folder:
        try:
            all_rounds = Comparison(options, folder)
        except sides.Failed as error:
            raise SystemExit(f"the inputs cannot be made: {error}") from error
        for number in range(options.rounds):
            all_rounds.round(number)
            # After every round, so that a run cut short leaves what it measured.
            write(options, all_rounds.rows, begun)
    print((options.out / "table.md").read_text())
    for line in all_rounds.disagreements:
        print(line, file=sys.stderr)
    failed = sum(bool(row.err) for row in all_rounds.rows)
    if failed:
        print(f"{failed} measurements failed; see the column err of {options.out / 'rows.csv'}", file=sys.stderr)
    return 3 if all_rounds.disagreements else 1 if failed else 0


def write(options, rows, begun):
    write_csv(options.out / "rows.csv", rows)
    manifest = {
        **begun.manifest(options),
        "blas": "each side's own",
        "dtype": "float32 and float64",
        "seed": options.seed,
        "scipy_starts": options.scipy_starts,
        "versions": dict(sorted({tuple(v.split(" ", 1)) for row in rows for v in row.version.split(", ") if v})),
    }
    (options.out / "manifest.toml").write_text(tomli_w.dumps(manifest))
    head = f"One evaluation of objective and gradient at n = {N}, d = {RANK}, window {WINDOW}, {begun.where(options)}"
    table.write_table(options.out / "table.md", rows, head)


if __name__ == "__main__":
    sys.exit(main())
