#!/usr/bin/env bash
# Installs the wheel into an environment of its own and tests it there: types, behaviour, the README's first example.
set -euo pipefail
cd "$(dirname "$0")"

venv=$(./venv.sh python requirements.txt)
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps ../dist/*.whl
export PYTHONDONTWRITEBYTECODE=1
# The package that is installed, not the folder of that name here.
cd tests
"$venv/bin/mypy" --config-file ../pyproject.toml --no-incremental -p rank_study
"$venv/bin/python" -m pytest -q -p no:cacheprovider --ignore test_export.py .
"$venv/bin/jupyter" nbconvert --log-level ERROR --to notebook --execute --output-dir "$(mktemp -d)" ../../docs/notebooks/matrix.ipynb
echo "not here, since torch takes gigabytes: the monitor, the export and docs/notebooks/training.ipynb; see make test-export"
"$venv/bin/python" - ../README.md <<'PYTHON'
import re, sys
first = re.search(r"```python\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)
exec(first[1])
PYTHON
