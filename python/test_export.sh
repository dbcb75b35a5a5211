#!/usr/bin/env bash
# What needs PyTorch: heads exported from small models against the models' own attention, the monitor, its notebook.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
requirements=$here/../tests/reference/published/requirements.txt

# One environment a list of requirements, kept outside the clone.
key=$(sha256sum "$requirements" | cut -c1-16)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/rank-study/export/$key
if [[ ! -f $venv/installed ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv" || { echo "no venv: apt-get install python3-venv" >&2; exit 1; }
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    touch "$venv/installed"
fi

cd "$here/tests"
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore -m unittest --quiet test_export
"$venv/bin/pip" install --quiet --disable-pip-version-check pytest nbconvert ipykernel matplotlib
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps ../../dist/*.whl
"$venv/bin/python" -m pytest -q -p no:cacheprovider test_monitor.py
"$venv/bin/jupyter" nbconvert --log-level ERROR --to notebook --execute --output-dir "$(mktemp -d)" ../../docs/notebooks/training.ipynb
