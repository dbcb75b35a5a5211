//! Errors of drawing and writing a figure.

/// Why a figure could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The drawing library refused the font that is compiled in.
    #[error("figure {name}: the font compiled in cannot be read")]
    Font {
        /// The figure.
        name: String,
    },
    /// The drawing library failed.
    #[error("figure {name}: cannot draw it: {why}")]
    Draw {
        /// The figure.
        name: String,
        /// The library's message.
        why: String,
    },
    /// The picture could not be encoded.
    #[error("figure {name}: cannot encode the PNG: {source}")]
    Encode {
        /// The figure.
        name: String,
        /// The encoder's error.
        source: png::EncodingError,
    },
}
