//! What the project's pages name is there: links, files and folders, studies.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Made by running the program, or by the reader as the page says.
const MADE_LATER: [&str; 10] = [
    "data/quick", "figures/quick", "data/smoke", "figures/smoke", "data/tokens",
    "analysis/mine.toml", "data/mine", "figures/mine", "analysis/my-training.toml",
    "data/tinyshakespeare.txt.zst",
];
/// Dated entries, which name what was there on their day.
const LOG: &str = "docs/log.md";
/// In capitals, and no page.
const NAMES: [&str; 2] = ["LAPACK", "NVIDIA"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files with an ending in some folders, relative to the project's root.
fn files(folders: &[&str], ending: &str) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|found| found == ending));
    paths.map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// The project's pages; tables of rows are none.
fn pages() -> Vec<PathBuf> {
    let folders = [
        "", "docs", "analysis/data", "analysis/notes", "analysis/readers", "benches/peers", "data",
        "python", "tests/reference",
    ];
    let found = files(&folders, "md");
    assert!(found.len() >= 8, "{found:?}");
    found
}

/// The pages, and the definitions with the comments and words in them.
fn texts() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(root().join(path)).unwrap());
    pages().into_iter().chain(files(&["analysis"], "toml")).map(read).collect()
}

/// What a pattern finds, its first group.
fn all<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect()
}

#[test]
fn links_lead_to_files_that_are_there() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in all(r"\]\(([^)\s]+)\)", &text) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let file = link.split('#').next().unwrap();
            let path = root().join(&page).with_file_name("").join(file);
            assert!(path.exists(), "{}: no {link}", page.display());
            links += 1;
        }
    }
    assert!(links >= 15, "{links} links");
}

#[test]
fn files_and_folders_that_pages_name_are_there() {
    let pattern =
        r"(?:^|[^\w./-])((?:analysis|benches|data|figures|src|tests|\.ci)/[\w./*-]*[\w/*-])";
    let is_placeholder = |part: &str| part.chars().all(|c| c.is_ascii_uppercase());
    let mut named = 0;
    for (page, text) in texts() {
        if page == Path::new(LOG) {
            continue;
        }
        for path in all(pattern, &text) {
            let mut parts = path.split('/').filter(|part| !part.is_empty());
            if MADE_LATER.iter().any(|made| path.starts_with(made)) || parts.any(is_placeholder) {
                continue;
            }
            assert!(root().join(path).exists(), "{}: no {path}", page.display());
            named += 1;
        }
    }
    assert!(named >= 25, "{named} paths");
}

/// `LOG.md`, `METHODS.md`, and what something is said to be of, as in "METHODS's list".
#[test]
fn pages_that_are_named_are_there() {
    let pages = pages();
    for (page, text) in texts() {
        for pattern in [r"\b([A-Z]{3,})\.md\b", r"\b([A-Z]{6,})'s\b"] {
            for name in all(pattern, &text) {
                let is_page = pages.iter().any(|page| page.file_stem().unwrap() == name);
                assert!(is_page || NAMES.contains(&name), "{}: no page {name}", page.display());
            }
        }
    }
}

#[test]
fn studies_that_pages_run_are_defined() {
    let mut named = 0;
    for (page, text) in texts() {
        let before = match page.ends_with("cli.md") {
            // Examples in the help.
            true => r"(?:--only|rank-study (?:table|figure|report|verify))",
            false => r"reproduce [^`\n]*--only",
        };
        let commands = format!("{before} ([a-z][a-z0-9 -]*)(?:[^a-z0-9/-]|$)");
        for names in all(&commands, &text) {
            for name in names.split_whitespace().take_while(|name| !name.starts_with('-')) {
                let path = root().join("analysis").join(format!("{name}.toml"));
                assert!(path.is_file(), "{}: no study {name}", page.display());
                named += 1;
            }
        }
    }
    assert!(named >= 12, "{named} studies");
}

/// The report opens with the list under "In short" of docs/findings.md.
#[test]
fn the_report_has_the_results_of_the_findings() {
    let findings = fs::read_to_string(root().join("docs/findings.md")).unwrap();
    let in_short = findings.split("\n## ").find(|part| part.starts_with("In short")).unwrap();
    let listed = in_short.lines().filter(|line| line.starts_with("- ")).count();
    let report = fs::read_to_string(root().join("figures/report.html")).unwrap();
    let (_, list) = report.split_once("<ol class=\"in-short\">").expect("a list of results");
    let (list, _) = list.split_once("</ol>").unwrap();
    assert!(listed > 0 && list.matches("<li>").count() == listed, "{listed}: {list}");
}
