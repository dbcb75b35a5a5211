//! What the README says of how its promises were tried is what came of the tries, and each is still made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Tries and failures by promise.
type Counts = BTreeMap<String, (usize, usize)>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// 1,000 as one reads it.
fn number(text: &str) -> usize {
    text.replace(',', "").trim().parse().unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// `data/promises.csv`, which `make promises` writes.
fn measured() -> Counts {
    let text = read("data/promises.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("promise,tries,failures,seconds"));
    let mut counts = Counts::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [promise, tries, failures, _] = fields[..] else { panic!("{line}") };
        let before = counts.insert(promise.to_owned(), (number(tries), number(failures)));
        assert!(before.is_none(), "{promise} is there twice");
    }
    counts
}

/// Lines of the table in the README, `| … (`promise`) | tries | failures |`.
fn told() -> Counts {
    let text = read("README.md");
    let (_, section) = text.split_once("\n## What it promises\n").expect("a section of that name");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut counts = Counts::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [.., how, tries, failures] = cells[..] else { panic!("{row}") };
        let (_, key) = how.rsplit_once("(`").unwrap_or_else(|| panic!("no key in {row}"));
        let before =
            counts.insert(key.trim_end_matches("`)").to_owned(), (number(tries), number(failures)));
        assert!(before.is_none(), "{key} is told twice");
    }
    counts
}

#[test]
fn the_readme_tells_what_came_of_the_tries() {
    let (told, measured) = (told(), measured());
    assert_eq!(told, measured);
    assert!(measured.values().all(|&(tries, failures)| tries > 0 && failures == 0), "{measured:?}");
}

/// Some test makes the tries of each, and no other promise is tried.
#[test]
fn each_promise_is_tried_by_a_test() {
    let mut tests = String::new();
    let mut folders = vec![root().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "sh") {
                tests += &fs::read_to_string(&path).unwrap();
            }
        }
    }
    let untried: Vec<String> = measured()
        .into_keys()
        .filter(|promise| {
            // Those of inputs are named by the kind of file.
            let key = promise.strip_prefix("inputs-").unwrap_or(promise);
            !tests.contains(&format!("\"{key}\""))
        })
        .collect();
    assert!(untried.is_empty(), "no test tries {untried:?}");
}
