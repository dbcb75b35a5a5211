//! `rank-study show` through the binary: pages, pictures and sentences.

use crate::browser;
use crate::common::binary;

use crate::common::binary::Folder;

const RUN: &str = r#"
arm = "mhsa"
layers = 2
d_model = 16
heads = 2
window = 4
context = 16
batch = 4
steps = 40
warmup_steps = 4
eval_every = 20
eval_batches = 1
keep_checkpoints = [20, 40]
"#;

fn fit(folder: &Folder) {
    let flags = ["--family", "dirichlet-band", "--window", "6", "--n", "24", "--rank", "3"];
    let search =
        ["--max-logit", "2,6", "--starts", "2", "--iterations", "300", "--out", "fits/band"];
    folder.done(&[&["fit"][..], &flags, &search].concat());
}

fn train(folder: &Folder, name: &str, set: &[&str]) {
    folder.write("run.toml", RUN);
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    folder.done(&[&["train", "run.toml", "--out", name][..], &set].concat());
}

fn predict(folder: &Folder) {
    // At larger errors the attention of so young a model is uniform, and needs no logits.
    let flags = ["--passages", "1", "--tolerance", "0.0001", "--out", "predicted"];
    folder.done(&[&["predict", "runs/a"][..], &flags].concat());
}

#[test]
fn a_fit_becomes_a_page_with_figures_and_tables() {
    let folder = Folder::new();
    fit(&folder);
    let said = folder.done(&["show", "fits/band"]);
    let sentence = said.lines().nth(1).unwrap();
    let page = folder.read("fits/band/shown/index.html");
    assert!(page.contains(sentence), "the page lacks {sentence}");
    for name in ["attention", "frontier", "errors-by-row"] {
        let svg = folder.read(&format!("fits/band/shown/figures/{name}.svg"));
        assert!(svg.starts_with("<svg"), "{name}");
        assert!(folder.path(&format!("fits/band/shown/figures/{name}.png")).exists());
    }
    let svg = folder.read("fits/band/shown/figures/attention.svg");
    assert_eq!(svg.matches("<image ").count(), 3, "the target and two caps");
    let (_, rows) = folder.csv("fits/band/frontier.csv");
    let (_, table) = folder.csv("fits/band/shown/tables/frontier.csv");
    let kl = |rows: &[binary::Record]| -> Vec<f64> {
        rows.iter().map(|row| row["kl_nats"].parse().unwrap()).collect()
    };
    assert_eq!(kl(&rows), kl(&table));
}

#[test]
fn a_fit_without_its_target_lacks_attention_figures() {
    let folder = Folder::new();
    fit(&folder);
    std::fs::remove_file(folder.path("fits/band/target.npy")).unwrap();
    let said = folder.done(&["show", "fits/band"]);
    assert!(said.contains("note: fits/band has no target.npy"), "{said}");
    assert!(!folder.path("fits/band/shown/figures/attention.svg").exists());
    assert!(folder.path("fits/band/shown/figures/frontier.svg").exists());
}

#[test]
fn runs_are_compared_by_the_settings_that_differ() {
    let folder = Folder::new();
    for (name, arm, seed) in [("a", "mhsa", 1), ("b", "ls", 1), ("c", "mhsa", 2), ("d", "ls", 2)] {
        let set = [format!("arm={arm}"), format!("seed={seed}")];
        train(&folder, &format!("runs/{name}"), &set.each_ref().map(String::as_str));
    }
    let runs = ["runs/a", "runs/b", "runs/c", "runs/d"];
    let refused = folder.refused(&[&["show"][..], &runs].concat());
    assert!(refused.contains("--out DIR"), "{refused}");
    folder.done(&[&["show"][..], &runs, &["--out", "all"]].concat());
    let (header, rows) = folder.csv("all/tables/runs.csv");
    assert_eq!(&header[..3], ["run", "arm", "seed"]);
    assert_eq!(rows.len(), 4);
    let last = |run: &str| {
        let (_, evals) = folder.csv(&format!("runs/{run}/eval.csv"));
        let valid: Vec<f64> = evals
            .iter()
            .filter(|row| row["split"] == "valid")
            .map(|row| row["loss_nats"].parse().unwrap())
            .collect();
        valid[valid.len() - 1]
    };
    for row in &rows {
        let shown: f64 = row["valid_loss_nats"].parse().unwrap();
        assert!((shown - last(&row["run"])).abs() < 1e-9, "{row:?}");
    }
}

#[test]
fn predictions_are_shown() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    predict(&folder);
    let said = folder.done(&["show", "predicted"]);
    assert!(said.contains(": max |logit| "), "{said}");
    for name in ["parts", "needed-against-actual"] {
        assert!(folder.path(&format!("predicted/shown/figures/{name}.svg")).exists(), "{name}");
    }
}

#[test]
fn a_log_of_heads_is_shown_head_by_head() {
    let folder = Folder::new();
    folder.write(
        "heads.csv",
        "step,layer,head,max_abs_logit,max_logit,half_range,floor\n1,0,0,2.5,2,2,nan\n1,0,1,4,4,3,1\n11,0,0,7,7,4,2\n11,0,1,inf,inf,nan,nan\n",
    );
    let said = folder.done(&["show", "heads.csv", "--out", "page"]);
    assert!(said.contains("layer 0, head 0, at step 11"), "{said}");
    for name in ["logits", "half-range", "floor"] {
        assert!(folder.path(&format!("page/figures/{name}-by-head.svg")).exists(), "{name}");
    }
    assert!(!folder.path("page/figures/entropy-by-head.svg").exists(), "it is not logged");
    let (_, rows) = folder.csv("page/tables/heads.csv");
    assert_eq!(rows.len(), 2);
    folder.write("cut.csv", "step,layer,head,max_abs_logit\n1,0,0,2.5\n1,0,");
    let said = folder.refused(&["show", "cut.csv", "--out", "out"]);
    assert!(said.contains("cut.csv") && said.contains("line 3"), "{said}");
}

#[test]
fn a_path_without_content_is_an_error_of_one_line() {
    let folder = Folder::new();
    folder.write("empty/notes.txt", "nothing");
    for (path, says) in [("empty", "has nothing to show"), ("gone", "does not exist")] {
        let said = folder.refused(&["show", path, "--out", "out"]);
        assert!(said.contains(path) && said.contains(says), "{said}");
        assert!(!folder.path("out").exists());
    }
    folder.write("m.npy", "no matrix");
    let said = folder.refused(&["show", "m.npy", "--out", "out"]);
    assert!(said.contains("m.npy"), "{said}");
}

#[test]
fn the_pages_work_in_a_browser() {
    if !browser::is_there() {
        return;
    }
    let folder = Folder::new();
    fit(&folder);
    train(&folder, "runs/a", &[]);
    predict(&folder);
    for path in ["fits/band", "runs/a", "predicted"] {
        folder.done(&["show", path, "--quiet"]);
    }
    let pages =
        ["fits/band", "runs/a", "predicted"].map(|p| folder.path(p).join("shown/index.html"));
    browser::check("show.mjs", &pages.each_ref().map(|page| page.as_path()), 6);
}

#[test]
fn heads_that_were_only_screened_are_shown_over_their_steps() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    folder.done(&["predict", "runs/a", "--screen", "--out", "screened"]);
    folder.done(&["show", "screened"]);
    let (_, rows) = folder.csv("screened/shown/tables/heads.csv");
    assert!(!rows.is_empty());
    assert!(folder.path("screened/shown/figures/floor-by-head.svg").exists());
}

#[test]
fn exported_heads_are_sent_to_their_own_command() {
    let folder = Folder::new();
    let heads = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/exported/gpt2.safetensors");
    let said = folder.refused(&["show", heads, "--out", "out"]);
    assert!(said.contains("rank-study diagnose"), "{said}");
}
