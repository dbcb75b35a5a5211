//! `rank-study --version`, and what `--verbose` adds to it.

use rank_study::numerics::{Machine, instructions_there};
use rank_study::run::revision;

use super::streams::say;

/// Prints the version; where `verbose`, also what the program was made of and computes with.
pub fn print(verbose: bool) {
    say!("rank-study {}", env!("CARGO_PKG_VERSION"));
    if !verbose {
        return;
    }
    let Machine { cpu, instructions, blas, blas_core } = Machine::here();
    let (there, held) = instructions_there();
    let there = there.join(", ");
    let of = match held {
        Some(_) => format!("set by RANK_STUDY_INSTRUCTIONS, of {there}"),
        None => format!("the widest of {there}"),
    };
    let revision = match revision() {
        "" => "none: not in a git repository".to_owned(),
        revision => format!("{revision}, of the repository here"),
    };
    say!("revision      {revision}");
    say!("processor     {cpu}");
    say!("instructions  {instructions}, {of}");
    say!("blas          {blas}");
    say!("blas_core     {blas_core}");
    say!("threads       {}", rayon::current_num_threads());
}
