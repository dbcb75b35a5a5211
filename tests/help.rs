//! What `--help` says of the program and of each subcommand.

mod binary;

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
    }
}

#[test]
fn every_kind_of_bench() {
    for kind in ["fit", "step", "attention"] {
        insta::assert_snapshot!(format!("help-bench-{kind}"), help(&["bench", kind]));
    }
}
