//! Files that were altered by hand, by a disk or with intent, through the binary: one line says what is wrong with them,
//! where, and what to do, and what it advises mends it.

use std::path::Path;

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
    for (column, value, what) in [
        ("n", "0", "0 in column n is not a whole number from 1 to"),
        ("rank", "0", "0 in column rank is not a whole number from 1 to"),
        ("window", "0", "0 in column window is not a whole number from 1 to"),
        ("n", "99999999999999999999", "is not a whole number"),
        ("n", "nan", "\"nan\" in column n is not a whole number"),
        ("tolerance", "0", "0.0 in column tolerance is not a number above 0"),
        ("max_abs_logit", "1e300", "1e300 in column max_abs_logit is not a number of magnitude"),
        ("kl_nats", "NaN", "NaN in column kl_nats is not a number of magnitude"),
        ("inflation", "inf", "inf in column inflation is not a number of magnitude"),
    ] {
        folder.write(ROWS, with(&rows, column, value));
        for command in ["table", "figure", "report"] {
            let why = folder.refused(&[command, "fits"]);
            assert!(why.contains(what), "{column} = {value}: {why}");
            assert!(why.contains("rows.csv, line 2: "), "{column} = {value}: {why}");
            assert!(why.contains("correct it, or delete the line and measure"), "{why}");
        }
    }
    // What it advises: the line goes, and its cell alone is measured again.
    folder.write(ROWS, with(&rows, "rank", "0"));
    folder.refused(&["table", "fits"]);
    let kept: Vec<&str> =
        rows.lines().enumerate().filter(|(at, _)| *at != 1).map(|l| l.1).collect();
    folder.write(ROWS, kept.join("\n") + "\n");
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
    for (to, what) in [
        ("n = nan", "grid.n is NaN; it must be a list"),
        ("n = [nan]", "grid.n is NaN; it must be a whole number"),
        ("n = [-1]", "grid.n is -1; it must be a whole number"),
    ] {
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
    folder.write(
        "run.toml",
        "arm = \"ls\"\nlayers = 1\nd_model = 8\nheads = 2\nwindow = 3\ncontext = 8\nsteps = 2\n",
    );
    let train = |text| {
        ["train", "run.toml", "--text", text, "--set", "vocabulary=byte", "--quiet", "--out", "r"]
    };
    let why = folder.refused(&train("trap.txt.zst"));
    assert!(why.contains("trap.txt.zst: unpacks to more than 64 MiB"), "{why}");
    assert!(why.contains("name the file without .zst"), "{why}");
    // What is small may be as regular as it likes.
    folder.write("small.txt.zst", zstd::encode_all(&text[..1 << 20], 3).unwrap());
    folder.done(&train("small.txt.zst"));
}

/// A file that did harm, as tests/inputs keeps it.
fn found(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/found");
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn matrices_that_libraries_panic_abort_or_hang_at_are_refused_in_a_line() {
    let folder = Folder::new();
    for (name, ending, what) in [
        ("parquet/1-range-before-its-start", "parquet", "damaged file ("),
        ("parquet/1-long-list", "parquet", "damaged file ("),
        ("parquet/3-count-below-zero", "parquet", "damaged file (a page announces -"),
        ("npy/0-nested-header", "npy", "brackets"),
    ] {
        let file = format!("matrix.{ending}");
        folder.write(&file, found(name));
        let fit = ["fit", "--target", &file, "--rank", "1", "--max-logit", "1", "--out", "o"];
        let why = folder.refused(&fit);
        assert!(why.contains(&file) && why.contains(what), "{name}: {why}");
    }
}

#[test]
fn models_that_libraries_panic_at_are_refused_in_a_line() {
    let folder = Folder::new();
    folder.write("text.txt", "the cat sat on the hat\n".repeat(20));
    for (model, file, name, what) in [
        ("gpt2", "tokenizer.json", "tokenizer/3-long-prefix", "tokenizer.json: is damaged: "),
        ("qwen3", "config.json", "config/14-layers-without-end", "num_hidden_layers is 4294967296"),
    ] {
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/published");
        for entry in std::fs::read_dir(whole.join(model)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            folder.write(&format!("{model}/{name}"), std::fs::read(&path).unwrap());
        }
        folder.write(&format!("{model}/{file}"), found(name));
        let why = folder.refused(&["predict", model, "--text", "text.txt", "--out", "o"]);
        assert!(why.contains(what), "{name}: {why}");
    }
}
