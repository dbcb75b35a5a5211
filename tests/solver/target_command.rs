//! `rank-study target` through the binary: what it prints, writes and refuses.

use rank_study::targets::{Family, Target, Visibility};

use crate::common::binary::Folder;

fn target<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["target"], arguments].concat()
}

fn stdout(arguments: &[&str]) -> String {
    Folder::new().done(&target(arguments))
}

fn refusal(arguments: &[&str]) -> String {
    Folder::new().refused(&target(arguments))
}

#[test]
fn statistics_of_a_known_target() {
    let text = stdout(&["--family", "uniform-band", "--window", "1", "--n", "4", "--stats"]);
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))[name.len()..].trim().to_owned()
    };
    for (name, expected) in [
        ("target", "uniform-band(window=1)"),
        ("n ", "4"),
        ("mask", "causal"),
        ("nonzeros", "4"),
        ("density", "0.400000"),
        ("mean row entropy (nats)", "0.000000"),
        ("mean relative distance", "0.0000"),
        ("largest relative distance", "0"),
        ("degrees of freedom", "4.0000"),
        ("Frobenius norm", "2.0000"),
        ("numerical rank", "4"),
        ("effective rank", "4.0000"),
        ("singular values", "1.0000 1.0000 1.0000 1.0000"),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
}

#[test]
fn json_is_one_object_with_every_singular_value() {
    let arguments = ["--family", "landmark", "--m", "3", "--n", "30", "--stats", "--json"];
    let value: serde_json::Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert_eq!(value["target"], "landmark(m=3)");
    assert_eq!(value["statistics"]["n"], 30);
    assert_eq!(value["spectrum"]["singular_values"].as_array().unwrap().len(), 30);
}

#[test]
fn a_large_target_has_statistics_alone() {
    let arguments = ["--family", "landmark", "--m", "3", "--n", "5000", "--stats", "--json"];
    let value: serde_json::Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert_eq!(value["statistics"]["n"], 5000);
    assert!(value["spectrum"].is_null(), "{value}");
}

#[test]
fn what_is_written_is_the_target_and_reads_back() {
    let folder = Folder::new();
    let built =
        Family::DirichletBand { window: 5, alpha: 0.5 }.build(20, 9, Visibility::Causal).unwrap();
    let family = ["target", "--family", "dirichlet-band", "--window", "5", "--alpha", "0.5"];
    for name in ["a.npy", "a.csv", "a.parquet", "a.safetensors"] {
        folder.done(&[&family[..], &["--n", "20", "--seed", "9", "--out", name]].concat());
        let read = Target::read(&folder.path(name), Visibility::Causal).unwrap();
        let worst = (read.dense() - built.dense()).iter().fold(0.0, |w: f64, d| w.max(d.abs()));
        assert!(worst < 1e-15, "{name}: off by {worst}");
        folder.done(&["target", "--target", name, "--stats"]);
    }
}

#[test]
fn quiet_leaves_standard_error_empty() {
    let folder = Folder::new();
    let mut arguments = vec!["target", "--family", "prefix", "--n", "3", "--out", "a.npy"];
    let loud = folder.run(&arguments);
    assert!(loud.stderr.contains("a.npy"), "{}", loud.stderr);
    arguments.push("--quiet");
    let quiet = folder.run(&arguments);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
    assert_eq!(loud.stdout, quiet.stdout);
}

#[test]
fn wrong_families_and_parameters_are_one_line() {
    let prefix = ["--family", "prefix"];
    for (arguments, part) in [
        (&["--family", "dirichlet-bnad", "--n", "8"][..], "similar value exists: 'dirichlet-band'"),
        (&["--family", "uniform-band", "--n", "8"], "needs --window"),
        (&["--family", "uniform-band", "--window", "0", "--n", "8"], "window is 0"),
        (&["--family", "prefix", "--sigma", "1", "--n", "8"], "sigma is not a parameter"),
        (&["--family", "permuted", "--of", "prefix", "--n", "8"], "bidirectional"),
        (&["--family", "file", "--n", "8"], "needs --path"),
        (&["--family", "file", "--path", "none.npy", "--n", "8"], "none.npy"),
        (&[prefix[0], prefix[1], "--n", "10000000"], "lower n"),
        (&[prefix[0], prefix[1], "--n", "8", "--mask", "casual"], "\"causal\""),
    ] {
        let error = refusal(arguments);
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(error.contains("--family") || error.contains("--mask"), "{error}");
    }
}

#[test]
fn wrong_files_are_one_line_that_names_them() {
    let folder = Folder::new();
    for (name, text, part) in [
        ("ragged.csv", "1,0\n1\n", "line 2"),
        ("future.csv", "0.5,0.5\n0,1\n", "causal mask"),
        ("empty.npy", "", "the file is empty"),
        ("empty.parquet", "", "parquet"),
        ("empty.safetensors", "", "not a whole .safetensors file"),
        ("matrix.doc", "1", ".doc"),
    ] {
        folder.write(name, text);
        let error = folder.refused(&["target", "--target", name]);
        assert!(error.contains(part) && error.contains(name), "{name}: {error}");
    }
    assert!(folder.refused(&["target", "--target", "missing.npy"]).contains("missing.npy"));
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing() {
    for name in ["a.txt", "none/a.npy"] {
        let error = refusal(&["--family", "prefix", "--n", "4", "--out", name]);
        assert!(error.contains("--out") && error.contains(name), "{error}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["--family", "prefix"],
        &["--family", "prefix", "--n", "-3"],
        &["--family", "prefix", "--n", "3", "--target", "a.npy"],
        &["--target", "a.npy", "--window", "3"],
        &["--target", "a.npy", "--vocabulary", "3"],
    ] {
        let ended = Folder::new().run(&target(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
    }
}
