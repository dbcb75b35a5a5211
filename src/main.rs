//! The rank-study binary.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: nothing has started a thread yet.
    unsafe { rank_study::numerics::prepare_process() };
    cli::command::run(std::env::args_os())
}
