//! The report: one self-contained HTML page.

use maud::{Markup, html};

use super::analysis::Analysis;
use super::claims::{ClaimRow, Measured};
use super::document::{anchor, document};
use super::duration::duration;
use super::error::ReportError;
use super::section::{Header, Section, marked};
use super::svg::figure;
use super::table_markup::{folded, rows_link};
use crate::claims::{
    Claim, Group, OF_ALL_RULES, Origin, Rule, Verdict, VerdictStatus, multiplicity,
};
use crate::figure::Figure;
use crate::table::{plural, plural_range};

/// Builds the report as one page with its SVGs, style and script; it fetches nothing.
///
/// # Errors
/// A figure cannot be drawn.
pub fn page(header: &Header, sections: &[Section]) -> Result<String, ReportError> {
    let rows = ClaimRow::all(sections.iter());
    let body = html! {
        a.skip href="#claims" { "Skip to the claims" }
        header {
            h1 { (header.title) }
            (in_short(header, &rows, sections.len()))
            (terms())
        }
        (contents(sections))
        main {
            (claims(&rows))
            @for group in Group::ALL { (studies_of(group, sections)?) }
        }
        footer { (about(header)) }
    };
    Ok(document(&header.title, &[], &[], body))
}

/// Footer: the program, the preset, and the machine of the measurements.
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

/// Opening of the page: the subject, the number of claims per verdict, and the main results.
fn in_short(header: &Header, rows: &[ClaimRow<'_>], studies: usize) -> Markup {
    let from = |origin| rows.iter().filter(|row| row.claim.origin == origin).count();
    let counts = ClaimRow::counts(rows);
    html! {
        p.question {
            "This page tests the claims of "
            a href="https://arxiv.org/abs/2505.15548" { "Hajra 2025" }
            ": low-rank queries and keys make attention logits grow, and LS-attention, which combines local and global \
             heads, prevents it. "
            "Of " (rows.len()) " claims, the paper states " (from(Origin::Paper)) ", " (from(Origin::Derived))
            " follow from its argument, " (from(Origin::Other)) " are of other papers, and " (from(Origin::Here))
            " are this project's own. Verdicts from "
            (plural(studies, "study")) ": "
            @for (at, (status, count)) in counts.iter().enumerate() {
                @if at > 0 { ", " }
                span.count { (count) " " (badge(*status)) }
            }
            "."
        }
        @if !header.in_short.is_empty() {
            ol.in-short { @for result in &header.in_short { li { (marked(result)) } } }
        }
    }
}

/// The terms that claims and figures use.
const TERMS: [(&str, &str); 10] = [
    (
        "max |logit|",
        "largest |QKᵀ/√d| before the softmax and before any position bias; peak: over all heads and steps",
    ),
    (
        "half-range",
        "half of max − min of a row of logits; the softmax depends on differences within a row only",
    ),
    ("ε", "the KL divergence of a fit from its target, in nats per row, that is allowed"),
    ("floor", "the smallest max |logit| within ε at unlimited rank"),
    ("rank penalty", "needed max |logit| at rank d, over the floor"),
    (
        "input factor",
        "needed max |logit| with queries and keys made of the layer's input, over that with free ones",
    ),
    ("excess factor", "what a trained head has beyond what it needs, in its half-range"),
    (
        "shift factor",
        "max |logit| over half-range: the part that shifts whole rows, which the softmax cancels",
    ),
    ("ramp", "logits that rise linearly with the position of the key, as those of ALiBi do"),
    ("partial ρ", "rank correlation of two quantities over heads, given a third"),
];

fn terms() -> Markup {
    html! {
        details.terms open {
            summary { "Terms" }
            dl { @for (term, meaning) in TERMS { dt { (term) } dd { (meaning) "." } } }
        }
    }
}

/// Table of contents: the studies by group.
fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            details {
                summary { "Contents" }
                ul {
                    li { a href="#claims" { "Claims" } }
                    @for group in Group::ALL {
                        @if of_group(group, sections).next().is_some() {
                            li {
                                a.group href={ "#" (group_id(group)) } { (group.title()) }
                                ul {
                                    @for section in of_group(group, sections) {
                                        li { a href={ "#" (section.study) } { (section.title) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn of_group(group: Group, sections: &[Section]) -> impl Iterator<Item = &Section> {
    sections.iter().filter(move |section| section.analysis.group == group)
}

fn group_id(group: Group) -> String {
    format!("group-{}", anchor(&group.title().to_lowercase().replace(' ', "-")))
}

fn claim_id(claim: Claim) -> String {
    format!("claim-{}", claim.id)
}

/// The table of claims by group; claims that no study here measures come last.
fn claims(rows: &[ClaimRow<'_>]) -> Markup {
    let words: Vec<VerdictStatus> = rows.iter().map(ClaimRow::status).collect();
    let (measured, rest): (Vec<&ClaimRow<'_>>, Vec<_>) =
        rows.iter().partition(|row| !row.studies.is_empty());
    html! {
        section id="claims" {
            h2 { "Claims" }
            div.wide tabindex="0" role="region" aria-label="Claims" {
                table.claims.unsorted {
                    thead { tr {
                        th scope="col" { "Claim" }
                        th scope="col" { "Source" }
                        th scope="col" { "Measured here" }
                        th scope="col" { "Verdict" }
                        th scope="col" { "Study" }
                    } }
                    @for group in Group::ALL {
                        (group_of_rows(group.title(), measured.iter().filter(|row| row.claim.group == group)))
                    }
                    (group_of_rows("Not measured by these studies", rest.iter()))
                }
            }
            details {
                summary { "How a verdict is reached" }
                p { (OF_ALL_RULES) }
                p { (multiplicity(&words)) }
                p {
                    "Where several studies measure a claim, the row has the most certain verdict. Of equal verdicts it has \
                     the one with more seeds, then that of the study with more compute. A claim that one study confirms \
                     and another refutes is qualified. Square brackets hold 95 % intervals; parentheses hold the smallest \
                     and the largest value over seeds."
                }
            }
        }
    }
}

fn group_of_rows<'r, 's: 'r>(
    title: &str,
    rows: impl Iterator<Item = &'r &'r ClaimRow<'s>>,
) -> Markup {
    let mut rows = rows.peekable();
    html! {
        @if rows.peek().is_some() {
            tbody {
                tr.group { th scope="rowgroup" colspan="5" { (title) } }
                @for row in rows { (claim_row(row)) }
            }
        }
    }
}

/// Row of a claim, followed by a row with the details of every study.
fn claim_row(row: &ClaimRow<'_>) -> Markup {
    let ClaimRow { claim, studies } = row;
    let first = studies.first();
    html! {
        tr id=(claim_id(*claim)) {
            th scope="row" { (claim) }
            td data-label="Source" {
                (claim.place)
                @if let Some(said) = claim.paper_says { ": " (said) }
            }
            td data-label="Measured here" {
                @match first { Some(first) => (first.verdict.headline), None => "–" }
            }
            td data-label="Verdict" { (badge(row.status())) }
            td data-label="Study" {
                @if let Some(Measured { section, .. }) = first {
                    a href={ "#" (section.study) } { (section.study) }
                    @if let Some(figure) = section.analysis.figures.first() {
                        ", " a href={ "#" (figure_id(section, figure)) } { "figure" }
                    }
                } @else { "–" }
            }
        }
        tr.more {
            td colspan="5" {
                details {
                    summary {
                        "Details"
                        @if studies.len() > 1 { " and " (plural(studies.len() - 1, "other study")) }
                    }
                    @for Measured { section, verdict } in studies { (measured_by(section, verdict)) }
                    (rule(*claim))
                }
            }
        }
    }
}

fn measured_by(section: &Section, verdict: &Verdict) -> Markup {
    html! {
        p {
            a href={ "#" (section.study) } { (section.study) } " " (badge(verdict.status))
            @if verdict.seeds > 0 { " (" (plural_range(verdict.seeds, verdict.most_seeds, "seed")) ")" }
            " " (verdict.measured)
        }
    }
}

/// The conditions under which a claim is confirmed and refuted.
fn rule(claim: Claim) -> Markup {
    let Rule { confirmed, refuted } = claim.rule();
    html! {
        dl {
            dt { "Source of the claim" } dd { (claim.place) }
            dt { "Confirmed if" } dd { (confirmed) }
            dt { "Refuted if" } dd { (refuted) }
        }
    }
}

fn badge(status: VerdictStatus) -> Markup {
    let (class, sign) = match status {
        VerdictStatus::Confirmed => ("confirmed", "✓"),
        VerdictStatus::Qualified => ("qualified", "≈"),
        VerdictStatus::Refuted => ("refuted", "✗"),
        VerdictStatus::SingleSeed => ("once", "1"),
        VerdictStatus::NotMeasured => ("unmeasured", "?"),
    };
    html! { span.badge.(class) { span aria-hidden="true" { (sign) " " } (status) } }
}

fn studies_of(group: Group, sections: &[Section]) -> Result<Markup, ReportError> {
    Ok(html! {
        @if of_group(group, sections).next().is_some() {
            section id=(group_id(group)) {
                h2 { (group.title()) }
                @for section in of_group(group, sections) { (study(section)?) }
            }
        }
    })
}

fn study(section: &Section) -> Result<Markup, ReportError> {
    let Analysis { verdicts, figures, tables, .. } = &section.analysis;
    Ok(html! {
        section.study id=(section.study) {
            h3 { (section.title) }
            p.question { (section.question) }
            @for verdict in verdicts {
                p.verdict { (badge(verdict.status)) " " a href={ "#" (claim_id(verdict.claim)) } { (verdict.claim) } }
            }
            @for paragraph in section.paragraphs() { p.findings { (marked(&paragraph)) } }
            @for one in figures { (figure(one, &figure_id(section, one), &html! {})?) }
            @for (at, table) in tables.iter().enumerate() { (folded(section, table, at)) }
            (origin(section))
        }
    })
}

fn figure_id(section: &Section, figure: &Figure) -> String {
    anchor(&format!("{}-{}", section.study, figure.name))
}

/// The command that produces the rows, their compute time and their link.
fn origin(section: &Section) -> Markup {
    html! {
        details.origin {
            summary { "How to reproduce it" }
            @if !section.command.is_empty() {
                pre tabindex="0" { code { (section.command) } }
            }
            p {
                @if let Some(seconds) = section.wall_time_s {
                    "Compute time, summed over the rows: " (duration(seconds)) ". "
                }
                @if !section.rows_link.is_empty() { "Rows: " (rows_link(section)) "." }
            }
            @if !section.definition_toml.is_empty() {
                p { "Definition:" }
                pre tabindex="0" { code { (section.definition_toml) } }
            }
        }
    }
}
