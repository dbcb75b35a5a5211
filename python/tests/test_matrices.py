"""Functions of matrices: the numbers of the command line, arrays of all kinds, interruption."""

import _thread
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rank_study
from rank_study import targets

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "reference"
DENSE, MIXTURE = (np.load(REFERENCE / f"{name}-n96.npy") for name in ("dense-local", "mixture"))
QUICK = {"starts": 2, "iterations": 200}


def command(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "rank_study", *map(str, words), "--quiet"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["dense-local", "mixture"])
@pytest.mark.parametrize("goal", [{"max_logit": [2, 4]}, {"tolerance": 0.3}])
def test_a_fit_has_the_numbers_of_the_command_line(tmp_path: pathlib.Path, name: str, goal: dict) -> None:
    target = REFERENCE / f"{name}-n96.npy"
    flag = "--max-logit=2,4" if "max_logit" in goal else "--tolerance=0.3"
    command("fit", "--target", target, "--rank", 8, flag, "--starts", 2, "--iterations", 200, "--out", tmp_path / "out")
    rows = pl.read_csv(tmp_path / "out" / "frontier.csv")
    fit = rank_study.fit(np.load(target), 8, **goal, **QUICK)
    for column in fit.frontier.columns:
        if column not in ("target", "wall_time_s", "factors"):
            assert fit.frontier[column] == rows[column].to_list(), column
    for row, folder in enumerate(rows["factors"]):
        for of_fit, file in ((fit.queries, "q.npy"), (fit.keys, "k.npy")):
            assert np.array_equal(of_fit[row], np.load(tmp_path / "out" / folder / file))


def test_queries_and_keys_give_the_error_and_the_logit_of_the_row() -> None:
    fit = rank_study.fit(DENSE, 8, max_logit=4, **QUICK)
    logits = fit.queries[0][0] @ fit.keys[0][0].T / np.sqrt(8)
    allowed = np.tril(np.ones_like(DENSE, dtype=bool))
    z = np.where(allowed, logits, -np.inf)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    a = DENSE[DENSE > 0]
    kl = (a * (np.log(a) - log_p[DENSE > 0])).sum() / len(DENSE)
    assert kl == pytest.approx(fit.kl_nats[0], rel=1e-9)
    assert np.abs(logits[allowed]).max() == pytest.approx(fit.max_abs_logit[0], rel=1e-12)
    assert fit.max_abs_logit[0] <= 4


def test_threads_and_type_of_array_do_not_change_the_result() -> None:
    fit = rank_study.fit(DENSE, 4, max_logit=4, threads=1, **QUICK)
    wide = np.zeros((96, 192))
    wide[:, ::2] = DENSE
    for array in (wide[:, ::2], np.asfortranarray(DENSE), DENSE[None], DENSE.tolist(), Held(DENSE)):
        assert rank_study.fit(array, 4, max_logit=4, threads=2, **QUICK).kl_nats == fit.kl_nats


class Held:
    """An array of a library that numpy does not know: DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **kwargs: object) -> object:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_single_and_half_precision_are_taken() -> None:
    exact = rank_study.floor(DENSE, 0.1)
    assert rank_study.floor(DENSE.astype(np.float32), 0.1) == pytest.approx(exact, rel=1e-5)
    assert rank_study.floor(DENSE.astype(np.float16), 0.1) == pytest.approx(exact, rel=1e-2)


def test_logits_are_taken_with_softmax() -> None:
    z = np.random.default_rng(0).normal(size=(24, 24)) * 3
    z = np.where(np.tril(np.ones_like(z)) > 0, z, -np.inf)
    attention = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    assert rank_study.floor(z, 0.1, softmax=True) == pytest.approx(rank_study.floor(attention, 0.1), rel=1e-9)


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        (np.full((4, 4), np.nan), {}, "row 0"),
        (np.ones((4, 5)), {}, "4 × 5"),
        (np.eye(4) * 0.5, {}, "row 0"),
        (np.full((4, 4), 0.25), {}, "row 0"),
        (np.eye(4) + 0j, {}, "complex"),
        (np.stack([np.eye(4)] * 3), {}, "head=0 to 2"),
        (np.eye(4), {"head": 1}, "leave head out"),
        (np.eye(4), {"max_logit": 0}, "0"),
        (np.eye(4), {"max_logit": []}, "max_logit"),
        (np.eye(4), {"mask": "causla"}, "causla"),
        (np.eye(4), {"layout": "locl:3"}, "locl"),
        (np.eye(4), {"tolerance": 0.1}, "not both"),
        (np.eye(4), {"starts": 0}, "starts"),
        (np.eye(4), {"max_logit": None}, "neither"),
        (np.eye(4), {"max_logit": None, "tolerance": [0.1, 0.2]}, "tolerance must be one number"),
        (np.eye(4) * 8, {}, "softmax=True"),
        (np.pad(np.eye(4), (0, 2)), {}, "rows 4 to 5 .* out of the array"),
    ],
)
def test_wrong_input_is_a_value_error_that_says_what_was_found(array: object, options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rank_study.fit(array, 2, **({"max_logit": 4} | options))


def test_a_fit_lets_other_threads_run_and_stops_at_ctrl_c() -> None:
    # A shell's background jobs ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    beats, began = [], time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(0.02):
            beats.append(time.monotonic())

    threading.Thread(target=beat, daemon=True).start()
    threading.Timer(0.7, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        rank_study.fit(targets.dirichlet_band(512, 64), 16, max_logit=[2, 4, 8, 16], starts=48)
    done.set()
    assert time.monotonic() - began < 20
    assert len(beats) > 5


def test_progress_grows_and_an_error_in_it_ends_the_fit() -> None:
    shares: list[float] = []
    rank_study.fit(DENSE, 8, max_logit=[2, 4], starts=8, iterations=400, progress=shares.append)
    assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)

    def fails(_: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rank_study.fit(targets.dirichlet_band(512, 64), 16, max_logit=[2, 4, 8, 16], starts=48, progress=fails)


def test_tables_go_to_polars_pandas_and_pyarrow() -> None:
    frontier = rank_study.fit(DENSE, 8, max_logit=[2, 4], **QUICK).frontier
    assert len(frontier) == 2
    for frame in (pl.DataFrame(frontier), pd.DataFrame.from_arrow(frontier), pa.table(frontier)):
        for name in ("cap", "kl_nats", "iterations", "outcome", "tolerance"):
            found = frame[name].to_pylist() if isinstance(frame, pa.Table) else frame[name].tolist() if isinstance(
                frame, pd.DataFrame
            ) else frame[name].to_list()
            found = [None if value != value else value for value in found]
            assert found == frontier[name], name
    assert [row["kl_nats"] for row in frontier] == frontier["kl_nats"]
    with pytest.raises(ValueError, match="d_head"):
        rank_study.fit(DENSE, [4, 8], max_logit=4)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="kl_nats"):
        frontier["kl"]


def test_floor_bound_and_fit_are_in_order() -> None:
    fit = rank_study.fit(MIXTURE, 4, tolerance=0.3, **QUICK)
    bound = rank_study.lower_bound(MIXTURE, 4, 0.3)
    assert bound is not None and fit.max_abs_logit[0] is not None
    assert bound.floor == rank_study.floor(MIXTURE, 0.3) == fit.floor[0]
    assert bound.floor <= bound.max_abs_logit <= fit.max_abs_logit[0]
    reached = rank_study.floor(MIXTURE, max_logit=bound.floor)
    assert reached == pytest.approx(0.3, rel=1e-6)


def test_a_spectrum_is_that_of_numpy() -> None:
    values = rank_study.spectrum(MIXTURE).singular_values
    assert np.allclose(values, np.linalg.svd(MIXTURE, compute_uv=False), atol=1e-12)


def test_targets_are_those_of_the_command_line(tmp_path: pathlib.Path) -> None:
    def of_command(*flags: object) -> np.ndarray:
        command("target", "--n", 40, *flags, "--out", tmp_path / "t.npy")
        return np.load(tmp_path / "t.npy")

    band = targets.dirichlet_band(40, window=8, seed=3)
    assert np.array_equal(band, of_command("--family", "dirichlet-band", "--window", 8, "--seed", 3))
    mixed = targets.mixture(40, "dirichlet-band", "landmark", window=8, m=4, lambda_=0.25)
    flags = ("--local", "dirichlet-band", "--global", "landmark", "--window", 8, "--m", 4, "--lambda", 0.25)
    assert np.array_equal(mixed, of_command("--family", "mixture", *flags))


@pytest.mark.parametrize(
    "matrix",
    [
        targets.uniform_band(20, 4), targets.decay_band(20, 4), targets.lognormal_band(20, 4),
        targets.previous_token(20), targets.landmark(20, 3), targets.random_sparse(20, 3), targets.clustered(20, 3),
        targets.induction(20, 5), targets.prefix(20), targets.permuted(20, "dirichlet-band", window=4),
    ],
)  # fmt: skip
def test_rows_of_every_family_sum_to_one(matrix: np.ndarray) -> None:
    assert np.allclose(matrix.sum(1), 1.0, atol=1e-12)


def test_a_wrong_family_or_parameter_is_named() -> None:
    with pytest.raises(ValueError, match="dirichlet-band"):
        targets.build("dirichlet-bnad", 8, window=2)
    with pytest.raises(ValueError, match="alpha"):
        targets.build("uniform-band", 8, window=2, alpha=1.0)


def test_a_fit_draws_itself() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fit = rank_study.fit(DENSE, 8, max_logit=[2, 4], **QUICK)
    found, any_rank = fit.plot().get_lines()
    assert list(found.get_xdata()) == fit.frontier["cap"] and list(found.get_ydata()) == fit.kl_nats
    assert list(any_rank.get_ydata()) == fit.frontier["floor_kl_nats"]
    assert fit.summary in fit._repr_html_() or "&" in fit._repr_html_()
