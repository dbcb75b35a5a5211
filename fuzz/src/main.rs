//! Runs one target of ../tests/inputs under libFuzzer; the variable `RANK_STUDY_INPUTS` selects it.
//!
//! The first byte of an input is the index of the target's valid file from which it was derived; the rest is the text
//! to read. If libFuzzer gets a folder of inputs, the valid files are first written there.

#![no_main]

#[path = "../../tests/inputs/alter.rs"]
mod alter;
#[path = "../../tests/inputs/forms.rs"]
mod forms;
#[path = "../../tests/inputs/target.rs"]
mod target;
#[path = "../../tests/inputs/targets/mod.rs"]
mod targets;
#[path = "../../tests/inputs/words.rs"]
mod words;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use target::{Target, Whole};
use tempfile::TempDir;

/// Folder of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Environment variable with the name of the target.
const TARGET: &str = "RANK_STUDY_INPUTS";

/// Path of a program built earlier, which makes some of the valid files.
fn binary() -> PathBuf {
    std::env::var_os("RANK_STUDY")
        .map_or_else(|| Path::new(ROOT).join("target/release/rank-study"), Into::into)
}

struct Prepared {
    target: Target,
    /// Working folder of the target.
    _place: TempDir,
}

thread_local! {
    /// Prepared once, because libFuzzer calls from one thread.
    static PREPARED: RefCell<Prepared> = RefCell::new(prepare());
}

fn prepare() -> Prepared {
    let asked = std::env::var(TARGET).unwrap_or_default();
    let known = || targets::TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let Some((_, prepare)) = targets::TARGETS.iter().find(|(name, _)| *name == asked) else {
        panic!("{TARGET}={asked}: name one of {}", known());
    };
    let place = tempfile::tempdir().unwrap();
    Prepared { target: prepare(place.path()), _place: place }
}

/// Writes the valid files as initial inputs to the first folder among libFuzzer's arguments.
fn put_seeds() {
    let Some(folder) = std::env::args().skip(1).map(PathBuf::from).find(|path| path.is_dir())
    else {
        return;
    };
    PREPARED.with_borrow(|prepared| {
        for (of, whole) in (0u8..).zip(&prepared.target.files) {
            let bytes = [&[of], &whole.bytes[..]].concat();
            fs::write(folder.join(format!("whole-{of}")), bytes).unwrap();
        }
    });
}

fuzz_target!(
    init: put_seeds(),
    |input: &[u8]| {
        let Some((&of, bytes)) = input.split_first() else { return };
        PREPARED.with_borrow_mut(|Prepared { target, .. }| {
            let of = usize::from(of) % target.files.len();
            (target.read)(of, bytes);
        });
    }
);

// Half of the mutations come from ../tests/inputs, which recognises headers and words; the other half are libFuzzer's
// own.
fuzz_mutator!(|input: &mut [u8], length: usize, most: usize, seed: u32| {
    if length == 0 || seed % 2 == 0 {
        return fuzzer_mutate(input, length, most);
    }
    PREPARED.with_borrow(|Prepared { target, .. }| {
        let of = usize::from(input[0]) % target.files.len();
        let file = Whole { bytes: input[1..length].to_vec(), form: target.files[of].form };
        let mut generator = ChaCha8Rng::seed_from_u64(seed.into());
        let mut altered = alter::altered(file, &target.files, &mut generator);
        altered.truncate(most - 1);
        input[1..=altered.len()].copy_from_slice(&altered);
        1 + altered.len()
    })
});
