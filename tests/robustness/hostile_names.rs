//! Names become folders and keys: a hostile one is refused in a line wherever it is given, and leads nowhere.

use std::path::{Component, Path};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rank_study::study::{Preset, StudyDefinition, StudyError};
use rank_study::system::printable;

use crate::common::binary::Folder;
use crate::common::tries::{Tries, share_of};

/// What names are made of.
const PIECES: [&str; 44] = [
    "..", ".", "/", "\\", "-", "_", " ", "~", "a", "Z", "0", "mhsa", "é", "\u{1b}[2J", "\u{9b}31m",
    "\u{202e}", "\u{2028}", "\n", "\r", "\0", "\t", ":", "*", "?", "\"", "'", "<script>", "&amp;",
    "%2e%2e%2f", "$(touch x)", "`x`", ";", "|", "con", "NUL", "com1", "Lpt9", "tokens", "QUICK",
    "rows.csv", "tables", "Shards", "manifest.toml", "report.html",
];
/// Names of each kind, each in every place that has names.
const NAMES: usize = 4000;

fn hostile(rng: &mut ChaCha8Rng) -> String {
    let pieces = rng.random_range(1..4);
    let name: String = (0..pieces).map(|_| PIECES[rng.random_range(0..PIECES.len())]).collect();
    if rng.random_range(0..20) == 0 { name.repeat(120) } else { name }
}

/// A name that any system takes, and nothing there has.
fn harmless(rng: &mut ChaCha8Rng) -> String {
    let first = [b'a', b'Z', b'7', b'_'][rng.random_range(0..4)];
    let mark = |rng: &mut ChaCha8Rng| b"abcxyzABC0189-_"[rng.random_range(0..15)];
    let rest = rng.random_range(4..20);
    let mut name = vec![first];
    name.extend((0..rest).map(|_| mark(rng)));
    String::from_utf8(name).unwrap()
}

/// Whether a name may be a folder's, said here once more and otherwise.
fn may_be(name: &str, dots: bool, taken: &[&str]) -> bool {
    let plain =
        regex::Regex::new(r"\A[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?\z").unwrap();
    let is_taken = taken.iter().any(|other| other.eq_ignore_ascii_case(name));
    plain.is_match(name) && !is_taken && (dots || !name.contains('.'))
}

/// Said of a path that leads out of the folder that it is to lie in.
const OUTSIDE: &str = "points outside its folder";

const OF_DATA: [&str; 3] = ["tokens", "quick", "smoke"];
const OF_STUDY: [&str; 7] = [
    "tables", "shards", "shown", "rows.csv", "rows.parquet", "rows-set-aside.csv", "manifest.toml",
];

const TRAIN: &str = "kind = \"train\"\n[train]\nlayers = 1\nd_model = 8\nheads = 2\ncontext = 8\nsteps = 2\nwarmup_steps = 1\neval_every = 2\n";

/// A definition that has the name in one place, and what may stand there.
fn definitions(name: &str) -> [(String, bool); 3] {
    let quoted = toml::Value::from(name).to_string();
    let target = format!(
        "kind = \"spectrum\"\n[grid]\nn = [8]\ntolerance = [0.3]\n[[target]]\nfamily = \"landmark\"\nm = 2\nname = {quoted}\n"
    );
    let of = |study: &str, run: &str| format!("study = {study}\n{TRAIN}[[run]]\nname = {run}\n");
    [
        (of(&quoted, "\"a\""), may_be(name, false, &OF_DATA)),
        (of("\"s\"", &quoted), may_be(name, true, &OF_STUDY)),
        (format!("study = \"s\"\n{target}"), may_be(name, true, &[])),
    ]
}

/// Why a definition with the name was not dealt with as it should be.
fn wrong(name: &str, text: &str, may_be: bool) -> Result<(), String> {
    let read = StudyDefinition::parse(Path::new("s.toml"), text.to_owned(), Preset::Paper);
    match (read, may_be) {
        (Ok(_), true) => Ok(()),
        (Ok(_), false) => Err(format!("{name:?} was taken: {text}")),
        (Err(error), true) => Err(format!("{name:?} was refused: {error}")),
        (Err(StudyError::Definition { why, .. }), false) if printable(&why) == why => Ok(()),
        (Err(error), false) => Err(format!("{name:?} was refused in no line: {error:?}")),
    }
}

#[test]
fn hostile_names_are_refused_wherever_they_are_given_and_others_are_not() {
    let mut rng = ChaCha8Rng::seed_from_u64(231);
    let mut tries = Tries::of("names");
    for at in 0..share_of(NAMES) {
        let name = if at % 4 == 0 { harmless(&mut rng) } else { hostile(&mut rng) };
        for (text, may_be) in definitions(&name) {
            tries.tried(wrong(&name, &text, may_be));
        }
    }
    tries.end();
}

#[test]
fn names_that_differ_by_capitals_alone_are_one_to_some_systems() {
    for (one, other, says) in
        [("Ls", "ls", "differ only in case"), ("ls", "ls", "two runs are called")]
    {
        let text = format!(
            "study = \"s\"\n{TRAIN}[[run]]\nname = \"{one}\"\n[[run]]\nname = \"{other}\"\n"
        );
        let error = StudyDefinition::parse(Path::new("s.toml"), text, Preset::Paper).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Texts of any name: what is written lies where it should, under names of letters, digits and marks.
#[test]
fn a_texts_name_leads_nowhere() {
    let mut rng = ChaCha8Rng::seed_from_u64(232);
    let mut tries = Tries::of("names-of-texts");
    for _ in 0..share_of(100) {
        let folder = Folder::new();
        folder.write("s.toml", format!("study = \"s\"\n{TRAIN}[[run]]\nname = \"a\"\n"));
        let name: String = hostile(&mut rng).replace(['/', '\0'], "").chars().take(60).collect();
        folder.write("t/x", "");
        let text = format!("t/{name}.txt");
        folder.write(&text, "pack my box with five dozen liquor jugs\n".repeat(20));
        let before = folder.tree().len();
        folder.done(&["sweep", "s.toml", "--text", &text, "--quiet"]);
        let tree = folder.tree();
        let is_plain = |path: &&String| {
            let mut parts = Path::new(path.as_str()).components();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            parts.all(|part| matches!(part, Component::Normal(p) if p.to_str().unwrap().chars().all(plain)))
        };
        let is_in_place = |path: &&String| {
            let is_below = ["data", "t", "s.toml"].iter().any(|top| path.starts_with(top));
            is_below && (path.starts_with("t/") || is_plain(path))
        };
        let strange = tree.iter().find(|path| !is_in_place(path));
        tries.tried(match strange.is_none() && tree.len() > before {
            true => Ok(()),
            false => Err(format!("{text:?}: {strange:?} of {} in place of {before}", tree.len())),
        });
    }
    tries.end();
}

/// What rows and commands name is looked for in the data folder alone.
#[test]
fn no_path_in_rows_or_commands_leads_out_of_the_data() {
    let folder = Folder::new();
    let study = format!("study = \"s\"\nview = \"training\"\n{TRAIN}[[run]]\nname = \"a\"\n");
    folder.write("analysis/s.toml", study);
    folder.done(&["sweep", "analysis/s.toml", "--quiet"]);
    let elsewhere = folder.path("elsewhere/s0");
    std::fs::create_dir_all(&elsewhere).unwrap();
    for file in ["curve.csv", "eval.csv", "manifest.toml"] {
        std::fs::copy(folder.path("data/s/a/s0").join(file), elsewhere.join(file)).unwrap();
    }
    let rows = folder.read("data/s/rows.csv");
    let absolute = elsewhere.to_str().unwrap();
    for cell in ["../../elsewhere/s0", absolute] {
        folder.write("data/s/rows.csv", rows.replace("s,a/s0,", &format!("s,{cell},")));
        for command in ["figure", "table", "report"] {
            let error = folder.refused(&[command, "s", "--quiet"]);
            let is_told = error.contains("data/s/rows.csv") && error.contains(OUTSIDE);
            assert!(is_told, "{error}");
        }
        let said = folder.run(&["verify", "s"]);
        assert_eq!(said.code, Some(3));
        assert!(said.stdout.contains(OUTSIDE), "{}", said.stdout);
    }
    folder.write("data/s/rows.csv", &rows);
    folder.done(&["figure", "s", "--quiet"]);
    for study in ["../data/s", "../s", "..", "", ".", "s/..", absolute, "s\u{1b}[2J"] {
        for command in ["report", "verify", "merge"] {
            let before = folder.tree();
            let said = folder.run(&[command, study]);
            assert_eq!(said.code, Some(1), "{command} {study:?}: {}{}", said.stdout, said.stderr);
            assert!(said.stderr.lines().all(|line| printable(line) == line), "{}", said.stderr);
            assert_eq!(folder.tree(), before, "{command} {study:?}");
        }
    }
}

/// The factors that a fit's rows name lie in its folder.
#[test]
fn no_factors_are_read_from_elsewhere() {
    let folder = Folder::new();
    folder.done(&[
        "fit", "--family", "landmark", "--m", "2", "--n", "12", "--rank", "2", "--max-logit", "2",
        "--iterations", "20", "--out", "f",
    ]);
    folder.done(&["show", "f", "--quiet"]);
    let rows = folder.read("f/frontier.csv");
    assert!(rows.contains("factors/cap-2"), "{rows}");
    for path in ["../f/factors/cap-2", folder.path("f/factors/cap-2").to_str().unwrap()] {
        folder.write("f/frontier.csv", rows.replace("factors/cap-2", path));
        let error = folder.refused(&["show", "f", "--quiet"]);
        assert!(error.contains("f/frontier.csv") && error.contains(OUTSIDE), "{error}");
    }
}
