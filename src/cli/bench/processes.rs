//! `rank-study bench processes`: what it costs to train by several processes.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::collective::{Collective, CollectiveError, Meeting, Tcp};
use rank_study::lm::{Corpus, Device, TrainDefinition, Trainer};

use super::model::ModelArgs;
use super::timing::{at_least_one, median};
use crate::cli::processes::MOST_PROCESSES;
use crate::cli::streams::{say, tell};
use crate::cli::threads::pool;

/// Time training with several processes against one
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study bench processes --variant ls --layers 4 --d-model 256 --heads 4 --batch 8 --context 256")]
pub(super) struct ProcessesBench {
    #[command(flatten)]
    model: ModelArgs,
    /// Train with this many processes
    #[arg(long, default_value_t = 2, value_name = "N")]
    processes: usize,
    /// Sequences per step
    #[arg(long, default_value_t = 8, value_name = "B")]
    batch: usize,
    /// Tokens per sequence
    #[arg(long, default_value_t = 256, value_name = "T")]
    context: usize,
    /// Steps per round
    #[arg(long, default_value_t = 5, value_name = "S")]
    steps: usize,
    /// Time this many rounds, after a warm-up
    #[arg(long, default_value_t = 5, value_name = "R")]
    rounds: usize,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Sizes or names that are wrong, or sequences that the processes cannot share evenly.
pub(super) fn run(args: &ProcessesBench, quiet: bool) -> Result<()> {
    at_least_one("--rounds", args.rounds)?;
    at_least_one("--steps", args.steps)?;
    if !(2..=MOST_PROCESSES).contains(&args.processes) {
        bail!("--processes must be 2 to {MOST_PROCESSES} ({} found)", args.processes);
    }
    let definition = TrainDefinition { batch: args.batch, ..args.model.definition(args.context)? };
    let corpus = Corpus::synthetic(&definition)?;
    if !quiet {
        let (rounds, steps) = (args.rounds, args.steps);
        tell(&format!("timing {rounds} rounds of {steps} steps each, after one of warm-up"));
    }
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let (mut alone, mut together, mut ratios, mut talks) = (vec![], vec![], vec![], vec![]);
    std::thread::scope(|scope| -> Result<()> {
        let (told, tells) = channel();
        let goes: Vec<Sender<()>> = (0..args.processes)
            .map(|rank| {
                let (go, goes) = channel();
                let (told, folder) = (told.clone(), folder.path());
                let (definition, corpus) = (&definition, &corpus);
                scope.spawn(move || {
                    if let Err(error) =
                        process(args, rank, folder, definition, corpus, &goes, &told)
                    {
                        // Whoever listened has ended for another reason.
                        let _ = told.send(Err(error));
                    }
                });
                go
            })
            .collect();
        drop(told);
        let (_, threads) = pool(Some(args.processes))?;
        let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu)?;
        for round in 0..=args.rounds {
            let started = Instant::now();
            threads.install(|| (0..args.steps).try_for_each(|_| trainer.step().map(drop)))?;
            let one_s = started.elapsed().as_secs_f64() / args.steps as f64;
            let started = Instant::now();
            for go in &goes {
                go.send(()).context("a process has ended")?;
            }
            let mut most = Duration::ZERO;
            for _ in &goes {
                most = most.max(tells.recv().context("a process has ended")??);
            }
            let all_s = started.elapsed().as_secs_f64() / args.steps as f64;
            if round > 0 {
                alone.push(one_s);
                together.push(all_s);
                ratios.push(one_s / all_s);
                talks.push(most.as_secs_f64() / args.steps as f64 / all_s);
            }
        }
        Ok(())
    })?;
    let [one_s, all_s, speed, talk] = [alone, together, ratios, talks].map(median);
    if args.json {
        let object = serde_json::json!({
            "processes": args.processes, "one_process_step_s": one_s, "step_s": all_s, "speed_over_one_process": speed,
            "collective_share": talk, "parameters": parameters(&definition, &corpus)?, "batch": args.batch,
            "context": args.context, "steps": args.steps, "rounds": args.rounds, "version": env!("CARGO_PKG_VERSION"),
        });
        say!("{object}");
    } else {
        say!(
            "1 process of {} threads: {:.1} ms per step; {} processes of 1 thread: {:.1} ms, {speed:.2}× \
             as fast; at most {:.1} % of that is communication",
            args.processes,
            1e3 * one_s,
            args.processes,
            1e3 * all_s,
            1e2 * talk
        );
    }
    Ok(())
}

fn parameters(definition: &TrainDefinition, corpus: &Corpus) -> Result<usize> {
    Ok(Trainer::new(definition, corpus, Device::Cpu)?.model().parameters())
}

/// One process, on one thread: takes the steps of a turn whenever it is told to, and tells what it spent with others.
fn process(
    args: &ProcessesBench,
    rank: usize,
    folder: &Path,
    definition: &TrainDefinition,
    corpus: &Corpus,
    goes: &Receiver<()>,
    told: &Sender<Result<Duration>>,
) -> Result<()> {
    let meeting = Meeting {
        rank,
        world: args.processes,
        folder,
        launch: "",
        on_this_machine: true,
        address: None,
        kind: "",
        patience: Duration::from_secs(600),
        meanwhile: &|| Ok(()),
    };
    let ranks = Timed { ranks: meeting.hold()?, spent: Mutex::default() };
    let (_, thread) = pool(Some(1))?;
    let mut trainer = Trainer::new(definition, corpus, Device::Cpu)?.together(&ranks)?;
    while goes.recv().is_ok() {
        thread.install(|| (0..args.steps).try_for_each(|_| trainer.step().map(drop)))?;
        told.send(Ok(ranks.take())).context("nobody listens")?;
    }
    ranks.ranks.leave(None);
    Ok(())
}

/// Collectives, and how long they took.
struct Timed {
    ranks: Tcp,
    spent: Mutex<Duration>,
}

impl Timed {
    fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let found = work();
        if let Ok(mut spent) = self.spent.lock() {
            *spent += started.elapsed();
        }
        found
    }

    fn take(&self) -> Duration {
        self.spent.lock().map(|mut spent| std::mem::take(&mut *spent)).unwrap_or_default()
    }
}

impl Collective for Timed {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn world(&self) -> usize {
        self.ranks.world()
    }

    fn sum(&self, numbers: &mut [f32]) -> Result<(), CollectiveError> {
        self.time(|| self.ranks.sum(numbers))
    }

    fn gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, CollectiveError> {
        self.time(|| self.ranks.gather(message))
    }
}
