#!/usr/bin/env bash
# Makes a Python environment outside the clone, one per list of packages, and prints its folder: venv.sh NAME PACKAGE...
# A package that is a file is a list of requirements.
set -euo pipefail
name=$1
shift

wanted=()
for package in "$@"; do
    if [[ -f $package ]]; then wanted+=(--requirement "$package"); else wanted+=("$package"); fi
done
key=$(for package in "$@"; do cat "$package" 2>/dev/null || echo "$package"; done | sha256sum | cut -c1-16)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/rank-study/$name/$key
if [[ ! -f $venv/installed ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || { echo "no venv: apt-get install python3-venv" >&2; exit 1; }
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]}" >&2
    touch "$venv/installed"
fi
echo "$venv"
