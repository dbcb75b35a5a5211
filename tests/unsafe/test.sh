#!/usr/bin/env bash
# The unsafe code under what watches every access to memory: Miri for what is no library in C and no mapped file,
# AddressSanitizer for those and for the vectors of every level that the processor has, ThreadSanitizer for threads, valgrind for
# what only the program has. Without a nightly toolchain valgrind takes the place of them all.
#
# The arguments, as in `tests/unsafe/test.sh address portable`, name a part (miri, address, thread, program or valgrind) and a level
# that run alone. At the end it tells how many tests ran and failed, as it does the file that RANK_STUDY_TRIES_TO names.
set -euo pipefail
cd "$(dirname "$0")/../.."

only_part="${1:-}"
only_level="${2:-}"
host=$(rustc -vV | sed -n 's/^host: //p')
# The program as it is built everywhere else, or another.
program=${RANK_STUDY:-}
if [[ -z "$program" && ( -z "$only_part" || "$only_part" == program ) ]]; then
    cargo build --release --locked
    program=${CARGO_TARGET_DIR:-target}/release/rank-study
fi
export LC_ALL=C
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/unsafe"
# Slices taken without a check are checked, and so is arithmetic.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true CARGO_PROFILE_RELEASE_OPT_LEVEL=1
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
# What has unsafe code, and what runs on it.
core=(numerics:: solver::objective)
models=(lm::simd lm::attention lm::operators lm::corpus)
# What an interpreter gets through in minutes.
small=(numerics::buffer numerics::extension numerics::gemm numerics::real)
small+=(solver::objective::tests::a_small_problem solver::objective::tests::extremes)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
told=()
wrong=0

is_asked() {
    if [[ -n "$only_part" ]]; then [[ "$only_part" == "$1" ]]; return; fi
    local is_nightly=0
    if rustup toolchain list 2>/dev/null | grep nightly >/dev/null; then is_nightly=1; fi
    case "$1" in
        program) ;;
        valgrind) ((!is_nightly)) ;;
        *) ((is_nightly)) ;;
    esac
}

needs() {
    local component
    for component in "$@"; do
        if ! rustup component list --toolchain nightly 2>/dev/null | grep "^$component.*(installed)" >/dev/null; then
            echo "$component is not here: rustup component add $component --toolchain nightly"
            exit 1
        fi
    done
}

# Begins a part, by its key in data/promises.csv.
begin() { part=$1 tests=0 failures=0 spent=0; }

# Ends it. One that ran no test is wrong too.
end() {
    told+=("$part: $tests tests, $failures failures, $spent s")
    if [[ -n "${RANK_STUDY_TRIES_TO:-}" ]]; then
        echo "$part,$tests,$failures,$spent" >>"$RANK_STUDY_TRIES_TO"
    fi
    if ((tests == 0 || failures > 0)); then wrong=1; fi
}

plus() { awk "BEGIN { printf \"%.1f\", $1 + $2 }"; }

# Runs a command that runs tests, and counts them. What watches ends the process at what it finds, or has it fail: one failure
# more than tests tell of.
suite() {
    local what="$part, $1" began=$EPOCHREALTIME code=0 passed failed took
    shift
    echo "== $what"
    "$@" 2>&1 | tee "$log" || code=$?
    took=$(plus "$EPOCHREALTIME" "-$began")
    read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
    if ((passed + failed == 0)); then code=1; fi
    if ((code != 0 && failed == 0)); then failed=1; fi
    told+=("$what: $((passed + failed)) tests, $failed failures, $took s")
    tests=$((tests + passed + failed)) failures=$((failures + failed)) spent=$(plus "$spent" "$took")
}

# Refuses a filter that no test matches: a module that was renamed would be left out.
matching() {
    local filter listed
    listed=$("${run[@]}" --list 2>/dev/null)
    for filter in "$@"; do
        if ! grep -q "^[^ ]*$filter" <<<"$listed"; then
            echo "no test matches $filter; name a module that has tests"
            exit 1
        fi
    done
}

is_at() { [[ -z "$only_level" || "$only_level" == "$1" ]]; }

# The suite at those of the levels that the processor has.
at_levels() {
    local levels=$1 what=$2 level
    shift 2
    for level in $levels; do
        case "$level" in
            avx2) grep -q ' avx2 .*fma\|fma .* avx2 ' /proc/cpuinfo || { echo "no avx2 on this processor"; continue; } ;;
            avx512) grep -q avx512dq /proc/cpuinfo || { echo "no avx512 on this processor"; continue; } ;;
        esac
        if is_at "$level"; then
            RANK_STUDY_INSTRUCTIONS=$level suite "$what, $level" "$@"
        fi
    done
}

# Miri knows no OpenBLAS, and of the processor's instructions those that the program is compiled to take for granted.
miri() {
    local level=$1 run=(cargo +nightly miri test --locked --no-default-features --lib)
    if ! is_at "$level"; then return; fi
    export RUSTFLAGS=$2
    run+=(--)
    matching "${small[@]}"
    RANK_STUDY_INSTRUCTIONS=$level suite "core, $level" "${run[@]}" "${small[@]}"
}
if is_asked miri; then
    needs miri rust-src
    # By the older rules, of stacked borrows, the queues of rayon would be wrong; its threads never end. Exponentials are compared
    # with the standard library's, which Miri otherwise makes inexact.
    export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks"
    MIRIFLAGS+=" -Zmiri-deterministic-floats"
    begin "unsafe-miri"
    miri portable ""
    miri avx2 "-Ctarget-feature=+avx2,+fma"
    end
fi

# The tests of the library with these features, and with what cargo is told beside.
sanitized() {
    local name=$1 run=(cargo +nightly test --release --locked --no-default-features --lib --target "$host" $2)
    shift 2
    run+=(--)
    matching "$@"
    at_levels "portable avx2 avx512" "$name" "${run[@]}" "$@"
}
# A test asks for more memory than there is, which has to be refused.
if is_asked address; then
    export RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
    begin "unsafe-address"
    sanitized core "" "${core[@]}"
    sanitized models "--features lm" "${models[@]}"
    end
fi
if is_asked thread; then
    needs rust-src
    export RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS=allocator_may_return_null=1
    begin "unsafe-thread"
    # What the standard library does between threads has to be watched too.
    sanitized core -Zbuild-std "${core[@]}"
    end
fi
if { is_asked program || is_asked valgrind; } && ! command -v valgrind >/dev/null; then
    echo "valgrind is not here: apt-get install valgrind"
    exit 1
fi
# It knows no AVX-512, and runs one thread at a time.
if is_asked program; then
    begin "unsafe-program"
    at_levels "portable avx2" program tests/unsafe/program.sh "$program"
    end
fi
if is_asked valgrind; then
    unset RUSTFLAGS
    tests_of_core=$(cargo test --release --locked --no-default-features --lib --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
    begin "unsafe-valgrind"
    run=("$tests_of_core")
    matching "${core[@]}"
    at_levels "portable avx2" core valgrind --quiet --error-exitcode=99 --leak-check=no \
        "$tests_of_core" --test-threads 1 "${core[@]}"
    end
fi

printf '%s\n' "" "${told[@]}"
exit "$wrong"
