//! Files that were altered by hand, by a disk or with intent, through the binary: one line says what is wrong with them,
//! where, and what to do, and what it advises mends it.

use std::path::{Path, PathBuf};

use crate::common::binary::Folder;
use crate::common::tiny;

const SWEEP: [&str; 3] = ["sweep", "analysis/fits.toml", "--quiet"];
const ROWS: &str = "data/fits/rows.csv";

fn study() -> String {
    tiny::fits("study = \"fits\"\ngrid.n = [12, 16, 24]\ngrid.tolerance = [0.4]")
}

fn measured() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/fits.toml", study());
    folder.done(&SWEEP);
    folder
}

/// `rows.csv` with another value in a column of its first row.
fn with(rows: &str, column: &str, value: &str) -> Vec<u8> {
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let header = reader.headers().unwrap().clone();
    let place = header.iter().position(|name| name == column).unwrap();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).unwrap();
    for (at, record) in reader.records().enumerate() {
        let record = record.unwrap();
        let fields = record.iter().enumerate();
        writer
            .write_record(fields.map(|(of, old)| if (at, of) == (0, place) { value } else { old }))
            .unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn a_value_that_no_row_has_is_told_with_its_place_and_drawn_by_nothing() {
    let folder = measured();
    let rows = folder.read(ROWS);
    for (column, value) in [
        ("n", "0"),
        ("rank", "0"),
        ("window", "0"),
        ("n", "99999999999999999999"),
        ("n", "nan"),
        ("tolerance", "0"),
        ("max_abs_logit", "1e300"),
        ("kl_nats", "NaN"),
        ("inflation", "inf"),
    ] {
        folder.write(ROWS, with(&rows, column, value));
        for command in ["table", "figure", "report"] {
            let why = folder.refused(&[command, "fits"]);
            let is_told = ["rows.csv, line 2: ".to_owned(), format!("in column {column} ")];
            assert!(is_told.iter().all(|part| why.contains(part)), "{column} = {value}: {why}");
        }
    }
    // What it advises: the line goes, and its cell alone is measured again.
    folder.write(ROWS, with(&rows, "rank", "0"));
    folder.refused(&["table", "fits"]);
    let (header, rest) = rows.split_once('\n').unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    folder.write(ROWS, format!("{header}\n{rest}"));
    folder.done(&SWEEP);
    assert!(folder.done(&["table", "fits"]).contains("| 12"));
}

#[test]
fn a_number_next_to_nothing_is_drawn_like_any_other() {
    let folder = measured();
    let rows = folder.read(ROWS);
    for (column, value) in
        [("max_abs_logit", "1e-320"), ("inflation", "3e38"), ("floor_max_abs_logit", "5e-324")]
    {
        folder.write(ROWS, with(&rows, column, value));
        // Taken as they stand: the manifest tells of them then.
        folder.done(&SWEEP);
        for command in ["table", "figure", "report"] {
            folder.done(&[command, "fits"]);
        }
    }
}

#[test]
fn a_definition_s_wrong_number_is_told_with_its_key() {
    let folder = Folder::new();
    for (to, what) in
        [("n = nan", "grid.n is NaN"), ("n = [nan]", "grid.n is NaN"), ("n = [-1]", "grid.n is -1")]
    {
        folder.write("analysis/fits.toml", study().replace("n = [12, 16, 24]", to));
        let why = folder.refused(&SWEEP);
        assert!(why.contains("analysis/fits.toml: ") && why.contains(what), "{to}: {why}");
    }
}

#[test]
fn a_packed_text_that_unpacks_to_a_thousand_times_its_size_is_refused() {
    let folder = Folder::new();
    let text = vec![b'a'; 1 << 27];
    folder.write("trap.txt.zst", zstd::encode_all(&text[..], 3).unwrap());
    folder.write("run.toml", tiny::training(""));
    let train = |text| {
        ["train", "run.toml", "--text", text, "--set", "vocabulary=byte", "--quiet", "--out", "r"]
    };
    let why = folder.refused(&train("trap.txt.zst"));
    assert!(why.contains("trap.txt.zst") && why.contains("64 MiB"), "{why}");
    // What is small may be as regular as it likes.
    folder.write("small.txt.zst", zstd::encode_all(&text[..1 << 20], 3).unwrap());
    folder.done(&train("small.txt.zst"));
}

fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

#[test]
fn files_that_libraries_panic_abort_or_hang_at_are_refused_in_a_line() {
    let folder = Folder::new();
    folder.write("text.txt", "the cat sat on the hat\n".repeat(20));
    let found = |name: &str| std::fs::read(tests("inputs/found").join(name)).unwrap();
    for name in [
        "parquet/1-range-before-its-start",
        "parquet/1-long-list",
        "parquet/3-count-below-zero",
        "npy/0-nested-header",
    ] {
        let file = format!("matrix.{}", name.split('/').next().unwrap());
        folder.write(&file, found(name));
        let fit = ["fit", "--target", &file, "--rank", "1", "--max-logit", "1", "--out", "o"];
        let why = folder.refused(&fit);
        assert!(why.contains(&file), "{name}: {why}");
    }
    for (model, file, name, what) in [
        ("gpt2", "tokenizer.json", "tokenizer/3-long-prefix", "tokenizer.json"),
        ("qwen3", "config.json", "config/14-layers-without-end", "num_hidden_layers"),
    ] {
        for entry in std::fs::read_dir(tests("reference/published").join(model)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            folder.write(&format!("{model}/{name}"), std::fs::read(&path).unwrap());
        }
        folder.write(&format!("{model}/{file}"), found(name));
        let why = folder.refused(&["predict", model, "--text", "text.txt", "--out", "o"]);
        assert!(why.contains(what), "{name}: {why}");
    }
}
