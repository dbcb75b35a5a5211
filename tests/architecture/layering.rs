//! The structure of `src`: no import cycle, folders that use only folders below them, no long file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::source::{code, source_files};

/// Each folder, and the folders that its files may use.
const LAYERS: [(&str, &str); 16] = [
    (
        "cli",
        "report study experiments experiment claims figure table heads run record solver lm targets \
         numerics system",
    ),
    (
        "report",
        "study experiments experiment claims figure table heads run record solver lm targets numerics \
         system",
    ),
    ("study", "experiments experiment heads run record solver lm targets numerics system"),
    (
        "experiments",
        "experiment claims figure table heads run record solver lm targets numerics system",
    ),
    ("experiment", "claims figure table heads run record solver lm targets numerics system"),
    ("claims", "figure table record targets numerics system"),
    ("figure", "table record targets numerics system"),
    ("table", "run record solver lm targets numerics system"),
    ("run", "record lm targets numerics system"),
    ("heads", "record solver lm targets numerics system"),
    ("solver", "targets numerics system"),
    ("lm", "record targets numerics system"),
    ("record", "system"),
    ("targets", "numerics system"),
    ("numerics", ""),
    ("system", ""),
];
const LONGEST_FILE: usize = 450;

static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([\w:{}*,\s]+);").unwrap());
static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+").unwrap());

struct Module {
    file: String,
    /// The code without its imports.
    body: String,
    /// The path of each imported name, and whether the import is a re-export.
    imports: BTreeMap<String, (String, bool)>,
}

/// A crate's modules by path, as `fit::search`; the root's path is empty.
struct Modules(BTreeMap<String, Module>);

/// The files that each file uses, and the path that it names one by.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

impl Modules {
    fn parse(files: BTreeMap<String, String>) -> Self {
        let module = |(file, text): (String, String)| {
            let code = code(&file, &text);
            let mut imports = BTreeMap::new();
            for import in IMPORT.captures_iter(&code) {
                for (name, path) in leaves(&import[2]) {
                    // A trait without a name.
                    let name = if name == "_" { path.clone() } else { name };
                    imports.insert(name, (path, import.get(1).is_some()));
                }
            }
            let path = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            let path = if path == "lib" { String::new() } else { path };
            (path, Module { body: IMPORT.replace_all(&code, "").into_owned(), file, imports })
        };
        let mut modules: BTreeMap<String, Module> = files.into_iter().map(module).collect();
        // A folder whose modules its parent lists has no file of its own.
        let paths: Vec<String> = modules.keys().cloned().collect();
        for path in paths {
            for (end, _) in path.match_indices("::") {
                let (file, body) = (String::new(), String::new());
                let without_file = Module { file, body, imports: BTreeMap::new() };
                modules.entry(path[..end].to_owned()).or_insert(without_file);
            }
        }
        Self(modules)
    }

    /// The file that defines what `path` names in the module `at`. None for modules and other crates.
    fn definition(&self, at: &str, path: &str, depth: usize) -> Option<&str> {
        let parts: Vec<&str> = path.split("::").collect();
        let mut at = at.to_owned();
        for (n, part) in parts.iter().enumerate() {
            let child = format!("{at}::{part}").trim_start_matches("::").to_owned();
            let imported = self.0.get(&at)?.imports.get(*part).filter(|(to, _)| to != path);
            let is_last = n + 1 == parts.len();
            match *part {
                "crate" | "rank_study" => at.clear(),
                "self" => {}
                "super" => at.truncate(at.rfind("::").unwrap_or(0)),
                _ if self.0.contains_key(&child) && !(is_last && imported.is_some()) => at = child,
                _ => {
                    return match imported {
                        Some((to, _)) if depth < 9 => {
                            let path = [&[to.as_str()], &parts[n + 1..]].concat().join("::");
                            self.definition(&at, &path, depth + 1)
                        }
                        _ => (n > 0).then_some(&self.0[&at].file),
                    };
                }
            }
        }
        None
    }

    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (at, module) in &self.0 {
            let words: BTreeSet<&str> =
                module.body.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            // A re-export is a use where the file names it itself.
            let imports = module
                .imports
                .iter()
                .filter(|(name, (_, is_export))| !is_export || words.contains(name.as_str()));
            let imports = imports.map(|(_, (path, _))| path.as_str());
            let written = PATH.find_iter(&module.body).map(|found| found.as_str());
            for path in imports.chain(written) {
                let file = self.definition(at, path, 0).filter(|file| *file != module.file);
                if let Some(file) = file {
                    let of_file = uses.entry(module.file.clone()).or_default();
                    of_file.insert(file.to_owned(), path.to_owned());
                }
            }
        }
        uses
    }
}

/// The names that the tree of a `use` brings into scope, with the path of each.
fn leaves(tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    if let Some((before, rest)) = tree.split_once('{') {
        let mut depth = 0;
        let top_level = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        };
        let rest = rest.strip_suffix('}').unwrap().split(top_level);
        let inner = rest.filter(|part| !part.trim().is_empty());
        return inner.flat_map(|part| leaves(&format!("{before}{}", part.trim()))).collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let path = path.trim_end_matches("::self");
    let name = if name.is_empty() { path.rsplit("::").next().unwrap() } else { name };
    vec![(name.to_owned(), path.to_owned())]
}

/// The uses that close a cycle.
fn cycles(uses: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    for (from, to, path) in all(uses) {
        let (mut reached, mut open) = (BTreeSet::new(), vec![to]);
        while let Some(file) = open.pop() {
            let next = uses.get(file).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.filter(|file| reached.insert(*file)));
        }
        if reached.contains(from) {
            found.push(format!("{from} uses {to} by {path}, which leads back to it"));
        }
    }
    found
}

fn all(uses: &Uses) -> impl Iterator<Item = (&String, &String, &String)> {
    uses.iter().flat_map(|(from, used)| used.iter().map(move |(to, path)| (from, to, path)))
}

#[test]
fn no_files_use_each_other() {
    let uses = Modules::parse(source_files()).uses();
    assert!(all(&uses).count() > 1000, "only {} uses found", all(&uses).count());
    let cycles = cycles(&uses);
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn folders_use_only_those_below_them() {
    let folder = |file: &str| file.split(['/', '.']).next().unwrap().to_owned();
    let mut wrong = Vec::new();
    for (from, to, path) in all(&Modules::parse(source_files()).uses()) {
        let (own, used) = (folder(from), folder(to));
        let may = LAYERS.iter().find(|(layer, _)| *layer == own).map(|(_, below)| below);
        let is_root = ["lib", "main"].contains(&own.as_str());
        if !is_root && own != used && !may.is_some_and(|may| may.split(' ').any(|one| one == used))
        {
            wrong.push(format!("{from} uses {to} by {path}: {own} may not use {used}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_file_is_long() {
    let lines = source_files().into_iter().map(|(file, text)| (text.lines().count(), file));
    let long: Vec<_> = lines.filter(|(lines, _)| *lines > LONGEST_FILE).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn cycle_is_found_through_re_exports_renames_and_macros() {
    let closed = |used: &str| {
        let files = [
            ("lib.rs", "mod far;\npub mod near;"),
            ("far.rs", "use crate::near::{self as n, Near};\npub struct Far(Near);"),
            ("near/mod.rs", "mod leaf;\npub use leaf::{Leaf as Near};\n// crate::far::Far"),
            ("near/leaf.rs", used),
        ];
        let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
        cycles(&Modules::parse(files.into()).uses()).len()
    };
    assert_eq!(closed("pub struct Leaf;\n#[cfg(test)]\nmod tests { use crate::far::Far; }"), 0);
    for used in ["use crate::{far::Far, near};", "fn f() { vec![super::super::far::Far] }"] {
        assert_eq!(closed(used), 2, "{used}");
    }
    assert_eq!(closed("use rank_study::far as f;\nfn g(_: f::Far) {}"), 2);
}
