//! Circles among the files that use each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use super::Use;

/// Every circle, by the sets of files that all use each other: a shortest circle through each of a set's files,
/// with what makes its arrows.
///
/// ```text
/// 2 files use each other: a.rs, b.rs
///   a.rs → b.rs → a.rs
///     a.rs:3 uses B of b.rs
///     b.rs:7 uses A of a.rs
/// ```
pub fn circles(uses: &[Use]) -> Vec<String> {
    let mut targets = Targets::new();
    for used in uses {
        targets.entry(&used.from).or_default().insert(&used.to, used);
    }
    let through: BTreeMap<&str, Vec<&str>> =
        targets.keys().filter_map(|file| Some((*file, shortest(&targets, file)?))).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        through.keys().map(|file| (*file, reached(&targets, file))).collect();
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, reachable) in &reached {
        let set: Vec<&str> = reachable
            .iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
            .collect();
        if !told.insert(set.clone()) {
            continue;
        }
        let mut text = format!("{} files use each other: {}\n", set.len(), set.join(", "));
        let shortest: BTreeSet<&Vec<&str>> = set.iter().map(|file| &through[file]).collect();
        for circle in shortest {
            writeln!(text, "  {} → {}", circle.join(" → "), circle[0]).unwrap();
            for (from, to) in circle.iter().zip(circle.iter().cycle().skip(1)) {
                let Use { item, line, .. } = targets[from][to];
                writeln!(text, "    {from}:{line} uses {item} of {to}").unwrap();
            }
        }
        circles.push(text);
    }
    circles
}

type Targets<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Use>>;

fn reached<'a>(targets: &Targets<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(file) = open.pop() {
        for to in targets.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// The shortest circle through a file, told from the first of its files by name.
fn shortest<'a>(targets: &Targets<'a>, through: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([through]);
    while let Some(file) = open.pop_front() {
        for to in targets.get(file).into_iter().flat_map(BTreeMap::keys) {
            if before.contains_key(to) {
                continue;
            }
            before.insert(to, file);
            if *to != through {
                open.push_back(to);
                continue;
            }
            let mut circle = vec![file];
            while circle[circle.len() - 1] != through {
                circle.push(before[circle[circle.len() - 1]]);
            }
            circle.reverse();
            let least = (0..circle.len()).min_by_key(|&at| circle[at]).unwrap();
            circle.rotate_left(least);
            return Some(circle);
        }
    }
    None
}
