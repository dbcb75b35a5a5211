//! The views: what the rows of a study of each kind can be made into.

mod concentration;
mod fits;
mod heads;
mod latency;
mod list;
mod ramps;
mod rows;
mod spectra;
mod surgery;
mod trainings;
mod view_of;

pub use list::analyse;
