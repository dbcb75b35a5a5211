//! What docs/reliability.md promises: kills, lost power, full disks, hostile names, altered rows.

#![cfg(all(feature = "cli", unix))]

mod altered_rows;
#[path = "../common/mod.rs"]
mod common;
mod crash;
#[cfg(target_os = "linux")]
mod full_disk;
mod hostile_names;
mod interrupted_sweeps;
mod kills;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod no_network;
mod streams;
mod terminal;
mod two_at_once;
mod whole;
