//! The report's page in a headless browser: what a reader sees, clicks, types and prints.

#![cfg(feature = "study")]

mod plausible;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use rank_study::report::{Header, MeasuredStudy, Section, analyse, page};
use rank_study::study::View;
use rank_study::system::write_whole;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const CHECKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/report.mjs");

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The browser, or what to install.
fn browser() -> Result<&'static str, String> {
    let browser = BROWSERS.into_iter().find(|program| runs(program));
    let missing: Vec<&str> = [("chromium", browser.is_some()), ("nodejs", runs("node"))]
        .into_iter()
        .filter_map(|(package, there)| (!there).then_some(package))
        .collect();
    browser.filter(|_| missing.is_empty()).ok_or_else(|| {
        let packages = missing.join(" ");
        format!("no {packages} here: `make setup-browser`, or apt-get install {packages}")
    })
}

/// A study in `root/data/NAME`, with its tables beside its rows.
fn section(root: &Path, view: View, write: fn(&Path)) -> Section {
    let name = view.to_string();
    let folder = root.join("data").join(&name);
    write(&folder);
    let study = MeasuredStudy { folder: folder.clone(), ..MeasuredStudy::default() };
    let analysis = analyse(&[study], view).unwrap();
    analysis.save_tables(&folder.join("tables")).unwrap();
    let section = Section {
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
        ..Section::default()
    };
    section.with_analysis(analysis).unwrap()
}

#[test]
fn the_page_works_in_a_browser() {
    let browser = match browser() {
        Ok(browser) => browser,
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing}"),
        Err(missing) => {
            // Past the capture of what passing tests print.
            writeln!(std::io::stderr(), "skipped: {missing}").unwrap();
            return;
        }
    };
    let root = tempfile::tempdir().unwrap();
    let sections = [
        section(root.path(), View::LogitGrowth, plausible::logit_growth),
        section(root.path(), View::Layouts, plausible::layouts),
        section(root.path(), View::Training, plausible::lm_quick),
    ];
    let header =
        Header { title: "How large must attention logits grow?".to_owned(), ..Header::default() };
    let file = root.path().join("figures/report.html");
    write_whole(&file, page(&header, &sections).as_bytes()).unwrap();
    let output = Command::new("node").arg(CHECKS).arg(browser).arg(&file).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "\n{stdout}{stderr}");
    assert!(stdout.lines().count() >= 10, "\n{stdout}{stderr}");
}
