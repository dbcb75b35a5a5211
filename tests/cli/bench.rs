//! `rank-study bench` as a user runs it.

use crate::common::binary::{Folder, words};

/// What `rank-study bench … --json` prints.
fn json(arguments: &[&str]) -> serde_json::Value {
    let printed = Folder::new().done(&[&["bench"], arguments, &["--json"]].concat());
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn both_arithmetics_and_any_number_of_threads_give_one_value() {
    let fit = |more: [&str; 2]| {
        json(&[&["fit", "--n", "300", "--rank", "12", "--repeats", "3"], &more[..]].concat())
    };
    let double = fit(["--threads", "1"]);
    assert!(double["eval_s"].as_f64().unwrap() > 0.0, "{double}");
    assert_eq!(double["value"], fit(["--threads", "3"])["value"]);
    let single = fit(["--dtype", "f32"]);
    for field in ["value", "gradient_q_norm", "gradient_k_norm"] {
        let [double, single] = [&double, &single].map(|found| found[field].as_f64().unwrap());
        assert!((double / single - 1.0).abs() < 1e-5, "{field}: {double} and {single}");
    }
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
    for (arm, kept) in [("mhsa", 3 * 60), ("ls", 60 + 2 * 7)] {
        let arm = ["decode", "--variant", arm, "--window", "7", "--repeats", "3"];
        let found = json(&[&arm[..], &sizes].concat());
        // Keys and values of 8 float32 numbers in each of two layers.
        assert_eq!(found["cache_bytes"], 2 * kept * 2 * 8 * 4, "{found}");
        for field in ["decode_s", "prefill_s"] {
            assert!(found[field].as_f64().unwrap() > 0.0, "{found}");
        }
    }
}

#[test]
fn wrong_values_are_refused_with_the_name_of_their_flag() {
    for (arguments, part) in [
        ("fit --n 30 --rank 2 --repeats 0", "--repeats"),
        ("fit --n 30 --rank 2 --threads 0", "--threads"),
        ("fit --n 30 --rank 2 --layout globe", "--layout"),
        ("step --device tpu", "--device"),
        ("step --dtype f16", "--dtype"),
        ("step --variant mha", "--variant"),
        ("step --vocab 3", "--vocab"),
        ("step --heads 0", "--heads"),
        ("step --set window", "KEY=VALUE"),
        ("attention --layout globe", "--layout"),
        ("attention --softcap 0", "--softcap"),
        ("attention --d-head 0", "--d-head"),
        ("decode --cache 0", "--cache"),
        ("decode --variant mha", "--variant"),
    ] {
        let error = Folder::new().wrong_usage(&words(&format!("bench {arguments} --quiet")));
        assert!(error.contains(part), "{arguments}: {error}");
    }
}
