//! A million inputs: files that the program made, altered, and read by it as it reads any. Whatever is in them, it neither
//! panics nor aborts, takes no more memory than a small multiple of their length, and comes to an end.
//!
//! Each target runs in a process of its own, which is this one begun again, so that one that dies is seen, and by which
//! input. Inputs are made from the numbers 0, 1, … alone; those that were found to do harm are kept in `found`, and come first.

#![cfg(all(feature = "cli", unix))]

mod alter;
mod child;
#[path = "../common/mod.rs"]
mod common;
mod forms;
mod promise;
mod target;
mod targets;
mod words;

use std::path::PathBuf;

use promise::keeps;

/// This repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The program.
fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("rank-study").into()
}

/// A test a target, with how many inputs the README tells of.
macro_rules! promises {
    ($($name:ident, $key:literal, $whole:literal;)+) => {
        $(
            #[test]
            fn $name() {
                keeps(concat!("inputs-", $key), $key, $whole);
            }
        )+
    };
}

promises! {
    npy, "npy", 200_000;
    npz, "npz", 100_000;
    torch, "torch", 100_000;
    csv, "csv", 150_000;
    parquet, "parquet", 40_000;
    safetensors, "safetensors", 150_000;
    definitions, "definitions", 100_000;
    training_definitions, "training-definitions", 100_000;
    manifests, "manifests", 80_000;
    rows, "rows", 10_000;
    model_configurations, "config", 100_000;
    tokenizers, "tokenizer", 100_000;
    model_weights, "model-weights", 100_000;
    gguf, "gguf", 100_000;
    exported_heads, "exported", 100_000;
    checkpoints, "checkpoints", 30_000;
    run_logs, "run-logs", 10_000;
    shown_runs, "shown-runs", 10_000;
    texts, "texts", 30_000;
    token_files, "token-files", 1_000;
    parts, "parts", 10_000;
}

/// The work of the processes that [`keeps`] starts; nothing in any other.
#[test]
fn child() {
    child::work(targets::TARGETS);
}
