//! The help of the program and of each command, and docs/cli.md, which is generated from it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::binary::{Ended, Folder};
use crate::definitions_page::definitions_page;

/// Flags whose meaning differs between commands, with the only commands that may differ.
const EXCEPTIONS: [(&str, &str); 1] = [
    // A folder to read, in place of a switch.
    ("rank-study bench fit", "--factors"),
];

/// The help of a command, as this build prints it.
fn help(command: &str) -> String {
    let arguments: Vec<&str> = command.split(' ').skip(1).chain(["--help"]).collect();
    let folder = Folder::new();
    Ended::of(&folder.command(&arguments).env("COLUMNS", "100").output().unwrap()).stdout
}

/// The names at the beginning of the lines below a heading of a help text.
fn listed<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

/// The reference of commands: the help of each.
fn page() -> String {
    let mut page = "\
# Command-line reference

The output of `--help`. To update it: `RANK_STUDY_UPDATE_DOCS=1 cargo test --test architecture help`.

Exit codes: 0 done, 1 failed, 2 a wrong flag or value, 3 a check of `verify` failed, 4 stopped or waiting.

| Task | Commands |
|---|---|
"
    .to_owned();
    let all = help("rank-study");
    let mut sections = String::new();
    for task in all.lines().filter_map(|line| line.strip_suffix(':')) {
        let names: Vec<&str> = match task {
            "Options" | "Environment" | "Exit codes" => continue,
            task => listed(&all, &format!("{task}:")),
        };
        let links = names.iter().map(|name| format!("[{name}](#rank-study-{name})"));
        page.push_str(&format!("| {task} | {} |\n", links.collect::<Vec<_>>().join(", ")));
        for name in names {
            let command = format!("rank-study {name}");
            let text = help(&command);
            let kinds = listed(&text, "Commands:").into_iter().filter(|kind| *kind != "help");
            let kinds: Vec<String> = kinds.map(|kind| format!("{command} {kind}")).collect();
            sections.push_str(&section("##", &command, &text));
            kinds.iter().for_each(|kind| sections.push_str(&section("###", kind, &help(kind))));
        }
    }
    page + &sections
}

fn section(heading: &str, command: &str, help: &str) -> String {
    format!("\n{heading} {command}\n\n```text\n{}\n```\n", help.trim_end())
}

/// The sections of the page, by the name of their command.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = page.match_indices("# rank-study ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([page.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(&start, end)| page[start + 2..end].split_once("\n\n```text\n"))
        .collect()
}

/// The flags and arguments of a section with their help, without what stands in brackets.
fn flags(section: &str) -> Vec<(&str, String)> {
    let mut flags: Vec<(&str, String)> = Vec::new();
    let headings = ["Arguments:", "Options:", "Target:"];
    let mut is_inside = false;
    for line in section.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            is_inside = headings.contains(&line);
            continue;
        }
        let text = line.trim_start();
        let is_first = line.len() - text.len() < 10 && text.starts_with(['-', '<', '[']);
        match flags.last_mut() {
            _ if !is_inside || text.is_empty() => {}
            _ if is_first => {
                let (names, help) = text.split_once("  ").unwrap_or((text, ""));
                let names = names.strip_prefix("-h, ").unwrap_or(names);
                let name = names.split(' ').next().unwrap_or_default();
                flags.push((name, help.trim().to_owned()));
            }
            Some((_, help)) => *help = format!("{help} {text}").trim().to_owned(),
            None => panic!("{line:?} has no flag"),
        }
    }
    flags.retain(|(name, _)| *name != "--help");
    for (_, help) in &mut flags {
        *help = help.split(" [").next().unwrap_or_default().replace(" (repeatable)", "");
    }
    flags
}

#[test]
fn the_references_are_current() {
    for (name, page) in [("docs/cli.md", page()), ("docs/definitions.md", definitions_page())] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
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
        assert!(section.contains(&format!("  {command} ")), "{command} has no example");
        // What is timed takes the flag of bench.
        let is_kind = command.starts_with("rank-study bench ");
        assert!(is_kind || section.contains("--quiet"), "{command} has no --quiet");
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
