//! Tables into pictures. A figure is a value, panels of named series, before it is drawn.

mod arms;
mod draw;
mod encode;
mod error;
mod frame;
mod frontiers;
mod growth;
mod heads;
mod latency;
mod layouts;
mod model;
mod pen;
mod phase;
mod ramp;
mod spectra;
mod style;
mod ticks;
mod training;
mod variants;
mod window_rule;

pub use arms::{ablation, arms, dial};
pub use error::FigureError;
pub use frontiers::frontiers;
pub use growth::{inflation, logits_needed};
pub use heads::{decomposition, prediction, ranks};
pub use latency::latency;
pub use layouts::layouts;
pub use model::{Axis, Figure, Key, Panel, Scale, Series, Shape, Tile};
pub use phase::phase;
pub use ramp::law;
pub use spectra::spectra;
pub use style::{Ink, Marker, Rgb, Stroke};
pub use ticks::Tick;
pub use training::{by_context, head_kinds, interventions, training};
pub use variants::variants;
pub use window_rule::window_rule;
