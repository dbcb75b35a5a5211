"""What was measured: one row a measurement."""

import csv
import dataclasses


@dataclasses.dataclass
class Row:
    """One measurement. An empty field has no meaning for it, or no value."""

    what: str  # evaluation, local, memory, gemm or fit
    side: str
    round: int
    dtype: str = "f64"
    n: int | None = None
    d: int | None = None
    window: int | None = None
    threads: int | None = None
    case: str = ""  # of fit: the target in tests/reference; of gemm: the shape
    cap: float | None = None
    eval_s: float | None = None  # of fit: until the kl_nats in `value` was reached
    ratio: float | None = None  # eval_s over that of rank-study in the same round
    value: float | None = None  # the objective; of gemm: GFLOP/s; of fit: kl_nats
    peak_rss_bytes: int | None = None
    version: str = ""
    err: str = ""  # why there is no result


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in rows)
