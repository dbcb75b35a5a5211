//! Figures: panels of named series, built from tables as values and then drawn as SVG or PNG.

pub(crate) mod alt;
pub(crate) mod draw;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod frame;
pub(crate) mod matrices;
pub(crate) mod model;
pub(crate) mod pen;
pub(crate) mod raster;
pub(crate) mod style;
pub(crate) mod ticks;

pub use error::FigureError;
pub use matrices::{Matrix, matrices};
pub use model::{Axis, Figure, Key, Panel, Scale, Series, Shape, Tile};
pub use raster::{LEAST_ATTENTION, Raster, attention_colour};
pub use style::{Ink, Marker, Rgb, Stroke, heat, hex};
pub use ticks::Tick;
