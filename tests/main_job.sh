#!/usr/bin/env bash
# A preset as a new user runs it: `make reproduce` without any rows, checks of what it wrote, then a second run, which must
# change nothing. usage: tests/main_job.sh PRESET
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
rows=data/$preset
figures=figures/$preset
for folder in "$rows" "$figures"; do
    if [[ -e $folder ]]; then
        echo "$folder is there already; this test begins with none: move it away" >&2
        exit 1
    fi
done
program() { "${CARGO:-cargo}" run --release --locked --quiet -- "$@"; }

printed=$(mktemp)
make reproduce PRESET="$preset" | tee "$printed"
lines=$(sed -n '/^What was found/,$p' "$printed" | wc -l)
rm "$printed"
((lines > 0 && lines <= 30)) || { echo "the results take $lines lines; 30 is the limit" >&2; exit 1; }
[[ -s $figures/report.html ]] || { echo "no $figures/report.html" >&2; exit 1; }
program list --preset "$preset" --json | python3 -c '
import json, sys
studies = [study for study in json.load(sys.stdin) if sys.argv[1] in study["presets"]]
missing = [study["study"] for study in studies if study["done"] < study["cells"] or not study["cells"]]
cells = sum(study["cells"] for study in studies)
if missing or not studies:
    sys.exit("not every cell has its rows: " + ", ".join(missing or ["no study at all"]))
print(f"{len(studies)} studies, {cells} cells: all there")' "$preset"
for study in "$rows"/*/; do
    [[ $study == */tokens/ ]] && continue
    for file in rows.csv rows.parquet manifest.toml; do
        [[ -s $study$file ]] || { echo "no $study$file" >&2; exit 1; }
    done
    [[ -d $figures/$(basename "$study") ]] || { echo "no figures of $(basename "$study")" >&2; exit 1; }
done
program verify --preset "$preset"

sums() { find "$rows" "$figures" -type f ! -name .lock -exec sha256sum {} + | sort -k 2; }
before=$(sums)
make reproduce PRESET="$preset"
if ! diff <(echo "$before") <(sums); then
    echo "a second run changed these files" >&2
    exit 1
fi
echo "a second run changed nothing"
