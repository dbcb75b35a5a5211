//! The rank-study binary: parses, dispatches, and turns a result into an exit code.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How large must attention logits grow when queries and keys are low-rank?
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Target(Box<cli::target::TargetArgs>),
}

fn main() -> ExitCode {
    let Command::Target(args) = Cli::parse().command;
    match cli::target::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
