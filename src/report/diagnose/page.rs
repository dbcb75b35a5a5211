//! The page of a model's heads: one self-contained HTML file.

use maud::{Markup, PreEscaped, html};

use super::model::{DiagnosedHead, DiagnosedModel};
use super::quantity::{Shown, all_shades, numbers};
use super::worry::{left_out, sentence, worries};
use crate::experiments::heads::tables::published::LARGE_NATS;
use crate::figure::style::luminance;
use crate::figure::{Rgb, hex};
use crate::report::document::{SHARED, document};
use crate::report::table_markup;
use crate::table::{plural, significant};

const STYLE: &str = include_str!("diagnose.css");
const SCRIPTS: [&str; 3] =
    [include_str!("picture.js"), include_str!("head.js"), include_str!("diagnose.js")];

/// Models to show side by side, and how their rows were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The models; steps of one run in order.
    pub models: Vec<DiagnosedModel>,
    /// Description of the measurement, as pairs of heading and text.
    pub measured: Vec<(&'static str, String)>,
    /// Names of the files beside the page.
    pub files: Vec<&'static str>,
}

/// Explains how to read the sentences on heads.
pub const READING: [&str; 4] = [
    "Heads are ordered by max |logit| minus what the head needs. max |logit| = floor × rank penalty × input × excess × shift:",
    "floor: the least at unlimited rank; rank penalty: what rank d adds; input: what W_q and W_k add, since they serve all tokens;",
    "excess: logits spread wider than the attention needs; shift: whole rows are moved, which softmax cancels.",
    "Softmax depends on the half-range alone, half of a row's (max − min). What lowers large logits: docs/findings.md.",
];

impl Diagnosis {
    /// Builds the self-contained page. Without scripts it has the grid of max |logit| and the list of heads.
    ///
    /// # Errors
    /// The pictures cannot be compressed.
    pub fn page(&self, generator: &str) -> std::io::Result<String> {
        let shown = Shown::all(&self.models);
        let title = format!("Heads of {}", self.titles().join(" and "));
        let mut looks = Vec::new();
        for (at, model) in self.models.iter().enumerate() {
            for DiagnosedHead { layer, found, look } in &model.heads {
                if let Some(look) = look {
                    looks.push((format!("look-{at}-{layer}-{}", found.head), look.packed()?));
                }
            }
        }
        let body = html! {
            main {
                h1 { (title) }
                @for line in self.conclusion() { p.conclusion { (line) } }
                (self.worth())
                (self.grids(shown.first()))
                (meanings(&shown))
                (self.how())
            }
            footer { p.about { (generator) } }
            script type="application/json" id="numbers" { (PreEscaped(numbers(&self.models, &shown))) }
            @for (id, bytes) in &looks { script type="text/plain" id=(id) { (bytes) } }
        };
        let [picture, head, all] = SCRIPTS;
        Ok(document(&title, &[STYLE, &shades()], &[SHARED, picture, head, all], body))
    }

    /// One summary sentence per model.
    pub fn conclusion(&self) -> Vec<String> {
        self.models.iter().filter_map(of_model).collect()
    }

    /// The sentences on heads, each with layer and head.
    pub fn worries(&self) -> Vec<String> {
        let told = |(_, model): (usize, &DiagnosedModel)| {
            let of = match self.models.len() {
                1 => String::new(),
                _ => format!("{}: ", model.title()),
            };
            let line = |DiagnosedHead { layer, found, .. }: &DiagnosedHead| {
                format!("{of}layer {layer}, head {}: {}", found.head, sentence(found))
            };
            let rest = left_out(model).map(|sentence| format!("{of}{sentence}"));
            worries(model).into_iter().map(line).chain(rest).collect::<Vec<_>>()
        };
        self.listed().flat_map(told).collect()
    }

    /// Names of the models, without duplicates for steps of the same run.
    fn titles(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.models.iter().map(|model| model.name.as_str()).collect();
        names.dedup();
        names
    }

    /// The models whose heads are listed, each with its index; of a run only the last step.
    fn listed(&self) -> impl Iterator<Item = (usize, &DiagnosedModel)> {
        let is_last = |(at, model): &(usize, &DiagnosedModel)| {
            self.models[at + 1..].iter().all(|other| other.name != model.name)
        };
        self.models.iter().enumerate().filter(is_last)
    }

    fn worth(&self) -> Markup {
        html! {
            section id="worth" {
                h2 { "Heads to look at" }
                @for (at, model) in self.listed() {
                    @if self.models.len() > 1 { h3 { (model.title()) } }
                    @if model.heads.iter().all(|head| head.found.actual < LARGE_NATS) {
                        p.note { "No head has max |logit| ≥ " (LARGE_NATS) ". The largest:" }
                    }
                    @for line in READING { p.note { (line) } }
                    ol.worries {
                        @for DiagnosedHead { layer, found, .. } in worries(model) {
                            li {
                                a href={ "#" (place(*layer, found.head, at)) } { "Layer " (layer) ", head " (found.head) }
                                ": " (sentence(found))
                            }
                        }
                    }
                    @if let Some(sentence) = left_out(model) { p.note { (sentence) } }
                }
            }
        }
    }

    /// One grid per model (layers by heads) with the first quantity; the script lets the reader choose others.
    fn grids(&self, shown: Option<&Shown>) -> Markup {
        let Some(shown) = shown else { return html! {} };
        html! {
            section id="heads" {
                h2 { "All heads" }
                p.note {
                    "One row per layer, one column per head: " span.chosen-name { (shown.quantity.name) }
                    @if !shown.quantity.unit.is_empty() { span.chosen-unit { ", " (shown.quantity.unit) } }
                    ". Select a head to open it."
                }
                div.grids {
                    @for (at, model) in self.models.iter().enumerate() {
                        div.grid {
                            @if self.models.len() > 1 { h3 { (model.title()) } }
                            div.wide { (grid(model, at, shown)) }
                        }
                    }
                }
            }
            section id="head" hidden {}
        }
    }

    fn how(&self) -> Markup {
        html! {
            section id="measured" {
                h2 { "How it was measured" }
                dl.measured {
                    @for (what, how) in &self.measured { dt { (what) } dd { (how) } }
                    dt { "Rows" }
                    dd.files {
                        @for (at, file) in self.files.iter().enumerate() {
                            @if at > 0 { ", " }
                            a href=(file) { (file) }
                        }
                    }
                }
            }
        }
    }
}

fn of_model(model: &DiagnosedModel) -> Option<String> {
    let heads = &model.heads;
    let largest = heads.iter().max_by(|a, b| a.found.actual.total_cmp(&b.found.actual))?;
    let above = heads.iter().filter(|head| head.found.actual >= LARGE_NATS).count();
    let fitted = heads.iter().filter(|head| head.found.needed.is_some()).count();
    let error = format!("for a KL error of {} nats", largest.found.epsilon);
    Some(format!(
        "{} ({}): {} on {} tokens; {} max |logit| ≥ {LARGE_NATS}; the largest is {}, in layer {}, head {}. {}.",
        model.title(),
        model.arm,
        plural(heads.len(), "head"),
        model.n(),
        match above {
            0 => "none has".to_owned(),
            1 => "1 has".to_owned(),
            above => format!("{above} have"),
        },
        significant(largest.found.actual, 3),
        largest.layer,
        largest.found.head,
        match fitted {
            0 if heads.iter().all(|head| head.found.bias_range.is_some()) =>
                "No head was fitted: all have a position bias".to_owned(),
            0 => format!(
                "No head was fitted: none is above --above; give --above {}",
                significant(0.5 * largest.found.actual, 1)
            ),
            1 => format!("1 head was fitted to find what it needs at its rank {error}"),
            fitted =>
                format!("{fitted} heads were fitted to find what they need at their rank {error}"),
        },
    ))
}

/// Anchor of a head of the model with index `at`.
fn place(layer: usize, head: usize, at: usize) -> String {
    match at {
        0 => format!("layer-{layer}-head-{head}"),
        at => format!("layer-{layer}-head-{head}-of-{}", at + 1),
    }
}

fn grid(model: &DiagnosedModel, at: usize, shown: &Shown) -> Markup {
    let places: Vec<(usize, usize)> =
        model.heads.iter().map(|head| (head.layer, head.found.head)).collect();
    html! {
        table.unsorted data-model=(at) aria-label={ "Heads of " (model.title()) } {
            (table_markup::grid(&places, |number| cell(&model.heads[number], number, at, shown)))
        }
    }
}

fn cell(head: &DiagnosedHead, number: usize, at: usize, shown: &Shown) -> Markup {
    let id = place(head.layer, head.found.head, at);
    match (shown.quantity.of)(&head.found) {
        None => html! { td id=(id) data-head=(number) { "–" } },
        Some(value) => {
            let shade = format!("shade-{}", shown.shade(value));
            html! { td.(shade) id=(id) data-head=(number) { (significant(value, 3)) } }
        }
    }
}

/// CSS rules for the shades of the grids, because the page's policy forbids inline styles.
fn shades() -> String {
    let rule = |(at, colour): (usize, Rgb)| {
        let ink = if luminance(colour) > 0.5 { "#000" } else { "#fff" };
        format!(".shade-{at}{{background:{};color:{ink}}}\n", hex(colour))
    };
    all_shades().into_iter().enumerate().map(rule).collect()
}

fn meanings(shown: &[Shown]) -> Markup {
    html! {
        details id="means" {
            summary { "Definitions" }
            dl.measured {
                @for Shown { quantity, .. } in shown {
                    dt { (quantity.name) } dd { (quantity.means) " Column " code { (quantity.column) } "." }
                }
            }
            p.note {
                "max |logit| = floor × rank penalty × input factor × excess factor × shift factor. Adding 1 to a logit \
                 multiplies the attention on its token by e."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use flate2::read::ZlibDecoder;
    use serde_json::Value;

    use super::super::look::{Detail, Look};
    use super::super::tests::{fitted, model, screened};
    use super::*;
    use crate::experiments::ramp::tables::tests::probe;

    /// Two steps of a run of two heads; one head was fitted and has pictures.
    fn diagnosis() -> (Diagnosis, Look) {
        let look = Look::of(&probe(), Detail { bins: 4, keys: 2, every: 1 });
        let mut first = fitted(0, 0, [4.0, 1.5, 1.25, 2.0, 1.5]);
        first.look = Some(look.clone());
        let heads = vec![first, screened(0, 1, [1.5; 5])];
        let mut last = model("run", Some(20), heads.clone());
        last.tokens = vec!["</script>".to_owned(), "\n".to_owned()];
        let diagnosis = Diagnosis {
            models: vec![model("run", Some(10), heads), last],
            measured: vec![("Text", "book.txt".to_owned())],
            files: vec!["rows.csv"],
        };
        (diagnosis, look)
    }

    /// Contents of the script with this `id`.
    fn script<'p>(page: &'p str, id: &str) -> &'p str {
        let (_, rest) = page.split_once(&format!(" id=\"{id}\">")).unwrap();
        rest.split_once("</script>").unwrap().0
    }

    #[test]
    fn numbers_on_the_page_are_those_of_the_rows() {
        let (diagnosis, look) = diagnosis();
        let page = diagnosis.page("rank-study").unwrap();
        let data: Value = serde_json::from_str(script(&page, "numbers")).unwrap();
        let shown = Shown::all(&diagnosis.models);
        for (at, shown) in shown.iter().enumerate() {
            let known = &shown.quantity;
            assert_eq!(data["quantities"][at]["column"], known.column);
            for (model, of) in diagnosis.models.iter().enumerate() {
                for (head, of) in of.heads.iter().enumerate() {
                    let told = &data["models"][model]["heads"][head]["values"][at];
                    match ((known.of)(&of.found), told.as_f64()) {
                        (Some(value), Some(told)) => {
                            assert!((told / value - 1.0).abs() < 1e-4, "{}", known.column);
                        }
                        (value, told) => assert_eq!(value, told),
                    }
                }
            }
        }
        assert_eq!(data["models"][1]["tokens"][0], "</script>");

        let packed = BASE64_STANDARD.decode(script(&page, "look-1-0-0")).unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        let keys = look.top.len();
        assert_eq!(bytes.len(), look.attention.len() + look.logits.len() + 3 * keys);
        assert!(bytes.starts_with(&look.attention) && bytes.ends_with(&look.weights));
        assert!(!page.contains("look-1-0-1\""), "what was not looked at has no bytes");
    }

    #[test]
    fn without_scripts_there_are_the_grid_and_the_list() {
        let (diagnosis, _) = diagnosis();
        let page = diagnosis.page("rank-study").unwrap();
        assert!(page.contains(" id=\"layer-0-head-0\" data-head=\"0\">"));
        assert!(page.contains(" id=\"layer-0-head-0-of-2\""));
        let shade = page.split_once("<td class=\"shade-").unwrap().1.split_once('"').unwrap().0;
        assert!(page.contains(&format!(".shade-{shade}{{background:#")), "{shade} has no rule");
        assert!(!page.contains(" style=\""));
        assert!(page.contains(">22.5</td>"), "4 · 1.5 · 1.25 · 2 · 1.5");
        let list = page.split_once("<ol class=\"worries\">").unwrap().1;
        let list = list.split_once("</ol>").unwrap().0;
        assert_eq!(list.matches("<li>").count(), 1, "of the last step alone: {list}");
        assert!(list.contains("#layer-0-head-0-of-2") && list.contains("6.00"));
        assert_eq!(diagnosis.worries().len(), 1);
        for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
