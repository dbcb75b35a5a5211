//! Matrices as heat maps, one panel each.

use ndarray::ArrayView2;

use crate::figure::{Axis, Figure, Key, LEAST_ATTENTION, Panel, Raster, attention_colour};

/// A matrix with its title.
pub struct Matrix<'m> {
    /// Title of the matrix's panel.
    pub title: String,
    /// The entries, one row per query and one column per key; −inf where the query may not attend to the key.
    pub values: ArrayView2<'m, f64>,
}

/// Draws attention matrices as heat maps with the same colour scale.
pub fn matrices(name: &str, what: &str, of: &[Matrix<'_>]) -> Figure {
    let mut block = 1;
    let panels = of.iter().map(|matrix| {
        let raster = Raster::from_matrix(matrix.values);
        block = block.max(raster.block);
        let (rows, columns) = matrix.values.dim();
        let mut y = Axis::from_zero("query i", std::iter::once(rows as f64));
        // The first query is at the top, as in a printed matrix.
        y.range = (rows as f64, 0.0);
        let x = Axis::from_zero("key j", std::iter::once(columns as f64));
        let mut panel = Panel::new(&matrix.title, x, y, Vec::new());
        panel.raster = Some(raster);
        panel
    });
    let panels: Vec<Panel> = panels.collect();
    let blocks = match block {
        1 => String::new(),
        block => format!(" Each field is the mean of {block} × {block} entries."),
    };
    Figure {
        name: name.to_owned(),
        caption: format!(
            "{what} Queries run down, keys across. Colours show the logarithm; white is 0.{blocks}"
        ),
        keys: [("1", 1.0), ("0.1", 0.1), ("0.01", 0.01), ("0.001 or less", LEAST_ATTENTION)]
            .map(|(label, p)| Key::field(label, attention_colour(p)))
            .to_vec(),
        panels,
    }
}
