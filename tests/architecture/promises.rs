//! The tables of docs/reliability.md hold the numbers of data/promises.csv, and a test makes each trial.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::source::files_below;

/// Trials and failures by promise.
type Counts = BTreeMap<String, (usize, usize)>;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A number written with thousands separators, as 1,000.
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

/// The rows of the tables in docs/reliability.md, `| … (`promise`) | trials | failures |`.
fn documented() -> Counts {
    let text = read("docs/reliability.md");
    let is_row = |line: &&str| {
        line.starts_with('|') && !line.starts_with("| guarantee") && !line.starts_with("|---")
    };
    let mut counts = Counts::new();
    for row in text.lines().filter(is_row) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [.., test, trials, failures] = cells[..] else { panic!("{row}") };
        let (_, key) = test.rsplit_once("(`").unwrap_or_else(|| panic!("no key in {row}"));
        let count = (number(trials), number(failures));
        let before = counts.insert(key.trim_end_matches("`)").to_owned(), count);
        assert!(before.is_none(), "{key} is there twice");
    }
    counts
}

#[test]
fn reliability_page_has_the_measured_trials() {
    let (documented, measured) = (documented(), measured());
    assert_eq!(documented, measured);
    assert!(measured.values().all(|&(tries, failures)| tries > 0 && failures == 0), "{measured:?}");
}

/// Every key of `data/promises.csv` stands in some test.
#[test]
fn each_promise_is_tried_by_a_test() {
    let tests = files_below("tests", &["rs", "sh"]);
    let is_tried = |promise: &str| {
        // Those of inputs are named by the kind of file.
        let key = format!("\"{}\"", promise.strip_prefix("inputs-").unwrap_or(promise));
        tests.values().any(|text| text.contains(&key))
    };
    let untried: Vec<String> = measured().into_keys().filter(|key| !is_tried(key)).collect();
    assert!(untried.is_empty(), "no test tries {untried:?}");
}
