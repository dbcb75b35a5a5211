//! Tables into pictures. A figure is a value, panels of named series, before it is drawn.

mod draw;
mod encode;
mod error;
mod frame;
mod growth;
mod layouts;
mod model;
mod pen;
mod style;
mod ticks;
mod training;

pub use error::FigureError;
pub use growth::{inflation, logits_needed};
pub use layouts::layouts;
pub use model::{Axis, Figure, Key, Panel, Scale, Series, Shape};
pub use style::{Ink, Marker, Rgb, Stroke};
pub use ticks::Tick;
pub use training::{by_context, head_kinds, training};
