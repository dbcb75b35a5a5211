//! The help of the program and of each command, and docs/cli.md, which is generated from it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::binary::Folder;

/// Flags whose meaning differs between commands, with the only commands that may differ.
const EXCEPTIONS: [(&str, &str); 1] = [
    // A folder to read, in place of a switch.
    ("rank-study bench fit", "--factors"),
];

/// The reference of commands as this build makes it.
fn page() -> String {
    generated("--markdown")
}

fn generated(flag: &str) -> String {
    let folder = Folder::new();
    folder.done(&["man", flag, "page.md"]);
    folder.read("page.md")
}

/// The sections of the page, by the name of their command.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = page.match_indices("# rank-study ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([page.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(&start, end)| page[start + 2..end].split_once('\n'))
        .collect()
}

/// The flags of a section with their help, without what stands in brackets.
fn flags(section: &str) -> Vec<(&str, String)> {
    let lines = section.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
    lines
        .map(|(names, help)| {
            let help = help.split(" [").next().unwrap_or_default();
            (names.split(' ').next().unwrap_or_default(), help.replace(" (repeatable)", ""))
        })
        .collect()
}

#[test]
fn the_references_are_current() {
    for (name, flag) in [("docs/cli.md", "--markdown"), ("docs/definitions.md", "--definitions")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let page = generated(flag);
        if std::env::var_os("RANK_STUDY_UPDATE_DOCS").is_some() {
            std::fs::write(&path, page).unwrap();
            continue;
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == page,
            "{name} is old; RANK_STUDY_UPDATE_DOCS=1 cargo test --test architecture help"
        );
    }
}

#[test]
fn a_flag_has_one_meaning_in_every_command() {
    let page = page();
    let mut meanings: BTreeMap<String, (String, &str)> = BTreeMap::new();
    for (command, section) in sections(&page) {
        for (flag, help) in flags(section) {
            if !flag.starts_with("--") || EXCEPTIONS.contains(&(command, flag)) {
                continue;
            }
            // What a file's formats are follows a colon.
            let help = match flag {
                "--out" => help.split(':').next().unwrap_or_default().replace("folder", "file"),
                _ => help,
            };
            let (first, of) = meanings.entry(flag.to_owned()).or_insert((help.clone(), command));
            assert_eq!(*first, help, "{flag} of {of} and of {command}");
        }
    }
    assert!(meanings.len() > 60, "{meanings:?}");
}

#[test]
fn a_help_text_has_at_most_twelve_words() {
    let page = page();
    let mut texts = 0;
    for (command, section) in sections(&page) {
        let about = section.trim_start().lines().next().unwrap_or_default().to_owned();
        for (name, help) in flags(section).into_iter().chain([("itself", about)]) {
            assert!(!help.is_empty(), "{command}: {name} has no help");
            let words = help.split_whitespace().count();
            assert!(words <= 12, "{command}: {name} has {words} words: {help}");
            texts += 1;
        }
    }
    assert!(texts > 150, "{texts} texts");
}

#[test]
fn every_command_has_quiet_and_an_example() {
    let page = page();
    for (command, section) in sections(&page) {
        assert!(section.contains(&format!("\n{command} ")), "{command} has no example");
        // What is timed takes the flag of bench.
        let is_kind = command.starts_with("rank-study bench ");
        assert!(is_kind || section.contains("`--quiet`"), "{command} has no --quiet");
    }
}

#[test]
fn a_misspelt_command_study_or_flag_lists_near_ones() {
    let folder = Folder::new();
    for (arguments, near) in [
        (&["fti"][..], "fit"),
        (&["bench", "setp"], "step"),
        (&["target", "--famly", "prefix"], "--family"),
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(near), "{}", ended.stderr);
    }
    folder.write("analysis/logit-growth.toml", include_str!("../../analysis/logit-growth.toml"));
    for arguments in [
        &["reproduce", "--only", "logit-grwth"][..],
        &["sweep", "analysis/logit-grwth.toml"],
        &["sweep", "logit-growth"],
    ] {
        let error = folder.refused(arguments);
        assert!(error.contains("did you mean") && error.contains("logit-growth"), "{error}");
    }
}

#[test]
fn every_study_that_help_names_is_defined() {
    let analysis = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis");
    let page = page().replace("\\\n", " ");
    let named = page.split("analysis/").skip(1).filter_map(|rest| rest.split_once(".toml"));
    let mut names: Vec<&str> = named.map(|(name, _)| name).collect();
    for before in ["--only ", "study table ", "study figure ", "study report ", "study verify "] {
        names.extend(names_after(&page, before));
    }
    for name in &names {
        assert!(analysis.join(format!("{name}.toml")).is_file(), "help names {name}");
    }
    assert!(names.len() >= 12, "{names:?}");
}

/// The words that follow `flag` in the lines of a text, up to the first that is no plain name.
fn names_after<'t>(text: &'t str, flag: &str) -> Vec<&'t str> {
    let plain = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let rest = text.split(flag).skip(1);
    let names = rest.map(|rest| rest.lines().next().unwrap_or_default());
    names.flat_map(|line| line.split_whitespace().take_while(plain)).collect()
}
