//! Encodes a figure as SVG or PNG.

use std::sync::OnceLock;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use plotters::prelude::{BitMapBackend, DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::{FontStyle, register_font};

use super::frame::Frame;
use super::pen::{FONT, Medium, Pen};
use super::raster::png_of;
use super::{FigureError, draw};
use crate::figure::Figure;

/// Supersampling: a block of 3 × 3 drawn pixels becomes one pixel of the PNG.
const AVERAGED: usize = 3;

impl Figure {
    /// Returns the figure as SVG, including its title and alternative text.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.font()?;
        let frame = Frame::from_figure(self);
        let (width, height) = units(&frame, Medium::Vector);
        let mut drawn = String::new();
        self.draw(SVGBackend::with_string(&mut drawn, (width, height)), Medium::Vector, &frame)?;
        let body = drawn.split_once('>').map_or("", |(_, body)| body);
        let body = body.replacen("</svg>", &(self.rasters(&frame)? + "</svg>"), 1);
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"butt\">\n<title>{}</title>{body}",
            frame.width,
            frame.height,
            escape(&self.alt()),
            escape(&self.caption),
        ))
    }

    /// Returns the figure as PNG, at twice the size of the SVG.
    ///
    /// # Errors
    /// The drawing library or the encoder fails.
    pub fn png(&self) -> Result<Vec<u8>, FigureError> {
        self.font()?;
        let frame = Frame::from_figure(self);
        let (width, height) = units(&frame, Medium::Raster);
        let mut pixels = vec![255; width as usize * height as usize * 3];
        let backend = BitMapBackend::with_buffer(&mut pixels, (width, height));
        self.draw(backend, Medium::Raster, &frame)?;
        let small = average(&pixels, width as usize, height as usize);
        png_of(&self.name, &small, width / AVERAGED as u32, height / AVERAGED as u32)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        backend: DB,
        medium: Medium,
        frame: &Frame,
    ) -> Result<(), FigureError> {
        let area = backend.into_drawing_area();
        let drawn = draw::figure(&Pen::new(&area, medium), self, frame);
        drawn.and_then(|()| area.present()).map_err(|error| FigureError {
            name: self.name.clone(),
            why: format!("cannot draw it: {error}"),
        })
    }

    /// Matrices that fill panels, as images in the SVG: one rectangle per entry would be a hundred times the size.
    fn rasters(&self, frame: &Frame) -> Result<String, FigureError> {
        let units = |pixels: f64| (pixels * f64::from(Medium::Vector.scale())).round();
        let mut images = String::new();
        for (panel, plot) in self.panels.iter().zip(&frame.plots) {
            let Some(raster) = &panel.raster else { continue };
            images.push_str(&format!(
                "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
                 image-rendering=\"pixelated\" href=\"data:image/png;base64,{}\"/>\n",
                units(plot.left),
                units(plot.top),
                units(plot.right - plot.left),
                units(plot.bottom - plot.top),
                BASE64_STANDARD.encode(raster.png(&self.name)?),
            ));
        }
        Ok(images)
    }

    /// Registers the font that is compiled in with the drawing library, once.
    fn font(&self) -> Result<(), FigureError> {
        static READY: OnceLock<bool> = OnceLock::new();
        let ready = *READY.get_or_init(|| {
            register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok()
                && register_font(FONT, FontStyle::Bold, dejavu::sans::bold()).is_ok()
        });
        let why = || "the font compiled in cannot be read".to_owned();
        if ready { Ok(()) } else { Err(FigureError { name: self.name.clone(), why: why() }) }
    }
}

/// Size in units of the medium; a multiple of [`AVERAGED`] for PNG.
fn units(frame: &Frame, medium: Medium) -> (u32, u32) {
    let units = |pixels: f64| pixels.ceil() as u32 * medium.scale();
    (units(frame.width), units(frame.height))
}

/// Averages each block of pixels, separately for red, green and blue.
fn average(pixels: &[u8], width: usize, height: usize) -> Vec<u8> {
    let (across, down) = (width / AVERAGED, height / AVERAGED);
    let mut small = Vec::with_capacity(across * down * 3);
    for row in 0..down {
        for column in 0..across {
            for channel in 0..3 {
                let block = (0..AVERAGED * AVERAGED).map(|at| {
                    let y = row * AVERAGED + at / AVERAGED;
                    let x = column * AVERAGED + at % AVERAGED;
                    u32::from(pixels[(y * width + x) * 3 + channel])
                });
                let count = (AVERAGED * AVERAGED) as u32;
                small.push(((block.sum::<u32>() + count / 2) / count) as u8);
            }
        }
    }
    small
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::average;

    #[test]
    fn averaging_keeps_flat_colour_and_halves_edges() {
        let pixels: Vec<u8> =
            (0..9).flat_map(|at| [if at % 3 == 0 { 90 } else { 0 }, 7, 255]).collect();
        assert_eq!(average(&pixels, 3, 3), [30, 7, 255]);
    }
}
