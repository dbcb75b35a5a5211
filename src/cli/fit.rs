//! `rank-study fit`: fits low-rank logits to one target.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::{
    Candidate, FRONTIER_COLUMNS, FrontierLabel, FrontierPoint, Layout, LowerBounds, Manifest,
    Problem, Row, SearchOptions, check_cap, check_tolerance, frontier, frontier_rows, needed_logit,
    needed_row, to_csv, write_factors,
};

use super::family::FamilyFlags;

/// Fit low-rank logits to a target: the least error within each cap, or the least logit for an error
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study fit --family dirichlet-band --window 32 --n 128 --rank 8 --caps 4,8,16 --out fits/band
  rank-study fit --target attention.npy --rank 16 --tolerance 0.05 --out fits/mine
  rank-study fit --target attention.npy --rank 8 --layout local:24+global --caps 4,8 --out fits/split

DIR/frontier.csv has one row a cap; DIR/factors/ holds the queries, keys and head weights of each
row as .npy, from which anyone can compute kl_nats and max_abs_logit again.")]
pub struct FitArgs {
    /// Head dimension d: the rank of Q·Kᵀ
    #[arg(long, value_name = "D")]
    rank: usize,
    /// Bounds on |logit|, in nats, separated by commas: the least kl_nats within each
    #[arg(
        long,
        value_name = "L,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        group = "goal"
    )]
    caps: Vec<f64>,
    /// One bound on |logit|, in nats
    #[arg(long, value_name = "L", allow_negative_numbers = true, group = "goal")]
    max_logit: Option<f64>,
    /// An error in kl_nats: the least max |logit| that reaches it
    #[arg(long, value_name = "EPS", allow_negative_numbers = true, group = "goal")]
    tolerance: Option<f64>,
    /// Heads joined by +, each global or local:W, with Nx for repeats
    #[arg(long, default_value = "global")]
    layout: String,
    /// Independent starts; the best of them is the row
    #[arg(long, value_name = "N", default_value_t = SearchOptions::default().starts)]
    seeds: usize,
    /// Folder for frontier.csv, the factors and the manifest
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the rows as one JSON array instead of a table
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
    // Last, because its help heading holds for all that follows.
    #[command(flatten)]
    family: FamilyFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// A target, rank, cap or layout that is wrong; a folder that cannot be written.
pub fn run(args: &FitArgs) -> Result<()> {
    let caps: Vec<f64> = args.caps.iter().copied().chain(args.max_logit).collect();
    if caps.is_empty() && args.tolerance.is_none() {
        bail!("say what to fit: --caps 4,8,16 or --max-logit 8 or --tolerance 0.05");
    }
    let flag = if args.max_logit.is_some() { "--max-logit" } else { "--caps" };
    caps.iter().try_for_each(|&cap| check_cap(cap)).context(flag)?;
    args.tolerance.map_or(Ok(()), check_tolerance).context("--tolerance")?;
    if args.seeds == 0 {
        bail!("--seeds is 0; give at least 1");
    }
    let layout: Layout = args.layout.parse().context("--layout")?;
    let target = args.family.target()?;
    let problem = Problem::new(target, layout, args.rank).context("--rank")?;
    let label = FrontierLabel { target: args.family.label()?, seed: None };
    let options =
        SearchOptions { starts: args.seeds, seed: args.family.seed(), ..SearchOptions::default() };
    let job = Job { args, problem, label, options, started: Instant::now() };
    job.check_out()?;
    let mut manifest = Manifest::begin(rayon::current_num_threads(), "float64");
    let rows = match args.tolerance {
        Some(tolerance) => job.needed(tolerance)?,
        None => job.frontier(&caps)?,
    };
    manifest.end(job.started.elapsed().as_secs_f64());
    manifest.more.insert("target".to_owned(), job.label.target.clone().into());
    manifest.more.insert("seed".to_owned(), (args.family.seed() as i64).into());
    manifest.more.insert("starts".to_owned(), (args.seeds as i64).into());
    manifest.write(&args.out.join("manifest.toml")).context("--out")?;
    print(&rows, args.json)
}

struct Job<'a> {
    args: &'a FitArgs,
    problem: Problem,
    label: FrontierLabel,
    options: SearchOptions,
    started: Instant,
}

impl Job<'_> {
    /// Refuses a folder that already holds a frontier, and one that cannot be written, before any
    /// work is done.
    fn check_out(&self) -> Result<()> {
        let out = &self.args.out;
        if out.join("frontier.csv").exists() {
            bail!("--out {} already holds a frontier.csv; name another folder", out.display());
        }
        std::fs::create_dir_all(out)
            .and_then(|()| tempfile::tempfile_in(out))
            .with_context(|| format!("--out {} cannot be written", out.display()))?;
        Ok(())
    }

    fn frontier(&self, caps: &[f64]) -> Result<Vec<Row>> {
        let mut bounds = LowerBounds::new(&self.problem);
        let mut saved = Ok(Vec::new());
        let mut last_said = None;
        let points = frontier(&self.problem, caps, self.options, |points| {
            if saved.is_ok() {
                saved = self.save(points, &mut bounds);
            }
            let line = points.iter().map(|p| format!("{}: {}", p.cap, kl(p))).collect::<Vec<_>>();
            let line = line.join("  ");
            if !self.args.quiet && last_said.as_ref() != Some(&line) {
                eprintln!("[{:.1} s] kl_nats by cap  {line}", self.started.elapsed().as_secs_f64());
                last_said = Some(line);
            }
        })
        .context("--caps")?;
        saved?;
        self.save(&points, &mut bounds)
    }

    fn save(&self, points: &[FrontierPoint], bounds: &mut LowerBounds<'_>) -> Result<Vec<Row>> {
        let wall_time_s = self.started.elapsed().as_secs_f64() / points.len() as f64;
        let mut rows = frontier_rows(&self.problem, &self.label, points, bounds, wall_time_s);
        for (row, point) in rows.iter_mut().zip(points) {
            self.certify(row, point.best.as_ref(), &format!("cap-{}", point.cap))?;
        }
        self.write(&rows)?;
        Ok(rows)
    }

    fn needed(&self, tolerance: f64) -> Result<Vec<Row>> {
        if !self.args.quiet {
            let starts = self.options.starts;
            eprintln!(
                "looking for the least logit with kl_nats ≤ {tolerance} from {starts} starts"
            );
        }
        let found = needed_logit(&self.problem, tolerance, self.options).context("--tolerance")?;
        let wall_time_s = self.started.elapsed().as_secs_f64();
        let mut row = needed_row(&self.problem, &self.label, tolerance, &found, wall_time_s);
        self.certify(&mut row, found.best.as_ref(), &format!("tolerance-{tolerance}"))?;
        self.write(std::slice::from_ref(&row))?;
        Ok(vec![row])
    }

    fn certify(&self, row: &mut Row, best: Option<&Candidate>, name: &str) -> Result<()> {
        if let Some(best) = best {
            let folder = Path::new("factors").join(name);
            write_factors(&self.args.out.join(&folder), &best.solution.factors).context("--out")?;
            row.set("factors", folder.display());
        }
        Ok(())
    }

    fn write(&self, rows: &[Row]) -> Result<()> {
        let path = self.args.out.join("frontier.csv");
        let bytes = to_csv(FRONTIER_COLUMNS, rows.iter())?;
        rank_study::write_whole(&path, &bytes)
            .with_context(|| format!("--out: cannot write {}", path.display()))
    }
}

fn kl(point: &FrontierPoint) -> String {
    match &point.best {
        Some(best) => format!("{:.6}", best.solution.kl_nats),
        None => "-".to_owned(),
    }
}

/// The rows on standard output, as a table of the columns that one reads first or as JSON.
fn print(rows: &[Row], json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        let objects: Vec<_> = rows.iter().map(Row::to_json).collect();
        writeln!(out, "{}", serde_json::to_string(&objects)?)?;
        return Ok(());
    }
    let shown = [
        "cap",
        "kl_nats",
        "max_abs_logit",
        "floor_kl_nats",
        "floor_max_abs_logit",
        "inflation",
        "outcome",
    ];
    writeln!(out, "{}", shown.map(|name| format!("{name:>20}")).join(""))?;
    for row in rows {
        let cell = |name: &str| match row.get(name).parse::<f64>() {
            Ok(value) => format!("{value:>20.6}"),
            Err(_) => format!("{:>20}", if row.get(name).is_empty() { "-" } else { row.get(name) }),
        };
        writeln!(out, "{}", shown.map(cell).join(""))?;
    }
    Ok(())
}
