//! What the program uses of the machine that it runs on.

use crate::common::binary::{Ended, Folder, words};
use crate::common::tiny;

/// The variable that holds the program to a level of instructions.
const INSTRUCTIONS: &str = "RANK_STUDY_INSTRUCTIONS";

const FIT: &str = "fit --family dirichlet-band --window 3 --n 12 --rank 2 --max-logit 4 --starts 1 --threads 3 --quiet --out fit";

fn held_to(level: &str, folder: &Folder, arguments: &[&str]) -> Ended {
    Ended::of(&folder.command(arguments).env(INSTRUCTIONS, level).output().unwrap())
}

/// The levels of instructions of this processor, as the program says them.
fn levels(folder: &Folder) -> Vec<String> {
    let error = held_to("?", folder, &["list"]).stderr;
    let (_, rest) = error.split_once("set one of ").unwrap_or_else(|| panic!("{error}"));
    let (levels, _) = rest.split_once(", or leave").unwrap();
    levels.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_level_of_instructions_that_is_not_there_is_refused_before_any_work() {
    let folder = Folder::new();
    let there = levels(&folder);
    assert_eq!(there.last().map(String::as_str), Some("portable"), "{there:?}");
    // That those which are there work, the manifests below show.
    let is_there = |level: &&str| there.iter().any(|name| name == level);
    for level in ["avx512", "avx2", "sse", "AVX2"].into_iter().filter(|level| !is_there(level)) {
        let Ended { code, stdout, stderr } = held_to(level, &folder, &words(FIT));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{level}: {stderr}");
        let named = format!("error: {INSTRUCTIONS}={level}: ");
        assert!(stderr.starts_with(&named) && stderr.lines().count() == 1, "{stderr}");
        assert!(folder.tree().is_empty(), "{level}: {:?}", folder.tree());
    }
    // What only tells of the program needs no instructions.
    assert_eq!(held_to("sse", &folder, &["--help"]).code, Some(0));
}

/// `instructions  avx2, …`: what follows a word at the beginning of a line.
fn said<'a>(text: &'a str, word: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word} in {text}")).trim_start()
}

#[test]
fn the_version_says_on_request_what_the_machine_is_used_for() {
    let folder = Folder::new();
    let plain = format!("rank-study {}\n", env!("CARGO_PKG_VERSION"));
    for version in [["--version"], ["-V"]] {
        assert_eq!(folder.done(&version), plain);
    }
    for arguments in [&["--version", "--verbose"][..], &["-V", "-v"], &["-Vv"]] {
        // Held to nothing, whatever the suite itself is held to.
        let text = held_to("", &folder, arguments).stdout;
        assert!(text.starts_with(&plain), "{text}");
        for word in ["instructions", "blas ", "revision", "processor", "blas_core", "threads"] {
            assert_ne!(said(&text, word), "", "{text}");
        }
    }
    for level in levels(&folder) {
        let text = held_to(&level, &folder, &["-V", "-v"]).stdout;
        assert!(said(&text, "instructions").starts_with(&format!("{level},")), "{text}");
    }
    for wrong in [&["--verbose"][..], &["--version", "list"], &["--quiet"], &[]] {
        assert_eq!(folder.run(wrong).code, Some(2), "{wrong:?}");
    }
    // A flag of every command may stand before the command.
    let columns = ["list", "--columns", "fit"];
    assert_eq!(folder.done(&[&["--quiet"], &columns[..]].concat()), folder.done(&columns));
}

#[test]
fn a_manifest_says_what_the_machine_was_used_for() {
    for level in levels(&Folder::new()) {
        let folder = Folder::new();
        let ended = held_to(&level, &folder, &words(FIT));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let manifest: toml::Table = folder.read("fit/manifest.toml").parse().unwrap();
        assert_eq!(manifest["instructions"].as_str(), Some(&*level));
        assert_eq!(manifest["threads"].as_integer(), Some(3));
        let verbose = folder.done(&["-V", "-v"]);
        for (key, word) in [("cpu", "processor"), ("blas", "blas "), ("blas_core", "blas_core")] {
            assert_eq!(manifest[key].as_str(), Some(said(&verbose, word)), "{key}");
        }
    }
}

#[test]
fn a_training_computes_on_the_threads_that_it_is_given() {
    let folder = Folder::new();
    folder.write("run.toml", tiny::training(""));
    folder.write("text.txt", "some words of text, and some more of them. ".repeat(20));
    let threads = |out: &str| {
        let manifest: toml::Table = folder.read(&format!("{out}/manifest.toml")).parse().unwrap();
        manifest["threads"].as_integer().unwrap()
    };
    let train = ["train", "run.toml", "--text", "text.txt", "--quiet"];
    for count in ["1", "3"] {
        folder.done(&[&train[..], &["--threads", count, "--out", count]].concat());
        assert_eq!(threads(count).to_string(), count);
        folder.done(&["evaluate", count, "--text", "text.txt", "--quiet", "--threads", count]);
        let out = format!("matrices-{count}");
        let dump = ["dump", count, "--text", "text.txt", "--quiet", "--threads", count, "--out"];
        folder.done(&[&dump[..], &[&out]].concat());
    }
    assert_eq!(folder.read("1/eval.csv"), folder.read("3/eval.csv"));
    for refused in [
        "train run.toml --text text.txt --quiet --out none",
        "evaluate 1 --text text.txt",
        "dump 1 --text text.txt --out none",
        "predict 1 --text text.txt --out none",
        "fit --family landmark --m 3 --n 8 --rank 2 --max-logit 4 --out none",
    ] {
        let error = folder.refused(&words(&format!("{refused} --threads 0")));
        assert!(error.contains("--threads"), "{refused}: {error}");
    }
}

/// OpenBLAS's kernels differ in their last digits, and a search that began at those would end elsewhere.
#[test]
fn fits_are_the_same_whichever_kernels_openblas_has() {
    let folder = Folder::new();
    // Those of a processor before AVX run on any.
    let kernels: &[&str] = match levels(&folder).len() {
        1 => &["Prescott", "Nehalem"],
        _ => &["Prescott", "Nehalem", "Haswell"],
    };
    for (name, target) in [
        ("band", "--family dirichlet-band --window 16 --n 48 --rank 4"),
        ("sparse", "--family random-sparse --k 6 --n 40 --rank 4"),
        ("split", "--family dirichlet-band --window 6 --n 40 --rank 2 --layout local:8+global"),
    ] {
        let kl_nats = |kernel: &&str| {
            let out = format!("{name}-{kernel}");
            let fit = format!(
                "fit {target} --max-logit 4 --starts 1 --iterations 300 --quiet --out {out}"
            );
            let mut command = folder.command(&words(&fit));
            let ended = Ended::of(&command.env("OPENBLAS_CORETYPE", kernel).output().unwrap());
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            folder.csv(&format!("{out}/frontier.csv")).1[0]["kl_nats"].clone()
        };
        let found: Vec<String> = kernels.iter().map(kl_nats).collect();
        assert!(found.iter().all(|one| *one == found[0]), "{name}, {kernels:?}: {found:?}");
    }
}
