//! `rank-study bench` as a user runs it.

mod binary;

use binary::Folder;

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
        (["--dtype", "f16"], "f32 or f64"),
        (["--repeats", "0"], "--repeats"),
        (["--threads", "0"], "--threads"),
        (["--layout", "globe"], "--layout"),
    ] {
        let fixed = ["bench", "fit", "--n", "30", "--rank", "2", "--quiet"];
        let output = folder.command(&fixed).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
}
