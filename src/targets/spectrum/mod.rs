//! The singular values of a target: all of them, or the leading ones of a large target.

mod bounds;
mod exact;
mod leading;
mod product;

pub use bounds::Bounds;
pub use exact::Spectrum;
pub use leading::LeadingSpectrum;
