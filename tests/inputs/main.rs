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

/// This repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The program.
fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("rank-study").into()
}

/// The work of the processes that [`promise::keeps`] starts; nothing in any other.
#[test]
fn child() {
    child::work(targets::TARGETS);
}
