//! Matrices as colours.

use ndarray::{Array2, ArrayView2, s};

use super::FigureError;
use crate::figure::{Rgb, heat};

/// Attention probabilities at or below this value have the lightest colour.
pub const LEAST_ATTENTION: f64 = 1e-3;
/// Maximum number of rows and columns; larger matrices are shown as means of blocks.
const MOST: usize = 256;

/// Colour of an attention probability on a logarithmic scale, from 1 down to a thousandth; white for 0 and NaN.
pub fn attention_colour(p: f64) -> Rgb {
    match p > 0.0 {
        true => heat(1.0 - p.ln() / LEAST_ATTENTION.ln()),
        false => (255, 255, 255),
    }
}

/// A matrix of attention that fills a panel, with row 0 at the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    /// The entries, or means of blocks of entries; NaN if there is none.
    pub values: Array2<f64>,
    /// Number of rows and columns of the matrix per entry of `values`.
    pub block: usize,
}

impl Raster {
    /// Creates the raster of a matrix; −inf and NaN do not count as entries.
    pub fn from_matrix(matrix: ArrayView2<'_, f64>) -> Self {
        let (rows, columns) = matrix.dim();
        let block = rows.max(columns).div_ceil(MOST).max(1);
        let values = Array2::from_shape_fn(
            (rows.div_ceil(block), columns.div_ceil(block)),
            |(row, column)| {
                let (from_row, from_column) = (row * block, column * block);
                let part = matrix.slice(s![
                    from_row..(from_row + block).min(rows),
                    from_column..(from_column + block).min(columns)
                ]);
                let there = part.iter().filter(|value| value.is_finite());
                let (sum, count) = there.fold((0.0, 0), |(sum, count), v| (sum + v, count + 1));
                sum / f64::from(count)
            },
        );
        Self { values, block }
    }

    /// Encodes the entries as a PNG with one pixel each. `of` is the figure's name, for errors.
    pub(crate) fn png(&self, of: &str) -> Result<Vec<u8>, FigureError> {
        let pixels: Vec<u8> = self
            .values
            .iter()
            .map(|&p| attention_colour(p))
            .flat_map(|(r, g, b)| [r, g, b])
            .collect();
        let (rows, columns) = self.values.dim();
        png_of(of, &pixels, columns as u32, rows as u32)
    }
}

/// Encodes pixels (red, green, blue, row by row) as a PNG. `name` is the figure's name, for errors.
pub(crate) fn png_of(
    name: &str,
    pixels: &[u8],
    width: u32,
    height: u32,
) -> Result<Vec<u8>, FigureError> {
    let fault = |error: png::EncodingError| FigureError {
        name: name.to_owned(),
        why: format!("cannot encode the PNG: {error}"),
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(fault)?;
    writer.write_image_data(pixels).map_err(fault)?;
    writer.finish().map_err(fault)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::{Raster, attention_colour};

    #[test]
    fn large_matrices_are_means_of_blocks_that_exist() {
        let mut matrix = Array2::from_elem((600, 600), 0.25);
        matrix[[0, 0]] = 1.0;
        matrix.row_mut(599).fill(f64::NEG_INFINITY);
        let raster = Raster::from_matrix(matrix.view());
        assert_eq!((raster.block, raster.values.dim()), (3, (200, 200)));
        assert!((raster.values[[0, 0]] - (1.0 + 8.0 * 0.25) / 9.0).abs() < 1e-12);
        let last = raster.values[[199, 0]];
        assert!((last - 0.25).abs() < 1e-12, "what is not there counts for nothing: {last}");
        let whole = Raster::from_matrix(matrix.slice(ndarray::s![..2, ..2]));
        assert_eq!((whole.block, whole.values[[0, 0]]), (1, 1.0));
    }

    #[test]
    fn nothing_is_white_and_more_is_darker() {
        assert_eq!(attention_colour(0.0), (255, 255, 255));
        assert_eq!(attention_colour(f64::NAN), (255, 255, 255));
        let green = [1e-3, 1e-2, 0.1, 1.0].map(|value| attention_colour(value).1);
        assert!(green.windows(2).all(|pair| pair[0] > pair[1]), "{green:?}");
    }
}
