//! `rank-study show` through the binary: pages, pictures and sentences.

use crate::browser;
use crate::common::binary::{Folder, Record, number};
use crate::diagnose::{FLAGS, train};

fn fit(folder: &Folder) {
    let flags = ["--family", "dirichlet-band", "--window", "6", "--n", "24", "--rank", "3"];
    let search =
        ["--max-logit", "2,6", "--starts", "2", "--iterations", "300", "--out", "fits/band"];
    folder.done(&[&["fit"][..], &flags, &search].concat());
}

fn predict(folder: &Folder) {
    folder.done(&[&["predict", "runs/a"][..], &FLAGS, &["predicted"]].concat());
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
        for ending in ["svg", "png"] {
            assert!(folder.path(&format!("fits/band/shown/figures/{name}.{ending}")).exists());
        }
    }
    let svg = folder.read("fits/band/shown/figures/attention.svg");
    assert_eq!(svg.matches("<image ").count(), 3, "the target and two caps");
    let (_, rows) = folder.csv("fits/band/frontier.csv");
    let (_, table) = folder.csv("fits/band/shown/tables/frontier.csv");
    let kl = |rows: &[Record]| rows.iter().map(|row| number(row, "kl_nats")).collect::<Vec<_>>();
    assert_eq!(kl(&rows), kl(&table));

    // Without its target there is no attention to show.
    std::fs::remove_file(folder.path("fits/band/target.npy")).unwrap();
    let said = folder.done(&["show", "fits/band", "--out", "bare"]);
    assert!(said.contains("note: fits/band has no target.npy"), "{said}");
    assert!(!folder.path("bare/figures/attention.svg").exists());
    assert!(folder.path("bare/figures/frontier.svg").exists());
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
        number(evals.iter().rfind(|row| row["split"] == "valid").unwrap(), "loss_nats")
    };
    for row in &rows {
        assert!((number(row, "valid_loss_nats") - last(&row["run"])).abs() < 1e-9, "{row:?}");
    }
}

#[test]
fn heads_that_were_fitted_and_those_that_were_only_screened_are_shown() {
    let folder = Folder::new();
    train(&folder, "runs/a", &[]);
    predict(&folder);
    let screen = ["predict", "runs/a", "--screen", "--text", "text.txt", "--out", "screened"];
    folder.done(&screen);
    for (shown, figures) in
        [("predicted", &["parts", "needed-against-actual"][..]), ("screened", &["floor-by-head"])]
    {
        folder.done(&["show", shown]);
        for name in figures {
            assert!(folder.path(&format!("{shown}/shown/figures/{name}.svg")).exists(), "{name}");
        }
    }
    assert!(!folder.csv("screened/shown/tables/heads.csv").1.is_empty());
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
    folder.write("m.npy", "no matrix");
    // Heads that were exported have a command of their own.
    let heads = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/exported/gpt2.safetensors");
    for (path, part) in
        [("empty", "empty"), ("gone", "gone"), ("m.npy", "m.npy"), (heads, "rank-study diagnose")]
    {
        let said = folder.refused(&["show", path, "--out", "out"]);
        assert!(said.contains(part), "{said}");
    }
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
    let pages = ["fits/band", "runs/a", "predicted"].map(|path| {
        folder.done(&["show", path, "--quiet"]);
        folder.path(path).join("shown/index.html")
    });
    browser::check("show.mjs", &pages.each_ref().map(|page| page.as_path()), 6);
}
