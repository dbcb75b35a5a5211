//! The project as a whole: layers of `src`, numbers and links in documents, help, package, tutorial.

#![cfg(feature = "cli")]

#[path = "../common/mod.rs"]
mod common;
mod definitions_page;
mod disk_writes;
mod help;
mod layering;
mod numbers;
mod package;
mod pages;
mod promises;
mod quantities;
mod source;
mod tutorial;
