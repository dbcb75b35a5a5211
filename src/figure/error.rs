//! Errors of drawing and writing a figure.

/// Why a figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("figure {name}: {why}")]
pub struct FigureError {
    /// The figure.
    pub name: String,
    /// What failed, in words.
    pub why: String,
}
