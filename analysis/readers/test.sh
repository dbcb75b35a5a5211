#!/usr/bin/env bash
# Reads a study of fits with pandas, polars, DuckDB and R, and fails unless all four print the same table and
# draw something: `analysis/readers/test.sh data/logit-growth`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
study=${1:-$here/../../data/logit-growth}

command -v Rscript >/dev/null || { echo "no Rscript: apt-get install r-base-core" >&2; exit 1; }
[[ -f $study/rows.csv && -f $study/rows.parquet ]] || { echo "no rows in $study" >&2; exit 1; }

venv=$("$here/../../python/venv.sh" readers "$here/requirements.txt")

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export PYTHONDONTWRITEBYTECODE=1
for name in pandas polars duckdb; do
    "$venv/bin/python" "$here/with_$name.py" "$study" "$out/$name.png" >"$out/$name.csv"
done
Rscript --vanilla "$here/with_r.R" "$study" "$out/r.png" >"$out/r.csv"

for name in polars duckdb r; do
    diff "$out/pandas.csv" "$out/$name.csv" >&2 ||
        { echo "pandas (<) and $name (>) do not print the same table" >&2; exit 1; }
done
echo "pandas, polars, DuckDB and R print the same $(($(wc -l <"$out/pandas.csv") - 1)) medians"
"$venv/bin/python" "$here/check.py" "$study" "$out"
if [[ -n ${2:-} ]]; then
    mkdir -p "$2" && cp "$out"/* "$2"
fi
