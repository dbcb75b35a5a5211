//! The help of the program and of each command, and docs/cli.md, which is generated from it.

use std::path::Path;

use crate::common::binary::{Ended, Folder, words};
use crate::definitions_page::definitions_page;

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
fn every_command_has_quiet_and_an_example() {
    let page = page();
    let sections = sections(&page);
    assert!(sections.len() > 20, "{} commands", sections.len());
    for (command, section) in sections {
        assert!(section.contains(&format!("  {command} ")), "{command} has no example");
        // What is timed takes the flag of bench.
        let is_kind = command.starts_with("rank-study bench ");
        assert!(is_kind || section.contains("--quiet"), "{command} has no --quiet");
    }
}

#[test]
fn a_misspelt_command_study_or_flag_lists_near_ones() {
    let folder = Folder::new();
    folder.write("analysis/logit-growth.toml", include_str!("../../analysis/logit-growth.toml"));
    for (arguments, near) in [
        ("fti", "fit"),
        ("bench setp", "step"),
        ("target --famly prefix", "--family"),
        ("reproduce --only logit-grwth", "did you mean \"logit-growth\""),
        ("sweep analysis/logit-grwth.toml", "did you mean \"logit-growth\""),
        ("sweep logit-growth", "did you mean analysis/logit-growth.toml"),
    ] {
        let error = folder.refused(&words(arguments));
        assert!(error.contains(near), "{error}");
    }
}
