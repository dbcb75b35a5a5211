//! Shows matrices in files: those of `dump`, or any others.

use std::path::{Path, PathBuf};

use ndarray::Array2;

use super::shown::Shown;
use crate::figure::{Colouring, Matrix, matrices};
use crate::report::error::ReportError;
use crate::table::{Table, significant};
use crate::targets::{TargetError, TargetFile};

/// Maximum number of panels per figure.
const MOST_PANELS: usize = 12;
/// Largest deviation from 1 of a row's sum in attention.
const ROW_SUM: f64 = 0.02;
/// Extensions of files with matrices.
const ENDINGS: [&str; 4] = ["npy", "csv", "parquet", "safetensors"];

/// One matrix of a file.
struct Dumped {
    name: String,
    matrix: Array2<f64>,
}

impl Dumped {
    /// Whether the matrix is attention rather than logits: all rows are probabilities.
    fn is_attention(&self) -> bool {
        self.matrix.outer_iter().all(|row| {
            (row.sum() - 1.0).abs() <= ROW_SUM && row.iter().all(|p| (0.0..=1.0).contains(p))
        })
    }

    /// Mean over rows i of Σⱼ pᵢⱼ · of(i, j, pᵢⱼ).
    fn mean(&self, of: impl Fn(usize, usize, f64) -> f64) -> f64 {
        let seen = self.matrix.indexed_iter().filter(|(_, p)| **p > 0.0);
        seen.map(|((i, j), &p)| p * of(i, j, p)).sum::<f64>() / self.matrix.nrows() as f64
    }

    fn mean_distance(&self) -> f64 {
        self.mean(|i, j, _| i.abs_diff(j) as f64)
    }

    fn largest(&self) -> f64 {
        self.matrix.iter().filter(|z| z.is_finite()).fold(0.0, |most, z| f64::max(most, z.abs()))
    }
}

/// Lists the matrix files in a folder that are named as by `dump`, in the order of layers and heads. A file is returned
/// itself.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|file| {
            let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
            place(file).is_some() && ending.is_some_and(|e| ENDINGS.contains(&e.as_str()))
        })
        .collect();
    files.sort_by_key(|file| place(file));
    files
}

/// Parses `layer-L-head-H` as (L, H).
fn place(file: &Path) -> Option<(usize, usize)> {
    let name = file.file_stem()?.to_str()?;
    let (layer, head) = name.strip_prefix("layer-")?.split_once("-head-")?;
    Some((layer.parse().ok()?, head.parse().ok()?))
}

/// Shows matrices, with attention and logits separately.
///
/// # Errors
/// A file is not a matrix of numbers.
pub(super) fn show(path: &Path, files: &[PathBuf]) -> Result<Shown, ReportError> {
    let read = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().replace('-', " ");
        Ok(Dumped { name, matrix: TargetFile::at(file).matrix()? })
    };
    let read: Vec<Dumped> = files.iter().map(read).collect::<Result<_, TargetError>>()?;
    let (attention, logits): (Vec<_>, Vec<_>) = read.into_iter().partition(Dumped::is_attention);
    let mut shown = Shown { title: format!("Matrices: {}", path.display()), ..Shown::default() };
    add(&mut shown, "attention", "Attention.", &attention, Colouring::Attention);
    let most = logits.iter().map(Dumped::largest).fold(f64::MIN_POSITIVE, f64::max);
    add(&mut shown, "logits", "Logits.", &logits, Colouring::Logits { most });
    if let Some(sentence) = of_attention(&attention) {
        shown.conclusion.push(sentence);
        shown.tables.push(attention_table(&attention));
    }
    let largest = logits.iter().max_by(|a, b| a.largest().total_cmp(&b.largest()));
    if let Some(largest) = largest {
        shown.conclusion.push(format!(
            "{}: max |logit| is {}, in {}.",
            match logits.len() {
                1 => "1 logit matrix".to_owned(),
                count => format!("{count} logit matrices"),
            },
            significant(largest.largest(), 3),
            largest.name
        ));
        shown.tables.push(logits_table(&logits));
    }
    Ok(shown)
}

fn add(shown: &mut Shown, name: &str, what: &str, all: &[Dumped], colouring: Colouring) {
    let parts = all.chunks(MOST_PANELS).count();
    for (at, part) in all.chunks(MOST_PANELS).enumerate() {
        let name = if parts > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let maps: Vec<Matrix<'_>> = part
            .iter()
            .map(|one| Matrix { title: one.name.clone(), values: one.matrix.view() })
            .collect();
        shown.figures.push(matrices(&name, what, &maps, colouring));
    }
}

fn of_attention(all: &[Dumped]) -> Option<String> {
    let by_distance = |a: &&Dumped, b: &&Dumped| a.mean_distance().total_cmp(&b.mean_distance());
    let (nearest, furthest) = (all.iter().min_by(by_distance)?, all.iter().max_by(by_distance)?);
    let distance = |one: &Dumped| significant(one.mean_distance(), 3);
    Some(match all.len() {
        1 => format!(
            "1 attention matrix: the mean relative distance of {} is {} tokens.",
            nearest.name,
            distance(nearest)
        ),
        count => format!(
            "{count} attention matrices: the mean relative distance is smallest in {} ({} tokens) and largest in {} ({} tokens).",
            nearest.name,
            distance(nearest),
            furthest.name,
            distance(furthest)
        ),
    })
}

fn attention_table(all: &[Dumped]) -> Table {
    let mean_entropy = |one: &Dumped| one.mean(|_, _, p| -p.ln());
    let near = |one: &Dumped| one.mean(|i, j, _| f64::from(u8::from(i.abs_diff(j) < 16)));
    Table::from_items("attention", "Attention", all)
        .words("matrix", "matrix", |one| &one.name)
        .numbers("n", "n", |one| one.matrix.nrows())
        .numbers("mean_row_entropy_nats", ("mean row entropy", "nats"), mean_entropy)
        .numbers("mean_lag", ("mean relative distance", "tokens"), Dumped::mean_distance)
        .numbers("mass_within_16", "mass within 16", near)
        .numbers("largest", "largest entry", Dumped::largest)
        .build()
}

fn logits_table(all: &[Dumped]) -> Table {
    let largest_range = |one: &Dumped| {
        let ranges = one.matrix.outer_iter().map(|row| {
            let seen = row.iter().copied().filter(|z| z.is_finite());
            let ends = seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), z| {
                (low.min(z), high.max(z))
            });
            ends.1 - ends.0
        });
        ranges.fold(0.0, f64::max)
    };
    Table::from_items("logits", "Logits", all)
        .words("matrix", "matrix", |one| &one.name)
        .numbers("n", "n", |one| one.matrix.nrows())
        .numbers("max_abs_logit", "max |logit|", Dumped::largest)
        .numbers("spread", "largest logit range of a row", largest_range)
        .build()
}
