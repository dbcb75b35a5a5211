//! A disk that fills up, and one that nobody may write to: a line that says so, nothing torn, and once there is room the same
//! command comes to what it does with room from the start.
//!
//! The disk is a small one in memory, which only root may mount: elsewhere this says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::binary::{Ended, Folder, words};
use crate::common::tiny;
use crate::common::tries::{Tries, share_of};
use crate::whole::Whole;

/// How many sizes of a disk each command meets, as the README tells it.
const SIZES: usize = 14;
/// What a disk in memory deals in.
const PAGE: u64 = 4096;

const SWEEP: &str = "sweep analysis/tiny.toml --quiet";
const FIT: &str = "fit --family dirichlet-band --window 4 --n 48 --rank 3 --max-logit 2,4 --starts 2 --iterations 100 --quiet --out fit";

/// Commands, and those before them.
const ALL: [(&str, &[&str]); 4] = [
    (SWEEP, &[]),
    ("train run.toml --out run --resume --quiet", &[]),
    (FIT, &[]),
    ("report tiny", &[SWEEP]),
];

/// A disk of its own, taken away with this.
struct Disk(PathBuf);

impl Disk {
    /// None where it may not be mounted.
    fn mounted(at: &Path, bytes: u64) -> Option<Self> {
        let tmpfs = ["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"];
        done("mount", &tmpfs, at).then(|| Self(at.to_owned()))
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(done("mount", &["-o", &options], &self.0), "{options}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if !done("umount", &[], &self.0) {
            done("umount", &["--lazy"], &self.0);
        }
    }
}

/// Whether a command of the system's does its work on a path.
fn done(command: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(command).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

/// A folder on a disk of its own; the disk goes first.
struct Place {
    disk: Disk,
    folder: Folder,
}

const MEBIBYTE: u64 = 1 << 20;

impl Place {
    /// With room, the definitions and what comes before.
    fn new(before: &[&str]) -> Option<Self> {
        let folder = Folder::new();
        let disk = Disk::mounted(&folder.path(""), 64 * MEBIBYTE)?;
        folder.write("analysis/tiny.toml", tiny::fits(""));
        let steps =
            "steps = 60\neval_every = 20\ncheckpoint_every = 10\nkeep_checkpoints = [20, 40]";
        folder.write("run.toml", tiny::training(steps));
        before.iter().for_each(|line| drop(folder.done(&words(line))));
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
    let is_told = stderr.contains(cause) && !stderr.contains("panicked");
    match matches!(*code, Some(1 | 2)) && is_one && is_told {
        true => Ok(()),
        false => Err(format!("{code:?}: {stdout}{stderr}")),
    }
}

/// Runs on a disk that has so much room beside what is there, and then with more. Whether it was full.
fn with_room((line, before): (&str, &[&str]), expected: &Whole, room: u64) -> Result<bool, String> {
    let place = Place::new(before).ok_or("no disk")?;
    place.disk.remount(&format!("size={}", place.used() + room));
    let ended = place.folder.run(&words(line));
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
    let Ended { code, stdout, stderr } = place.folder.run(&words(line));
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
    for (line, before) in ALL {
        let place = Place::new(before).unwrap();
        let began_with = place.used();
        place.folder.done(&words(line));
        let grown = place.used() - began_with;
        let expected = Whole::of(&place.folder).unwrap();
        let sizes = share_of(SIZES).max(3) as u64;
        let mut full = 0;
        for at in 0..sizes {
            // From none at all to a page less than it takes in the end.
            let room = (grown - PAGE) * at / (sizes - 1) / PAGE * PAGE;
            let result = with_room((line, before), &expected, room);
            full += usize::from(result.as_ref().is_ok_and(|was_full| *was_full));
            let told = |why| format!("{line} with room for {room} bytes: {why}");
            tries.tried(result.map(|_| ()).map_err(told));
        }
        println!("{line}: the disk was full {full} times of {sizes}");
    }
    tries.end();
}

#[test]
fn a_disk_that_nobody_may_write_to_is_told_of_in_a_line() {
    if !may_mount() {
        return;
    }
    for (line, before) in ALL {
        let place = Place::new(before).unwrap();
        let tree = place.folder.tree();
        place.disk.remount("ro");
        let ended = place.folder.run(&words(line));
        check_line(&ended, "Read-only file system").unwrap();
        assert_eq!(place.folder.tree(), tree, "{line}");
        place.disk.remount("rw");
        place.folder.done(&words(line));
        // Where all is done, there is nothing to write.
        if line == SWEEP {
            place.disk.remount("ro");
            assert!(place.folder.done(&words(line)).contains("0 configurations measured"));
        }
    }
}

#[test]
fn what_a_disk_has_no_room_for_is_not_begun() {
    if !may_mount() {
        return;
    }
    for (line, needed) in [
        ("train run.toml --text text.txt --set vocabulary=byte --out run --quiet", "3 MiB of disk"),
        ("train run.toml --set d_model=256 --set heads=8 --out run --quiet", "MiB of disk"),
        ("target --family prefix --n 400 --out ./x.npy", "MiB of disk"),
    ] {
        let place = Place::new(&[]).unwrap();
        let text = "the quick brown fox jumps over the lazy dog\n".repeat(30_000);
        place.folder.write("text.txt", text);
        place.disk.remount(&format!("size={}", place.used() + MEBIBYTE));
        let before = place.folder.tree();
        check_line(&place.folder.run(&words(line)), needed).unwrap();
        // The folder of what was asked for may have been made.
        let mut left = place.folder.tree().into_iter().filter(|name| !before.contains(name));
        let file = left.find(|name| place.folder.path(name).is_file());
        assert_eq!(file.filter(|name| !name.ends_with(".lock")), None, "{line}");
        place.disk.remount("size=128m");
        place.folder.done(&words(line));
    }
}
