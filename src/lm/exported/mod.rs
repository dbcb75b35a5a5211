//! Heads exported by another program: queries and keys on passages that the program chose, read from a file.

mod about;
mod exported_heads;
mod layer;
mod rotation;
mod tensors;
#[cfg(test)]
mod tests;

pub use exported_heads::ExportedHeads;
