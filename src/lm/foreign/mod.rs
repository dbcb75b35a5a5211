//! Models from elsewhere: GPT-2-type decoders and BERT-type encoders as they are published, read for their
//! heads' queries and keys.

mod arithmetic;
mod bert;
mod config;
#[cfg(test)]
mod fixture;
mod foreign_model;
mod gpt2;
#[cfg(test)]
mod tests;
mod transformer;
mod weights;

#[cfg(test)]
pub(crate) use fixture::Published;
pub use foreign_model::ForeignModel;
