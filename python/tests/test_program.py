"""Files of heads, diagnoses, runs, and the command line that is installed."""

import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import rank_study
from rank_study import write_heads
from rank_study.program import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "analysis" / "data" / "tinyshakespeare.txt.zst"
P, H, T, D, C = 2, 2, 48, 8, 16
TINY = """
layers = 1
d_model = 16
heads = 2
context = 32
vocabulary = "characters"
batch = 2
steps = 20
warmup_steps = 5
learning_rate = 0.01
eval_every = 10
eval_batches = 1
"""


def layer(seed: int = 0, keys: int = H) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys and the input of one layer."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(P, T, C))
    q, k = (x @ draw.normal(size=(C, heads * D)) for heads in (H, keys))
    return q.reshape(P, T, H, D).transpose(0, 2, 1, 3), k.reshape(P, T, keys, D).transpose(0, 2, 1, 3), x


TOKENS = np.random.default_rng(1).integers(0, 50, (P, T))


@pytest.mark.parametrize("keys", [2, 1])
def test_a_diagnosis_has_the_logits_of_the_arrays(tmp_path: pathlib.Path, keys: int) -> None:
    q, k, x = layer(keys=keys)
    write_heads(tmp_path / "mine.safetensors", {0: (q, k, x)}, TOKENS, model="mine")
    found = rank_study.diagnose(tmp_path / "mine.safetensors", most=1, out=tmp_path / "out")
    logits = q.astype(np.float32) @ np.repeat(k, H // keys, 1).astype(np.float32).transpose(0, 1, 3, 2) / np.sqrt(D)
    largest = np.abs(np.where(np.tril(np.ones((T, T))) > 0, logits, 0)).max((0, 2, 3))
    assert found.heads["head"] == [0, 1]
    assert found.heads["actual"] == pytest.approx(list(largest), rel=1e-5)
    assert found.worst(1)[0]["actual"] == max(found.heads["actual"])
    assert found.summary and "<html" in found.html
    found.save(tmp_path / "page.html")
    alone = (tmp_path / "page.html").read_text()
    assert found.summary in alone and 'href="rows.csv"' in found.html and 'href="rows.csv"' not in alone


def test_a_folder_of_steps_is_diagnosed_as_one(tmp_path: pathlib.Path) -> None:
    for step in (100, 200):
        write_heads(tmp_path / "heads" / f"step-{step}.safetensors", {0: layer(step)}, TOKENS, step=step)
    found = rank_study.diagnose(tmp_path / "heads", most=1, out=tmp_path / "out")
    assert found.heads["step"] == [100, 100, 200, 200]
    with pytest.raises(ValueError, match="v1.2"):
        rank_study.diagnose(tmp_path / "heads", out=tmp_path / "v1.2")


def test_an_input_that_is_not_that_of_the_projection_is_warned_of(tmp_path: pathlib.Path) -> None:
    q, k, x = layer()
    wrong = np.random.default_rng(9).normal(size=x.shape)
    with pytest.warns(UserWarning, match="queries are not a projection of X"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "layer 0: keys")
        write_heads(tmp_path / "a.safetensors", {0: (q, k, wrong)}, TOKENS)
    # A bias is a projection too, if it is said.
    with pytest.warns(UserWarning, match="keys"):
        write_heads(tmp_path / "b.safetensors", {0: (q, k + 3.0, x)}, TOKENS, bias=False)
    # A bias is found.
    for name, keys in (("c", k + 3.0), ("d", k)):
        path = tmp_path / f"{name}.safetensors"
        write_heads(path, {0: (q, keys, x)}, TOKENS)
        assert (b'\\"bias\\": true' in path.read_bytes()) == (name == "c")


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
def test_rotary_positions_are_turned_back(tmp_path: pathlib.Path, pairs: str) -> None:
    q, k, x = layer()
    angles = np.arange(T)[:, None] * 0.3 ** np.arange(D // 2)
    cos, sin = np.cos(angles), np.sin(angles)

    def turned(rows: np.ndarray) -> np.ndarray:
        a, b = (rows[..., : D // 2], rows[..., D // 2 :]) if pairs == "halves" else (rows[..., ::2], rows[..., 1::2])
        both = (a * cos - b * sin, a * sin + b * cos)
        return np.concatenate(both, -1) if pairs == "halves" else np.stack(both, -1).reshape(rows.shape)

    write_heads(tmp_path / "r.safetensors", {0: (turned(q), turned(k), x)}, TOKENS, rotary=(cos, sin, pairs))
    # The program checks the projection as well.
    found = rank_study.diagnose(tmp_path / "r.safetensors", most=1, above=0, out=tmp_path / "out")
    assert set(found.heads["outcome_from_input"]) <= {"converged", "step-limit", "screened"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q, k, x: (q[:, :, :-1], k, x), "shapes do not fit"),
        (lambda q, k, x: (q, np.concatenate([k] * 2, 1), x), "shapes do not fit"),
        (lambda q, k, x: (q * np.nan, k, x), "NaN"),
    ],
)
def test_heads_that_cannot_be_written_leave_no_file(tmp_path: pathlib.Path, change, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        write_heads(tmp_path / "a.safetensors", {0: change(*layer())}, TOKENS)
    assert list(tmp_path.iterdir()) == []


def test_a_training_calls_back_and_its_tables_are_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A training keeps the tokens of its text below the current folder.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    seen: list[dict] = []
    run = rank_study.train(
        tmp_path / "tiny.toml", tmp_path / "run", text=TEXT, settings={"seed": 3}, threads=1, on_evaluation=seen.append
    )
    assert run["steps"]["step"][-1] == 20
    assert [row["loss_nats"] for row in seen] == run["eval"]["loss_nats"]
    assert max(run["heads"]["max_abs_logit"]) > 0
    assert rank_study.read(tmp_path / "run")["eval"]["step"] == run["eval"]["step"]


def test_a_wrong_flag_or_file_is_one_line(tmp_path: pathlib.Path) -> None:
    write_heads(tmp_path / "heads.safetensors", {0: layer()}, TOKENS)
    with pytest.raises(ValueError, match="tolerance"):
        rank_study.diagnose(tmp_path / "heads.safetensors", tolerance=-1.0, out=tmp_path / "out")
    with pytest.raises(rank_study.ProgramError, match="missing"):
        rank_study.diagnose(tmp_path / "missing.gguf", TEXT)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no tables"):
        rank_study.read(tmp_path / "empty")


def test_the_command_line_is_installed() -> None:
    program = shutil.which("rank-study", path=str(pathlib.Path(sys.executable).parent))
    assert program
    version = subprocess.run([program, "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and rank_study.__version__ in version.stdout
    wrong = subprocess.run([program, "fit", "--rank", "0"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ")


def test_matrices_saved_by_other_tools_have_their_values(tmp_path: pathlib.Path) -> None:
    pd = pytest.importorskip("pandas")
    wanted = np.asarray(rank_study.targets.dirichlet_band(24, window=6))
    n = len(wanted)
    labels = [f"token {i}, {i}" for i in range(n)]
    frame, named = pd.DataFrame(wanted), pd.DataFrame(wanted, index=labels, columns=labels)
    padded = np.zeros((n + 5, n + 5))
    padded[5:, 5:] = wanted
    stack = np.zeros((2, 3, 2, n, n))
    stack[1, 2, 0] = wanted
    saved = {
        "one.npz": lambda file: np.savez(file, wanted),
        "small.npz": lambda file: np.savez_compressed(file, other=wanted.T, attention=wanted),
        "frame.csv": frame.to_csv,
        "bare.csv": lambda file: frame.to_csv(file, index=False),
        "named.csv": named.to_csv,
        "european.csv": lambda file: named.to_csv(file, sep=";", decimal=","),
        "tabs.tsv": lambda file: named.to_csv(file, sep="\t"),
        "plain.txt": lambda file: np.savetxt(file, wanted),
        "header.txt": lambda file: np.savetxt(file, wanted, header="attention of layer 0"),
        "frame.parquet": lambda file: frame.rename(columns=str).to_parquet(file),
        "named.parquet": named.to_parquet,
        "padded.npy": lambda file: np.save(file, padded),
        "stack.npy": lambda file: np.save(file, stack),
    }
    flags = {"padded.npy": ["--trim-padding"], "stack.npy": ["--layer", "1", "--sequence", "2", "--head", "0"]}
    for name, save in saved.items():
        save(tmp_path / name)
        path = str(tmp_path / name) + ("#attention" if name == "small.npz" else "")
        out = tmp_path / "read.npy"
        run(["target", "--target", path, "--out", str(out), *flags.get(name, [])])
        assert np.allclose(np.load(out), wanted, rtol=1e-14, atol=0), name
