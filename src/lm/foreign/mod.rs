//! Models from elsewhere, as they are published, read for their heads' queries and keys.

mod arithmetic;
mod attention;
mod bert;
mod config;
mod decoder;
#[cfg(test)]
mod fixture;
mod foreign_model;
mod gguf;
mod gpt2;
mod gpt_neox;
mod mlp;
#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod refusal_tests;
mod rotary;
mod stored;
#[cfg(test)]
mod tests;
mod tokens;
mod transformer;
mod weights;

#[cfg(test)]
pub(crate) use fixture::Published;
pub use foreign_model::ForeignModel;
pub(in crate::lm) use rotary::Pairs;
pub(in crate::lm) use stored::{SafetensorsFile, TensorSource};
