//! The rank-study binary: parses, dispatches, and turns a result into an exit code.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How large must attention logits grow when queries and keys are low-rank?
#[derive(Parser)]
#[command(
    disable_version_flag = true,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
Environment:
  RANK_STUDY_INSTRUCTIONS=portable|avx2|avx512
          Vector instructions to use, in place of the widest that the processor has

Exit codes:
  0  done
  1  failed
  2  wrong usage
  3  a check of verify did not hold
  4  stopped by Ctrl-C, SIGTERM or SIGHUP, or a part that waits for others' runs: what was done is kept,
     and the command can be run again"
)]
struct Cli {
    /// Print version
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version: also the processor, its instructions, BLAS and threads
    #[arg(short, long, requires = "version")]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Target(Box<cli::target::TargetArgs>),
    Fit(Box<cli::fit::FitArgs>),
    Sweep(cli::sweep::SweepArgs),
    Train(cli::train::TrainArgs),
    Evaluate(cli::evaluate::EvaluateArgs),
    Dump(cli::dump::DumpArgs),
    Predict(cli::predict::PredictArgs),
    Diagnose(cli::diagnose::DiagnoseArgs),
    Show(cli::show::ShowArgs),
    Bench(cli::bench::BenchArgs),
    Table(cli::analysis::TableArgs),
    Figure(cli::analysis::FigureArgs),
    Report(cli::analysis::ReportArgs),
    Reproduce(cli::reproduce::ReproduceArgs),
    Merge(cli::merge::MergeArgs),
    Slurm(cli::slurm::SlurmArgs),
    Verify(cli::verify::VerifyArgs),
    List(cli::list::ListArgs),
}

/// 0 done, 1 failed, 2 wrong usage, with which clap itself exits too, 3 a check did not hold, 4 stopped.
fn main() -> ExitCode {
    // A closed pipe, as by `| head`, ends the process quietly, as it does other tools.
    sigpipe::reset();
    // SAFETY: nothing has started a thread yet.
    unsafe { rank_study::numerics::prepare_process() };
    let Cli { verbose, command, .. } = Cli::parse();
    if let Err(error) = rank_study::numerics::check_instructions() {
        eprintln!("error: {error}");
        return ExitCode::from(2);
    }
    // Without a command clap lets `--version` alone pass.
    let Some(command) = command else {
        cli::version::print(verbose);
        return ExitCode::SUCCESS;
    };
    let result = match command {
        Command::Target(args) => cli::target::run(&args),
        Command::Fit(args) => cli::fit::run(&args),
        Command::Sweep(args) => cli::sweep::run(&args),
        Command::Train(args) => cli::train::run(&args),
        Command::Evaluate(args) => cli::evaluate::run(&args),
        Command::Dump(args) => cli::dump::run(&args),
        Command::Predict(args) => cli::predict::run(&args),
        Command::Diagnose(args) => cli::diagnose::run(&args),
        Command::Show(args) => cli::show::run(&args),
        Command::Bench(args) => cli::bench::run(&args),
        Command::Table(args) => cli::analysis::table(&args),
        Command::Figure(args) => cli::analysis::figure(&args),
        Command::Report(args) => cli::analysis::report(&args),
        Command::Reproduce(args) => cli::reproduce::run(&args),
        Command::Merge(args) => cli::merge::run(&args),
        Command::Slurm(args) => cli::slurm::run(&args),
        Command::Verify(args) => cli::verify::run(&args),
        Command::List(args) => cli::list::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<cli::processes::ToldElsewhere>() => ExitCode::FAILURE,
        Err(error) => {
            cli::stop::tell(&format!("error: {}", cli::error_line::error_line(error.as_ref())));
            if error.is::<cli::verify::Breach>() {
                ExitCode::from(3)
            } else if error.is::<cli::stop::Stopped>() {
                ExitCode::from(cli::stop::STOPPED)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
