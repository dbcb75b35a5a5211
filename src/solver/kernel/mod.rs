//! kl_nats of a layout of low-rank heads, its gradient, and the logits' extremes, in one pass over
//! blocks of rows.
//!
//! A block is some rows against the columns that they see. Its logits are computed, turned into
//! exponentials and then into the gradient with respect to the logits in place, and multiplied out
//! into the gradients of queries and keys, before the next block begins. So no n × n array exists;
//! a causal head costs half of the pairs and a window of w costs O(n·w).
//!
//! The rows are cut into *slots* of about equal work, a number that depends on n alone. Each slot
//! adds up its own gradient of the keys; the slots are then added in order. Threads take slots, so
//! the result does not depend on how many threads there are.
//!
//! Memory: O(n·d) a slot, for the keys' gradient, and one block a thread.

mod block;
mod evaluate;
mod inputs;
mod pack;
mod rows;
mod slot;
mod tile;
mod totals;

pub(super) use evaluate::{Evaluation, Kernel};
