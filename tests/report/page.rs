//! The report of plausible rows of three studies: its text, and in a headless browser what a reader sees, clicks, types and
//! prints.

use std::path::Path;

use crate::{browser, plausible};
use rank_study::claims::VerdictStatus;
use rank_study::experiment::MeasuredStudy;
use rank_study::experiments::claims::CLAIMS;
use rank_study::report::{Header, Section, analyse, page, save_figures, save_tables};
use rank_study::system::write_whole;

/// Sections of three studies in `root/data/NAME`, with their tables beside their rows.
fn sections(root: &Path) -> [Section; 3] {
    let studies: [(&str, plausible::Make); 3] = [
        ("logit-growth", plausible::logit_growth),
        ("layouts", plausible::layouts),
        ("training", plausible::lm_quick),
    ];
    studies.map(|(name, write)| {
        let folder = root.join("data").join(name);
        write(&folder);
        let study = MeasuredStudy { folder: folder.clone(), ..MeasuredStudy::default() };
        let analysis = analyse(&[study], name.parse().unwrap()).unwrap();
        save_tables(&analysis.tables, &folder.join("tables")).unwrap();
        Section {
            study: name.to_owned(),
            title: format!("The study <{name}> & its rows"),
            question: "How large must logits grow?".to_owned(),
            findings: "As large as <they> must.\n\nNo larger.".to_owned(),
            command: format!("rank-study sweep {name}.toml --{}", "a-long-option".repeat(9)),
            wall_time_s: Some(312.0),
            definition_toml: "name = \"example\"\nseeds = 3\n".to_owned(),
            rows_link: format!("../data/{name}/rows.csv"),
            analysis,
        }
    })
}

fn header() -> Header {
    Header { title: "How large must attention logits grow?".to_owned(), ..Header::default() }
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
    let root = tempfile::tempdir().unwrap();
    let html = page(&header(), &sections(root.path())).unwrap();
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

#[test]
fn one_short_row_per_claim_stands_above_the_studies_in_their_groups() {
    let root = tempfile::tempdir().unwrap();
    let sections = sections(root.path());
    let html = page(&header(), &sections).unwrap();
    for &claim in CLAIMS.iter() {
        let id = format!(" id=\"claim-{}\"", claim.id);
        assert_eq!(html.matches(&id).count(), 1, "{}", claim.id);
    }
    let headlines = html.split("<td data-label=\"Measured here\">").skip(1);
    let headlines: Vec<&str> = headlines.map(|rest| rest.split_once("</td>").unwrap().0).collect();
    assert_eq!(headlines.len(), CLAIMS.len());
    assert!(headlines.iter().all(|headline| headline.split_whitespace().count() <= 15));
    let measured = sections.iter().flat_map(|section| &section.analysis.verdicts);
    for verdict in measured {
        assert!(!verdict.headline.is_empty() && !verdict.measured.is_empty(), "{verdict:?}");
    }
    assert_eq!(html.matches("scope=\"rowgroup\"").count(), 3, "two groups, and those without rows");
    let parts = [
        "claims", "group-synthetic-targets", "logit-growth", "layouts", "group-training",
        "training",
    ];
    let places = parts.map(|id| html.find(&format!(" id=\"{id}\"")).unwrap());
    assert!(places.is_sorted() && places[0] < html.find("<figure").unwrap(), "{places:?}");
    assert!(html.contains("href=\"#group-training\""));
}

#[test]
fn a_report_of_nothing_is_still_a_page() {
    balanced(&page(&header(), &[]).unwrap());
}

#[test]
fn figures_and_tables_are_saved_whole() {
    let root = tempfile::tempdir().unwrap();
    let [_, Section { analysis, .. }, _] = sections(root.path());
    assert_eq!(analysis.verdicts[0].status, VerdictStatus::Qualified);
    let figures = save_figures(&analysis.figures, root.path()).unwrap();
    assert_eq!(figures.len(), 2);
    let tables = save_tables(&analysis.tables, root.path()).unwrap();
    assert!(figures.iter().chain(&tables).all(|path| path.metadata().unwrap().len() > 100));
}

#[test]
fn the_page_works_in_a_browser() {
    if !browser::is_there() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("figures/report.html");
    let html = page(&header(), &sections(root.path())).unwrap();
    write_whole(&file, html.as_bytes()).unwrap();
    browser::check("report.mjs", &[&file], 10);
}
