//! What files say is shown and never obeyed: no command to a terminal comes out of names, rows, manifests or tokens.

use std::sync::LazyLock;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sha2::Digest as _;

use crate::common::binary::Folder;
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};

/// What a terminal obeys: colours, a title, the clipboard, a link, a bell, going back over what was printed, C1's own
/// codes, and what turns text about.
const COMMANDS: [&str; 14] = [
    "\u{1b}[31m", "\u{1b}[2J\u{1b}[H", "\u{1b}]0;owned\u{7}", "\u{1b}]52;c;aGk=\u{1b}\\",
    "\u{1b}]8;;http://x\u{1b}\\", "\u{7}", "\u{8}\u{8}\u{8}", "\r", "\u{9b}2J", "\u{90}q\u{9c}",
    "\u{202e}", "\u{2066}", "\u{200f}", "\u{7f}",
];
/// Every try is a hostile text in some file, and the commands that read it.
const TRIES: usize = 400;

static FITS: LazyLock<String> =
    LazyLock::new(|| tiny::fits("study = \"fits\"\ntitle = \"A title\"\ngrid.seed = [0]"));

/// A folder with a study of fits and a run on a text.
fn measured() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/fits.toml", FITS.as_str());
    folder.done(&["sweep", "analysis/fits.toml", "--quiet"]);
    folder.write("run.toml", tiny::training("context = 16"));
    folder.write("text.txt", format!("pack my box {}\n", COMMANDS.concat()).repeat(40));
    folder.done(&["train", "run.toml", "--text", "text.txt", "--out", "r", "--quiet"]);
    folder
}

fn hostile(rng: &mut ChaCha8Rng) -> String {
    let mut command = || COMMANDS[rng.random_range(0..COMMANDS.len())];
    format!("a{}b{}", command(), command())
}

/// Runs a command, and gives what it printed that a terminal would obey, if it did.
fn obeyed(folder: &Folder, arguments: &[&str]) -> Option<String> {
    let output = folder.command(arguments).output().unwrap();
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let is_obeyed = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c);
        if text.contains(is_obeyed) {
            return Some(format!("{arguments:?} printed on {stream}: {text:?}"));
        }
    }
    None
}

/// A row's field made hostile, with the manifest's hash as of a file that was measured so.
fn in_rows(folder: &Folder, rows: &str, manifest: &str, rng: &mut ChaCha8Rng) {
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let header = reader.headers().unwrap().clone();
    let mut records: Vec<Vec<String>> = reader.deserialize().map(Result::unwrap).collect();
    let columns = [
        "study", "cell", "family", "target", "outcome", "settings", "err", "layout",
        "max_abs_logit", "seed",
    ];
    let column = columns[rng.random_range(0..columns.len())];
    let at = header.iter().position(|name| name == column).unwrap();
    let row = rng.random_range(0..records.len());
    records[row][at] = hostile(rng);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).unwrap();
    records.iter().for_each(|record| writer.write_record(record).unwrap());
    let altered = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    let hash = |text: &str| -> String {
        sha2::Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    folder.write("data/fits/rows.csv", &altered);
    folder.write("data/fits/manifest.toml", manifest.replace(&hash(rows), &hash(&altered)));
}

/// A manifest with one of its texts made hostile.
fn in_manifest(manifest: &str, rng: &mut ChaCha8Rng) -> String {
    let mut table: toml::Table = manifest.parse().unwrap();
    let keys: Vec<String> =
        table.iter().filter(|(_, value)| value.is_str()).map(|(key, _)| key.clone()).collect();
    let key = keys[rng.random_range(0..keys.len())].clone();
    table.insert(key, hostile(rng).into());
    let notes = vec![toml::Value::from(hostile(rng))];
    table.insert("not_known".to_owned(), notes.into());
    toml::to_string(&table).unwrap()
}

/// One try: what is hostile, and the commands that read it.
fn one(measured: &Folder, at: usize, rng: &mut ChaCha8Rng) -> Option<String> {
    let folder = measured.copied();
    // Of what reads a file two commands a try, so that tries are cheap.
    let from = rng.random_range(0..12);
    let run = |commands: &[&[&str]]| {
        let chosen = commands.iter().cycle().skip(from).take(2);
        chosen.into_iter().find_map(|command| obeyed(&folder, command))
    };
    match at % 6 {
        0 | 1 => {
            let manifest = folder.read("data/fits/manifest.toml");
            match at % 6 {
                0 => in_rows(&folder, &folder.read("data/fits/rows.csv"), &manifest, rng),
                _ => folder.write("data/fits/manifest.toml", in_manifest(&manifest, rng)),
            }
            run(&[
                &["table", "fits"],
                &["list"],
                &["verify", "fits"],
                &["show", "data/fits"],
                &["report", "fits"],
                &["sweep", "analysis/fits.toml", "--list"],
            ])
        }
        2 => {
            folder.write("r/manifest.toml", in_manifest(&folder.read("r/manifest.toml"), rng));
            run(&[&["show", "r"], &["evaluate", "r", "--text", "text.txt", "--quiet"]])
        }
        3 => {
            let name = hostile(rng);
            let matrix = format!("{name}.npy");
            folder.write(&matrix, "no matrix");
            run(&[
                &["show", &matrix, "--out", "out"],
                &["fit", "--target", &matrix, "--rank", "2", "--max-logit", "2", "--out", "f"],
                &["train", &name, "--out", "t"],
                &["sweep", &name],
                &["show", &name, "--out", "out"],
                &["show", &format!("-{name}")],
            ])
        }
        4 => {
            let quoted = toml::Value::from(hostile(rng)).to_string();
            let lines = [
                FITS.replace("\"fits\"", &quoted),
                FITS.replace("\"A title\"", &quoted),
                FITS.replace("\"logit-growth\"", &quoted),
                FITS.replace("window", &quoted),
                FITS.replace("\"dirichlet-band\"", &quoted),
                format!("{}{quoted} = 1\n", *FITS),
            ];
            let line = &lines[rng.random_range(0..lines.len())];
            folder.write("analysis/other.toml", line.replace("\"fits\"", "\"other\""));
            run(&[
                &["list"],
                &["sweep", "analysis/other.toml", "--list"],
                &["reproduce", "--only", "other"],
            ])
        }
        _ => {
            let name = hostile(rng).replace('/', "");
            std::fs::rename(folder.path("r"), folder.path(&name)).unwrap();
            run(&[
                &["show", &name],
                &["table", &name],
                &["evaluate", &name, "--text", "text.txt"],
                &["predict", &name, "--text", "text.txt", "--out", "p"],
            ])
        }
    }
}

#[test]
fn what_files_say_is_shown_and_never_obeyed() {
    let folder = measured();
    let mut rng = ChaCha8Rng::seed_from_u64(234);
    let mut tries = Tries::of("terminal");
    for at in 0..share_of(TRIES) {
        tries.tried(one(&folder, at, &mut rng).map_or(Ok(()), Err));
    }
    tries.end();
}

/// JSON keeps the texts as they are: what is written out is one of its own escapes.
#[test]
fn json_is_json_and_says_what_the_file_does() {
    let folder = Folder::new();
    let title = COMMANDS.concat();
    let quoted = toml::Value::from(title.clone()).to_string();
    folder.write("analysis/fits.toml", FITS.replace("\"A title\"", &quoted));
    let printed = folder.done(&["list", "--json"]);
    assert!(!printed.contains(|c: char| c.is_control() && c != '\n'), "{printed:?}");
    let listed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(listed[0]["title"], title, "{listed}");
}
