//! The report: one HTML page with everything in it.

use maud::{Markup, PreEscaped, html};

use super::document::document;
use super::marked::marked;
use super::scheme::dark_rules;
use super::section::{Header, Picture, Section};
use super::svg::{anchor, inline};
use super::table_markup::{folded, rows_link};
use crate::judge::{Claim, OF_ALL_RULES, Rule, Verdict, Word, multiplicity};
use crate::table::{plural, significant};

/// The report as one self-contained page: nothing fetched; SVGs, style and script inside.
pub fn page(header: &Header, sections: &[Section]) -> String {
    let svgs = sections.iter().flat_map(|section| &section.figures).map(|f| f.svg.as_str());
    let body = html! {
        a.skip href="#verdicts" { "Skip to the verdicts" }
        header {
            h1 { (header.title) }
            (in_short(sections))
        }
        (contents(sections))
        main {
            (verdicts(sections))
            @for section in sections { (study(section)) }
        }
        footer { (about(header)) }
    };
    document(&header.title, &[&dark_rules(svgs)], &[], body)
}

/// What made the page, and where its rows were measured.
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

/// A verdict with the study whose rows it rests on.
struct OfStudy<'s> {
    study: &'s str,
    verdict: &'s Verdict,
}

/// The verdicts on a claim, the most certain word first.
fn verdicts_on(claim: Claim, sections: &[Section]) -> Vec<OfStudy<'_>> {
    let mut found = Vec::new();
    for section in sections {
        let of_claim = section.verdicts.iter().filter(|verdict| verdict.claim == claim);
        found.extend(of_claim.map(|verdict| OfStudy { study: &section.study, verdict }));
    }
    found.sort_by_key(|of| of.verdict.word.certainty());
    found
}

/// The claims in the order of the page: those that are decided first, and of those alike the paper's order.
fn by_certainty(sections: &[Section]) -> Vec<(Claim, Vec<OfStudy<'_>>)> {
    let mut claims: Vec<_> = Claim::ALL.map(|claim| (claim, verdicts_on(claim, sections))).into();
    claims.sort_by_key(|(_, of)| {
        of.first().map_or(Word::NotYetMeasured, |first| first.verdict.word).certainty()
    });
    claims
}

/// How many of the claims that matter most stand at the top.
const IN_SHORT: usize = 3;
/// The figures that say most at one look, the first of them that the studies of those claims have stands there too.
const KEY_FIGURES: [&str; 2] = ["loss-and-logits", "inflation"];

/// The figure of the first screen, and its study.
fn key_figure<'s>(
    leading: &[OfStudy<'_>],
    sections: &'s [Section],
) -> Option<(&'s Section, &'s Picture)> {
    let is_leading = |section: &&Section| leading.iter().any(|of| of.study == section.study);
    KEY_FIGURES.iter().find_map(|name| {
        sections.iter().filter(is_leading).find_map(|section| {
            let picture = section.figures.iter().find(|picture| picture.name == *name)?;
            Some((section, picture))
        })
    })
}

/// What the first screen says: the words on the claims that matter most, and how many there are of each word.
fn in_short(sections: &[Section]) -> Markup {
    let told = |claim: &Claim| {
        let found = verdicts_on(*claim, sections).into_iter().next();
        found.filter(|of| of.verdict.word != Word::NotYetMeasured)
    };
    let leading: Vec<OfStudy<'_>> = Claim::LEADING.iter().filter_map(told).take(IN_SHORT).collect();
    let words = || sections.iter().flat_map(|section| &section.verdicts).map(|v| v.word);
    let tally: Vec<(Word, usize)> = Word::ALL
        .map(|word| (word, words().filter(|other| *other == word).count()))
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    html! {
        @if !leading.is_empty() {
            p.question {
                "Claims of the paper (Hajra 2025: LS-attention has some heads see a window of tokens and others all of them) and \
                 of this study, and what was measured:"
            }
            ul.short {
                @for OfStudy { study, verdict } in &leading {
                    li {
                        (badge(verdict.word)) " " (verdict.claim) ". "
                        span.measured {
                            (beginning(&verdict.measured)) " ("
                            (plural(verdict.seeds, "seed")) ", " a href={ "#" (study) } { (study) } ")"
                        }
                    }
                }
            }
        }
        @if let Some((section, picture)) = key_figure(&leading, sections) {
            figure {
                div.picture tabindex="0" role="region" aria-label="The key figure" {
                    (PreEscaped(inline(&picture.svg, "key")))
                }
                figcaption { span id="key-caption" { (picture.caption) } " " a href={ "#" (section.study) } { (section.title) } }
            }
        }
        @if !tally.is_empty() {
            p.tally {
                @for (at, (word, count)) in tally.iter().enumerate() {
                    @if at > 0 { " " }
                    (badge(*word)) " " (count)
                }
                " " a href="#verdicts" { "All " (words().count()) " verdicts" }
            }
        }
    }
}

/// The first clause, with dots where there are more.
fn beginning(text: &str) -> String {
    let end = [". ", "; "].iter().filter_map(|end| text.find(end)).min();
    end.map_or_else(|| text.trim_end_matches('.').to_owned(), |end| format!("{} …", &text[..end]))
}

/// The studies, each by its name once.
fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            details {
                summary { "Contents" }
                ul {
                    li { a href="#verdicts" { "Verdicts" } }
                    @for section in sections {
                        li { a href={ "#" (section.study) } { (section.title) } }
                    }
                }
            }
        }
    }
}

/// Every claim, the decided ones first, with what each study measured of it.
fn verdicts(sections: &[Section]) -> Markup {
    let words: Vec<Word> =
        sections.iter().flat_map(|section| &section.verdicts).map(|v| v.word).collect();
    let (measured, not): (Vec<_>, Vec<_>) =
        by_certainty(sections).into_iter().partition(|(_, of)| !of.is_empty());
    html! {
        section id="verdicts" {
            h2 { "Verdicts" }
            p.question {
                "What the paper (Hajra 2025, "
                a href="https://arxiv.org/abs/2505.15548" { "arXiv 2505.15548" }
                ") says, claim by claim, and what was measured here. Brackets hold 95 % intervals, parentheses the \
                 least and the greatest over seeds. " (multiplicity(&words))
            }
            p.note { (OF_ALL_RULES) }
            @if !measured.is_empty() {
                div.wide tabindex="0" role="region" aria-label="Verdicts" {
                    table.verdicts {
                        thead { tr {
                            th scope="col" { "Claim" }
                            th scope="col" { "Verdict" }
                            th scope="col" { "Measured" }
                        } }
                        tbody {
                            @for (claim, of) in &measured {
                                @for (at, of) in of.iter().enumerate() { (on_claim(*claim, of, at == 0)) }
                            }
                        }
                    }
                }
            }
            @if !not.is_empty() {
                details {
                    summary { (plural(not.len(), "claim")) " that no study here measures" }
                    ul { @for (claim, _) in &not { li { (claim) " " span.place { "(" (claim.place()) ")" } } } }
                }
            }
        }
    }
}

/// A verdict's row; the first of a claim has its rule.
fn on_claim(claim: Claim, of: &OfStudy<'_>, is_first: bool) -> Markup {
    let OfStudy { study, verdict } = of;
    html! {
        tr {
            th scope="row" {
                (claim) " " span.place { "(" (claim.place()) ")" }
                @if is_first { (rule(claim)) }
            }
            td { (badge(verdict.word)) }
            td { (verdict.measured) " " a href={ "#" (study) } { (study) } }
        }
    }
}

/// What it takes, a click away.
fn rule(claim: Claim) -> Markup {
    let Rule { confirmed, refuted } = claim.rule();
    html! {
        details.rule {
            summary { "The rule" }
            p { (badge(Word::Confirmed)) " " (confirmed) }
            p { (badge(Word::Refuted)) " " (refuted) }
        }
    }
}

fn badge(word: Word) -> Markup {
    let (class, sign) = match word {
        Word::Confirmed => ("confirmed", "✓"),
        Word::Qualified => ("qualified", "≈"),
        Word::Refuted => ("refuted", "✗"),
        Word::SeenOnce => ("once", "1"),
        Word::NotYetMeasured => ("unmeasured", "?"),
    };
    html! { span.badge.(class) { span aria-hidden="true" { (sign) " " } (word) } }
}

fn study(section: &Section) -> Markup {
    html! {
        section id=(section.study) {
            h2 { (section.title) }
            p.question { (section.question) }
            @for paragraph in section.paragraphs() { p.findings { (marked(&paragraph)) } }
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
    let name = anchor(&format!("{}-{}", section.study, picture.name));
    html! {
        figure id=(name) {
            div.picture tabindex="0" role="region" aria-label={ "Figure " (picture.name) } {
                (PreEscaped(inline(&picture.svg, &name)))
            }
            figcaption {
                span id={ (name) "-caption" } { (picture.caption) }
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

/// Seconds as a person says them.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", significant(s, 2)),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
