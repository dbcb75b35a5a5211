//! The report's page in a headless browser: what a reader sees, clicks, types and prints.

use std::path::Path;

use crate::{browser, plausible};
use rank_study::experiment::{MeasuredStudy, View};
use rank_study::report::{Header, Section, analyse, page};
use rank_study::system::write_whole;

/// A study in `root/data/NAME`, with its tables beside its rows.
fn section(root: &Path, view: &str, write: fn(&Path)) -> Section {
    let view: View = view.parse().unwrap();
    let name = view.to_string();
    let folder = root.join("data").join(&name);
    write(&folder);
    let study = MeasuredStudy { folder: folder.clone(), ..MeasuredStudy::default() };
    let analysis = analyse(&[study], view).unwrap();
    rank_study::report::save_tables(&analysis.tables, &folder.join("tables")).unwrap();
    Section {
        title: format!("The study {name}"),
        question: "How large must logits grow?".to_owned(),
        findings: "What the figures show.\n\nWhat they do not show.".to_owned(),
        command: format!(
            "rank-study sweep analysis/{name}.toml --with {}",
            "a-long-option".repeat(9)
        ),
        wall_time_s: Some(312.0),
        definition_toml: "name = \"example\"\nseeds = 3\n".to_owned(),
        rows_link: format!("../data/{name}/rows.csv"),
        study: name,
        analysis,
    }
}

#[test]
fn the_page_works_in_a_browser() {
    if !browser::is_there() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let sections = [
        section(root.path(), "logit-growth", plausible::logit_growth),
        section(root.path(), "layouts", plausible::layouts),
        section(root.path(), "training", plausible::lm_quick),
    ];
    let header =
        Header { title: "How large must attention logits grow?".to_owned(), ..Header::default() };
    let file = root.path().join("figures/report.html");
    write_whole(&file, page(&header, &sections).unwrap().as_bytes()).unwrap();
    browser::check("report.mjs", &[&file], 10);
}
