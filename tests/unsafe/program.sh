#!/usr/bin/env bash
# What only the program has of unsafe code, its allocator, its signals, how it ends, under valgrind: program.sh PROGRAM. Each run
# of it is a test. Its end at once, by a second signal or where memory runs out, is not among them: that is at no certain moment.
set -uo pipefail
program=$1
# Compiled fully, it also decides by what was never written where the outcome is the same either way: of that nothing is told.
watched=(valgrind --quiet --error-exitcode=99 --leak-check=no --undef-value-errors=no "$program")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fit=(fit --family dirichlet-band --window 3 --rank 2 --quiet)
passed=0
failed=0

ends() {
    local what=$1 expected=$2 code=0
    shift 2
    "$@" >"$folder/out" 2>"$folder/err" || code=$?
    if ((code == expected)); then
        echo "test $what ... ok"
        passed=$((passed + 1))
    else
        echo "test $what ... FAILED: exit code $code, not $expected"
        cat "$folder/out" "$folder/err"
        failed=$((failed + 1))
    fi
}

# By the signal of a pipe that nobody reads: 128 + SIGPIPE.
unread() { "${watched[@]}" --help | true; return "${PIPESTATUS[0]}"; }
ignoring_hangups() { (trap '' HUP && exec "${watched[@]}" "${fit[@]}" --n 6 --max-logit 1 --out "$folder/ignoring"); }
ends "tells what it computes with" 0 "${watched[@]}" --version --verbose
ends "fits with hangups ignored" 0 ignoring_hangups
ends "is not read" 141 unread
echo "test result: $( ((failed == 0)) && echo ok || echo FAILED). $passed passed; $failed failed"
((failed == 0))
