//! The report of plausible rows of three studies.

use std::path::Path;

use crate::plausible;
use rank_study::claims::VerdictStatus;
use rank_study::experiment::{MeasuredStudy, View};
use rank_study::experiments::claims::CLAIMS;
use rank_study::report::{Header, Section, analyse, page};
use rank_study::system::write_whole;

/// Rows of which nothing was predicted.
fn rows_in(folder: &Path) -> MeasuredStudy {
    MeasuredStudy { folder: folder.to_owned(), ..MeasuredStudy::default() }
}

fn section(view: &str, write: fn(&Path)) -> Section {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let view: View = view.parse().unwrap();
    let name = view.to_string();
    Section {
        title: format!("The study <{name}> & its rows"),
        question: "How large must logits grow?".to_owned(),
        findings: "As large as <they> must.\n\nNo larger.".to_owned(),
        command: format!("rank-study sweep analysis/{name}.toml"),
        wall_time_s: Some(312.0),
        definition_toml: "name = \"example\"\nseeds = 3\n".to_owned(),
        rows_link: format!("../data/{name}/rows.csv"),
        study: name,
        analysis: analyse(&[rows_in(folder.path())], view).unwrap(),
    }
}

fn sections() -> Vec<Section> {
    vec![
        section("logit-growth", plausible::logit_growth),
        section("layouts", plausible::layouts),
        section("training", plausible::lm_quick),
    ]
}

fn header() -> Header {
    Header {
        title: "How large must attention logits grow?".to_owned(),
        generator: "rank-study 0.1.0 (abcdef0)".to_owned(),
        preset: "preset quick".to_owned(),
        machine: "2 cores, OpenBLAS 0.3.21".to_owned(),
        in_short: Vec::new(),
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
    let html = page(&header(), &sections).unwrap();
    let seen = balanced(&html);
    assert_eq!(seen["figure"], 5);
    assert_eq!(seen["svg"], 5);
    assert_eq!(html.matches("role=\"img\"").count(), 5);
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

/// The texts of the elements that begin with `opening`, without their markup.
fn texts<'h>(html: &'h str, opening: &str, closing: &str) -> Vec<&'h str> {
    let parts = html.split(opening).skip(1);
    parts.filter_map(|rest| Some(rest.split_once(closing)?.0)).collect()
}

#[test]
fn the_table_has_one_short_row_per_claim() {
    let sections = sections();
    let html = page(&header(), &sections).unwrap();
    for &claim in CLAIMS.iter() {
        let id = format!(" id=\"claim-{}\"", claim.id);
        assert_eq!(html.matches(&id).count(), 1, "{}", claim.id);
    }
    let headlines = texts(&html, "<td data-label=\"Measured here\">", "</td>");
    assert_eq!(headlines.len(), CLAIMS.len());
    assert!(headlines.iter().all(|headline| headline.split_whitespace().count() <= 15));
    let measured = sections.iter().flat_map(|section| &section.analysis.verdicts);
    for verdict in measured {
        assert!(!verdict.headline.is_empty() && !verdict.measured.is_empty(), "{verdict:?}");
    }
    assert_eq!(html.matches("scope=\"rowgroup\"").count(), 3, "two groups, and those without rows");
    assert!(html.find("id=\"claims\"").unwrap() < html.find("<figure").unwrap());
}

#[test]
fn studies_stand_under_their_group_in_text_and_contents() {
    let html = page(&header(), &sections()).unwrap();
    let places: Vec<usize> =
        ["group-synthetic-targets", "logit-growth", "layouts", "group-training", "training"]
            .iter()
            .map(|id| html.find(&format!(" id=\"{id}\"")).unwrap())
            .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("href=\"#group-training\""));
}

#[test]
fn a_report_of_nothing_is_still_a_page() {
    balanced(&page(&header(), &[]).unwrap());
}

#[test]
fn figures_and_tables_are_saved_whole() {
    let (study, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    plausible::layouts(study.path());
    let analysis = analyse(&[rows_in(study.path())], "layouts".parse().unwrap()).unwrap();
    assert_eq!(analysis.verdicts[0].status, VerdictStatus::Qualified);
    let figures = rank_study::report::save_figures(&analysis.figures, out.path()).unwrap();
    assert_eq!(figures.len(), 2);
    let tables = rank_study::report::save_tables(&analysis.tables, out.path()).unwrap();
    assert!(figures.iter().chain(&tables).all(|path| path.metadata().unwrap().len() > 100));
}
