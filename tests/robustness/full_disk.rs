//! A disk that fills up, and one that nobody may write to: a line that says so, nothing torn, and once there is room the same
//! command comes to what it does with room from the start.
//!
//! The disk is a small one in memory, which only root may mount: elsewhere this says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::binary::{Ended, Folder};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};
use crate::whole::Whole;

/// How many sizes of a disk each command meets, as the README tells it.
const SIZES: usize = 14;
/// What a disk in memory deals in.
const PAGE: u64 = 4096;

const SWEEP: &[&str] = &["sweep", "analysis/tiny.toml", "--quiet"];
const TRAIN: &[&str] = &["train", "run.toml", "--out", "run", "--resume", "--quiet"];
const FIT: &[&str] = &[
    "fit", "--family", "dirichlet-band", "--window", "4", "--n", "48", "--rank", "3",
    "--max-logit", "2,4", "--starts", "2", "--iterations", "100", "--quiet", "--out", "fit",
];
const REPORT: &[&str] = &["report", "tiny"];

/// Commands, and those before them.
const ALL: [(&[&str], &[&[&str]]); 4] =
    [(SWEEP, &[]), (TRAIN, &[]), (FIT, &[]), (REPORT, &[SWEEP])];

/// A disk of its own, taken away with this.
struct Disk(PathBuf);

impl Disk {
    /// None where it may not be mounted.
    fn mounted(at: &Path, bytes: u64) -> Option<Self> {
        let done = mount(&["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"], at);
        done.then(|| Self(at.to_owned()))
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.0), "remount,{options}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = |lazily: &[&str]| {
            Command::new("umount")
                .args(lazily)
                .arg(&self.0)
                .output()
                .is_ok_and(|o| o.status.success())
        };
        if !unmounted(&[]) {
            unmounted(&["--lazy"]);
        }
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    Command::new("mount")
        .args(arguments)
        .arg(at)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A folder on a disk of its own; the disk goes first.
struct Place {
    disk: Disk,
    folder: Folder,
}

const MEBIBYTE: u64 = 1 << 20;

impl Place {
    /// With room, the definitions and what comes before.
    fn new(before: &[&[&str]]) -> Option<Self> {
        let folder = Folder::new();
        let disk = Disk::mounted(&folder.path(""), 64 * MEBIBYTE)?;
        folder.write("analysis/tiny.toml", tiny::fits(""));
        folder.write(
            "run.toml",
            tiny::training(
                "steps = 60\neval_every = 20\ncheckpoint_every = 10\nkeep_checkpoints = [20, 40]",
            ),
        );
        before.iter().for_each(|arguments| drop(folder.done(arguments)));
        Some(Self { disk, folder })
    }

    /// The bytes in use.
    fn used(&self) -> u64 {
        let output = Command::new("df")
            .args(["--block-size=1", "--output=used"])
            .arg(self.folder.path(""))
            .output();
        let told = String::from_utf8(output.unwrap().stdout).unwrap();
        told.lines().last().unwrap().trim().parse().unwrap()
    }
}

/// Whether a disk may be mounted here; says so where it may not.
fn may_mount() -> bool {
    let may = Place::new(&[]).is_some();
    if !may {
        println!("skipped: a disk in memory may be mounted by root only");
    }
    may
}

/// The one line of a command that has nowhere to write.
fn check_line(Ended { code, stdout, stderr }: &Ended, cause: &str) -> Result<(), String> {
    let is_one = stderr.lines().count() == 1 && stderr.starts_with("error: ");
    match matches!(*code, Some(1 | 2))
        && is_one
        && stderr.contains(cause)
        && !stderr.contains("panicked")
    {
        true => Ok(()),
        false => Err(format!("{code:?}: {stdout}{stderr}")),
    }
}

/// Runs on a disk that has so much room beside what is there, and then with more. Whether it was full.
fn with_room(
    (arguments, before): (&[&str], &[&[&str]]),
    expected: &Whole,
    room: u64,
) -> Result<bool, String> {
    let place = Place::new(before).ok_or("no disk")?;
    place.disk.remount(&format!("size={}", place.used() + room));
    let ended = place.folder.run(arguments);
    let was_full = ended.code != Some(0);
    if was_full {
        // Or before it begins, where what it takes is known.
        let cause = match ended.stderr.contains(" KiB free)") {
            true => "checkpoints need at least ",
            false => "No space left on device",
        };
        check_line(&ended, cause)?;
    }
    place.disk.remount("size=64m");
    let Ended { code, stdout, stderr } = place.folder.run(arguments);
    if code != Some(0) && !stderr.contains("already has a frontier.csv") {
        return Err(format!("with room again: {code:?}: {stdout}{stderr}"));
    }
    expected.check(&place.folder).map(|()| was_full)
}

#[test]
fn a_disk_that_is_full_at_any_size_costs_nothing_that_was_there() {
    if !may_mount() {
        return;
    }
    let mut tries = Tries::of("full-disk");
    for (arguments, before) in ALL {
        let place = Place::new(before).unwrap();
        let began_with = place.used();
        place.folder.done(arguments);
        let grown = place.used() - began_with;
        let expected = Whole::of(&place.folder).unwrap();
        let sizes = share_of(SIZES).max(3) as u64;
        let mut full = 0;
        for at in 0..sizes {
            // From none at all to a page less than it takes in the end.
            let room = (grown - PAGE) * at / (sizes - 1) / PAGE * PAGE;
            let result = with_room((arguments, before), &expected, room);
            full += usize::from(result.as_ref().is_ok_and(|was_full| *was_full));
            let told = |why| format!("{arguments:?} with room for {room} bytes: {why}");
            tries.tried(result.map(|_| ()).map_err(told));
        }
        println!("{arguments:?}: the disk was full {full} times of {sizes}");
    }
    tries.end();
}

#[test]
fn a_disk_that_nobody_may_write_to_is_told_of_in_a_line() {
    if !may_mount() {
        return;
    }
    for (arguments, before) in ALL {
        let place = Place::new(before).unwrap();
        let tree = place.folder.tree();
        place.disk.remount("ro");
        let ended = place.folder.run(arguments);
        check_line(&ended, "Read-only file system")
            .unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
        assert_eq!(place.folder.tree(), tree, "{arguments:?}");
        place.disk.remount("rw");
        place.folder.done(arguments);
        // Where all is done, there is nothing to write.
        if arguments == SWEEP {
            place.disk.remount("ro");
            assert!(place.folder.done(arguments).contains("0 configurations measured"));
        }
    }
}

#[test]
fn tokens_that_a_disk_has_no_room_for_are_not_begun() {
    if !may_mount() {
        return;
    }
    let place = Place::new(&[]).unwrap();
    place.folder.write("text.txt", "the quick brown fox jumps over the lazy dog\n".repeat(30_000));
    place.disk.remount(&format!("size={}", place.used() + MEBIBYTE));
    let arguments = ["train", "run.toml", "--text", "text.txt", "--out", "run", "--quiet"];
    let of_bytes = [&arguments[..], &["--set", "vocabulary=byte"]].concat();
    let ended = place.folder.run(&of_bytes);
    check_line(&ended, "the tokens of the text need at least 3 MiB of disk").unwrap();
    let is_left = |name: &String| name.ends_with(".tokens") || name.ends_with(".tmp");
    assert!(!place.folder.tree().iter().any(is_left), "{:?}", place.folder.tree());
    place.disk.remount("size=64m");
    place.folder.done(&of_bytes);
}
