//! The report made from plausible rows of the three kinds of study.

#![cfg(feature = "study")]

mod plausible;

use std::path::Path;

use rank_study::judge::Word;
use rank_study::report::{Header, MeasuredStudy, Section, analyse, page};
use rank_study::study::View;
use rank_study::system::write_whole;

/// Rows of which nothing was predicted.
fn rows_in(folder: &Path) -> MeasuredStudy {
    MeasuredStudy { folder: folder.to_owned(), ..MeasuredStudy::default() }
}

fn section(view: View, write: fn(&Path)) -> Section {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let name = view.to_string();
    let section = Section {
        title: format!("The study <{name}> & its rows"),
        question: "How large must logits grow?".to_owned(),
        findings: "As large as <they> must.\n\nNo larger.".to_owned(),
        command: format!("rank-study sweep analysis/{name}.toml"),
        wall_time_s: Some(312.0),
        definition_toml: "name = \"example\"\nseeds = 3\n".to_owned(),
        rows_link: format!("../data/{name}/rows.csv"),
        study: name,
        ..Section::default()
    };
    section.with_analysis(analyse(&[rows_in(folder.path())], view).unwrap()).unwrap()
}

fn sections() -> Vec<Section> {
    vec![
        section(View::LogitGrowth, plausible::logit_growth),
        section(View::Layouts, plausible::layouts),
        section(View::Training, plausible::lm_quick),
    ]
}

fn header() -> Header {
    Header {
        title: "How large must attention logits grow?".to_owned(),
        generator: "rank-study 0.1.0 (abcdef0)".to_owned(),
        preset: "preset quick".to_owned(),
        machine: "2 cores, OpenBLAS 0.3.21".to_owned(),
    }
}

/// Checks that tags open and close in order; gives how often each opened.
fn balanced(html: &str) -> std::collections::BTreeMap<String, usize> {
    const VOID: [&str; 3] = ["meta", "link", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for tag in html.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').unwrap_or_else(|| panic!("unclosed tag: {tag}"));
        let name: String = inside
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        if inside.starts_with('!') || inside.ends_with('/') || VOID.contains(&name.as_str()) {
            continue;
        }
        if inside.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "closes what is not open");
        } else {
            *seen.entry(name.clone()).or_insert(0) += 1;
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

#[test]
fn the_page_is_whole_and_holds_every_figure() {
    let sections = sections();
    let html = page(&header(), &sections);
    let seen = balanced(&html);
    // Five, and the key figure once more.
    assert_eq!(seen["figure"], 6);
    assert_eq!(seen["svg"], 6);
    assert_eq!(html.matches("role=\"img\"").count(), 6);
    assert!(html.contains("The study &lt;logit-growth&gt; &amp; its rows"), "text is escaped");
    let said = "<p class=\"findings\">As large as &lt;they&gt; must.</p><p class=\"findings\">No larger.</p>";
    assert_eq!(html.matches(said).count(), 3);
    assert!(html.contains("href=\"../data/logit-growth/tables/cells.csv\""), "no link to a table");
    assert_eq!(html.matches("http-equiv=").count(), 1);
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'"));
    let fetched = ["<script ", "<link rel=\"stylesheet", "src=", "@import", "url("];
    assert!(fetched.iter().all(|what| !html.contains(what)), "nothing is fetched");
    let mut ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands twice");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report/index.html");
    write_whole(&path, html.as_bytes()).unwrap();
}

#[test]
fn verdicts_carry_their_numbers() {
    let mut text = String::new();
    for verdict in sections().iter().flat_map(|section| &section.verdicts) {
        text.push_str(&format!("{}\n  {}: {}\n", verdict.claim, verdict.word, verdict.measured));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_report_of_nothing_is_still_a_page() {
    balanced(&page(&header(), &[]));
}

#[test]
fn figures_and_tables_are_saved_whole() {
    let (study, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    plausible::layouts(study.path());
    let analysis = analyse(&[rows_in(study.path())], View::Layouts).unwrap();
    assert_eq!(analysis.verdicts[0].word, Word::Qualified);
    let figures = analysis.save_figures(out.path()).unwrap();
    assert_eq!(figures.len(), 2);
    let tables = analysis.save_tables(out.path()).unwrap();
    assert!(figures.iter().chain(&tables).all(|path| path.metadata().unwrap().len() > 100));
}
