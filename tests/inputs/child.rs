//! The process that reads inputs, one after another.

use std::alloc::System;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use cap::Cap;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::alter::altered;
use super::target::{Prepare, Target};
use super::targets::files_below;

/// Gives no more than reading an input may take: what asks for more ends the process.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Memory that reading any input may take: pictures are drawn and models computed ...
const ROOM: usize = 256 << 20;
/// ... and so many times its length.
const TIMES: usize = 64;

/// What is told of failures, a line each, ...
pub const FAILURES: &str = "failures";
/// ... of inputs that were read, ...
pub const ACCEPTED: &str = "accepted";
/// ... and of the input in hand, as eight bytes.
const AT: &str = "at";
/// That there is none yet.
pub const PREPARING: u64 = u64::MAX;

/// The variable that tells the process what it is asked to do.
const ASKED: &str = "RANK_STUDY_INPUTS";

/// What the process is asked to do: to read the inputs from number `first` to before `count`, at work in `folder`. Where
/// both are the same, to write that input to the file `folder`.
#[derive(Serialize, Deserialize)]
pub struct Asked {
    pub target: String,
    pub first: u64,
    pub count: u64,
    pub folder: PathBuf,
}

impl Asked {
    pub fn to(&self, command: &mut Command) {
        command.env(ASKED, serde_json::to_string(self).unwrap());
    }
}

/// The number of the input that a process has in hand.
pub fn at(folder: &Path) -> u64 {
    let bytes = fs::read(folder.join(AT)).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(PREPARING, u64::from_le_bytes)
}

/// Input number `number`, and the whole file that it was made of: those that were found come first.
fn input(target: &Target, found: &[PathBuf], number: u64) -> (usize, Vec<u8>) {
    if let Some(file) = found.get(number as usize) {
        // `3-name` was made of the whole file 3.
        let name = file.file_name().unwrap().to_str().unwrap();
        let of = name.split('-').next().and_then(|of| of.parse().ok()).unwrap_or(0);
        return (of, fs::read(file).unwrap());
    }
    let mut generator = ChaCha8Rng::seed_from_u64(number);
    let of = number as usize % target.files.len();
    (of, altered(target.files[of].clone(), &target.files, &mut generator))
}

/// Does what this process is asked to by its environment; nothing where that is nothing.
pub fn work(targets: &[(&str, Prepare)]) {
    let Ok(asked) = std::env::var(ASKED) else { return };
    let asked: Asked = serde_json::from_str(&asked).unwrap();
    let (_, prepare) = targets.iter().find(|(name, _)| *name == asked.target).unwrap();
    // Inputs that did harm, a file each.
    let found = Path::new(super::ROOT).join("tests/inputs/found").join(&asked.target);
    let found = files_below(&found);
    if asked.first == asked.count {
        let folder = tempfile::tempdir().unwrap();
        let (of, bytes) = input(&prepare(folder.path()), &found, asked.first);
        let name = format!("{of}-{}", asked.folder.file_name().unwrap().to_string_lossy());
        fs::write(asked.folder.with_file_name(name), bytes).unwrap();
        return;
    }
    // Before any reader has been at work, since some hear the panics of libraries themselves.
    hear_panics();
    let at = File::create(asked.folder.join(AT)).unwrap();
    at.write_all_at(&PREPARING.to_le_bytes(), 0).unwrap();
    let place = asked.folder.join("work");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    let mut target = prepare(&place);
    let open = |name: &str| {
        File::options().create(true).append(true).open(asked.folder.join(name)).unwrap()
    };
    let (mut failures, mut accepted) = (open(FAILURES), open(ACCEPTED));
    for number in asked.first..asked.count {
        at.write_all_at(&number.to_le_bytes(), 0).unwrap();
        let (of, bytes) = input(&target, &found, number);
        let room = ALLOCATOR.allocated() + ROOM + TIMES * bytes.len();
        ALLOCATOR.set_limit(room).unwrap();
        let read = catch_unwind(AssertUnwindSafe(|| (target.read)(of, &bytes)));
        ALLOCATOR.set_limit(usize::MAX).unwrap();
        // Also one that somebody caught.
        if let Some(panic) = PANIC.lock().unwrap().take() {
            writeln!(failures, "{number}\t{panic}").unwrap();
        }
        if read.unwrap_or(false) {
            accepted.write_all(b"\n").unwrap();
        }
    }
}

/// The panic that was heard since last asked.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn hear_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let told = panic.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        eprintln!("{told}");
        *PANIC.lock().unwrap() = Some(told);
    }));
}
