//! Tables, figures and pages: the report, and those of `show` and `diagnose`.

#![cfg(feature = "cli")]

mod browser;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod diagnose;
mod figures;
mod hostile_pages;
mod page;
mod plausible;
mod show;
mod tables;
mod views;
