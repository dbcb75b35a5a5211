//! Pages made of hostile names, in a browser: nothing in a name runs, and the page's policy would stop it if it could.

use std::fs;
use std::path::{Path, PathBuf};

use rank_study::experiment::MeasuredStudy;
use rank_study::report::{Header, Section, analyse, page};

use crate::common::binary::Folder;
use crate::common::tiny;
use crate::{browser, plausible};

/// Names that would run something where they were taken for markup or an address; none has a slash, so that folders may
/// be called so.
const NAMES: [&str; 4] = [
    "\"><img src=x onerror=attacked=1>",
    "'><svg onload=attacked=1>",
    "javascript:attacked=1",
    "\u{202e}attacked\u{2066}<b>&lt;",
];
const TEXT: &str = "</script></style></title><script>attacked=1</script><!--\u{202e} \u{2028}attacked ]]> `<b>attacked</b>` \
    **<img src=x onerror=attacked=1>**";
/// What is put into a page to see that its policy alone keeps it dead.
const ATTACK: &str = "<script>window.attacked = 1</script><img src=x onerror=\"window.attacked = 1\">\
    <img src=\"https://example.invalid/x.png\"><a id=attack href=\"javascript:void(window.attacked = 1)\">x</a>\
    <style>body { display: none }</style><base href=\"https://example.invalid/\">\
    <form action=\"https://example.invalid/\"><button>x</button></form>";

/// Sets a column of every row of a file to what `value` gives for its number.
fn set(path: &Path, column: &str, value: impl Fn(usize) -> String) {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = header.iter().position(|name| name == column).unwrap();
    let rows: Vec<Vec<String>> = reader.deserialize().map(Result::unwrap).collect();
    let mut writer = csv::Writer::from_path(path).unwrap();
    writer.write_record(&header).unwrap();
    for (number, mut row) in rows.into_iter().enumerate() {
        row[at] = value(number);
        writer.write_record(row).unwrap();
    }
    writer.flush().unwrap();
}

/// A report of trainings and fits whose every word is hostile.
fn report(root: &Path) -> PathBuf {
    let words = || TEXT.to_owned();
    let header = Header {
        title: words(),
        generator: words(),
        preset: words(),
        machine: words(),
        in_short: vec![words()],
    };
    let sections: [(&str, &str, plausible::Make); 3] = [
        ("training", NAMES[0], plausible::lm_quick),
        ("logit-growth", NAMES[1], plausible::logit_growth),
        ("layouts", NAMES[2], plausible::layouts),
    ];
    let sections = sections.map(|(view, name, write)| {
        let folder = root.join("data").join(name);
        write(&folder);
        let rows = folder.join("rows.csv");
        match view {
            "training" => {
                set(&rows, "run", |at| NAMES[at % 4].to_owned());
                set(&rows, "corpus", |_| TEXT.to_owned());
                set(&rows, "cell", |at| format!("{}/s0", NAMES[at % 4]));
                for (at, arm) in ["mhsa", "ls"].into_iter().enumerate() {
                    fs::rename(folder.join(arm), folder.join(NAMES[at])).unwrap();
                }
            }
            _ => {
                set(&rows, "family", |_| TEXT.to_owned());
                set(&rows, "target", |at| format!("{}-{TEXT}", at % 3));
            }
        }
        let study = MeasuredStudy { folder, ..MeasuredStudy::default() };
        let analysis = analyse(&[study], view.parse().unwrap()).unwrap();
        Section {
            study: name.to_owned(),
            title: words(),
            question: words(),
            findings: words(),
            command: words(),
            definition_toml: words(),
            rows_link: format!("../data/{name}/rows.csv"),
            analysis,
            ..Section::default()
        }
    });
    let file = root.join("report.html");
    fs::write(&file, page(&header, &sections).unwrap()).unwrap();
    file
}

#[test]
fn nothing_in_a_name_runs() {
    if !browser::is_there() {
        return;
    }
    let folder = Folder::new();
    let report = report(&folder.path(""));
    let run = "context = 32\nbatch = 4\nsteps = 20\nwarmup_steps = 4\nlearning_rate = 3e-2";
    folder.write("run.toml", tiny::training(run));
    folder.write("text.txt", format!("{TEXT}\n").repeat(60));
    let runs: Vec<String> = NAMES.iter().map(|name| format!("runs/{name}")).collect();
    for (run, arm) in runs.iter().zip(["arm=mhsa", "arm=ls", "arm=mhsa", "arm=ls"]) {
        folder.done(&[
            "train", "run.toml", "--text", "text.txt", "--set", arm, "--out", run, "--quiet",
        ]);
    }
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    folder.done(&[&["show"][..], &runs, &["--out", "shown", "--quiet"]].concat());
    let flags = [
        "--text", "text.txt", "--passages", "1", "--tolerance", "0.0001", "--quiet", "--out",
        "looked",
    ];
    folder.done(&[&["diagnose", runs[0], "--compare", runs[1]][..], &flags].concat());

    let text = fs::read_to_string(&report).unwrap();
    for page in [&text, &folder.read("shown/index.html"), &folder.read("looked/index.html")] {
        let first = "<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\"";
        let policy = page.split_once(first).unwrap().1.split_once('>').unwrap().0;
        for what in
            ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "img-src data:;"]
        {
            assert!(policy.contains(what), "{what}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("connect-src"), "{policy}");
    }
    let attacked = text.replacen("<body>", &format!("<body>{ATTACK}"), 1);
    let (before, rest) = attacked.split_once("<meta http-equiv").unwrap();
    let bare = format!("{before}{}", rest.split_once('>').unwrap().1);
    folder.write("attacked.html", &attacked);
    folder.write("bare.html", bare);
    let [attacked, bare, shown, looked] =
        ["attacked.html", "bare.html", "shown/index.html", "looked/index.html"]
            .map(|file| folder.path(file));
    browser::check("hostile.mjs", &[&attacked, &bare, &report, &shown, &looked], 8);
}
