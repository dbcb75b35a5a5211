//! How often a promise of the README's is tried, and what came of it: a tenth of the tries by default, as in CI, and all of
//! them where `RANK_STUDY_TRIES_TO` names the file that is told of them, as `make promises` has it.

// Each test crate uses its own part of this.
#![allow(dead_code)]

use std::io::Write as _;
use std::time::Instant;

/// The file that is told what came of all tries.
const TO: &str = "RANK_STUDY_TRIES_TO";

/// One promise being tried.
pub struct Tries {
    promise: &'static str,
    began: Instant,
    tried: usize,
    failures: Vec<String>,
}

impl Tries {
    /// `promise` is its key in data/promises.csv.
    pub fn of(promise: &'static str) -> Self {
        Self { promise, began: Instant::now(), tried: 0, failures: Vec::new() }
    }

    /// Notes a try, and why it failed where it did.
    pub fn tried(&mut self, failure: Result<(), String>) {
        self.add(1, failure.err().into_iter().collect());
    }

    /// Notes many.
    pub fn add(&mut self, tried: usize, failures: Vec<String>) {
        self.tried += tried;
        self.failures.extend(failures);
    }

    /// Tells what came of them.
    ///
    /// # Panics
    /// Where one failed, or none was made.
    pub fn end(self) {
        let Self { promise, began, tried, failures } = self;
        let seconds = began.elapsed().as_secs_f64();
        println!("{promise}: {tried} tries, {} failures, {seconds:.1} s", failures.len());
        if let Some(file) = std::env::var_os(TO) {
            let line = format!("{promise},{tried},{},{seconds:.1}\n", failures.len());
            let mut file = std::fs::File::options().append(true).open(file).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
        assert!(tried > 0, "{promise} was not tried");
        let shown = failures.len().min(20);
        assert!(failures.is_empty(), "{promise}:\n{}", failures[..shown].join("\n"));
    }
}

/// How many tries to make of as many as the README tells.
pub fn share_of(whole: usize) -> usize {
    match std::env::var_os(TO) {
        Some(_) => whole,
        None => whole.div_ceil(10),
    }
}
