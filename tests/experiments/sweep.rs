//! `rank-study sweep` through the binary: rows that are there stay, rows that are not are measured,
//! and nothing finished is lost however a run ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::binary::{Ended, Folder, Record};
use crate::common::{binary, tiny};
use rank_study::experiments::fits::FitMeasurement;

/// A study of sixteen cells.
static GRID: LazyLock<String> = LazyLock::new(|| {
    tiny::fits(
        "grid.n = [16, 24]\ntarget = [{ family = \"dirichlet-band\", window = 4 }, \
         { family = \"landmark\", m = 3 }]",
    )
});

/// The cells of [`LONG`].
const CELLS: usize = 32;
/// Fits of about a tenth of a second each, so many that they are stopped in the middle on a busy machine too.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let seeds: Vec<usize> = (0..CELLS).collect();
    format!(
        "study = \"long\"\nkind = \"fit\"\ngrid = {{ n = [48], rank = [4], seed = {seeds:?}, caps = [2, 4] }}\n\
         target = [{{ family = \"dirichlet-band\", window = 8 }}]\n[search]\nstarts = 2\npolished = 1\n\
         rough_iterations = 500\niterations = 1000\nrelative_decrease = 0\n"
    )
});

const ROWS: &str = "data/tiny/rows.csv";

fn with_definition(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("tiny.toml", text);
    folder
}

fn measured() -> Folder {
    let folder = with_definition(&GRID);
    folder.done(&["sweep", "tiny.toml"]);
    folder
}

/// The cells of the tiny study in its definition's order.
fn cells(seeds: &[u64]) -> Vec<String> {
    let mut names = Vec::new();
    for family in ["dirichlet-band", "landmark"] {
        for n in [16, 24] {
            for rank in [2, 4] {
                names.extend(seeds.iter().map(|s| format!("{family}/n{n}-d{rank}-s{s}")));
            }
        }
    }
    names
}

fn names(rows: &[Record]) -> Vec<String> {
    rows.iter().map(|row| row["cell"].clone()).collect()
}

fn without_time(mut rows: Vec<Record>) -> Vec<Record> {
    rows.iter_mut().for_each(|row| assert!(row.remove("wall_time_s").is_some()));
    rows
}

#[test]
fn a_study_is_measured_once() {
    let folder = with_definition(&GRID);
    let listed = folder.done(&["sweep", "tiny.toml", "--list"]);
    let expected: Vec<String> = cells(&[0, 1]).iter().map(|c| format!("      {c}")).collect();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    assert_eq!(folder.tree(), ["tiny.toml"], "--list writes nothing");

    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("16 configurations measured") && printed.contains(ROWS), "{printed}");
    let (header, rows) = folder.csv(ROWS);
    let columns = rank_study::record::columns::<FitMeasurement>();
    assert_eq!(header, columns.iter().map(|column| column.name).collect::<Vec<_>>());
    assert_eq!(names(&rows), cells(&[0, 1]));
    for row in &rows {
        assert_eq!((row["study"].as_str(), row["err"].as_str()), ("tiny", ""));
        assert!(!row["kl_nats"].is_empty() && !row["max_abs_logit"].is_empty(), "{row:?}");
    }
    assert_eq!((rows[0]["window"].as_str(), rows[0]["m"].as_str()), ("4", ""));
    assert_eq!((rows[8]["window"].as_str(), rows[8]["m"].as_str()), ("", "3"));
    let manifest: toml::Table = folder.read("data/tiny/manifest.toml").parse().unwrap();
    assert_eq!(manifest["command"].as_str(), Some("rank-study sweep tiny.toml"));
    assert_eq!(manifest["definition"].as_str(), Some(GRID.as_str()));
    for key in ["git_revision", "dtype", "threads", "blas", "cpu", "versions", "started", "ended"] {
        assert!(manifest.contains_key(key), "no {key} in {manifest}");
    }

    let before = folder.read(ROWS);
    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("0 configurations measured, 16 done before"), "{printed}");
    assert_eq!(folder.read(ROWS), before);
    let listed = folder.done(&["sweep", "tiny.toml", "--list"]);
    assert_eq!(listed.lines().filter(|line| line.starts_with("done  ")).count(), 16, "{listed}");

    // Words for readers are no setting.
    folder.write("tiny.toml", format!("title = \"Another title\"\n{}", *GRID));
    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("0 configurations measured"), "{printed}");
    assert_eq!(folder.read(ROWS), before);
}

#[test]
fn the_parquet_file_holds_the_same_rows_with_their_types() {
    use polars::prelude::{DataType, ParquetReader, SerReader};
    let folder = measured();
    let file = fs::File::open(folder.path("data/tiny/rows.parquet")).unwrap();
    let frame = ParquetReader::new(file).finish().unwrap();
    let (header, rows) = folder.csv(ROWS);
    assert_eq!(frame.shape(), (rows.len(), header.len()));
    assert_eq!(frame.column("n").unwrap().dtype(), &DataType::Int64);
    assert_eq!(frame.column("tau").unwrap().null_count(), rows.len());
    let kl_nats = frame.column("kl_nats").unwrap().f64().unwrap();
    for (row, kl_nats) in rows.iter().zip(kl_nats.iter()) {
        assert_eq!(kl_nats.map(|kl| kl.to_string()).as_deref(), Some(row["kl_nats"].as_str()));
    }
}

#[test]
fn clusters_and_vocabulary_are_keys_and_columns() {
    let folder = with_definition(&tiny::fits(
        "target = [{ family = \"induction\", vocabulary = 5 }, \
         { family = \"mixture\", local = \"uniform-band\", window = 4, global = \"clustered\", c = 3 }]",
    ));
    folder.done(&["sweep", "tiny.toml", "--filter", "n16-d4-s0"]);
    let (_, rows) = folder.csv(ROWS);
    let fields: Vec<[&str; 4]> = rows
        .iter()
        .map(|row| ["family", "vocabulary", "c", "err"].map(|name| row[name].as_str()))
        .collect();
    assert_eq!(fields, [["induction", "5", "", ""], ["mixture", "", "3", ""]]);
    let table = folder.done(&["table", "tiny"]);
    assert!(table.contains("induction, vocabulary = 5") && table.contains("c = 3"), "{table}");
}

#[test]
fn a_filter_measures_its_cells_and_a_later_run_the_rest() {
    let folder = with_definition(&GRID);
    folder.done(&["sweep", "tiny.toml", "--filter", "^landmark/n24-.*-s1$"]);
    let (_, some) = folder.csv(ROWS);
    assert_eq!(names(&some), ["landmark/n24-d2-s1", "landmark/n24-d4-s1"]);
    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("14 configurations measured, 2 done before"), "{printed}");
    let (_, all) = folder.csv(ROWS);
    assert_eq!(names(&all), cells(&[0, 1]));
    assert!(some.iter().all(|row| all.contains(row)), "measured again: {some:?}");
}

#[test]
fn rows_do_not_depend_on_the_number_of_threads() {
    let mut found = Vec::new();
    for threads in ["1", "2"] {
        let folder = with_definition(&GRID);
        folder.done(&["sweep", "tiny.toml", "--threads", threads]);
        found.push(without_time(folder.csv(ROWS).1));
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn another_seed_is_measured_and_the_one_left_out_is_set_aside() {
    let folder = measured();
    let (_, before) = folder.csv(ROWS);
    folder.write("tiny.toml", GRID.replace("seed = [0, 1]", "seed = [0, 2]"));
    let Ended { stdout, stderr, .. } = folder.run(&["sweep", "tiny.toml"]);
    assert!(stdout.contains("8 configurations measured, 8 done before"), "{stdout}{stderr}");
    assert!(stderr.contains("8 rows "), "{stderr}");
    let (_, after) = folder.csv(ROWS);
    assert_eq!(names(&after), cells(&[0, 2]));
    let of_seed = |rows: &[Record], seed: &str| -> Vec<Record> {
        rows.iter().filter(|row| row["seed"] == seed).cloned().collect()
    };
    assert_eq!(of_seed(&after, "0"), of_seed(&before, "0"));
    let (_, aside) = folder.csv("data/tiny/rows-set-aside.csv");
    assert_eq!(aside, of_seed(&before, "1"));
}

#[test]
fn another_setting_measures_every_cell_again_and_sets_the_rows_aside() {
    let folder = measured();
    let (_, mut before) = folder.csv(ROWS);
    folder.write("tiny.toml", GRID.replace("\niterations = 120", "\niterations = 140"));
    let listed = folder.done(&["sweep", "tiny.toml", "--list"]);
    assert!(!listed.contains("done"), "{listed}");
    let Ended { code, stdout, stderr } = folder.run(&["sweep", "tiny.toml", "--filter", "s1$"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("tiny: 8 configurations measured;"), "{stdout}");
    for part in ["warning: data/tiny/rows.csv has 8 rows ", "data/tiny/rows-set-aside.csv"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    // In the order in which their cells ended.
    let aside = || {
        let (_, mut rows) = folder.csv("data/tiny/rows-set-aside.csv");
        rows.sort();
        rows
    };
    let (mut others, kept): (Vec<Record>, Vec<Record>) =
        before.iter().cloned().partition(|row| row["seed"] == "1");
    others.sort();
    assert_eq!(aside(), others);
    let (_, after) = folder.csv(ROWS);
    assert_eq!(names(&after), cells(&[0, 1]));
    assert!(kept.iter().all(|row| after.contains(row)), "rows of the other seed stay for now");
    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("tiny: 8 configurations measured, 8 done before;"), "{printed}");
    before.sort();
    assert_eq!(aside(), before);
}

#[test]
fn a_cell_that_fails_is_a_row_and_is_tried_again() {
    let text = GRID.replace("m = 3", "m = 20");
    let folder = with_definition(&text);
    for (before, measured) in [(0, 12), (12, 0)] {
        let Ended { code, stdout, stderr } = folder.run(&["sweep", "tiny.toml", "--quiet"]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stdout.contains(&format!("{measured} configurations measured")), "{stdout}");
        assert!(before == 0 || stdout.contains("12 done before"), "{stdout}");
        assert!(stdout.contains("4 failed"), "{stdout}");
        assert_eq!(stderr.matches("m is 20").count(), 4, "{stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: 4 configurations failed"), "{stderr}");
        let (_, rows) = folder.csv(ROWS);
        assert_eq!(names(&rows), cells(&[0, 1]));
        for row in rows {
            let fails = row["family"] == "landmark" && row["n"] == "16";
            assert_eq!(row["err"].contains("m is 20"), fails, "{row:?}");
            assert_eq!(row["kl_nats"].is_empty(), fails, "{row:?}");
        }
    }
    assert!(!folder.path("data/tiny/rows-set-aside.csv").exists(), "an error is no measurement");
}

#[test]
fn a_damaged_line_costs_its_own_cell_alone() {
    let folder = measured();
    let whole = folder.read(ROWS);
    let (_, before) = folder.csv(ROWS);
    let sweep = || {
        let Ended { code, stdout, stderr } = folder.run(&["sweep", "tiny.toml"]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains("warning: ") && stderr.contains(ROWS), "{stderr}");
        stdout
    };
    let is_aside = |line: &str| {
        let aside = folder.read("data/tiny/rows-set-aside.csv");
        assert!(aside.lines().any(|kept| kept == line), "{line:?} is not in {aside}");
    };
    // Cut within a number, at the very end of the line, right after the name of the cell, and within a character.
    for (cut, more) in [(30, &b""[..]), (1, b""), (200, b""), (30, &"é".as_bytes()[..1])] {
        let torn = [&whole.as_bytes()[..whole.len() - cut], more].concat();
        folder.write(ROWS, &torn);
        let printed = sweep();
        assert!(printed.contains("1 configuration measured, 15 done before"), "{printed}");
        let (_, after) = folder.csv(ROWS);
        assert_eq!(after[..15], before[..15]);
        assert_eq!(without_time(after), without_time(before.clone()));
        is_aside(String::from_utf8_lossy(&torn).lines().last().unwrap());
    }
    folder.write(ROWS, format!("{whole}what is this\n"));
    let printed = sweep();
    assert!(printed.contains("0 configurations measured, 16 done before"), "{printed}");
    assert_eq!(folder.read(ROWS), whole);
    is_aside("what is this");
}

/// The same rows without the columns that `dropped` names, as a study wrote them before it had any.
fn without_columns(folder: &Folder, dropped: &[&str]) -> String {
    let (header, rows) = folder.csv(ROWS);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let kept: Vec<&String> = header.iter().filter(|name| !dropped.contains(&&***name)).collect();
    writer.write_record(&kept).unwrap();
    for row in &rows {
        writer.write_record(kept.iter().map(|name| &row[*name])).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn rows_of_before_a_column_was_added_are_kept() {
    let folder = measured();
    let (header, rows) = folder.csv(ROWS);
    // All but the last cell's row.
    let newer = ["c", "vocabulary", "lower_bound_by", "lower_bound_max_abs_logit"];
    let older = without_columns(&folder, &newer);
    folder.write(ROWS, &older[..older.trim_end().rfind('\n').unwrap() + 1]);
    let printed = folder.done(&["sweep", "tiny.toml"]);
    assert!(printed.contains("1 configuration measured, 15 done before"), "{printed}");
    let (after, before) = folder.csv(ROWS);
    assert_eq!((&after, before.len()), (&header, rows.len()), "what is written has every column");
    assert_eq!((&*before[0]["lower_bound_by"], &before[0]["kl_nats"]), ("", &rows[0]["kl_nats"]));
    assert_ne!(before[15]["lower_bound_by"], "");
    let table = folder.done(&["table", "tiny"]);
    assert!(table.contains("dirichlet-band"), "{table}");

    // Rows set aside, too, get the columns that were added since: once those that were there, and
    // once those that this sweep sets aside.
    folder.write("data/tiny/rows-set-aside.csv", without_columns(&folder, &["c", "vocabulary"]));
    folder.write("tiny.toml", GRID.replace("seed = [0, 1]", "seed = [2]"));
    let printed = folder.done(&["sweep", "tiny.toml", "--filter", "landmark/n16-d2"]);
    assert!(printed.contains("1 configuration measured"), "{printed}");
    assert_eq!(folder.csv(ROWS).0, header);
    let (after, aside) = folder.csv("data/tiny/rows-set-aside.csv");
    assert_eq!(after, header);
    for row in &before {
        assert_eq!(aside.iter().filter(|other| *other == row).count(), 2, "{row:?}");
    }
    assert_eq!(aside.len(), 2 * before.len());
}

/// Starts the long study on one thread and waits until two of its cells have their rows.
fn under_way(folder: &Folder) -> Child {
    folder.write("long.toml", LONG.as_str());
    let mut command = folder.command(&["sweep", "long.toml", "--threads", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    loop {
        let rows = fs::read_to_string(folder.path("data/long/rows.csv")).unwrap_or_default();
        // The header, and two rows of each of two cells.
        if rows.lines().count() >= 5 {
            return child;
        }
        if let Some(status) = child.try_wait().unwrap() {
            panic!("ended before it could be stopped: {status}");
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no rows after a minute: {rows}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The next run after a stop: keeps every row that was there, and measures the rest.
fn goes_on(folder: &Folder) {
    let (_, before) = folder.csv("data/long/rows.csv");
    assert!((4..2 * CELLS).contains(&before.len()), "{} rows of {}", before.len(), 2 * CELLS);
    let printed = folder.done(&["sweep", "long.toml"]);
    let kept = before.len() / 2;
    let expected = format!("{} configurations measured, {kept} done before", CELLS - kept);
    assert!(printed.contains(&expected), "{expected:?} is not in {printed}");
    let (_, after) = folder.csv("data/long/rows.csv");
    assert_eq!(after.len(), 2 * CELLS);
    assert!(before.iter().all(|row| after.contains(row)), "a finished row was lost");
}

#[test]
#[cfg(unix)]
fn a_signal_stops_cleanly() {
    for signal in binary::SIGNALS {
        let folder = Folder::new();
        let child = under_way(&folder);
        binary::send(signal, &child);
        let Ended { code, stdout, stderr } = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(code, binary::STOPPED, "{signal}: {stderr}");
        assert!(stdout.contains(" left"), "{stdout}{stderr}");
        let manifest: toml::Table = folder.read("data/long/manifest.toml").parse().unwrap();
        assert_ne!(manifest["ended"].as_str(), Some(""));
        let odd: Vec<String> = folder.tree().into_iter().filter(|f| f.contains("tmp")).collect();
        assert!(odd.is_empty(), "{odd:?}");
        goes_on(&folder);
    }
}

#[test]
#[cfg(unix)]
fn a_later_signal_ends_at_once_but_not_the_same_one_told_twice() {
    let folder = Folder::new();
    folder.write("long.toml", LONG.replace("= 500", "= 500000").replace("= 1000", "= 1000000"));
    let mut command = folder.command(&["sweep", "long.toml", "--threads", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Signals are heard before the study's folder is taken.
    while !folder.path("data/long/.lock").exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(2));
    }
    // The first cell begins right after.
    std::thread::sleep(Duration::from_millis(300));
    binary::send("-HUP", &child);
    binary::send("-TERM", &child);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("press Ctrl-C again to stop at once")));
    std::thread::sleep(Duration::from_millis(1200));
    assert!(child.try_wait().unwrap().is_none(), "two signals of one stop ended it at once");
    binary::send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), binary::STOPPED);
    assert!(!folder.path("data/long/rows.csv").exists(), "it waited for the cell in hand");
}

/// Two small trainings, the second of which takes seconds.
fn trainings() -> String {
    tiny::trainings(
        r#"
study = "trainings"
presets = ["paper"]
train = { d_model = 16, window = 4, context = 32, batch = 4, steps = 20, warmup_steps = 5, eval_every = 10 }
run = [{ name = "ls", arm = "ls" }, { name = "mhsa", arm = "mhsa", steps = 2000 }]
[[expected]]
what = "none of a run that has not ended"
rows = { outcome = "completed" }
column = "valid_loss_nats"
most = 20.0
"#,
    )
}

#[test]
#[cfg(unix)]
fn a_training_that_was_stopped_has_a_row_that_says_so_until_it_ends() {
    let folder = Folder::new();
    folder.write("analysis/trainings.toml", trainings());
    // One cell after the other.
    let sweep = ["sweep", "analysis/trainings.toml", "--threads", "1"];
    let mut command = folder.command(&sweep);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let evaluations = folder.path("data/trainings/mhsa/s0/eval.csv");
    while fs::read_to_string(&evaluations).map_or(0, |text| text.lines().count()) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    binary::send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), binary::STOPPED);
    let outcomes = || -> Vec<(String, u64)> {
        let (_, rows) = folder.csv("data/trainings/rows.csv");
        let of = |row: &Record| (row["outcome"].clone(), row["tokens"].parse().unwrap());
        rows.iter().map(of).collect()
    };
    let stopped = outcomes();
    assert_eq!(stopped[0], ("completed".to_owned(), 20 * 128));
    assert_eq!(stopped[1].0, "stopped");
    assert!((10 * 128..2000 * 128).contains(&stopped[1].1), "{stopped:?}");

    let printed = folder.done(&["verify", "trainings"]);
    assert!(printed.contains("mhsa/s0 was stopped"), "{printed}");
    let table = folder.done(&["table", "trainings"]);
    assert!(table.contains("mhsa (so far)"), "{table}");
    let listed = folder.done(&["sweep", "analysis/trainings.toml", "--list"]);
    let done = listed.lines().filter_map(|line| line.strip_prefix("done"));
    assert_eq!(done.map(str::trim).collect::<Vec<_>>(), ["ls/s0"]);
    folder.done(&["report", "trainings"]);

    // Altered, it is told of.
    let rows = folder.read("data/trainings/rows.csv");
    let tokens = stopped[1].1;
    folder.write("data/trainings/rows.csv", rows.replace(&format!(",{tokens},"), ",999936,"));
    let Ended { code, .. } = folder.run(&["verify", "trainings"]);
    assert_eq!(code, Some(3));
    folder.write("data/trainings/rows.csv", rows);

    folder.done(&sweep);
    let whole = [("completed".to_owned(), 20 * 128), ("completed".to_owned(), 2000 * 128)];
    assert_eq!(outcomes(), whole);
    let aside = folder.path("data/trainings/rows-set-aside.csv");
    assert!(!aside.exists(), "what was so far is no measurement");
    folder.done(&["verify", "trainings"]);
}

#[test]
fn one_process_at_a_time_writes_a_study_and_one_killed_loses_no_finished_row() {
    let folder = Folder::new();
    let mut child = under_way(&folder);
    let Ended { code, stderr, .. } = folder.run(&["sweep", "long.toml"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("data/long"), "{stderr}");
    goes_on(&folder);
}

#[test]
fn a_bad_definition_is_one_line_that_names_file_and_key() {
    for (find, replace, part) in [
        ("rank = ", "rnak = ", "did you mean \"grid.rank\"?"),
        ("\"landmark\"", "\"landmrk\"", "did you mean \"landmark\"?"),
        ("kind = \"fit\"", "kind = \"fti\"", "did you mean \"fit\"?"),
        ("rank = [2, 4]", "rank = [2, 0]", "grid.rank"),
        ("tolerance = [0.3]", "caps = [4, 0]", "grid.caps has 0"),
        ("tolerance = [0.3]", "tolerance = [nan]", "grid.tolerance has NaN"),
        ("tolerance = [0.3]", "caps = [4]\ntolerance = [0.3]", "caps"),
        ("tolerance = [0.3]", "", "caps"),
        ("n = [16, 24]", "n = [16, 0]", "grid.n"),
        ("seed = [0, 1]", "seed = []", "grid.seed is empty"),
        ("starts = 1", "starts = 0", "starts"),
        ("rank = [2, 4]", "heads = [{ layout = \"globl\", rank = 2 }]", "\"globl\""),
        ("window = 4", "window = 0", "window is 0"),
        ("study = \"tiny\"", "study = \"../tiny\"", "../tiny"),
        ("study = \"tiny\"", "", "study"),
        ("n = [16, 24]", "n = [16,", "line "),
    ] {
        assert!(GRID.contains(find), "{find} is not in the definition");
        let folder = with_definition(&GRID.replacen(find, replace, 1));
        let error = folder.refused(&["sweep", "tiny.toml"]);
        assert!(error.contains("tiny.toml: ") && error.contains(part), "{replace:?}: {error}");
    }
    let error = Folder::new().refused(&["sweep", "none.toml"]);
    assert!(error.contains("none.toml"), "{error}");
}

#[test]
fn wrong_flags_and_files_are_one_line_that_names_them() {
    let folder = with_definition(&GRID);
    let refused = |more: &[&str], part: &str| {
        let error = folder.refused(&[&["sweep", "tiny.toml"], more].concat());
        assert!(error.contains(part), "{more:?}: {error}");
    };
    refused(&["--filter", "nothing"], "16 configurations");
    refused(&["--filter", "a("], "\"a(\"");
    refused(&["--threads", "0"], "--threads");
    folder.write(ROWS, "a,b\n1,2\n");
    refused(&[], ROWS);
    assert_eq!(folder.read(ROWS), "a,b\n1,2\n", "rows of another kind");
    fs::remove_dir_all(folder.path("data")).unwrap();
    folder.write("data", "a file where the folder should be");
    refused(&[], "data/tiny");
}
