//! The figures' colours on dark paper. An SVG keeps the colours it was written with, for light paper
//! and print; in the dark scheme a rule for each of them sets another of the same hue.

use std::collections::BTreeSet;

use crate::figure::Rgb;

/// The figures that the rules are for: one with a matrix in it, whose colours no rule can set, stays on light paper.
const PICTURE: &str = ".picture:not(.paper)";
/// What white becomes.
const PAPER: Rgb = (27, 31, 35);
const WHITE: Rgb = (255, 255, 255);
/// The least contrast of any line with the paper.
const VISIBLE: f64 = 3.0;
/// That of words, which need 4.5, and of lines that lie over pale ones.
const CLEAR: f64 = 6.0;
/// A colour of less contrast with white is a line meant to be pale.
const PALE: f64 = 2.0;
/// A grey of less contrast with white is no line of its own: the grid, the lane.
const BEHIND: f64 = 1.35;
/// The least contrast of a coloured field, as of a heat map or a bar, with the paper.
const FIELD: f64 = 1.2;

/// What a colour is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Words,
    Field,
    Mark,
}

impl Part {
    fn of(tag: &str) -> Self {
        match tag.split_once(' ') {
            Some(("text", _)) => Self::Words,
            Some(("rect", _)) => Self::Field,
            _ => Self::Mark,
        }
    }

    /// Its element in a rule; a rule of an element goes before one of none.
    fn element(self) -> &'static str {
        match self {
            Self::Words => "text",
            Self::Field => "rect",
            Self::Mark => "",
        }
    }
}

/// The style rules that set every colour of `svgs` for dark paper.
pub(super) fn dark_rules<'a>(svgs: impl Iterator<Item = &'a str>) -> String {
    let uses: BTreeSet<_> = svgs.flat_map(uses).collect();
    let mut rules = format!("{PICTURE}{{background:{}}}\n", hex(PAPER));
    for (part, attribute, written) in uses {
        let Some(colour) = rgb(written) else { continue };
        let element = part.element();
        let dark = hex(on_dark(colour, part));
        rules.push_str(&format!(
            "{PICTURE} {element}[{attribute}=\"{written}\"]{{{attribute}:{dark}}}\n"
        ));
    }
    format!("@media screen and (prefers-color-scheme: dark) {{\n{rules}}}\n")
}

/// The colour of a mark on dark paper.
pub(super) fn mark_on_dark(colour: Rgb) -> Rgb {
    on_dark(colour, Part::Mark)
}

/// Every colour that an SVG's elements name, with the attribute that names it.
fn uses(svg: &str) -> impl Iterator<Item = (Part, &'static str, &str)> {
    svg.split('<').skip(1).flat_map(|rest| {
        let tag = rest.split_once('>').map_or(rest, |(tag, _)| tag);
        let part = Part::of(tag);
        let named = [("fill", " fill=\"#"), ("stroke", " stroke=\"#")];
        named.into_iter().filter_map(move |(attribute, opening)| {
            let start = tag.find(opening)? + opening.len() - 1;
            Some((part, attribute, tag.get(start..start + 7)?))
        })
    })
}

/// `colour`, as it was chosen for white paper, on dark paper.
///
/// White becomes the paper. A grey keeps the contrast that it had, and any other colour its hue: it is
/// lightened until it can be seen, and words until they can be read. A pale line is set as dark as a
/// line may be, so that it stays behind the others. A field keeps its contrast, so that what was dark
/// among fields becomes light: their order stays, and the words in them, which change in the same way, can be read.
fn on_dark(colour: Rgb, part: Part) -> Rgb {
    let before = contrast(colour, WHITE);
    let least = match part {
        Part::Field => before.max(FIELD),
        Part::Mark if before < PALE => VISIBLE,
        Part::Words | Part::Mark => CLEAR,
    };
    let (red, green, blue) = colour;
    if colour == WHITE {
        PAPER
    } else if red == green && green == blue {
        grey(if before < BEHIND || part == Part::Field { before } else { before.max(least) })
    } else {
        let (hue, saturation, lightness) = hsl(colour);
        let from = if least == CLEAR { lightness } else { 0.0 };
        let lightened = (0..=400)
            .map(|step| from + (1.0 - from) * f64::from(step) / 400.0)
            .map(|lightness| from_hsl(hue, saturation, lightness));
        first_of(lightened, least)
    }
}

/// The darkest grey, of the paper's tint, of this contrast with it; white where there is none.
fn grey(least: f64) -> Rgb {
    let (hue, saturation, _) = hsl(PAPER);
    let greys = (0..=255).map(|level| from_hsl(hue, saturation, f64::from(level) / 255.0));
    first_of(greys, least)
}

/// The first that is lighter than the dark paper by this contrast; white where there is none.
fn first_of(mut colours: impl Iterator<Item = Rgb>, least: f64) -> Rgb {
    let lighter = |colour: &Rgb| luminance(*colour) >= luminance(PAPER);
    colours.find(|c| lighter(c) && contrast(*c, PAPER) >= least).unwrap_or(WHITE)
}

/// The contrast of two colours, 1 to 21, as WCAG 2 defines it.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The relative luminance of WCAG 2.
fn luminance((red, green, blue): Rgb) -> f64 {
    let linear = |level: u8| {
        let level = f64::from(level) / 255.0;
        if level <= 0.04045 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// Hue in sixths of the circle, saturation and lightness from 0 to 1.
fn hsl((red, green, blue): Rgb) -> (f64, f64, f64) {
    let [red, green, blue] = [red, green, blue].map(|level| f64::from(level) / 255.0);
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let (range, lightness) = (most - least, 0.5 * (most + least));
    if range == 0.0 {
        return (0.0, 0.0, lightness);
    }
    let hue = if most == red {
        (green - blue) / range
    } else if most == green {
        (blue - red) / range + 2.0
    } else {
        (red - green) / range + 4.0
    };
    (hue.rem_euclid(6.0), range / (1.0 - (most + least - 1.0).abs()), lightness)
}

fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> Rgb {
    let range = saturation * (1.0 - (2.0 * lightness - 1.0).abs());
    let level = |shift: f64| {
        let near = (((hue + shift).rem_euclid(6.0) - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        (255.0 * (lightness + range * (near - 0.5))).round() as u8
    };
    (level(0.0), level(4.0), level(2.0))
}

/// `#RRGGBB` as a colour.
fn rgb(written: &str) -> Option<Rgb> {
    let level = |at: usize| u8::from_str_radix(written.get(at..at + 2)?, 16).ok();
    Some((level(1)?, level(3)?, level(5)?))
}

pub(super) fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOURS: [Rgb; 12] = [
        (230, 159, 0),
        (86, 180, 233),
        (0, 158, 115),
        (0, 114, 178),
        (213, 94, 0),
        (204, 121, 167),
        (59, 10, 143),
        (156, 23, 158),
        (216, 87, 107),
        (240, 150, 50),
        (190, 170, 0),
        (120, 160, 80),
    ];

    fn mixed(colour: Rgb, share: f64, with: f64) -> Rgb {
        let mix = |c: u8| (share * f64::from(c) + (1.0 - share) * with).round() as u8;
        (mix(colour.0), mix(colour.1), mix(colour.2))
    }

    fn same_hue(one: Rgb, other: Rgb) -> bool {
        let apart = (hsl(one).0 - hsl(other).0).abs();
        apart.min(6.0 - apart) < 0.05
    }

    #[test]
    fn contrasts_are_those_of_wcag() {
        assert!((contrast((0, 0, 0), WHITE) - 21.0).abs() < 1e-12);
        assert!((contrast((118, 118, 118), WHITE) - 4.54).abs() < 0.005);
        assert_eq!(contrast(PAPER, PAPER), 1.0);
    }

    #[test]
    fn hues_survive_both_ways() {
        for colour in COLOURS {
            let (hue, saturation, lightness) = hsl(colour);
            assert_eq!(from_hsl(hue, saturation, lightness), colour);
        }
    }

    #[test]
    fn every_series_is_seen_and_keeps_its_hue() {
        for colour in COLOURS {
            let line = on_dark(colour, Part::Mark);
            assert!(contrast(line, PAPER) >= CLEAR && same_hue(line, colour), "{colour:?}");
            let words = on_dark(mixed(colour, 0.72, 0.0), Part::Words);
            assert!(contrast(words, PAPER) >= CLEAR && same_hue(words, colour), "{colour:?}");
            let pale = mixed(colour, 0.28, 255.0);
            let behind = on_dark(pale, Part::Mark);
            let seen = contrast(behind, PAPER);
            assert!((VISIBLE..CLEAR).contains(&seen) && same_hue(behind, pale), "{colour:?}");
        }
    }

    #[test]
    fn fields_of_a_heat_map_keep_their_order_and_their_words_can_be_read() {
        let fields = [
            (255, 247, 214),
            (254, 226, 155),
            (254, 196, 79),
            (227, 98, 35),
            (128, 0, 38),
            (45, 45, 45),
        ];
        let on_paper = fields.map(|colour| on_dark(colour, Part::Field));
        let apart: Vec<f64> = on_paper.iter().map(|colour| contrast(*colour, PAPER)).collect();
        assert!(
            apart[0] >= FIELD && apart.windows(2).all(|pair| pair[1] > 1.05 * pair[0]),
            "{apart:?}"
        );
        let (dark, light) = (on_dark((51, 51, 51), Part::Words), on_dark(WHITE, Part::Words));
        for (at, field) in on_paper.into_iter().enumerate() {
            let words = if at < 4 { dark } else { light };
            assert!(contrast(words, field) > 3.0, "{at}: {words:?} on {field:?}");
        }
    }

    #[test]
    fn a_colour_light_enough_stays() {
        assert_eq!(on_dark((86, 180, 233), Part::Mark), (86, 180, 233));
    }

    #[test]
    fn greys_keep_their_order_of_contrast() {
        assert_eq!(on_dark(WHITE, Part::Mark), PAPER);
        let levels = [243, 228, 214, 110, 51, 0];
        let seen = levels.map(|level| contrast(on_dark((level, level, level), Part::Mark), PAPER));
        assert!(seen.is_sorted() && seen[0] > 1.05 && seen[1] < 1.5, "{seen:?}");
        assert!(seen[2] >= VISIBLE && seen[3] >= CLEAR && seen[5] > 12.0, "{seen:?}");
    }

    #[test]
    fn each_colour_gets_one_rule_for_its_use() {
        let svg = "<svg><rect fill=\"#FFFFFF\" stroke=\"none\"/><polyline fill=\"none\" \
                   stroke=\"#005280\"/><text x=\"1\" fill=\"#005280\">\nfill</text>\
                   <text x=\"2\" fill=\"#005280\">a</text></svg>";
        let rules = dark_rules([svg, svg].into_iter());
        assert_eq!(rules.matches(":#").count(), 4, "{rules}");
        for rule in ["rect[fill=\"#FFFFFF\"]{fill:#1b1f23}", "text[fill=\"#005280\"]{fill:#"] {
            assert!(rules.contains(rule), "{rule} is not in {rules}");
        }
        assert!(rules.starts_with("@media screen and (prefers-color-scheme: dark)"));
    }
}
