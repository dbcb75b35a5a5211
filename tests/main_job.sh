#!/usr/bin/env bash
# The main job as a new user runs it: `make reproduce` from no rows at all, then a look at what came out, then once
# more, which must change nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

rows=data/quick
figures=figures/quick
for folder in "$rows" "$figures"; do
    if [[ -e $folder ]]; then
        echo "$folder is there already; this test begins with none: move it away" >&2
        exit 1
    fi
done
program() { "${CARGO:-cargo}" run --release --locked --quiet -- "$@"; }

make reproduce
[[ -s $figures/report.html ]] || { echo "no $figures/report.html" >&2; exit 1; }
program list --preset quick --json | python3 -c '
import json, sys
studies = [study for study in json.load(sys.stdin) if "quick" in study["presets"]]
missing = [study["study"] for study in studies if study["done"] < study["cells"] or not study["cells"]]
cells = sum(study["cells"] for study in studies)
if missing or not studies:
    sys.exit("not every cell has its rows: " + ", ".join(missing or ["no study at all"]))
print(f"{len(studies)} studies, {cells} cells: all there")'
for study in "$rows"/*/; do
    [[ $study == */tokens/ ]] && continue
    for file in rows.csv rows.parquet manifest.toml; do
        [[ -s $study$file ]] || { echo "no $study$file" >&2; exit 1; }
    done
    [[ -d $figures/$(basename "$study") ]] || { echo "no figures of $(basename "$study")" >&2; exit 1; }
done
program verify --preset quick

sums() { find "$rows" "$figures" -type f ! -name .lock -exec sha256sum {} + | sort -k 2; }
before=$(sums)
make reproduce
if ! diff <(echo "$before") <(sums); then
    echo "a second run changed these files" >&2
    exit 1
fi
echo "a second run changed nothing"
