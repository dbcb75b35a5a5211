//! Lines, markers and text, drawn alike as SVG and as pixels.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, IntoTextStyle, RGBColor, ShapeStyle,
    TextStyle,
};

use crate::figure::{Ink, Marker, Rgb, Stroke};

/// The font, with fallbacks for browsers without it. The font is also registered under this name, because it becomes
/// the `font-family` in the SVG.
pub(crate) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

/// Half the height of a capital, in em: text is centred on its capitals.
const HALF_CAPITAL: f64 = 0.36;
/// Half the height of an x, in em: the distance by which the baseline of a centred SVG text lies below its point.
const HALF_X: f64 = 0.273;
/// Height of a line of the font, in em: the rasteriser's font size counts this.
const LINE_HEIGHT: f64 = 1.164;
/// The SVG writer divides the font size by this to get an em.
const SVG_SIZE: f64 = 1.24;

/// Output medium, with its number of units per pixel of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// SVG, in tenths of pixels.
    Vector,
    /// Pixels: 6 × 6 per pixel of the figure, averaged down later.
    Raster,
}

impl Medium {
    /// Units per pixel of the figure.
    pub(crate) const fn scale(self) -> u32 {
        match self {
            Self::Vector => 10,
            Self::Raster => 6,
        }
    }
}

/// Text style.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    /// Size of the em, in pixels.
    pub em: f64,
    /// The colour.
    pub colour: Rgb,
    /// Bold or regular.
    pub bold: bool,
    /// Rotated to run upwards.
    pub upwards: bool,
}

impl Type {
    pub(crate) fn plain(em: f64, colour: Rgb) -> Self {
        Self { em, colour, bold: false, upwards: false }
    }
}

pub(crate) type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Draws on `area`, with coordinates in pixels of the figure.
pub(crate) struct Pen<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    medium: Medium,
}

impl<'a, DB: DrawingBackend> Pen<'a, DB> {
    pub(crate) fn new(area: &'a DrawingArea<DB, Shift>, medium: Medium) -> Self {
        Self { area, medium }
    }

    /// Returns `true` for SVG.
    pub(crate) fn is_vector(&self) -> bool {
        self.medium == Medium::Vector
    }

    fn units(&self, pixels: f64) -> i32 {
        (pixels * f64::from(self.medium.scale())).round() as i32
    }

    fn at(&self, (x, y): (f64, f64)) -> (i32, i32) {
        (self.units(x), self.units(y))
    }

    fn style(&self, colour: Rgb, width: f64) -> ShapeStyle {
        RGBColor(colour.0, colour.1, colour.2).stroke_width(self.units(width).max(1) as u32)
    }

    /// Draws a line through `points`, with the dashes of `stroke`.
    pub(crate) fn line(
        &self,
        points: &[(f64, f64)],
        colour: Rgb,
        width: f64,
        stroke: Stroke,
    ) -> Drawn<DB> {
        match stroke {
            Stroke::Solid => self.whole_line(points, colour, width),
            Stroke::Dashed => self.broken_line(points, colour, width, &[5.5, 3.5]),
            Stroke::Dotted => self.broken_line(points, colour, width, &[1.2, 3.0]),
            Stroke::DashDotted => self.broken_line(points, colour, width, &[6.0, 2.5, 1.2, 2.5]),
        }
    }

    fn broken_line(
        &self,
        points: &[(f64, f64)],
        colour: Rgb,
        width: f64,
        pattern: &[f64],
    ) -> Drawn<DB> {
        for dash in dashes(points, pattern) {
            self.whole_line(&dash, colour, width)?;
        }
        Ok(())
    }

    /// Draws a solid line. The rasteriser mitres sharp turns into spikes, so it gets each segment separately, with
    /// round joins. An SVG sets round joins once, at its root.
    fn whole_line(&self, points: &[(f64, f64)], colour: Rgb, width: f64) -> Drawn<DB> {
        let style = self.style(colour, width);
        let points: Vec<(i32, i32)> = points.iter().map(|&point| self.at(point)).collect();
        if self.medium == Medium::Vector {
            return self.area.draw(&PathElement::new(points, style));
        }
        for pair in points.windows(2) {
            self.area.draw(&PathElement::new(pair.to_vec(), style))?;
        }
        let radius = (style.stroke_width / 2) as i32;
        if radius > 2 && points.len() > 2 {
            for point in &points {
                self.area.draw(&Circle::new(*point, radius, style.filled()))?;
            }
        }
        Ok(())
    }

    /// Draws a filled rectangle from its upper left to its lower right corner.
    pub(crate) fn rectangle(&self, from: (f64, f64), to: (f64, f64), colour: Rgb) -> Drawn<DB> {
        let style = self.style(colour, 0.0).filled();
        self.area.draw(&Rectangle::new([self.at(from), self.at(to)], style))
    }

    /// Draws a marker of half-width `radius`; an open one is white inside.
    pub(crate) fn marker(
        &self,
        centre: (f64, f64),
        radius: f64,
        ink: Ink,
        open: bool,
    ) -> Drawn<DB> {
        self.filled_marker(centre, radius, ink.marker, ink.colour)?;
        if open {
            self.filled_marker(centre, radius * 0.58, ink.marker, (255, 255, 255))?;
        }
        Ok(())
    }

    fn filled_marker(
        &self,
        (x, y): (f64, f64),
        radius: f64,
        marker: Marker,
        colour: Rgb,
    ) -> Drawn<DB> {
        let style = self.style(colour, 0.0).filled();
        let corners: &[(f64, f64)] = match marker {
            Marker::Circle => {
                return self.area.draw(&Circle::new(self.at((x, y)), self.units(radius), style));
            }
            Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Marker::Triangle => &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
            Marker::Diamond => &[(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)],
            Marker::Inverted => &[(0.0, 1.2), (1.15, -0.85), (-1.15, -0.85)],
        };
        let points: Vec<(i32, i32)> =
            corners.iter().map(|(dx, dy)| self.at((x + dx * radius, y + dy * radius))).collect();
        self.area.draw(&Polygon::new(points, style))
    }

    /// Draws text whose capitals are centred on `point`: vertically, or horizontally if the text runs upwards. Its left
    /// end, centre or right end (`anchor`) is at the point.
    pub(crate) fn words(
        &self,
        text: &str,
        point: (f64, f64),
        anchor: HPos,
        set: Type,
    ) -> Drawn<DB> {
        let (size, below, vertical) = match self.medium {
            Medium::Vector => (set.em * SVG_SIZE, HALF_X * set.em, VPos::Center),
            Medium::Raster => (set.em * LINE_HEIGHT, set.em * LINE_HEIGHT / 2.0, VPos::Top),
        };
        let shift = HALF_CAPITAL * set.em - below;
        let (x, y) =
            if set.upwards { (point.0 + shift, point.1) } else { (point.0, point.1 + shift) };
        let weight = if set.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font =
            FontDesc::new(FontFamily::Name(FONT), size * f64::from(self.medium.scale()), weight);
        let font = if set.upwards { font.transform(FontTransform::Rotate270) } else { font };
        let colour = RGBColor(set.colour.0, set.colour.1, set.colour.2);
        let style: TextStyle =
            font.into_text_style(self.area).color(&colour).pos(Pos::new(anchor, vertical));
        self.area.draw_text(text, &style, self.at((x, y)))
    }
}

/// Width of `text` in pixels for an em of `em` pixels; an estimate if the font cannot be read.
pub(crate) fn width(text: &str, em: f64, bold: bool) -> f64 {
    const SAMPLE: f64 = 200.0;
    let weight = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = FontDesc::new(FontFamily::Name(FONT), SAMPLE * LINE_HEIGHT, weight);
    match font.layout_box(text) {
        Ok(((left, _), (right, _))) => f64::from(right - left) * em / SAMPLE,
        Err(_) => 0.6 * em * text.chars().count() as f64,
    }
}

/// Dashes of the line through `points`, for a pattern of dash, gap, dash, gap, ….
fn dashes(points: &[(f64, f64)], pattern: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let mut stretches = Vec::new();
    let (mut at, mut left) = (0, pattern[0]);
    let mut stretch: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let ((mut x, mut y), (to_x, to_y)) = (pair[0], pair[1]);
        let mut length = (to_x - x).hypot(to_y - y);
        while length > left {
            let part = left / length;
            (x, y) = (x + part * (to_x - x), y + part * (to_y - y));
            length -= left;
            stretch.push((x, y));
            if at % 2 == 0 {
                stretches.push(std::mem::take(&mut stretch));
            }
            stretch = vec![(x, y)];
            at = (at + 1) % pattern.len();
            left = pattern[at];
        }
        left -= length;
        stretch.push((to_x, to_y));
    }
    if at % 2 == 0 && stretch.len() > 1 {
        stretches.push(stretch);
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::dashes;

    #[test]
    fn dashes_leave_their_gaps() {
        let stretches = dashes(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)], &[4.0, 2.0]);
        assert_eq!(stretches, [[(0.0, 0.0), (4.0, 0.0)], [(6.0, 0.0), (10.0, 0.0)]]);
    }
}
