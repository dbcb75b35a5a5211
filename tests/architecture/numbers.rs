//! Every number in README.md, docs/findings.md and `analysis/notes/` is that of the committed rows.
//!
//! `analysis/notes/PAGE.toml` says where the numbers of a page are from. `[[numbers]]` quotes the page with numbers
//! in braces, `{1.5}`, and says of each, in `are`, which quantity of which `file` it is, rounded to the digits
//! written; with `<` or `>` before the quantity, a bound within a quarter of it; with `<<`, any above it. Numbers out
//! of braces must be among the conditions that pick the rows, or in what `given` says. `[[settings]]` quotes what is not measured, and says what it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::quantities::{Row, number, numbers, precision, read, value};
use regex::Regex;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    #[serde(default)]
    numbers: Vec<Measured>,
    #[serde(default)]
    settings: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    says: String,
    files: Vec<PathBuf>,
    /// Conditions on the rows of all its numbers.
    #[serde(default)]
    of: String,
    are: Vec<String>,
    /// What the numbers out of braces are, where they are no conditions.
    #[serde(default)]
    given: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    says: String,
    because: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// On one line, without what links lead to.
fn plain(text: &str) -> String {
    let links = Regex::new(r"\]\([^)]*\)").unwrap().replace_all(text, "]");
    links.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text with `{1.5}` as it reads, and each number in braces with where it stands then.
fn without_braces(text: &str) -> (String, Vec<(usize, String)>) {
    let mut read = String::new();
    let mut numbers = Vec::new();
    for (at, part) in text.split(['{', '}']).enumerate() {
        if at % 2 == 1 {
            numbers.push((read.len(), part.to_owned()));
        }
        read += part;
    }
    (read, numbers)
}

/// What is wrong with the numbers of a page.
fn wrong(page: &str, sources: &Sources, root: &Path) -> Vec<String> {
    let page = plain(page);
    let mut wrong = Vec::new();
    let mut covered = Vec::new();
    let mut cover = |says: &str, wrong: &mut Vec<String>| match page.matches(says).count() {
        1 => {
            let start = page.find(says).unwrap();
            covered.push(start..start + says.len());
        }
        times => wrong.push(format!("the page says {times} times, not once: {says}")),
    };
    for setting in &sources.settings {
        cover(&setting.says, &mut wrong);
        if setting.because.is_empty() || numbers(&setting.says).is_empty() {
            wrong.push(format!("a setting without a number or a reason: {}", setting.says));
        }
    }
    for measured in &sources.numbers {
        let (says, held) = without_braces(&measured.says);
        cover(&says, &mut wrong);
        if held.len() != measured.are.len() || held.is_empty() {
            let (numbers, are) = (held.len(), measured.are.len());
            wrong.push(format!("{numbers} numbers in braces, {are} quantities: {says}"));
            continue;
        }
        let rows: Vec<Row> =
            measured.files.iter().flat_map(|file| read(&root.join(file))).collect();
        for ((_, text), are) in held.iter().zip(&measured.are) {
            if let Err(why) = holds(text, are, &measured.of, &rows) {
                wrong.push(format!("{text} in {says:?}: {why}"));
            }
        }
        let conditions = format!("{} {} {}", measured.of, measured.are.join(" "), measured.given);
        let conditions: Vec<f64> =
            numbers(&conditions).iter().filter_map(|(_, n)| number(n)).collect();
        for (at, text) in numbers(&says) {
            let is_held =
                held.iter().any(|(start, held)| (*start..start + held.len()).contains(&at));
            if !is_held && !conditions.contains(&number(text).unwrap()) {
                wrong.push(format!("{text} in {says:?} is neither measured nor a condition"));
            }
        }
    }
    for (at, text) in numbers(&page) {
        if !covered.iter().any(|span| span.contains(&at)) {
            let from = page[..at].char_indices().rev().nth(40).map_or(0, |(from, _)| from);
            let to = page[at..].char_indices().nth(40).map_or(page.len(), |(to, _)| at + to);
            wrong.push(format!("{text} has no source: … {} …", &page[from..to]));
        }
    }
    wrong
}

/// Whether a number as written is that quantity.
fn holds(text: &str, are: &str, of: &str, rows: &[Row]) -> Result<(), String> {
    let written = number(text).ok_or("no number")?;
    let quantity = are.trim_start_matches(['<', '>']);
    let found = value(quantity, of, rows)?;
    let near = (found - written).abs() <= 0.25 * written.abs();
    let holds = match are.strip_suffix(quantity).unwrap() {
        "" => (found - written).abs() <= precision(text) * (1.0 + 1e-9),
        "<" => near && found < written,
        "<<" => found < written,
        ">" => near && found > written,
        sign => return Err(format!("no bound: {sign:?}")),
    };
    if holds { Ok(()) } else { Err(format!("the rows have {found} ({are})")) }
}

fn sources(name: &str) -> Sources {
    let path = root().join("analysis/notes").join(name).with_extension("toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The notes: their studies, and their text.
fn notes() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("analysis/notes")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let notes = files.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let named = |path: PathBuf| {
        let study = path.file_stem().unwrap().to_string_lossy().into_owned();
        (study, fs::read_to_string(path).unwrap())
    };
    notes.map(named).collect()
}

/// The pages whose numbers are of the rows: their names, and their text.
fn pages() -> Vec<(String, String)> {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    // Printed output is of a run, not of the committed rows.
    let readme = read("README.md").split("```").step_by(2).collect();
    let mut pages =
        vec![("README".to_owned(), readme), ("findings".to_owned(), read("docs/findings.md"))];
    for (study, note) in notes() {
        let (_, findings) = note.split_once("-->\n").expect("it begins with the hash of its rows");
        pages.push((study, findings.to_owned()));
    }
    pages
}

#[test]
fn numbers_of_the_pages_are_those_of_the_rows() {
    let mut all = Vec::new();
    for (name, page) in pages() {
        let wrong = wrong(&page, &sources(&name), root());
        all.extend(wrong.iter().map(|wrong| format!("{name}: {wrong}")));
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

/// A report shows a note above the rows that it names, and above no others.
#[test]
fn every_study_has_a_note_that_names_its_rows() {
    let mut noted = BTreeSet::new();
    for (study, note) in notes() {
        let manifest = root().join("data").join(&study).join("manifest.toml");
        let manifest = fs::read_to_string(&manifest).unwrap_or_else(|e| panic!("{study}: {e}"));
        let rows = manifest.lines().find(|line| line.starts_with("rows_sha256 = ")).unwrap();
        let is_of_these_rows = note.starts_with(&format!("<!-- {rows} -->\n"));
        assert!(is_of_these_rows, "{study}: see whether the note holds of these rows");
        noted.insert(study);
    }
    let measured = fs::read_dir(root().join("data")).unwrap().map(|entry| entry.unwrap().path());
    let measured = measured.filter(|path| path.join("tables").is_dir());
    let measured: BTreeSet<String> =
        measured.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(noted, measured);
}

#[test]
fn tables_that_numbers_are_from_are_those_that_the_rows_give() {
    let numbers = pages().into_iter().flat_map(|(name, _)| sources(&name).numbers);
    let files: BTreeSet<PathBuf> = numbers.flat_map(|measured| measured.files).collect();
    let tables: Vec<&PathBuf> =
        files.iter().filter(|file| file.parent().unwrap().ends_with("tables")).collect();
    assert!(tables.len() > 7, "{tables:?}");
    let out = tempfile::tempdir().unwrap();
    for table in tables {
        let study = table.iter().nth(1).unwrap();
        let made = out.path().join(study);
        if !made.exists() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rank-study"));
            let table = command.arg("table").arg(study).arg("--out").arg(&made).arg("--quiet");
            let output = table.current_dir(root()).output().unwrap();
            assert!(output.status.success(), "{study:?}: {output:?}");
        }
        let [kept, made] = [root().join(table), made.join(table.file_name().unwrap())];
        let [kept, made] = [kept, made].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(kept.lines().count(), made.lines().count(), "{table:?}");
        for (kept, made) in kept.lines().zip(made.lines()) {
            assert!(are_alike(kept, made), "{table:?}\n{kept}\n{made}");
        }
    }
}

/// Whether two lines of a table have the same words and the same numbers: decompositions of tables differ in their last
/// digits with the kernels that OpenBLAS takes for a processor.
fn are_alike(kept: &str, made: &str) -> bool {
    let is_near = |kept: &str, made: &str| match (kept.parse::<f64>(), made.parse::<f64>()) {
        (Ok(kept), Ok(made)) => (kept - made).abs() <= 1e-9 * kept.abs(),
        _ => false,
    };
    let cells = || kept.split(',').zip(made.split(','));
    kept.split(',').count() == made.split(',').count()
        && cells().all(|(kept, made)| kept == made || is_near(kept, made))
}

const ROWS: &str =
    "run,seed,rank,loss,err\na,1,8,2.04,\na,2,8,1.96,\nb,1,4,1.5,\nb,2,4,1.25,\nb,3,4,,late\n";

/// What is wrong with a page on [`ROWS`], whose sources are the rest of an entry.
fn told(page: &str, entry: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), ROWS).unwrap();
    let entry = format!("[[numbers]]\nfiles = [\"rows.csv\"]\n{entry}");
    wrong(page, &toml::from_str(&entry).unwrap(), folder.path()).join("\n")
}

#[test]
fn a_number_must_be_what_the_rows_have_to_the_digits_written() {
    let entry = |text: &str, is: &str| {
        let source = format!("says = \"loses {{{text}}}\"\nare = [\"{is}\"]");
        told(&format!("a loses {text} nats."), &source)
    };
    for (text, is) in [
        ("2.0", "median(loss; run = a)"),
        ("2.04", "max(loss; run = a)"),
        ("1,960", "1000 * min(loss; run = a)"),
        ("two", "count(loss; run = a)"),
        ("0.79", "max(loss[run = a] - loss[run = b] by seed; seed <= 2) + 0.08"),
        ("−0.7", "one(loss; run = b and seed = 2) - one(loss; run = a and seed = 2)"),
        ("10⁻²", "0.01 * count(run by run; seed = 1 and rank = 8)"),
        ("3.5", "max(loss + loss - 0.5; largest loss by run and run = b and loss > 0) + 1"),
        ("8", "one(rank; run = a | c)"),
        ("2.1", "< max(loss; loss > 0)"),
        ("1.2", "> min(loss; rank / 2 = 2 and loss > 0)"),
        ("9", "<< max(loss; loss > 0)"),
        ("2.00", "mean(loss; run = a)"),
        ("1.9996", "exp(mean(log(loss); run = a))"),
        ("−0.455", "low(loss[run = a] - loss[run = b] by seed; seed <= 2)"),
        ("1.705", "high(loss[run = a] - loss[run = b] by seed; seed <= 2)"),
    ] {
        assert_eq!(entry(text, is), "", "{text} is {is}");
    }
    for (text, is, why) in [
        ("2.1", "median(loss; run = a)", "the rows have 2 "),
        ("2.00", "max(loss; run = a)", "the rows have 2.04 "),
        ("2.0", "< max(loss; loss > 0)", "the rows have 2.04"),
        ("4.0", "< max(loss; loss > 0)", "the rows have 2.04"),
        ("1.2", "< min(loss; loss > 0)", "the rows have 1.25"),
        ("2.0", "one(loss; run = a)", "not one number"),
        ("2.0", "max(loss; run = c)", "no row"),
        ("2.0", "max(lost)", "no column \"lost\""),
        ("2.0", "max(loss)", "loss is \"\""),
        ("2.0", "max(loss[seed = 1] by rank", "a ( is not closed"),
        ("2.0", "max(loss; run is a)", "no condition"),
        ("2.0", "largest(seed)", "no function"),
        ("2.0", "low(loss; run = a and seed = 1)", "no interval of 1 values"),
        ("2.0", "log 2", "no parenthesis"),
        ("2.0", "max(loss; run = a) 2", "not understood"),
    ] {
        let told = entry(text, is);
        assert!(told.contains(why), "{text} is {is}: {told}");
    }
}

#[test]
fn every_number_of_a_page_has_a_source() {
    let says = "says = \"{1.5} at rank 4\"\nare = [\"max(loss; rank = 4 and loss > 0)\"]";
    assert!(told("It is 1.5 at rank 5.", says).starts_with("the page says 0 times, not once: 1.5"));
    assert_eq!(told("[Here](9.md) it is 1.5\nat rank 4.", says), "");
    assert!(told("It is 1.5 at rank 4, for 3 seeds.", says).starts_with("3 has no source"));
    assert!(told("1.5 at rank 4, or 1.5 at rank 4", says).starts_with("the page says 2 times"));
    let rank = says.replace("rank = 4", "run = b");
    assert!(told("1.5 at rank 4", &rank).ends_with("neither measured nor a condition"));
    let given = format!("{rank}\ngiven = \"rank 4 is that of b\"");
    assert_eq!(told("1.5 at rank 4", &given), "");
    let setting = format!("{says}\n[[settings]]\nsays = \"Hajra 2025\"\nbecause = \"the year\"");
    assert_eq!(told("1.5 at rank 4 (Hajra 2025)", &setting), "");
    let empty = setting.replace("the year", "");
    assert!(told("1.5 at rank 4 (Hajra 2025)", &empty).contains("without a number or a reason"));
}
