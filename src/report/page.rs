//! The report: one HTML page with everything in it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::scheme::dark_rules;
use super::section::{Header, Picture, Section};
use super::svg::inline;
use super::table_markup::{folded, rows_link};
use crate::judge::{Claim, Verdict, Word, multiplicity};
use crate::table::significant;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The report as one self-contained page: nothing fetched; SVGs, style and script inside.
pub fn page(header: &Header, sections: &[Section]) -> String {
    let svgs = sections.iter().flat_map(|section| &section.figures).map(|f| f.svg.as_str());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (header.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(dark_rules(svgs))) }
            }
            body {
                a.skip href="#verdicts" { "Skip to the verdicts" }
                header {
                    h1 { (header.title) }
                    (about(header))
                    (contents(sections))
                }
                main {
                    (verdicts(sections))
                    @for section in sections { (study(section)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn about(header: &Header) -> Markup {
    let parts = [&header.generator, &header.preset, &header.machine];
    html! {
        p.about {
            @for (at, part) in parts.iter().filter(|part| !part.is_empty()).enumerate() {
                @if at > 0 { " · " }
                (part)
            }
        }
    }
}

fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#verdicts" { "Verdicts" } }
                @for section in sections {
                    li {
                        a href={ "#" (section.study) } { (section.title) }
                        @for verdict in &section.verdicts { " " (badge(verdict.word)) }
                    }
                }
            }
        }
    }
}

/// Every claim of the paper in its order, with what each study measured of it.
fn verdicts(sections: &[Section]) -> Markup {
    let words: Vec<Word> =
        sections.iter().flat_map(|section| &section.verdicts).map(|v| v.word).collect();
    html! {
        section id="verdicts" {
            h2 { "Verdicts" }
            p.question {
                "What the paper (Hajra 2025, "
                a href="https://arxiv.org/abs/2505.15548" { "arXiv 2505.15548" }
                ") says, claim by claim, and what was measured here. A word is about the rows at their scale, \
                 which the sentence tells. Brackets hold 95 % intervals, parentheses the least and the greatest over \
                 seeds. "
                (multiplicity(&words))
            }
            div.wide tabindex="0" role="region" aria-label="Verdicts" {
                table.verdicts {
                    thead { tr {
                        th scope="col" { "Claim" }
                        th scope="col" { "Verdict" }
                        th scope="col" { "Measured" }
                    } }
                    tbody {
                        @for claim in Claim::ALL { (of_claim(claim, sections)) }
                    }
                }
            }
        }
    }
}

/// A row for each study that measures the claim, or one that says that none does.
fn of_claim(claim: Claim, sections: &[Section]) -> Markup {
    let of_section = |section: &'_ Section| {
        let verdicts = section.verdicts.iter().filter(|verdict| verdict.claim == claim).cloned();
        verdicts.map(|verdict| (section.study.clone(), verdict)).collect::<Vec<_>>()
    };
    let mut found: Vec<(String, Verdict)> = sections.iter().flat_map(of_section).collect();
    if found.is_empty() {
        found.push((String::new(), Verdict::not_measured(claim)));
    }
    html! {
        @for (study, verdict) in &found {
            tr {
                th scope="row" { (claim) " " span.place { "(" (claim.place()) ")" } }
                td { (badge(verdict.word)) }
                td {
                    (verdict.measured) " "
                    @if !study.is_empty() { a href={ "#" (study) } { (study) } }
                }
            }
        }
    }
}

fn badge(word: Word) -> Markup {
    let (class, sign) = match word {
        Word::Confirmed => ("confirmed", "✓"),
        Word::Qualified => ("qualified", "≈"),
        Word::Refuted => ("refuted", "✗"),
        Word::NotYetMeasured => ("unmeasured", "?"),
    };
    html! { span.badge.(class) { span aria-hidden="true" { (sign) " " } (word) } }
}

fn study(section: &Section) -> Markup {
    html! {
        section id=(section.study) {
            h2 { (section.title) }
            p.question { (section.question) }
            @for paragraph in section.paragraphs() { p.findings { (paragraph) } }
            @for verdict in &section.verdicts {
                p.verdict { (badge(verdict.word)) " " (verdict.claim) }
            }
            @for picture in &section.figures { (figure(section, picture)) }
            @for (at, table) in section.tables.iter().enumerate() { (folded(section, table, at)) }
            (origin(section))
        }
    }
}

fn figure(section: &Section, picture: &Picture) -> Markup {
    let name = format!("{}-{}", section.study, picture.name);
    html! {
        figure id=(name) {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (picture.name) } {
                (PreEscaped(inline(&picture.svg, &name)))
            }
            figcaption {
                (picture.caption)
                details { summary { "The figure in words" } p { (picture.alt) } }
            }
        }
    }
}

/// How the rows came about, and where they are.
fn origin(section: &Section) -> Markup {
    html! {
        p.origin {
            @if !section.command.is_empty() { "Made by " code { (section.command) } }
            @if let Some(seconds) = section.wall_time_s {
                "; the rows took " (duration(seconds)) ", one after another"
            }
            @if !section.rows_link.is_empty() {
                "; rows: " (rows_link(section))
            }
            "."
        }
        @if !section.definition_toml.is_empty() {
            details {
                summary { "Definition" }
                pre tabindex="0" { code { (section.definition_toml) } }
            }
        }
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", significant(s, 2)),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
