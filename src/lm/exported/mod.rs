//! Heads that another program computed, read from a file: their queries and keys on passages of that program's choice.

mod exported_heads;
mod layer;
#[cfg(test)]
mod tests;

pub use exported_heads::ExportedHeads;
