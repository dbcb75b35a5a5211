//! What a target is.

use std::path::Path;

use super::forms::Form;

/// A whole file.
#[derive(Clone)]
pub struct Whole {
    pub bytes: Vec<u8>,
    /// What it looks like.
    pub form: Form,
}

/// What is read, and by what.
pub struct Target {
    /// What is altered.
    pub files: Vec<Whole>,
    /// Does what the program does with such a file, the number of the whole one that it was made of, and says whether it was
    /// one.
    pub read: Box<Read>,
}

type Read = dyn FnMut(usize, &[u8]) -> bool;
/// Makes a target whose files lie in a folder.
pub type Prepare = fn(&Path) -> Target;
