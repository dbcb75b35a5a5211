//! Common style of all figures: sizes, colours, markers, dashes.

/// A colour, red, green and blue.
pub type Rgb = (u8, u8, u8);

/// Text and axes.
pub(crate) const DARK: Rgb = (51, 51, 51);
/// The floor and other references.
pub(crate) const GREY: Rgb = (110, 110, 110);
/// Lines behind the data.
pub(crate) const GRID: Rgb = (228, 228, 228);
/// The lane above a panel's data.
pub(crate) const LANE: Rgb = (243, 243, 243);

/// Ranks 2, 4, 8, … in order: dark to light, so that the order shows without colour too.
const RANKS: [Rgb; 7] = [
    (0, 0, 0),
    (59, 10, 143),
    (156, 23, 158),
    (216, 87, 107),
    (240, 150, 50),
    (190, 170, 0),
    (120, 160, 80),
];

/// Sizes in pixels of the figure as laid out; text sizes are those of an em.
pub(crate) mod size {
    pub const WIDTH: f64 = 920.0;
    pub const WIDTH_OF_ONE: f64 = 620.0;
    pub const WIDTH_OF_SQUARE: f64 = 460.0;
    pub const PLOT_HEIGHT: f64 = 230.0;
    pub const LANE: f64 = 18.0;
    pub const TICK_TEXT: f64 = 11.0;
    /// Maximum width of a label beside its line, and the distance of its lines.
    pub const LABEL_WIDTH: f64 = 215.0;
    pub const LABEL_LINE: f64 = 14.0;
    pub const LABEL_TEXT: f64 = 12.0;
    pub const TITLE_TEXT: f64 = 12.5;
    pub const LINE: f64 = 1.8;
    pub const THIN: f64 = 0.8;
    pub const MARKER: f64 = 3.6;
    pub const SEED: f64 = 2.2;
    pub const STROKE: f64 = 6.0;
    /// Difference in line width or marker size between a mark and one that lies over it.
    pub const NESTED: f64 = 1.5;
    /// Half the height of a filled field in a legend.
    pub const SWATCH: f64 = 5.5;
}

/// A colour as style sheets and scripts write it: `#rrggbb`.
pub fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The form of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ▼
    Inverted,
}

const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Inverted];

/// Dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// An unbroken line.
    Solid,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dashes and dots in turn.
    DashDotted,
}

/// Colour, marker and dashes of one item in every figure, so that colour is never the only cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink {
    /// The colour.
    pub colour: Rgb,
    /// The marker.
    pub marker: Marker,
    /// The dashes.
    pub stroke: Stroke,
}

impl Ink {
    const fn solid(colour: Rgb, marker: Marker) -> Self {
        Self { colour, marker, stroke: Stroke::Solid }
    }

    /// Ink of reference lines.
    pub(crate) const fn grey(stroke: Stroke) -> Self {
        Self { colour: GREY, marker: Marker::Circle, stroke }
    }

    /// Ink of a rank, the same in every figure.
    pub(crate) fn of_rank(rank: usize) -> Self {
        let at = (rank.max(2) as f64).log2().round() as usize - 1;
        Self::solid(RANKS[at.min(RANKS.len() - 1)], MARKERS[(at + 4) % MARKERS.len()])
    }

    /// Ink of the `nth` (from 0) of several series that are no variants and have no order. The colours are Tol's bright
    /// scheme, which colour-blind readers can distinguish.
    pub(crate) fn numbered(nth: usize) -> Self {
        const COLOURS: [Rgb; 6] = [
            (68, 119, 170),
            (238, 102, 119),
            (34, 136, 51),
            (204, 187, 68),
            (170, 51, 119),
            (102, 204, 238),
        ];
        let colour = COLOURS[nth % COLOURS.len()];
        Self::solid(colour, MARKERS[nth % MARKERS.len()]).nth(nth / COLOURS.len())
    }

    /// Ink of the local heads of a variant that also has global heads: a lighter colour and another marker.
    pub(crate) fn of_local_heads(self) -> Self {
        let mix = |c: u8| (0.55 * f64::from(c) + 0.45 * 255.0).round() as u8;
        let (red, green, blue) = self.colour;
        Self { colour: (mix(red), mix(green), mix(blue)), marker: Marker::Diamond, ..self }
    }

    /// Ink of the `nth` run (from 0) of a variant: the same colour, another marker and stroke.
    pub(crate) fn other(self, nth: usize) -> Self {
        let at = MARKERS.iter().position(|marker| *marker == self.marker).unwrap_or(0);
        Self { marker: MARKERS[(at + nth) % MARKERS.len()], ..self.nth(nth) }
    }

    /// Ink of the `nth` item (from 0) of the same kind: later ones are dashed, dotted, then both.
    pub(crate) fn nth(self, nth: usize) -> Self {
        const STROKES: [Stroke; 4] =
            [Stroke::Solid, Stroke::Dashed, Stroke::Dotted, Stroke::DashDotted];
        let stroke = STROKES[nth % STROKES.len()];
        if nth == 0 { self } else { Self { stroke, ..self } }
    }
}

/// Mixes `colour` with black, for text on white.
pub(crate) fn dark(colour: Rgb) -> Rgb {
    let mix = |c: u8| (0.72 * f64::from(c)).round() as u8;
    (mix(colour.0), mix(colour.1), mix(colour.2))
}

/// Perceived lightness of a colour, from 0 to 1.
pub(crate) fn luminance((red, green, blue): Rgb) -> f64 {
    (0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue)) / 255.0
}

/// Colour of fields without a value.
pub(crate) const BEYOND: Rgb = (45, 45, 45);

/// Colour for a share from 0 to 1 on the scale of heat maps: pale yellow over orange to dark red.
pub fn heat(share: f64) -> Rgb {
    const STOPS: [Rgb; 4] = [(255, 247, 214), (254, 196, 79), (227, 98, 35), (128, 0, 38)];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let at = (place as usize).min(STOPS.len() - 2);
    let part = place - at as f64;
    let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - part) + f64::from(b) * part).round() as u8;
    let (low, high) = (STOPS[at], STOPS[at + 1]);
    (mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

/// Colour for a value from −1 (blue) over 0 (white) to 1 (red).
pub(crate) fn signed(share: f64) -> Rgb {
    const ENDS: [Rgb; 2] = [(33, 102, 172), (178, 24, 43)];
    let end = ENDS[usize::from(share > 0.0)];
    let part = share.abs().min(1.0).sqrt();
    let mix = |level: u8| (255.0 * (1.0 - part) + f64::from(level) * part).round() as u8;
    (mix(end.0), mix(end.1), mix(end.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_differ_in_colour_and_neighbours_in_marker() {
        let inks = [2, 4, 8, 16, 32, 64].map(Ink::of_rank);
        assert!(inks.windows(2).all(|pair| pair[0].marker != pair[1].marker));
        for (at, ink) in inks.iter().enumerate() {
            assert!(inks[at + 1..].iter().all(|other| other.colour != ink.colour));
        }
    }
}
