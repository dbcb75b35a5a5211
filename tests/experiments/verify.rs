//! Every column of every kind of rows, altered in turn with the hash mended: how many invariants it breaks.

use std::fs;
use std::path::{Path, PathBuf};

use rank_study::study::{Preset, StudyDefinition, verify};
use sha2::{Digest as _, Sha256};

/// A study of each kind, whose committed rows are altered.
const STUDIES: [(&str, &str); 7] = [
    ("phase", "phase"),
    ("spectra", "spectra"),
    ("latency", "latency"),
    ("lm-local-hurts", "lm-local-hurts"),
    ("lm-decomposition", "lm-decomposition-pg-books-train"),
    ("lm-ramp", "lm-ramp-pg-books-train"),
    ("lm-surgery", "lm-surgery-pg-books-train"),
];

/// The columns of which nothing else says enough for a small change to be told, by study, and why.
const FREE: [(&str, &str, &str); 11] = [
    ("phase", "iterations", "how long a search took, which only the search itself could say"),
    ("phase", "evaluations", "the same"),
    ("phase", "factors", "a path, empty in studies, which keep no factors"),
    ("latency", "threads", "of the process: any number that it may have had"),
    ("latency", "parameters", "hangs on the vocabulary too, of which rows say nothing"),
    (
        "lm-local-hurts",
        "loss_spikes",
        "counted over all steps, of which the curve keeps two hundred",
    ),
    (
        "lm-decomposition",
        "passages",
        "part of what `settings` is a hash of, but the text's passages are not kept",
    ),
    ("lm-decomposition", "input_rank", "is known of the layer's input alone"),
    (
        "lm-decomposition",
        "iterations",
        "how long a search took, which only the search itself could say",
    ),
    ("lm-decomposition", "evaluations", "the same"),
    (
        "lm-ramp",
        "median_lag",
        "held by the masses within 1, 4, 16 and 64 tokens, by none of them to one",
    ),
];

/// A study's folder, copied to where its rows can be altered.
struct Copied {
    definition: StudyDefinition,
    folder: PathBuf,
    rows: Vec<Vec<String>>,
    manifest: String,
    hash: String,
}

impl Copied {
    fn new(of: &str, study: &str, data: &Path) -> Self {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = home.join("analysis").join(of).with_extension("toml");
        let definition = StudyDefinition::read(&path, Preset::Paper).unwrap();
        let folder = data.join(study);
        copy(&home.join("data").join(study), &folder);
        let text = fs::read_to_string(folder.join("rows.csv")).unwrap();
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let rows = reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect());
        let (rows, hash) = (rows.collect(), hash(text.as_bytes()));
        let manifest = fs::read_to_string(folder.join("manifest.toml")).unwrap();
        assert!(manifest.contains(&hash), "{study}: its manifest tells of other rows");
        Self { definition, folder, rows, manifest, hash }
    }

    /// What verify says where the field at (row, column) is `value`, under a hash that fits.
    fn with(&self, row: usize, column: usize, value: String) -> Vec<String> {
        let mut rows = self.rows.clone();
        rows[row][column] = value;
        let mut writer = csv::Writer::from_writer(Vec::new());
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let bytes = writer.into_inner().unwrap();
        let manifest = self.manifest.replace(&self.hash, &hash(&bytes));
        fs::write(self.folder.join("rows.csv"), &bytes).unwrap();
        fs::write(self.folder.join("manifest.toml"), manifest).unwrap();
        let mut breaches = verify(&self.definition, &self.folder).laws.breaches;
        // That the Parquet file is another's is no law.
        breaches.retain(|breach| !breach.starts_with("rows.parquet: "));
        breaches
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_altered_column_breaks_a_law_but_those_that_are_free() {
    let place = tempfile::tempdir().unwrap();
    let mut free = Vec::new();
    let mut counts: Vec<String> = Vec::new();
    for (of, study) in STUDIES {
        let copied = Copied::new(of, study, place.path());
        let header = copied.rows[0].clone();
        for (column, name) in header.iter().enumerate() {
            // The first row with something in the column, or the first.
            let filled = (1..copied.rows.len()).find(|&row| !copied.rows[row][column].is_empty());
            let row = filled.unwrap_or(1);
            let value = &copied.rows[row][column];
            let altered = match value.parse::<f64>() {
                Ok(number) => {
                    let is_whole = number.fract() == 0.0 && !value.contains('.');
                    let step = if is_whole { 1.0 } else { 10.0 * number.abs().max(1.0) };
                    [number + step, number - step].map(|number| number.to_string())
                }
                Err(_) if value.is_empty() => ["1".to_owned(), "0.5".to_owned()],
                Err(_) => [format!("{value}x"), String::new()],
            };
            let breaches = altered.map(|altered| copied.with(row, column, altered).len());
            if breaches == [0, 0] {
                free.push((of, name.clone()));
            }
            let [up, down] = breaches;
            counts.push(format!("{of} {name} {up} {down}"));
        }
    }
    counts.sort();
    // The invariants that a larger and a smaller value break: one that is taken away is missing.
    insta::assert_snapshot!(counts.join("\n"));
    let known: Vec<_> = FREE.iter().map(|&(of, name, _)| (of, name.to_owned())).collect();
    assert_eq!(free, known, "columns that no law holds");
}

#[test]
fn a_missing_file_is_a_check_that_does_not_hold_and_the_others_still_run() {
    let place = tempfile::tempdir().unwrap();
    let copied = Copied::new("lm-local-hurts", "lm-local-hurts", place.path());
    let all = verify(&copied.definition, &copied.folder).laws;
    assert_eq!(all.breaches, Vec::<String>::new());
    for file in [
        "manifest.toml", "rows.parquet", "mhsa-0.9/s0/curve.csv", "mhsa-0.9/s0/eval.csv",
        "mhsa-0.9/s0/manifest.toml",
    ] {
        let path = copied.folder.join(file);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let laws = verify(&copied.definition, &copied.folder).laws;
        let last = Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(laws.breaches.len(), 1, "{file}: {:?}", laws.breaches);
        assert!(laws.breaches[0].contains(&last), "{file}: {:?}", laws.breaches);
        assert!(laws.checks + 400 > all.checks, "{file}: {} of {}", laws.checks, all.checks);
        fs::write(&path, bytes).unwrap();
    }
    fs::remove_file(copied.folder.join("rows.csv")).unwrap();
    let laws = verify(&copied.definition, &copied.folder).laws;
    for told in ["rows.csv: is missing", "no rows measured"] {
        assert!(laws.breaches.iter().any(|b| b.contains(told)), "{told}: {:?}", laws.breaches);
    }
}
