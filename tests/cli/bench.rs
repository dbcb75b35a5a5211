//! `rank-study bench` as a user runs it.

use crate::common::binary::Folder;

fn bench(arguments: &[&str]) -> serde_json::Value {
    let folder = Folder::new();
    let fixed = ["bench", "fit", "--n", "300", "--rank", "12", "--repeats", "3", "--json"];
    let output = folder.command(&fixed).args(arguments).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn both_arithmetics_and_any_number_of_threads_give_one_value() {
    let one = bench(&["--threads", "1"]);
    assert!(one["eval_s"].as_f64().unwrap() > 0.0, "{one}");
    assert_eq!(one["value"], bench(&["--threads", "3"])["value"]);
    let (double, single) = (&one, bench(&["--dtype", "f32"]));
    for field in ["value", "gradient_q_norm", "gradient_k_norm"] {
        let (double, single) = (double[field].as_f64().unwrap(), single[field].as_f64().unwrap());
        assert!((double / single - 1.0).abs() < 1e-5, "{field}: {double} and {single}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new();
    for (arguments, said) in [
        (["--repeats", "0"], "--repeats"),
        (["--threads", "0"], "--threads"),
        (["--layout", "globe"], "--layout"),
    ] {
        let fixed = ["bench", "fit", "--n", "30", "--rank", "2", "--quiet"];
        let output = folder.command(&fixed).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
    for (arguments, there_are) in
        [(["--device", "tpu"], "cpu, cuda"), (["--dtype", "f16"], "f32, bf16")]
    {
        let output = folder.command(&["bench", "step"]).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(there_are), "{arguments:?}: {error}");
    }
}

/// What `rank-study bench WHAT … --json` prints.
fn json(arguments: &[&str]) -> serde_json::Value {
    let folder = Folder::new();
    let output = folder.command(&["bench"]).args(arguments).arg("--json").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

const TINY: [&str; 13] = [
    "step", "--context", "48", "--layers", "2", "--d-model", "16", "--heads", "2", "--vocab", "30",
    "--repeats", "2",
];

#[test]
fn a_step_of_every_arm_is_timed_and_is_the_same_on_any_number_of_threads() {
    for arm in [
        "mhsa", "ls", "local-only", "layer-alternating", "qk-norm", "sigma-reparam", "softcap",
        "qk-clip", "z-loss",
    ] {
        let step = |threads: &str| {
            json(&[&TINY[..], &["--variant", arm, "--window", "8", "--threads", threads]].concat())
        };
        let one = step("1");
        let seconds = one["step_s"].as_f64().unwrap();
        let rate = one["tokens_per_s"].as_f64().unwrap();
        assert!(seconds > 0.0 && (rate * seconds / 48.0 - 1.0).abs() < 1e-9, "{one}");
        assert!(one["peak_rss_bytes"].as_u64().unwrap() > 1 << 20, "{one}");
        assert_eq!(one["loss_nats"], step("3")["loss_nats"], "{arm}");
    }
}

#[test]
fn attention_alone_is_timed() {
    let found =
        json(&["attention", "--layout", "local:5+global", "--context", "70", "--softcap", "9"]);
    let [whole, forward, backward] =
        ["attention_s", "forward_s", "backward_s"].map(|field| found[field].as_f64().unwrap());
    // Written and read as decimals, which may cost the last bit.
    let off = (whole / (forward + backward) - 1.0).abs();
    assert!(forward > 0.0 && backward > 0.0 && off < 1e-12, "{found}");
}

#[test]
fn a_local_head_keeps_its_window_while_it_decodes() {
    let sizes =
        ["--cache", "60", "--layers", "2", "--d-model", "24", "--heads", "3", "--vocab", "30"];
    let decode = |arm: &str| {
        let arm = ["decode", "--variant", arm, "--window", "7", "--repeats", "3"];
        json(&[&arm[..], &sizes].concat())
    };
    for (arm, kept) in [("mhsa", 3 * 60), ("ls", 60 + 2 * 7)] {
        let found = decode(arm);
        // Keys and values of 8 float32 numbers in each of two layers.
        assert_eq!(found["cache_bytes"], 2 * kept * 2 * 8 * 4, "{found}");
        for field in ["decode_s", "prefill_s"] {
            assert!(found[field].as_f64().unwrap() > 0.0, "{found}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_step_or_an_attention_is_said() {
    let folder = Folder::new();
    for (arguments, said) in [
        (&["step", "--variant", "mha"][..], "--variant: "),
        (&["step", "--vocab", "3"], "--vocab must be at least"),
        (&["step", "--heads", "0"], "--heads must be at least 1"),
        (&["step", "--set", "window"], "KEY=VALUE"),
        (&["attention", "--layout", "globe"], "--layout"),
        (&["attention", "--softcap", "0"], "--softcap"),
        (&["attention", "--d-head", "0"], "--d-head must be at least 1"),
        (&["decode", "--cache", "0"], "--cache must be at least 1"),
        (&["decode", "--variant", "mha"], "--variant: "),
    ] {
        let output = folder.command(&["bench"]).args(arguments).arg("--quiet").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
}
