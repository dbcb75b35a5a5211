#!/usr/bin/env bash
# The unsafe code under what watches every access to memory: Miri for what is no vector instruction and no library in C,
# AddressSanitizer for the vectors, at every level that the processor has, and for mapped files, ThreadSanitizer for threads.
# The first two parts of an argument, such as `tests/unsafe/test.sh address portable`, run that part or level alone. Without a
# nightly toolchain valgrind takes their place, which knows no AVX-512.
set -euo pipefail
cd "$(dirname "$0")/../.."

part="${1:-}"
level="${2:-}"
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/unsafe"
# Slices taken without a check are checked, and so is arithmetic.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true CARGO_PROFILE_RELEASE_OPT_LEVEL=1
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
# What has unsafe code, and what runs on it. Of the tests, those of a second or more under all this are left out.
core=(numerics:: fit::kernel fit::objective fit::attention fit::factors pattern::spectrum)
models=(lm::simd lm::attention lm::operators lm::corpus)
tests() { cargo +nightly test --release --locked --no-default-features --lib "$@"; }
has() { rustup component list --toolchain nightly 2>/dev/null | grep "^$1.*(installed)" >/dev/null; }
is_asked() { [[ -z "$part" || "$part" == "$1" ]]; }
levels() {
    local each
    for each in portable avx2 avx512; do
        case "$each" in
            avx2) grep -q ' avx2 .*fma\|fma .* avx2 ' /proc/cpuinfo || { echo "no avx2 on this processor"; continue; } ;;
            avx512) grep -q avx512dq /proc/cpuinfo || { echo "no avx512 on this processor"; continue; } ;;
        esac
        [[ -n "$level" && "$level" != "$each" ]] && continue
        echo "RANK_STUDY_INSTRUCTIONS=$each"
        RANK_STUDY_INSTRUCTIONS="$each" "$@"
    done
}

if ! rustup toolchain list 2>/dev/null | grep nightly >/dev/null; then
    if ! command -v valgrind >/dev/null; then
        echo "neither a nightly toolchain nor valgrind is here: rustup toolchain install nightly, or apt-get install valgrind"
        exit 1
    fi
    echo "no nightly toolchain: valgrind, without AVX-512"
    # valgrind runs one thread at a time.
    program=$(cargo test --release --locked --no-default-features --lib --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
    for level in portable avx2; do
        echo "RANK_STUDY_INSTRUCTIONS=$level"
        RANK_STUDY_INSTRUCTIONS=$level valgrind --quiet --error-exitcode=1 --leak-check=no \
            "$program" --test-threads 1 "${core[@]}"
    done
    exit
fi

if is_asked miri; then
    if has miri && has rust-src; then
        # The processor's instructions are not interpreted, nor is OpenBLAS.
        MIRIFLAGS="-Zmiri-env-forward=RANK_STUDY_INSTRUCTIONS -Zmiri-disable-isolation -Zmiri-ignore-leaks" RANK_STUDY_INSTRUCTIONS=portable \
            cargo +nightly miri test --locked --no-default-features --lib -- numerics::buffer numerics::gemm numerics::real numerics::pool
    else
        echo "Miri is not here: rustup +nightly component add miri rust-src"
    fi
fi
if is_asked address; then
    export ASAN_OPTIONS=detect_leaks=0
    address() { RUSTFLAGS="-Zsanitizer=address" tests --target "$host" "$@"; }
    levels address -- "${core[@]}"
    levels address --features lm -- "${models[@]}"
fi
if is_asked thread; then
    if has rust-src; then
        thread() { RUSTFLAGS="-Zsanitizer=thread" tests -Zbuild-std --target "$host" "$@"; }
        levels thread -- "${core[@]}"
    else
        echo "The standard library's source is not here: rustup +nightly component add rust-src"
    fi
fi
