#!/usr/bin/env bash
# What needs PyTorch: heads exported from small models against the models' own attention, the monitor, its notebook.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
published=$here/../tests/reference/published/requirements.txt
venv=$("$here/venv.sh" export "$published" pytest nbconvert ipykernel matplotlib)

cd "$here/tests"
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore -m unittest --quiet test_export
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps ../../dist/*.whl
"$venv/bin/python" -m pytest -q -p no:cacheprovider test_monitor.py
"$venv/bin/jupyter" nbconvert --log-level ERROR --to notebook --execute --output-dir "$(mktemp -d)" ../../docs/notebooks/training.ipynb
