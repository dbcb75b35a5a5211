//! Encoding of pixels as a PNG file.

use super::FigureError;

/// Encodes pixels (red, green, blue, row by row) as a PNG. `name` is the figure's name, for errors.
pub(crate) fn png_of(
    name: &str,
    pixels: &[u8],
    width: u32,
    height: u32,
) -> Result<Vec<u8>, FigureError> {
    let fault = |source| FigureError::Encode { name: name.to_owned(), source };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(fault)?;
    writer.write_image_data(pixels).map_err(fault)?;
    writer.finish().map_err(fault)?;
    Ok(bytes)
}
