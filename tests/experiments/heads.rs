//! Trained heads held against what they needed, from the command line: rows and their order, resumption, filters,
//! certificates, studies that train what they need, and what is wrong said in one line.

use std::process::Stdio;
use std::sync::LazyLock;

use crate::common::binary::{Ended, Folder, Record, number};
use crate::common::{binary, tiny};

fn small() -> String {
    tiny::training(
        "layers = 2\nd_model = 16\nwindow = 4\ncontext = 32\nbatch = 4\nsteps = 40\nwarmup_steps = 5\n\
         learning_rate = 1e-2\neval_every = 20\nkeep_checkpoints = [10, 40]",
    )
}

/// A folder with a trained run of each arm in runs/.
fn trained() -> Folder {
    let folder = Folder::new();
    folder.write("small.toml", small());
    for arm in ["mhsa", "ls"] {
        let (set, out) = (format!("arm={arm}"), format!("runs/{arm}"));
        folder.done(&["train", "small.toml", "--set", &set, "--out", &out, "--quiet"]);
    }
    folder
}

#[test]
fn a_row_a_head_with_its_parts_in_order_and_nothing_is_fitted_twice() {
    let folder = trained();
    let predict = |more: &[&str]| {
        let mut arguments = vec!["predict", "runs/mhsa", "runs/ls", "--tolerance", "0.1,0.001"];
        arguments.extend(["--passages", "2", "--out", "predicted/both"]);
        arguments.extend(more);
        folder.done(&arguments)
    };
    predict(&["--filter", "mhsa/step-40/", "--quiet"]);
    let first = folder.csv("predicted/both/rows.csv").1;
    assert_eq!(first.len(), 2 * 2 * 2, "layers × heads × ε");
    let said = predict(&[]);
    assert!(said.contains("6 configurations measured, 2 done before"), "{said}");

    let all = folder.csv("predicted/both/rows.csv").1;
    assert_eq!(all.len(), 2 * 2 * 2 * 2 * 2, "runs × steps × layers × heads × ε");
    for row in &first {
        assert!(all.contains(row), "{row:?} was measured again");
    }
    for row in &all {
        let [needed, tied, actual] =
            ["needed", "needed_from_input", "actual"].map(|c| number(row, c));
        let levels = [number(row, "floor"), needed, tied, actual * (1.0 + 1e-5)];
        assert!(levels.is_sorted(), "{row:?}");
        assert!(number(row, "spread") <= 2.0 * actual * (1.0 + 1e-9));
        if levels[0] > 0.0 {
            let parts = ["floor", "inflation", "input_factor", "excess_factor", "shift_factor"]
                .map(|c| number(row, c));
            assert!((parts.iter().product::<f64>() / actual - 1.0).abs() < 1e-9, "{row:?}");
            assert!(number(row, "kl_nats") <= number(row, "epsilon"));
        }
        assert_eq!((number(row, "n"), number(row, "rank")), (32.0, 8.0));
        assert!(number(row, "mass_within_64") > 0.999);
    }
    let local = all.iter().filter(|row| row["kind"] == "local:4").count();
    assert_eq!(local, 2 * 2 * 2, "one head of two of ls, at two steps, layers and ε");
}

#[test]
fn heads_are_screened_and_only_large_ones_fitted() {
    let folder = trained();
    let predict = |more: &[&str], out: &str| {
        let mut arguments = vec!["predict", "runs/mhsa", "--step", "40", "--passages", "1"];
        arguments.extend(["--tolerance", "0.1,0.001", "--quiet", "--out", out]);
        arguments.extend(more);
        folder.done(&arguments);
        folder.csv(&format!("{out}/rows.csv")).1
    };
    let screened = predict(&["--screen"], "predicted/screened");
    assert_eq!(screened.len(), 2 * 2 * 2, "layers × heads × ε");
    let mut actual: Vec<f64> = screened.iter().map(|row| number(row, "actual")).collect();
    actual.sort_unstable_by(f64::total_cmp);
    // Between the two largest heads of four.
    let above = (0.5 * (actual[5] + actual[6])).to_string();
    let large = predict(&["--above", &above], "predicted/large");
    let all = predict(&[], "predicted/all");
    for ((screened, large), all) in screened.iter().zip(&large).zip(&all) {
        let is_fitted = number(all, "actual") > above.parse().unwrap();
        assert_eq!(is_fitted, large["outcome"] != "screened", "{large:?}");
        for column in ["outcome", "outcome_from_input"] {
            assert_eq!(screened[column], "screened");
        }
        // Where a loose ε needs no logits, there is nothing to divide by.
        for column in ["needed", "needed_from_input", "inflation", "excess_factor", "kl_nats"] {
            let expected = if is_fitted { &all[column] } else { "" };
            assert_eq!((&*screened[column], &*large[column]), ("", expected), "{column}");
        }
        for column in ["needed", "needed_from_input"] {
            assert_eq!(is_fitted, !large[column].is_empty(), "{column}");
        }
        for column in
            ["actual", "floor", "max_logit", "max_dot", "first_mass", "share_ramp", "shift_factor"]
        {
            assert_eq!([&screened[column], &large[column]], [&all[column]; 2], "{column}");
        }
        assert_eq!((&*all["sink_mass"], &*all["softcap"]), ("0", ""));
        assert!((number(all, "scale") - 1.0 / 8.0f64.sqrt()).abs() < 1e-12);
        assert!(number(all, "max_logit") <= number(all, "actual"));
    }
    assert!(large.iter().any(|row| row["outcome"] != "screened"));
}

#[test]
#[cfg(unix)]
fn a_signal_stops_after_the_cells_in_hand_and_the_same_command_goes_on() {
    let folder = trained();
    // Half a second a cell.
    let mut arguments = vec!["predict", "runs/mhsa", "--tolerance", "0.0001", "--passages", "12"];
    arguments.extend(["--threads", "1", "--out", "predicted/stopped"]);
    let mut command = folder.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let rows = "predicted/stopped/rows.csv";
    while !folder.path(rows).exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be stopped");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    binary::send("-TERM", &child);
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, binary::STOPPED, "{}", ended.stderr);
    let before = folder.csv(rows).1;
    let said = folder.done(&arguments);
    assert!(said.contains(" done before"), "{said}");
    let after = folder.csv(rows).1;
    assert!(before.len() < after.len(), "{} rows of {}", before.len(), after.len());
    assert!(before.iter().all(|row| after.contains(row)), "a finished row was lost");
}

#[test]
fn certificates_are_kept_and_reach_what_their_row_says() {
    let folder = trained();
    let mut arguments =
        vec!["predict", "runs/mhsa", "--step", "40", "--layer", "1", "--tolerance", "0.001"];
    arguments.extend(["--factors", "--passages", "1", "--out", "predicted/kept", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&folder.done(&arguments)).unwrap();
    let all = folder.csv("predicted/kept/rows.csv").1;
    assert_eq!((all.len(), printed.as_array().unwrap().len()), (2, 2));
    for row in all.iter().filter(|row| number(row, "floor") > 0.0) {
        for (kind, column) in [("free", "needed"), ("tied", "needed_from_input")] {
            let rank = number(row, "rank") as usize;
            let name = format!("head-{}-passage-0-rank-{rank}-e0.001-{kind}", row["head"]);
            let place = folder.path("predicted/kept").join(&row["cell"]).join(name);
            let factors = rank_study::solver::read_factors(&place).unwrap();
            let (q, k) = (factors.queries(), factors.keys());
            let mut largest = 0.0f64;
            for i in 0..32 {
                for j in 0..=i {
                    let z: f64 = (0..rank).map(|c| q[[0, i, c]] * k[[0, j, c]]).sum();
                    largest = largest.max((z / (rank as f64).sqrt()).abs());
                }
            }
            assert!((largest - number(row, column)).abs() < 1e-9, "{kind}: {largest}, {row:?}");
        }
    }
}

/// Trainings in which heads come to need logits.
const LEARNING: &str = "presets = [\"paper\"]\n\
    train = { d_model = 16, window = 4, context = 32, batch = 4, steps = 30, warmup_steps = 5, \
    learning_rate = 1e-2, eval_every = 30, keep_checkpoints = [10, 30] }\n";

static RUNS: LazyLock<String> = LazyLock::new(|| tiny::trainings(LEARNING));

const PARTS: &str = r#"
study = "parts"
kind = "predict"
view = "decomposition"
presets = ["paper"]
[predict]
of = ["runs"]
steps = [10, 30]
epsilon = [0.00001]
passages = 1
"#;

#[test]
fn a_study_trains_what_it_needs_and_its_rows_are_held_to_their_laws() {
    let folder = Folder::new();
    for (name, text) in [("runs", RUNS.as_str()), ("parts", PARTS)] {
        folder.write(&format!("analysis/{name}.toml"), text);
    }
    let reproduce = || {
        let ended = folder.run(&["reproduce", "--preset", "paper", "--only", "parts"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr
    };
    let said = reproduce();
    assert!(said.contains("12 configurations, 0 done before"), "{said}");
    let all = folder.csv("data/parts/rows.csv").1;
    assert_eq!(all.len(), 2 * 2 * 2 * 2, "runs × seeds × steps × heads");
    assert!(all.iter().all(|row| row["of"] == "runs" && row["err"].is_empty()));
    assert!(folder.path("figures/parts/decomposition.svg").is_file());
    assert!(folder.path("data/parts/tables/parts.csv").is_file());

    // The weights are gone, as in a clone: they are made again only for what is still to do.
    for run in ["mhsa/s0", "mhsa/s1", "ls/s0", "ls/s1"] {
        std::fs::remove_dir_all(folder.path(&format!("data/runs/{run}/checkpoint"))).unwrap();
    }
    let said = reproduce();
    assert!(said.contains("8 configurations, 8 done before"), "{said}");
    assert!(!folder.path("data/runs/ls/s0/checkpoint").exists());
    folder.done(&["verify", "parts"]);
    let (header, whole) = folder.csv("data/parts/rows.csv");
    for column in ["needed", "needed_from_input", "actual", "inflation", "excess_factor"] {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&header).unwrap();
        for mut row in whole.clone() {
            if let Ok(value) = row[column].parse::<f64>() {
                row.insert(column.to_owned(), (value * 0.5).to_string());
            }
            writer.write_record(header.iter().map(|name| &row[name])).unwrap();
        }
        folder.write("data/parts/rows.csv", writer.into_inner().unwrap());
        let ended = folder.run(&["verify", "parts"]);
        assert_eq!(ended.code, Some(3), "{column}: {}", ended.stderr);
        assert!(ended.stdout.contains("step-30/layer-0 head"), "{column}: {}", ended.stdout);
    }
}

/// The rows of a study on a text without what the clock says.
fn rows_of(folder: &Folder, study: &str) -> Vec<Record> {
    let mut rows = folder.csv(&format!("data/{study}/rows.csv")).1;
    rows.iter_mut().for_each(|row| drop(row.remove("wall_time_s")));
    rows
}

#[test]
fn models_are_chosen_by_run_seed_and_step() {
    let folder = Folder::new();
    // Of the steps that are to be kept, 100 lies past the end.
    folder.write("analysis/runs.toml", RUNS.replace("[10, 30]", "[10, 100]"));
    let cells = |keys: &str| -> Vec<String> {
        folder.write("analysis/parts.toml", PARTS.replace("steps = [10, 30]\n", keys));
        let said = folder.done(&["sweep", "analysis/parts.toml", "--list"]);
        said.split_whitespace().map(str::to_owned).collect()
    };
    let of = |run: &str, steps: &[usize]| -> Vec<String> {
        steps.iter().map(|step| format!("{run}/step-{step}/layer-0")).collect()
    };
    let all = ["ls/s0", "ls/s1", "mhsa/s0", "mhsa/s1"].map(|run| of(run, &[10, 30])).concat();
    assert_eq!(cells(""), all);
    assert_eq!(cells("seeds = [1]\n"), [of("ls/s1", &[10, 30]), of("mhsa/s1", &[10, 30])].concat());
    assert_eq!(cells("seeds = [1]\nruns = ['ls']\nsteps = [30]\n"), of("ls/s1", &[30]));
    folder.write("analysis/parts.toml", PARTS.replace("steps = [10, 30]", "seeds = [7]"));
    let said = folder.refused(&["sweep", "analysis/parts.toml", "--list"]);
    assert!(said.contains("predict.seeds") && said.contains('7'), "{said}");
}

#[test]
fn texts_of_one_name_share_no_rows() {
    let folder = Folder::new();
    let runs = RUNS.replace("seed = [0, 1]", "seed = 0");
    let compared = tiny::trainings(&format!(
        "{LEARNING}study = \"compared\"\nview = \"variants\"\nbaseline = {{ of = \"runs\", runs = [\"mhsa\"] }}\n\
         run = [{{ name = \"mhsa-slow\", arm = \"mhsa\", learning_rate = 1e-3 }}]\n"
    ));
    for (name, text) in [("runs", &*runs), ("compared", &*compared), ("parts", PARTS)] {
        folder.write(&format!("analysis/{name}.toml"), text);
    }
    folder.write("a/book.txt", "the cat sat on the mat and the dog sat on the log. ".repeat(60));
    folder.write("b/book.txt", "a stitch in time saves nine, haste is less speed. ".repeat(60));
    let sweep = |study: &str, text: &str| {
        folder.done(&["sweep", &format!("analysis/{study}.toml"), "--text", text])
    };
    let said = sweep("runs", "a/book.txt");
    assert!(said.contains("rows in data/runs-book/rows.csv"), "{said}");
    let first = rows_of(&folder, "runs-book");

    // The heads of the second text's models are those of its own runs, which are trained first.
    let said = sweep("parts", "b/book.txt");
    assert!(said.contains("rows in data/parts-book/rows.csv"), "nobody's yet: {said}");
    let tree = folder.tree();
    let own = tree.iter().find(|name| name.starts_with("data/runs-book-")).unwrap();
    let own = own.strip_prefix("data/").unwrap();
    assert_eq!(own.len(), "runs-book-1a2b3c4d".len(), "{own}");
    let manifest: toml::Table = folder.read(&format!("data/{own}/manifest.toml")).parse().unwrap();
    assert!(manifest["text_sha256"].as_str().unwrap().starts_with(&own["runs-book-".len()..]));
    assert_eq!(rows_of(&folder, "runs-book"), first);
    let second = rows_of(&folder, own);
    assert!(second.iter().all(|row| row["study"] == own), "{second:?}");
    assert_ne!(second[0]["valid_loss_nats"], first[0]["valid_loss_nats"]);

    // A study's baseline is found by its text too.
    let said = sweep("compared", "b/book.txt");
    assert!(said.contains("rows in data/compared-book/rows.csv"), "{said}");
    let table = folder.done(&["table", "compared-book"]);
    // Without the text's name, too, and the figures are still those of the text.
    folder.done(&["figure", "compared"]);
    assert!(folder.path("figures/compared-book").is_dir());
    assert!(!folder.path("figures/compared").exists());
    let baseline = second.iter().find(|row| row["run"] == "mhsa").unwrap();
    let loss = format!("| {:.3} |", number(baseline, "valid_loss_nats"));
    assert!(table.contains(&loss), "{loss} is not in {table}");

    for (study, text, name) in [
        ("runs", "a/book.txt", "runs-book"),
        ("runs", "b/book.txt", own),
        ("parts", "b/book.txt", "parts-book"),
        ("compared", "b/book.txt", "compared-book"),
    ] {
        let said = sweep(study, text);
        assert!(said.contains(&format!("{name}: 0 configurations measured")), "{said}");
        folder.done(&["verify", name]);
    }
    // The same text with another for validation is another, too.
    let path = "analysis/runs.toml";
    let said = folder.done(&["sweep", path, "--text", "a/book.txt", "--valid-text", "b/book.txt"]);
    assert!(said.contains("2 configurations measured; rows in data/runs-book-"), "{said}");
    assert_eq!(rows_of(&folder, "runs-book"), first);
    assert_eq!(rows_of(&folder, own), second);
    assert!(!folder.tree().iter().any(|name| name.contains("set-aside")), "{:?}", folder.tree());
    folder.done(&["report"]);
    let page = folder.read("figures/report.html");
    assert!(page.contains("--text a/book.txt --valid-text b/book.txt"));
}

#[test]
fn runs_of_an_edited_definition_are_set_aside_and_never_read() {
    let folder = Folder::new();
    let runs = RUNS.replace("seed = [0, 1]", "seed = 0");
    folder.write("analysis/runs.toml", &runs);
    folder.write("analysis/parts.toml", PARTS);
    folder.done(&["sweep", "analysis/parts.toml"]);
    let files = ["steps.csv", "eval.csv", "checkpoint/step-000010.safetensors"];
    let bytes =
        |run: &str| files.map(|name| std::fs::read(folder.path(&format!("{run}/{name}"))).unwrap());
    let (before, mut old) = (bytes("data/runs/ls/s0"), rows_of(&folder, "runs"));
    let measured = rows_of(&folder, "parts");

    folder
        .write("analysis/runs.toml", runs.replace("learning_rate = 0.01", "learning_rate = 0.02"));
    let ended = folder.run(&["sweep", "analysis/parts.toml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("now in data/runs/ls/s0-set-aside"), "{}", ended.stderr);
    assert!(bytes("data/runs/ls/s0-set-aside") == before, "the run set aside is as it was");
    assert!(bytes("data/runs/ls/s0") != before);
    let mut aside = folder.csv("data/runs/rows-set-aside.csv").1;
    aside.iter_mut().for_each(|row| drop(row.remove("wall_time_s")));
    // In the order in which their cells ended.
    aside.sort();
    old.sort();
    assert_eq!(aside, old);
    for (again, before) in rows_of(&folder, "parts").iter().zip(&measured) {
        assert_ne!(again["actual"], before["actual"]);
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_was_stopped_is_no_ended_one() {
    let folder = Folder::new();
    let runs = RUNS.replace("seed = [0, 1]", "seed = 0").replace("30", "800");
    folder.write("analysis/runs.toml", runs);
    folder.write("analysis/parts.toml", PARTS.replace("30", "800"));
    let arguments = ["sweep", "analysis/runs.toml", "--filter", "ls"];
    let mut command = folder.command(&arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.path("data/runs/ls/s0/checkpoint/step-000010.safetensors").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was stopped");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    binary::send("-INT", &child);
    child.wait().unwrap();
    let manifest = || folder.read("data/runs/ls/s0/manifest.toml");
    assert!(manifest().contains("outcome = \"stopped\""), "{}", manifest());
    assert!(folder.path("data/runs/ls/s0/checkpoint/training.safetensors").exists());
    folder.done(&["sweep", "analysis/parts.toml", "--filter", "ls/s0/step-800"]);
    assert!(manifest().contains("outcome = \"completed\""), "{}", manifest());
    assert!(manifest().contains("resumed_at_steps"), "{}", manifest());
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = trained();
    folder.write("book.txt", "to be or not to be ".repeat(80));
    folder.done(&["train", "small.toml", "--text", "book.txt", "--out", "runs/book", "--quiet"]);
    for (arguments, part) in [
        (&["runs/none"][..], "runs/none"),
        (&["runs/mhsa", "--tolerance", "0"], "above 0"),
        (&["runs/mhsa", "--above=-1"], "predict.above is -1.0"),
        (&["runs/mhsa", "--layer", "9"], "0 to 1, not 9"),
        (&["runs/mhsa", "--filter", "x"], "matches none"),
        (&["runs/mhsa", "--step", "11"], "10, 40"),
        (&["runs/mhsa", "--tokens", "33"], "32"),
        (&["runs/book"], "--text FILE"),
    ] {
        let said = folder.refused(&[&["predict"], arguments, &["--out", "p/a"]].concat());
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    folder.write("analysis/runs.toml", RUNS.as_str());
    folder.write("analysis/parts.toml", PARTS.replace("[10, 30]", "[11]"));
    let said = folder.refused(&["sweep", "analysis/parts.toml"]);
    assert!(said.contains("steps [10, 30]"), "{said}");
}
