//! `rank-study target` through the binary: what it prints, writes and refuses.

use rank_study::targets::{Family, Target, Visibility};

use crate::common::binary::{Folder, words};

/// What `rank-study target` prints of the words.
fn stdout(arguments: &str) -> String {
    Folder::new().done(&words(&format!("target {arguments}")))
}

#[test]
fn statistics_of_a_known_target() {
    let text = stdout("--family uniform-band --window 1 --n 4 --stats");
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for end in [
        "target uniform-band(window=1)",
        "n 4",
        "mask causal",
        "nonzeros 4",
        "density 0.400000",
        "entropy (nats) 0.000000",
        "mean relative distance 0.0000",
        "largest relative distance 0",
        "degrees of freedom 4.0000",
        "Frobenius norm 2.0000",
        "numerical rank 4",
        "effective rank 4.0000",
        "values 1.0000 1.0000 1.0000 1.0000",
    ] {
        assert!(lines.iter().any(|line| line.ends_with(end)), "no {end} in {text}");
    }
}

#[test]
fn json_has_every_singular_value_but_of_a_large_target_statistics_alone() {
    let value = |n: usize| -> serde_json::Value {
        let printed = stdout(&format!("--family landmark --m 3 --n {n} --stats --json"));
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value["target"], "landmark(m=3)");
        assert_eq!(value["statistics"]["n"], n);
        value["spectrum"].clone()
    };
    assert_eq!(value(30)["singular_values"].as_array().unwrap().len(), 30);
    assert!(value(5000).is_null());
}

#[test]
fn what_is_written_is_the_target_and_reads_back() {
    let folder = Folder::new();
    let built =
        Family::DirichletBand { window: 5, alpha: 0.5 }.build(20, 9, Visibility::Causal).unwrap();
    let family = "target --family dirichlet-band --window 5 --alpha 0.5 --n 20 --seed 9 --out";
    for name in ["a.npy", "a.csv", "a.parquet", "a.safetensors"] {
        folder.done(&[&words(family)[..], &[name]].concat());
        let read = Target::read(&folder.path(name), Visibility::Causal).unwrap();
        let worst = (read.dense() - built.dense()).iter().fold(0.0, |w: f64, d| w.max(d.abs()));
        assert!(worst < 1e-15, "{name}: off by {worst}");
        folder.done(&["target", "--target", name, "--stats"]);
    }
}

/// What else may be wrong with families and files, the tests of the library have.
#[test]
fn wrong_families_files_and_outputs_are_one_line_that_names_them() {
    let folder = Folder::new();
    folder.write("ragged.csv", "1,0\n1\n");
    folder.write("future.csv", "0.5,0.5\n0,1\n");
    folder.write("empty.npy", "");
    for (arguments, part) in [
        ("--family dirichlet-bnad --n 8", "dirichlet-band"),
        ("--family uniform-band --n 8", "--window"),
        ("--family permuted --of prefix --n 8", "bidirectional"),
        ("--family file --n 8", "--path"),
        ("--family file --path none.npy --n 8", "none.npy"),
        ("--family prefix --n 10000000", "lower n"),
        ("--family prefix --n 8 --mask casual", "\"causal\""),
        ("--target ragged.csv", "ragged.csv"),
        ("--target future.csv", "future.csv"),
        ("--target empty.npy", "empty.npy"),
        ("--target missing.npy", "missing.npy"),
        ("--family prefix --n 4 --out a.txt", "a.txt"),
        ("--family prefix --n 4 --out none/a.npy", "none/a.npy"),
    ] {
        let error = folder.refused(&words(&format!("target {arguments}")));
        let names_a_flag =
            ["--family", "--mask", "--target", "--out"].iter().any(|f| error.contains(f));
        assert!(names_a_flag && error.contains(part), "{arguments}: {error}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        "",
        "--family prefix",
        "--family prefix --n -3",
        "--family prefix --n 3 --target a.npy",
        "--target a.npy --window 3",
        "--target a.npy --vocabulary 3",
    ] {
        let ended = Folder::new().run(&words(&format!("target {arguments}")));
        assert_eq!(ended.code, Some(2), "{arguments}: {}", ended.stderr);
    }
}
