//! Matrices as heat maps, one panel each.

use ndarray::ArrayView2;

use crate::figure::{Axis, Colouring, Figure, Key, Panel, Raster};

/// A matrix with its title.
pub struct Matrix<'m> {
    /// Title of the matrix's panel.
    pub title: String,
    /// The entries, one row per query and one column per key; −inf where the query may not attend to the key.
    pub values: ArrayView2<'m, f64>,
}

/// Draws matrices as heat maps with the same colour scale.
pub fn matrices(name: &str, what: &str, of: &[Matrix<'_>], colouring: Colouring) -> Figure {
    let mut block = 1;
    let panels = of.iter().map(|matrix| {
        let raster = Raster::from_matrix(matrix.values, colouring);
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
    let scale = match colouring {
        Colouring::Attention => "Colours show the logarithm; white is 0.",
        Colouring::Logits { .. } => "Red is above 0, blue below. White is 0 or masked.",
    };
    let blocks = match block {
        1 => String::new(),
        block => format!(" Each field is the mean of {block} × {block} entries."),
    };
    Figure {
        name: name.to_owned(),
        caption: format!("{what} Queries run down, keys across. {scale}{blocks}"),
        keys: colouring.legend().iter().map(|(label, of)| Key::field(label, *of)).collect(),
        panels,
    }
}
