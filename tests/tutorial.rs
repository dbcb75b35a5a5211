//! The tutorial, run from its top in an empty folder: every command works, and it ends in a sentence that its rows bear
//! out.

#![cfg(all(feature = "cli", unix))]

mod binary;

use std::path::Path;
use std::process::Command;

use binary::{Folder, number};
use rank_study::table::significant;

/// The commands of a page, those in its blocks of shell.
fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split_once("```").expect("a block that ends").0).collect()
}

#[test]
fn every_command_of_the_tutorial_works_and_its_sentences_are_those_of_the_rows() {
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "no python3, which the tutorial uses");
        eprintln!("no python3: the tutorial is not run");
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_rank-study"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let page = include_str!("../analysis/TUTORIAL.md");
    let folder = Folder::new();
    let mut printed = String::new();
    let commands = commands(page);
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        let output = Command::new("bash")
            .args(["-euc", command])
            .env("PATH", &path)
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let [said, told] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
        assert!(output.status.success(), "{command}\n{said}{told}");
        printed.push_str(&said);
    }
    let row = |name: &str| folder.csv(&format!("fits/{name}/frontier.csv")).1.remove(0);
    let [two, four, eight] = ["rank-2", "rank-4", "rank-8"].map(row);
    // What the page says of its matrix.
    assert_eq!(two["outcome"], "infeasible", "rank 2 cannot have it");
    assert!(number(&four, "inflation") > number(&eight, "inflation"));
    for (rank, row) in [(4, &four), (8, &eight)] {
        let needs = significant(number(row, "max_abs_logit"), 3);
        let line = printed.lines().find(|line| line.starts_with(&format!("Rank {rank} needs ")));
        assert!(line.is_some_and(|line| line.contains(&needs)), "{needs}\n{printed}");
    }
    // What the page computes anew of the factors.
    let [least, found] = ["lower_bound_max_abs_logit", "max_abs_logit"].map(|of| number(&four, of));
    let sentence = format!("rank 4 needs logits between {least:.2} and {found:.2} nats");
    assert!(printed.contains(&sentence), "{sentence}\n{printed}");
    assert!(printed.contains("Rank 2 did not reach KL 0.0200 nats"), "{printed}");
    // The heads of the model that it trains, a sentence and a row each.
    assert!(printed.contains("small, step 200 (mhsa): 8 heads on 64 tokens"), "{printed}");
    assert_eq!(folder.csv("looked/small/rows.csv").1.len(), 8);
    assert!(folder.path("looked/small/index.html").is_file());
}
