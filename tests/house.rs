//! The house that `src` is: no circle of files, rooms that know only those beneath them, no long file, one layer that writes.

mod uses;

use std::fs;
use std::path::{Path, PathBuf};

use uses::{Use, circles, uses};

/// A room, or one file of it with rules of its own, and what its files may use besides its own.
const ROOMS: [(&str, &str); 14] = [
    ("cli", "report claims figure table study run row predict fit lm pattern numerics system"),
    ("report", "claims figure table study run row predict fit lm pattern numerics system"),
    ("claims", "table study run row predict fit lm pattern numerics system"),
    ("figure", "table study run row predict fit lm pattern numerics system"),
    ("table", "study run row predict fit lm pattern numerics system"),
    ("study", "run row predict fit lm pattern numerics system"),
    ("run", "row lm pattern numerics system"),
    ("row", "predict fit lm pattern numerics system"),
    ("predict", "run fit lm pattern numerics system"),
    ("fit", "pattern numerics system"),
    ("lm", "pattern numerics system"),
    ("pattern", "numerics system"),
    ("numerics", ""),
    ("system", ""),
];

const LONGEST_FILE: usize = 450;

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn house() -> Vec<Use> {
    let uses = uses(&src(), "rank_study");
    assert!(uses.len() > 300, "only {} uses found", uses.len());
    uses
}

fn told(wrong: &[String]) -> String {
    format!("\n{}", wrong.join("\n"))
}

#[test]
fn no_files_use_each_other() {
    let found = circles(&house());
    assert!(found.is_empty(), "{}", told(&found));
}

#[test]
fn rooms_use_only_those_beneath_them() {
    let mut wrong = Vec::new();
    for Use { from, to, item, line } in house() {
        // The roots say what there is, and the binary's calls the commands.
        if ["lib.rs", "main.rs"].contains(&from.as_str()) {
            continue;
        }
        let (Some((room, known)), Some((target, _))) = (room(&from), room(&to)) else {
            wrong.push(format!("{from}:{line} uses {item} of {to}: one of them is in no room"));
            continue;
        };
        if room != target
            && !known
                .split(' ')
                .any(|known| known == target || target.starts_with(&format!("{known}/")))
        {
            wrong.push(format!("{from}:{line} uses {item} of {to}: {room} may not use {target}"));
        }
    }
    assert!(wrong.is_empty(), "{}", told(&wrong));
}

/// The entry that a file falls under: a file's own before its room's.
fn room(file: &str) -> Option<(&'static str, &'static str)> {
    let is_in = |room: &str| {
        file.strip_prefix(room).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    };
    ROOMS.into_iter().filter(|(room, _)| is_in(room)).max_by_key(|(room, _)| room.len())
}

/// The source files and what they hold, sorted.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![src()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let file = path.strip_prefix(src()).unwrap().display().to_string();
                found.push((file, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_file_is_long() {
    let lines = |(file, text): (String, String)| (file, text.lines().count());
    let long: Vec<String> = files()
        .into_iter()
        .map(lines)
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(file, lines)| format!("{file}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{}", told(&long));
}

/// What writes to the disk past `system::disk`, as it is written in code.
const WRITES: [&str; 19] = [
    "fs::write",
    "fs::rename",
    "fs::remove_file",
    "fs::remove_dir",
    "fs::create_dir",
    "fs::DirBuilder",
    "fs::copy",
    "fs::hard_link",
    "fs::set_permissions",
    "os::unix::fs::symlink",
    "fs::{",
    "fs::*",
    "OpenOptions",
    "File::create",
    "File::options",
    ".set_len(",
    ".sync_all(",
    ".sync_data(",
    "tempfile",
];
/// Files that are for tests alone.
const TESTS: [&str; 2] = ["tests.rs", "fixture.rs"];

/// Lines of code that write to the disk past `system::disk`: code of tests stands at a file's end, or in files of its own.
fn writes_past_the_layer(file: &str, text: &str) -> Vec<String> {
    let is_of_tests = TESTS.iter().any(|ending| file.ends_with(ending));
    // `bench` measures in folders that it throws away, and `system` is the layer.
    let may = |what: &str| {
        file.starts_with("system/") || (file.starts_with("cli/bench/") && what == "tempfile")
    };
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    // A `File` of the layer's own, by its name alone.
    let is_the_layers = text.contains("disk::File;") || text.contains("disk::{File,");
    let mut found = Vec::new();
    for (at, line) in code.lines().enumerate().filter(|_| !is_of_tests) {
        let line = line.split("//").next().unwrap_or_default();
        for what in WRITES {
            let its_own =
                is_the_layers && what.starts_with("File::create") && !line.contains("fs::File");
            if line.contains(what) && !may(what) && !its_own {
                found.push(format!("{file}:{}: {what}", at + 1));
            }
        }
    }
    found
}

#[test]
fn all_that_is_written_goes_through_one_layer() {
    let past: Vec<String> =
        files().iter().flat_map(|(file, text)| writes_past_the_layer(file, text)).collect();
    assert!(past.is_empty(), "{}", told(&past));
}

#[test]
fn what_goes_past_the_layer_is_found() {
    let past = "use std::fs::File;\nfn f() {\n    let file = File::create(path)?;\n    file.sync_all()\n}\n";
    let of = |text: &str| writes_past_the_layer("run/log.rs", text);
    assert_eq!(of(past), ["run/log.rs:3: File::create", "run/log.rs:4: .sync_all("]);
    assert_eq!(of("fn f() { std::fs::write(a, b) }"), ["run/log.rs:1: fs::write"]);
    let by_it = "use crate::system::disk::File;\n";
    assert_eq!(of(&format!("{by_it}fn f() {{ File::create(path) }}")), [""; 0]);
    assert_eq!(of(&format!("{by_it}fn f() {{ fs::File::create(path) }}")).len(), 1);
    assert_eq!(
        of("// fs::write is wrong\n#[cfg(test)]\nmod t { fn f() { fs::write(a, b) } }"),
        [""; 0]
    );
    assert_eq!(writes_past_the_layer("system/files.rs", past), [""; 0]);
    let bench = "fn f() { tempfile::tempdir(); fs::write(a, b) }";
    assert_eq!(writes_past_the_layer("cli/bench/a.rs", bench), ["cli/bench/a.rs:1: fs::write"]);
}

/// Writes files into a folder as a crate's `src`.
fn made_up(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// "from:line item to" of each use in a made-up crate.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let folder = made_up(files);
    let line = |used: Use| format!("{}:{} {} {}", used.from, used.line, used.item, used.to);
    uses(folder.path(), "made_up").into_iter().map(line).collect()
}

#[test]
fn a_circle_is_found_and_nothing_else() {
    let folder = made_up(&[
        ("lib.rs", "pub mod far;\npub mod near;\npub mod alone;\n"),
        ("far.rs", "use crate::near::{Near, middle};\npub struct Far(Near);\n"),
        ("near/mod.rs", "pub mod middle;\npub mod leaf;\npub use leaf::Leaf as Near;\n"),
        ("near/middle.rs", "pub fn shift() -> usize { 1 }\n"),
        (
            "near/leaf.rs",
            "use super::middle;\n\npub struct Leaf;\nfn f() { middle::shift(); crate::far::Far; }\n",
        ),
        ("alone.rs", "pub fn g(far: crate::far::Far) {}\n"),
    ]);
    let expected = "\
2 files use each other: far.rs, near/leaf.rs
  far.rs → near/leaf.rs → far.rs
    far.rs:1 uses Leaf of near/leaf.rs
    near/leaf.rs:4 uses Far of far.rs
";
    assert_eq!(circles(&uses(folder.path(), "made_up")), [expected]);
}

#[test]
fn circles_that_meet_are_told_together_and_others_apart() {
    let names = |name: &str| format!("{name}.rs");
    let used = |from: &str, to: &str| Use {
        from: names(from),
        to: names(to),
        item: to.to_uppercase(),
        line: 1,
    };
    let pairs = ["ab", "bc", "ca", "cd", "dc", "de", "fg", "gf", "gh"];
    let uses: Vec<Use> = pairs.iter().map(|pair| used(&pair[..1], &pair[1..])).collect();
    let told: Vec<String> = circles(&uses)
        .iter()
        .flat_map(|circle| {
            circle.lines().filter(|line| !line.contains(":1")).map(String::from).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        told,
        [
            "4 files use each other: a.rs, b.rs, c.rs, d.rs",
            "  a.rs → b.rs → c.rs → a.rs",
            "  c.rs → d.rs → c.rs",
            "2 files use each other: f.rs, g.rs",
            "  f.rs → g.rs → f.rs",
        ]
    );
}

#[test]
fn a_parent_that_defines_what_its_children_use_is_in_a_circle_with_them() {
    let files = |parent: &'static str| {
        [("lib.rs", "mod a;"), ("a/mod.rs", parent), ("a/b.rs", "use super::A;\npub struct B(A);")]
    };
    let with = |parent| circles(&uses(made_up(&files(parent)).path(), "made_up")).len();
    assert_eq!(with("mod b;\npub use b::B;\npub struct A;"), 0);
    assert_eq!(with("mod b;\npub struct A;\npub fn f() -> b::B {}"), 1);
    assert_eq!(with("mod b;\npub use b::B;\npub struct A;\nfn f(_: B) {}"), 1);
}

#[test]
fn paths_lead_to_the_files_that_define_what_they_name() {
    let leaf = "pub struct Leaf;\npub enum Kind { One }\npub fn leaf() {}\npub const N: usize = 1;\n\
        macro_rules! grow { ($n:ident) => { fn $n() -> $crate::other::Other { helper::help() } }; }\npub(crate) use grow;\n";
    let with = |user: &str| {
        let files = [
            ("lib.rs", "mod tree;\nmod other;\nmod user;\nmod helper;\n"),
            (
                "tree/mod.rs",
                "mod leaf;\nmod same;\npub(crate) use leaf::*;\npub use leaf::Leaf as Renamed;\npub use same::same;",
            ),
            ("tree/same.rs", "pub fn same() {}"),
            ("tree/leaf.rs", leaf),
            ("other.rs", "pub struct Other;\npub fn default() {}\n"),
            ("helper.rs", "pub fn help() {}\nimpl crate::tree::Leaf { pub fn far() {} }\n"),
            ("user.rs", user),
        ];
        let all = found(&files);
        let (of_user, rest): (Vec<String>, Vec<String>) =
            all.into_iter().partition(|line| line.starts_with("user.rs"));
        assert_eq!(rest, ["helper.rs:2 Leaf tree/leaf.rs", "tree/leaf.rs:5 Other other.rs"]);
        of_user
            .iter()
            .map(|line| line.replacen("user.rs:", "", 1))
            .collect::<Vec<String>>()
            .join(", ")
    };
    // `use` trees.
    assert_eq!(with("use crate::{tree::{self as t, Kind}, other};"), "1 Kind tree/leaf.rs");
    assert_eq!(with("use super::other::{self, Other as O};"), "1 Other other.rs");
    assert_eq!(with("\nuse crate::tree::Kind::*;"), "2 Kind tree/leaf.rs");
    assert_eq!(with("use crate::tree::Renamed;"), "1 Leaf tree/leaf.rs");
    assert_eq!(with("fn f() {\n use crate::other as o;\n o::default(); }"), "3 default other.rs");
    assert_eq!(with("use crate::tree::*;\nfn f(_: Kind) {}"), "2 Kind tree/leaf.rs");
    // A module's name alone, what is outside, and re-exports.
    assert_eq!(with("use crate::tree;\nuse std::fs;\npub use crate::other::Other;"), "");
    // Code, types, generic arguments, patterns, `Self`, inner modules, attributes.
    assert_eq!(with("fn f() { let n = [0; crate::tree::N]; }"), "1 N tree/leaf.rs");
    assert_eq!(with("fn f(_: Vec<Option<super::other::Other>>) {}"), "1 Other other.rs");
    assert_eq!(with("mod inner {\n fn f(x: super::super::tree::Kind) {} }"), "2 Kind tree/leaf.rs");
    assert_eq!(
        with("fn f(x: u8) { match x { crate::tree::Kind::One => () } }"),
        "1 Kind tree/leaf.rs"
    );
    assert_eq!(
        with("struct S {\n #[serde(default = \"crate::other::default\")] n: u8 }"),
        "2 default other.rs"
    );
    assert_eq!(
        with("struct S {\n #[arg(value_parser = crate::tree::leaf)] n: u8 }"),
        "2 leaf tree/leaf.rs"
    );
    // A type's function in another file than the type.
    assert_eq!(
        with("fn f() {\n crate::tree::Leaf::far() }"),
        "2 Leaf::far helper.rs, 2 Leaf tree/leaf.rs"
    );
    assert_eq!(
        with("use crate::tree::Leaf as L;\nimpl L { fn f() {\n Self::far() } }"),
        "3 Leaf::far helper.rs, 1 Leaf tree/leaf.rs"
    );
    // Macros: tokens, our own, what their bodies name where they are invoked.
    assert_eq!(
        with("use crate::other as o;\nfn f() { vec![1, o::default(a.tree)]; }"),
        "2 default other.rs"
    );
    assert_eq!(
        with("fn f() { println!(\"{}\", crate::tree::N..crate::tree::N); }"),
        "1 N tree/leaf.rs"
    );
    assert_eq!(
        with("use crate::helper;\ncrate::tree::grow!(f);"),
        "2 help helper.rs, 2 grow tree/leaf.rs"
    );
    // A module and a function of one name.
    assert_eq!(with("use crate::tree::leaf;\nfn f() {\n leaf::N; }"), "1 leaf tree/leaf.rs");
    assert_eq!(with("use crate::tree::same;"), "1 same tree/same.rs");
    // Tests.
    assert_eq!(
        with(
            "#[cfg(test)] use crate::other::Other;\n#[cfg(all(test, unix))] mod tests { use crate::tree::N; }"
        ),
        ""
    );
    assert_eq!(with("#[test] fn f() { crate::other::default() }"), "");
    assert_eq!(with("#[cfg(any(test, unix))] use crate::other::Other;"), "1 Other other.rs");
    assert_eq!(with("#[cfg(not(test))] use crate::other::Other;"), "1 Other other.rs");
}

#[test]
fn the_binary_uses_the_library_and_files_stand_where_a_path_says() {
    let files = [
        (
            "lib.rs",
            "pub mod a;\n#[cfg(unix)]\n#[path = \"elsewhere.rs\"]\nmod b;\n#[macro_use]\nmod made;\nmod user { fn f() { spell!() } }",
        ),
        ("a.rs", "pub struct A;"),
        ("elsewhere.rs", "use super::a::A;"),
        ("made.rs", "macro_rules! spell { () => {}; }"),
        ("main.rs", "mod cli;\nfn main() { cli::run() }"),
        ("cli.rs", "use made_up::a::A;\npub fn run() {}"),
    ];
    let expected = ["cli.rs:1 A a.rs", "elsewhere.rs:1 A a.rs", "main.rs:2 run cli.rs"];
    assert_eq!(found(&files), expected);
}
