//! The program: its speed, what it uses of the machine, the files that it reads and refuses.

#![cfg(feature = "cli")]

mod altered_files;
mod bench;
#[path = "../common/mod.rs"]
mod common;
mod dump;
mod exported_heads;
mod hostile_files;
mod machine;
