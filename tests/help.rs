//! What `--help` says of the program and of each subcommand.

#![cfg(feature = "cli")]

mod binary;

use std::path::Path;

use binary::Folder;

/// A help text, wrapped at a width that does not depend on any terminal.
fn help(arguments: &[&str]) -> String {
    let folder = Folder::new();
    let output = folder.command(arguments).arg("--help").env("COLUMNS", "100").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The subcommands as the program lists them, without `help` itself.
fn subcommands() -> Vec<String> {
    let text = help(&[]);
    let (_, list) = text.split_once("Commands:\n").unwrap();
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_program() {
    insta::assert_snapshot!("help", help(&[]));
}

#[test]
fn every_subcommand() {
    let names = subcommands();
    assert!(names.len() >= 9, "{names:?}");
    for name in &names {
        insta::assert_snapshot!(format!("help-{name}"), help(&[name]));
    }
}

#[test]
fn every_subcommand_shows_an_example_of_itself() {
    for name in subcommands() {
        let text = help(&[&name]);
        let example = format!("\n  rank-study {name}");
        assert!(text.contains("Example") && text.contains(&example), "{name}: {text}");
        assert!(text.contains("--quiet"), "{name} has no --quiet: {text}");
        assert!(!text.contains('`'), "{name} shows a mark of Markdown: {text}");
    }
}

#[test]
fn every_kind_of_bench() {
    for kind in ["fit", "step", "attention"] {
        insta::assert_snapshot!(format!("help-bench-{kind}"), help(&["bench", kind]));
    }
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

#[test]
fn every_study_that_help_names_is_defined() {
    let analysis = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis");
    let benches = ["fit", "step", "attention", "decode"].map(|kind| help(&["bench", kind]));
    let texts = subcommands().into_iter().map(|name| help(&[&name])).chain(benches);
    let mut named = 0;
    for text in texts {
        // A line that goes on is one.
        let text = text.replace("\\\n", " ");
        let of_files = text.split("analysis/").skip(1).filter_map(|rest| rest.split_once(".toml"));
        let mut names: Vec<&str> = of_files.map(|(name, _)| name).collect();
        for before in ["--only ", "study table ", "study figure ", "study report ", "study verify "]
        {
            names.extend(names_after(&text, before));
        }
        for name in names {
            let path = analysis.join(format!("{name}.toml"));
            assert!(path.is_file(), "help names {name}, which is not defined:\n{text}");
            named += 1;
        }
    }
    assert!(named >= 15, "{named} names");
}
