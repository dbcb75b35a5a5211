//! kl_nats of a layout of low-rank heads, its gradient, and the extremes of the logits, in one pass over blocks of rows.
//!
//! A block consists of some rows and the columns to which they may attend. Its logits are computed, replaced in place by
//! exponentials and then by the gradient with respect to the logits, and multiplied into the gradients of queries and keys,
//! before the next block begins. So no n × n array exists; a causal head costs half of the pairs and a window of w costs
//! O(n·w).
//!
//! The rows are divided into *slots* of about equal work; their number depends on n only. Each slot adds up its own gradient of
//! the keys, and the slots are then added in order. Threads take slots, so the result does not depend on the number of threads.
//!
//! Memory: O(n·d) per slot for the keys' gradient, and one block per thread.

mod block;
mod evaluate;
mod inputs;
mod rows;
mod slot;
mod tile;

pub use evaluate::Measured;
pub(super) use evaluate::{Evaluation, Kernel};
