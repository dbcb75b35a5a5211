//! What the program uses of the machine that it runs on.

mod binary;

use binary::{Ended, Folder};

/// The variable that holds the program to a level of instructions.
const INSTRUCTIONS: &str = "RANK_STUDY_INSTRUCTIONS";

fn held_to(level: &str, folder: &Folder, arguments: &[&str]) -> Ended {
    Ended::of(&folder.command(arguments).env(INSTRUCTIONS, level).output().unwrap())
}

/// The levels of instructions of this processor, as the program says them.
fn levels(folder: &Folder) -> Vec<String> {
    let error = held_to("?", folder, &["list"]).stderr;
    let (_, rest) = error.split_once("processor has (").unwrap_or_else(|| panic!("{error}"));
    let (levels, _) = rest.split_once(')').unwrap();
    levels.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_level_of_instructions_that_is_not_there_is_refused_before_any_work() {
    let folder = Folder::new();
    let there = levels(&folder);
    assert_eq!(there.last().map(String::as_str), Some("portable"), "{there:?}");
    let fit = "fit --family dirichlet-band --window 3 --n 12 --rank 2 --caps 4 --seeds 1 --quiet --out fits/a";
    let fit: Vec<&str> = fit.split(' ').collect();
    for level in ["avx512", "avx2", "portable", "sse", "AVX2"] {
        let ended = held_to(level, &folder, &fit);
        if there.iter().any(|name| name == level) {
            assert_eq!(ended.code, Some(0), "{level}: {}", ended.stderr);
            std::fs::remove_dir_all(folder.path("fits")).unwrap();
            continue;
        }
        assert_eq!(ended.code, Some(2), "{level}: {}", ended.stderr);
        let named = format!("error: {INSTRUCTIONS}={level}: ");
        assert!(
            ended.stderr.starts_with(&named) && ended.stderr.lines().count() == 1,
            "{}",
            ended.stderr
        );
        assert!(
            ended.stdout.is_empty() && folder.tree().is_empty(),
            "{level}: {:?}",
            folder.tree()
        );
    }
    // What only tells of the program needs no instructions.
    assert_eq!(held_to("sse", &folder, &["--help"]).code, Some(0));
}
