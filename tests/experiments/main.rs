//! Studies: definitions, sweeps, shards, studies of trained heads, and checks of their rows.

#![cfg(feature = "cli")]

#[path = "../common/mod.rs"]
mod common;
mod definitions;
mod heads;
mod shards;
mod sweep;
mod verify;
mod verify_command;
