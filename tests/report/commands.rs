//! `table`, `figure`, `report`, `list` and `reproduce` through the binary: from rows to the report.

use std::path::Path;
use std::sync::LazyLock;

use crate::common::binary::{Ended, Folder, Record, number};
use crate::common::tiny;

/// Sixteen fits of two targets.
static GROWTH: LazyLock<String> = LazyLock::new(|| {
    tiny::fits(
        r#"
study = "growth"
title = "Growth in miniature"
question = "Do the <logits> grow?"
grid = { n = [16, 24], tolerance = [0.4] }
target = [{ family = "dirichlet-band", window = 4 }, { family = "landmark", m = 3 }]
"#,
    )
});

const SPLIT: &str = r#"
study = "split"
kind = "fit"
view = "layouts"
presets = ["quick", "paper"]
title = "Layouts in miniature"
[grid]
n = [24]
seed = [0, 1]
caps = [2, 4]
heads = [{ layout = "global", rank = 4 }, { layout = "local:6+global", rank = 2 }]
[search]
starts = 2
polished = 1
rough_iterations = 100
iterations = 300
relative_decrease = 1e-3
[[target]]
family = "mixture"
local = "dirichlet-band"
window = 6
global = "landmark"
m = 2
"#;

/// The manifest of measurements that are no study, as benches/peers/run.py writes it.
const NO_STUDY: &str = r#"
command = "python benches/peers/run.py"
version = "0.1.0"
git_revision = ""
load_before = 0.25
started = "2026-11-21T10:00:00Z"
ended = "2026-11-21T10:09:00Z"
wall_time_s = 540.5
threads = 2
cpu = "some processor"
blas = "each side's own"
dtype = "float32 and float64"
rounds = 5
versions = ["numpy 2.4.6"]
"#;

const REPRODUCE: [&str; 3] = ["reproduce", "--preset", "quick"];

fn with_definitions() -> Folder {
    let folder = Folder::new();
    folder.write("analysis/growth.toml", GROWTH.as_str());
    folder.write("analysis/split.toml", SPLIT);
    // A single training run beside the studies is none of them.
    folder.write("analysis/run.toml", "steps = 3\n");
    folder
}

fn measured() -> Folder {
    let folder = with_definitions();
    folder.done(&["sweep", "analysis/growth.toml", "--quiet"]);
    folder.done(&["sweep", "analysis/split.toml", "--quiet"]);
    folder
}

/// The names of the files right below `place` with this ending.
fn files(folder: &Folder, place: &str, ending: &str) -> Vec<String> {
    let within = |path: &String| Path::new(path).parent() == Some(Path::new(place));
    let named = |path: &String| path.ends_with(ending);
    folder.tree().into_iter().filter(|path| within(path) && named(path)).collect()
}

#[test]
fn tables_and_figures_are_written_and_named() {
    let folder = measured();
    for (study, tables) in [("growth", &["cells", "slopes"][..]), ("split", &["layouts"])] {
        let printed = folder.done(&["table", study]);
        let place = format!("data/{study}/tables");
        assert_eq!(files(&folder, &place, ".csv").len(), tables.len(), "{:?}", folder.tree());
        for table in tables {
            let (header, rows) = folder.csv(&format!("{place}/{table}.csv"));
            assert!(!rows.is_empty() && header.len() > 2, "{table}: {header:?}");
            let markdown = folder.read(&format!("{place}/{table}.md"));
            assert!(printed.contains(markdown.trim()), "{table} is not in {printed}");
        }

        let printed = folder.done(&["figure", study]);
        let [svg, png] =
            [".svg", ".png"].map(|end| files(&folder, &format!("figures/{study}"), end));
        assert!(!svg.is_empty() && svg.len() == png.len(), "{:?}", folder.tree());
        for path in svg.iter().chain(&png) {
            let bytes = std::fs::read(folder.path(path)).unwrap();
            let ending: &[u8] = if path.ends_with("svg") { b"</svg>" } else { b"IEND\xaeB`\x82" };
            assert!(bytes.trim_ascii_end().ends_with(ending), "{path} is cut off");
            assert!(printed.contains(path), "{path} is not in {printed}");
        }
    }
    let (_, cells) = folder.csv("data/growth/tables/cells.csv");
    assert_eq!(cells.len(), 8, "two targets at two n and two ranks: {cells:?}");
    let (_, layouts) = folder.csv("data/split/tables/layouts.csv");
    assert_eq!(layouts.len(), 4, "two layouts at two caps: {layouts:?}");
    let ended = folder.run(&["table", "growth", "--quiet"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_report_holds_the_studies_asked_for() {
    let folder = measured();
    folder.write("data/bench-fit/manifest.toml", NO_STUDY);
    folder.write("data/bench-fit/rows.csv", "what,side\nevaluation,numpy\n");
    // A note stands above the rows that it names, and above no others.
    let manifest = folder.read("data/growth/manifest.toml");
    let rows = manifest.lines().find(|line| line.starts_with("rows_sha256 = ")).unwrap();
    for study in ["growth", "split"] {
        let note = format!("<!-- {rows} -->\n\nIt {study}s.\n");
        folder.write(&format!("analysis/notes/{study}.md"), note);
    }
    assert!(folder.done(&["report"]).contains("figures/report.html"));
    let page = folder.read("figures/report.html");
    for part in [
        "Growth in miniature",
        "Layouts in miniature",
        "Do the &lt;logits&gt; grow?",
        "rank-study sweep analysis/growth.toml",
        "It growths.",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert!(!page.contains("It splits."));
    assert!(page.trim_end().ends_with("</html>"), "the page is cut off");
    let (header, verdicts) = folder.csv("data/verdicts.csv");
    assert_eq!(header[..3], ["claim", "group", "place"]);
    assert_eq!(verdicts.len(), rank_study::experiments::claims::CLAIMS.len(), "one for each claim");
    for verdict in verdicts.iter().filter(|row| row["study"].is_empty()) {
        assert_eq!((verdict["verdict"].as_str(), verdict["seeds"].as_str()), ("not measured", "0"));
    }
    for study in ["growth", "split"] {
        assert!(verdicts.iter().any(|row| row["study"] == study), "{study}: {verdicts:?}");
    }
    let of_all = folder.read("data/verdicts.csv");
    folder.done(&["report", "split", "--out", "pages/split.html"]);
    assert_eq!(folder.read("data/verdicts.csv"), of_all, "of one study");
    let page = folder.read("pages/split.html");
    assert!(page.contains("Layouts in miniature") && !page.contains("Growth in miniature"));
    assert!(page.contains("../data/split/rows.csv"), "no link to the rows from where the page is");
}

#[test]
fn what_is_asked_for_is_reproduced_once() {
    let folder = with_definitions();
    let listed = |done: [u64; 2]| {
        let text = folder.done(&["list", "--preset", "quick", "--json"]);
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let studies = list.as_array().unwrap();
        assert_eq!(studies.len(), 2, "{text}");
        for ((study, (name, cells)), done) in
            studies.iter().zip([("growth", 16), ("split", 4)]).zip(done)
        {
            assert_eq!(study["study"], name, "{text}");
            assert_eq!((&study["cells"], &study["done"]), (&cells.into(), &done.into()), "{text}");
            assert_eq!(study["presets"], serde_json::json!(["quick", "paper"]), "{text}");
        }
    };
    listed([0, 0]);
    folder.done(&["reproduce", "--only", "split", "--quiet"]);
    listed([0, 4]);
    let printed = folder.done(&REPRODUCE);
    assert!(printed.contains("What was found"), "{printed}");
    let (_, verdicts) = folder.csv("data/quick/verdicts.csv");
    let is_measured = |verdict: &&Record| verdict["verdict"] != "not measured";
    assert!(verdicts.iter().any(|verdict| is_measured(&verdict)), "{verdicts:?}");
    for verdict in verdicts.iter().filter(is_measured) {
        for column in ["claim", "headline", "verdict"] {
            assert!(printed.contains(&verdict[column]), "{verdict:?} is not in {printed}");
        }
    }
    for study in ["growth", "split"] {
        let tables = format!("data/quick/{study}/tables");
        let figures = format!("figures/quick/{study}");
        for (place, endings) in
            [(tables, &["csv", "parquet", "md", "tex"][..]), (figures, &["svg", "png"])]
        {
            for ending in endings {
                assert!(!files(&folder, &place, ending).is_empty(), "no {ending} in {place}");
            }
        }
    }
    assert!(folder.read("figures/quick/report.html").contains("preset quick"));
    listed([16, 4]);
    assert!(folder.done(&["list", "--preset", "quick"]).contains("16 of   16 done"));
    assert!(folder.done(&["list"]).contains("0 of   16 done"), "the other size is apart");
    let held = folder.done(&["verify", "--preset", "quick"]);
    assert!(held.contains("growth: 16 rows") && held.contains("agrees with the rows"), "{held}");

    let before = folder.copied();
    let again = folder.run(&REPRODUCE);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for line in [
        "growth: 0 configurations measured, 16 done before",
        "split: 0 configurations measured, 4 done before",
    ] {
        assert!(again.stderr.contains(line), "{line:?} is not in {}", again.stderr);
    }
    assert_eq!(folder.tree(), before.tree());
    for name in before.tree().iter().filter(|name| before.path(name).is_file()) {
        let [then, now] = [&before, &folder].map(|of| std::fs::read(of.path(name)).unwrap());
        assert!(then == now, "{name} changed");
    }
}

#[test]
fn unknown_names_are_one_line_that_says_what_there_is() {
    let folder = with_definitions();
    let misspelt = |command: &[&str]| {
        let error = folder.refused(&[command, &["growht"]].concat());
        assert!(error.contains("\"growht\"") && error.contains("\"growth\""), "{error}");
    };
    for command in ["table", "figure", "report"] {
        misspelt(&[command]);
    }
    assert!(folder.refused(&["report"]).contains("rank-study reproduce"));
    folder.done(&["sweep", "analysis/split.toml", "--quiet"]);
    for command in [&["table"][..], &["figure"], &["report"], &["reproduce", "--only"]] {
        misspelt(command);
    }
    let wrong = folder.run(&["reproduce", "--preset", "quikc"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("did you mean \"quick\"?"), "{}", wrong.stderr);
    assert!(folder.refused(&["reproduce", "--threads", "0"]).contains("--threads"));
    let empty = Folder::new();
    for command in ["list", "reproduce"] {
        assert!(empty.refused(&[command]).contains("analysis/"));
    }
}

/// How the line begins that a definition that is wrong costs.
const LEFT_OUT: &str = "left out: analysis/split.toml: ";

fn with_a_wrong_definition() -> Folder {
    let folder = with_definitions();
    folder.write("analysis/split.toml", SPLIT.replace("[grid]", "[grdi]"));
    // A file that is no TOML at all has a name and nothing else.
    folder.write("analysis/torn.toml", "study = \"torn");
    folder
}

#[test]
fn a_definition_that_is_wrong_stops_no_other_study() {
    let folder = with_a_wrong_definition();
    // A file is a study's by either of two keys, so that a slip in one does not make it nobody's.
    folder.write("analysis/slip.toml", SPLIT.replace("study =", "stduy ="));
    for arguments in [&["list", "--preset", "quick"][..], &["list", "--json"], &REPRODUCE] {
        let Ended { code, stdout, stderr } = folder.run(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {stderr}");
        let slip = "left out: analysis/slip.toml: unknown key \"stduy\"; did you mean \"study\"?";
        for line in [LEFT_OUT, "left out: analysis/torn.toml: line 1: ", slip] {
            assert_eq!(stderr.matches(line).count(), 1, "{arguments:?}: {stderr}");
        }
        assert!(stderr.lines().last().unwrap().starts_with("error: 3 definitions"), "{stderr}");
        let is_named = stdout.contains("growth") || arguments[0] == "reproduce";
        assert!(is_named, "{arguments:?}: {stdout}");
    }
    assert!(folder.read("figures/quick/report.html").contains("Growth in miniature"));
    assert!(folder.done(&["verify", "--preset", "quick"]).contains("growth: 16 rows"));
}

/// Rows keep the definition that they were measured by: where it reads no more, no verdict goes without a word.
#[test]
fn rows_whose_definition_reads_no_more_are_left_out_with_a_line() {
    let folder = measured();
    let manifest = folder.read("data/growth/manifest.toml");
    for (find, replace, part) in [
        ("[search]", "[serach]", "\"serach\""),
        ("view = \"logit-growth\"", "view = \"dial\"", "\"dial\""),
        ("definition = ", "of_old = ", "study is missing"),
    ] {
        assert!(manifest.contains(find), "{find}");
        folder.write("data/growth/manifest.toml", manifest.replace(find, replace));
        let Ended { code, stderr, .. } = folder.run(&["report"]);
        assert_eq!(code, Some(1), "{stderr}");
        let line = stderr.lines().next().unwrap();
        assert!(line.starts_with("left out: growth: data/growth/manifest.toml: "), "{stderr}");
        let advice = "`rank-study sweep analysis/growth.toml`";
        assert!(line.contains(part) && line.contains(advice), "{stderr}");
        assert!(folder.refused(&["table", "growth"]).contains(part));
        let page = folder.read("figures/report.html");
        assert!(page.contains("Layouts in miniature") && !page.contains("Growth in miniature"));
    }
    folder.done(&["sweep", "analysis/growth.toml", "--quiet"]);
    folder.done(&["report"]);
}

#[test]
fn a_wrong_definition_that_nobody_asked_for_costs_a_line() {
    let folder = with_a_wrong_definition();
    let only = |names: &[&str]| folder.run(&[&["reproduce", "--quiet", "--only"], names].concat());
    let Ended { code, stderr, .. } = only(&["growth"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.starts_with(LEFT_OUT) && stderr.lines().count() == 2, "{stderr}");
    for names in [&["split"][..], &["torn"], &["growth", "split"]] {
        let Ended { code, stderr, .. } = only(names);
        assert_eq!(code, Some(1), "{names:?}: {stderr}");
        assert!(stderr.contains(LEFT_OUT), "{names:?}: {stderr}");
        assert!(stderr.lines().last().unwrap().starts_with("error: 1 definition "), "{stderr}");
    }
    let Ended { code, stderr, .. } = only(&["splt"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no study \"splt\""), "{stderr}");
}

#[test]
fn a_study_of_one_size_keeps_no_other_from_the_other_size() {
    let folder = with_definitions();
    // Training runs at two sizes, and a study of them at the larger alone.
    let runs = "study = \"runs\"\nkind = \"train\"\npresets = [\"paper\"]\n[train]\nsteps = 30\n\
                keep_checkpoints = [10]\n[[run]]\nname = \"long\"\n[quick.train]\nsteps = 20\n\
                [[quick.run]]\nname = \"short\"\n";
    folder.write("analysis/runs.toml", runs);
    let parts = "study = \"parts\"\nkind = \"predict\"\npresets = [\"paper\"]\n[predict]\nof = [\"runs\"]\n\
                 runs = [\"long\"]\nsteps = [30]\nepsilon = [0.1]\n";
    folder.write("analysis/parts.toml", parts);
    folder.done(&[&REPRODUCE[..], &["--quiet"]].concat());
    assert!(folder.path("data/quick/growth/rows.csv").is_file());
    assert!(!folder.path("data/quick/runs").exists() && !folder.path("data/parts").exists());

    for (preset, studies) in [
        ("quick", &["growth", "runs", "split"][..]),
        ("paper", &["growth", "parts", "runs", "split"]),
    ] {
        let text = folder.done(&["list", "--preset", preset]);
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        assert_eq!(names.collect::<Vec<_>>(), studies);
    }
    for arguments in [
        &["reproduce", "--only", "parts"][..],
        &["reproduce", "--preset", "quick", "--only", "growth", "parts"],
        &["sweep", "analysis/parts.toml", "--preset", "quick"],
    ] {
        let error = folder.refused(arguments);
        assert!(error.contains("parts.toml: ") && error.contains("no quick size"), "{error}");
    }
    let there = folder.done(&["sweep", "analysis/parts.toml", "--list"]);
    assert_eq!(there.lines().count(), 3, "a layer each: {there}");
}

#[test]
fn rows_cut_in_a_line_name_the_file_the_line_and_what_to_do() {
    let folder = measured();
    let rows = folder.read("data/growth/rows.csv");
    for cut in [1, 30] {
        folder.write("data/growth/rows.csv", &rows[..rows.len() - cut]);
        for command in ["table", "figure", "report"] {
            let error = folder.refused(&[command, "growth"]);
            assert!(error.contains("data/growth/rows.csv, line 17: "), "{error}");
            assert!(error.contains("measure the study growth again"), "{error}");
        }
    }
    folder.done(&["sweep", "analysis/growth.toml", "--quiet"]);
    folder.done(&["table", "growth"]);
}

#[test]
fn the_rows_of_several_studies_are_tabulated_together() {
    let folder = measured();
    let more = GROWTH.replace("\"growth\"", "\"more\"").replace("[0, 1]", "[2]");
    folder.write("analysis/more.toml", more);
    folder.done(&["sweep", "analysis/more.toml", "--quiet"]);
    folder.done(&["table", "growth", "more", "--out", "both", "--quiet"]);
    let (_, cells) = folder.csv("both/cells.csv");
    assert_eq!(cells.len(), 8);
    let seeds = |cell: &Record| number(cell, "reached") + number(cell, "not_reached");
    assert!(cells.iter().all(|cell| seeds(cell) == 3.0), "{cells:?}");
    let error = folder.refused(&["table", "growth", "more"]);
    assert!(error.contains("--out DIR"), "{error}");
}

/// A study of a model that has to be fetched first is listed by its rows where the model is not there.
#[test]
fn a_model_that_is_not_fetched_keeps_no_study_from_the_list() {
    let folder = measured();
    let away = "study = \"away\"\nkind = \"predict\"\nview = \"published\"\n[predict]\nfolders = [\"runs/away\"]\n\
                fetch = \"make away\"\ntokens = 24\npassages = 1\nepsilon = [0.1]\n";
    folder.write("analysis/away.toml", away);
    let listed = folder.done(&["list"]);
    let line = listed.lines().find(|line| line.trim_start().starts_with("away")).unwrap();
    assert!(line.contains("make away") && listed.contains("growth"), "{listed}");
    assert!(folder.refused(&["sweep", "analysis/away.toml"]).contains("make away"));
}
