//! Heads that another program computed, read from a file: their queries and keys on passages of that program's choice.

mod about;
mod exported_heads;
mod layer;
mod rotation;
mod tensors;
#[cfg(test)]
mod tests;

pub use exported_heads::ExportedHeads;
