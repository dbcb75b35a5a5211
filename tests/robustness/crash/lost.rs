//! Power that is lost after each operation.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::double::{Done, Step, journal};
use super::model::{Clock, Disk, Loss, View, make};
use super::scenario::{Scenario, rows};
use crate::common::binary::{Folder, Record};
use crate::common::tries::{Tries, share_of};

/// The ways in which power is lost after an operation of this number.
fn losses(at: usize) -> [Loss; 8] {
    let seed = 2 * at as u64;
    let some = [Loss::Some { seed }, Loss::Some { seed: seed + 1 }];
    let [one, other] = some;
    [Loss::Torn, Loss::All, Loss::Bytes, Loss::Zeros, Loss::Holes, Loss::Names, one, other]
}

/// Runs a command once and lets the power go after each of its operations, in several ways: the program itself then goes
/// on with what is left.
pub fn at_each_operation(promise: &'static str, scenario: &Scenario) {
    let mut tries = Tries::of(promise);
    let whole = scenario.folder();
    let mut disk = Disk::of(&whole.path(""));
    let steps = journal(&whole, scenario.command);
    let states = states(scenario, &mut disk, &steps, &mut tries);
    for (path, bytes) in disk.now() {
        let there = std::fs::read(whole.path("").join(&path)).ok();
        assert!(bytes == there, "{} is not what was noted", path.display());
    }
    println!("{promise}: {} operations, {} states", steps.len(), states.len());
    let finished = std::fs::read(whole.path(scenario.rows)).unwrap();
    let step = states.len() / share_of(states.len());
    // Another tenth of each command.
    let chosen: Vec<_> = states.into_iter().skip(promise.len() % step).step_by(step).collect();
    let failures = on_two_threads(&chosen, |(at, loss, view)| {
        // After every other operation the clock is put back too.
        let clock = if at % 2 == 0 { Clock::GoesOn } else { Clock::JumpsBack };
        let wrong = after(scenario, (view, clock), &whole, &finished).err()?;
        Some(format!("{loss:?} after {at}, {}, {clock:?}: {wrong}", described(&steps[*at].done)))
    });
    tries.add(chosen.len(), failures);
    tries.end();
}

/// What may be left, each once, with the operation after which it is: all that the program does is done to `disk`.
fn states(
    scenario: &Scenario,
    disk: &mut Disk,
    steps: &[Step],
    tries: &mut Tries,
) -> Vec<(usize, Loss, View)> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut last_of: HashMap<&str, &Done> = HashMap::new();
    for (at, Step { thread, done }) in steps.iter().enumerate() {
        // A thread may begin a file while another has renamed one and has yet to put the name on the disk.
        let is_amid_rename = last_of
            .iter()
            .any(|(of, last)| *of != thread.as_str() && matches!(last, Done::Rename { .. }));
        if begins_a_file(done) && !is_amid_rename {
            tries.tried(kept(scenario, disk, at));
        }
        disk.apply(done);
        last_of.insert(thread, done);
        for loss in losses(at) {
            let view = disk.after(loss);
            let mut hasher = DefaultHasher::new();
            view.hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                found.push((at, loss, view));
            }
        }
    }
    tries.tried(kept(scenario, disk, steps.len()));
    found
}

/// What is wrong where the program goes on with what was left.
fn after(
    scenario: &Scenario,
    (view, clock): (&View, Clock),
    whole: &Folder,
    finished: &[u8],
) -> Result<(), String> {
    let folder = Folder::new();
    make(view, &folder.path(""), clock);
    scenario.go_on(&folder, whole)?;
    // A row that was there whole is there still, down to its times: it was not made again.
    let of = |bytes: &[u8]| rows(&String::from_utf8_lossy(bytes));
    let there = view.get(Path::new(scenario.rows)).cloned().flatten().unwrap_or_default();
    let (there, all) = (of(&there), of(finished));
    let sure = (scenario.sure)(&folder, view).unwrap_or(there.len());
    let now = of(&std::fs::read(folder.path(scenario.rows)).unwrap());
    let is_lost = |row: &&Record| all.contains(row) && !now.contains(row);
    match there[..sure.min(there.len())].iter().find(is_lost) {
        Some(row) => Err(format!("{row:?} was made again")),
        None => Ok(()),
    }
}

/// Whether the program has returned from what it wrote before.
fn begins_a_file(operation: &Done) -> bool {
    matches!(operation, Done::Create(path) if path.extension().is_some_and(|e| e == "tmp"))
}

/// Whether what was written is on the disk itself, by its bytes and its name.
fn kept(scenario: &Scenario, disk: &Disk, at: usize) -> Result<(), String> {
    let (now, kept) = (disk.now(), disk.after(Loss::All));
    let lost = now.iter().find(|(path, bytes)| {
        let path_text = path.display().to_string();
        let is_kept = scenario.kept.iter().any(|kept| path_text.starts_with(kept));
        let is_passing = path_text.contains("/.");
        is_kept && !is_passing && kept.get(*path) != Some(bytes)
    });
    match lost {
        Some((path, _)) => Err(format!("before {at}: {} is not on the disk", path.display())),
        None => Ok(()),
    }
}

fn described(operation: &Done) -> String {
    let mut text = format!("{operation:?}");
    if let Done::Write { path, offset, bytes } = operation {
        text = format!("{} bytes at {offset} of {}", bytes.len(), path.display());
    }
    text
}

/// What `work` says of each, two at a time.
pub fn on_two_threads<T: Sync>(
    all: &[T],
    work: impl Fn(&T) -> Option<String> + Sync,
) -> Vec<String> {
    let (next, said) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    said.lock().unwrap().extend(work(one));
                }
            });
        }
    });
    said.into_inner().unwrap()
}
