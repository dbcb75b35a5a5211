//! A disk in memory, which knows of each file and folder what is on the disk itself and what only the system has.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::double::Done;

/// Files with their bytes, and folders, by path.
pub type View = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What may be found after the power was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is lost, but the last write is torn.
    Torn,
    /// All that was not put on the disk is lost: bytes and names.
    All,
    /// Bytes that were not put on the disk are lost, and no name.
    Bytes,
    /// The same, and there are zeros in their place.
    Zeros,
    /// There are zeros in the place of the first half of them, and the second half is there.
    Holes,
    /// Names that were not put on the disk are lost, and no byte.
    Names,
    /// Of each file and folder, one or the other.
    Some { seed: u64 },
}

type Names = BTreeMap<OsString, usize>;

#[derive(Clone, Debug)]
enum Node {
    File { now: Vec<u8>, kept: Vec<u8> },
    Folder { now: Names, kept: Names },
}

impl Node {
    fn empty_folder() -> Self {
        Self::Folder { now: Names::new(), kept: Names::new() }
    }
}

/// What is in a folder, and below it.
#[derive(Clone, Debug)]
pub struct Disk {
    nodes: Vec<Node>,
    /// Of the last operation, where it was a write: the file, and where the write began.
    last_write: Option<(usize, usize)>,
}

impl Disk {
    /// What is there now, all of it on the disk.
    pub fn of(folder: &Path) -> Self {
        let mut disk = Self { nodes: vec![Node::empty_folder()], last_write: None };
        disk.load(folder, Path::new(""));
        disk
    }

    fn load(&mut self, root: &Path, below: &Path) {
        for entry in fs::read_dir(root.join(below)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(entry.file_name());
            let is_folder = entry.path().is_dir();
            let bytes = if is_folder { Vec::new() } else { fs::read(entry.path()).unwrap() };
            let file = Node::File { now: bytes.clone(), kept: bytes };
            self.add(&path, if is_folder { Node::empty_folder() } else { file });
            if is_folder {
                self.load(root, &path);
            }
        }
        self.sync(below);
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        self.name(path, self.nodes.len() - 1);
    }

    /// The node at a path, as the system has it.
    fn find(&self, path: &Path) -> Option<usize> {
        let mut at = 0;
        for part in path.components().filter(|part| *part != Component::CurDir) {
            let Node::Folder { now, .. } = &self.nodes[at] else { return None };
            at = *now.get(part.as_os_str())?;
        }
        Some(at)
    }

    fn node(&mut self, path: &Path) -> (usize, &mut Node) {
        let at = self.find(path).unwrap_or_else(|| panic!("no {}", path.display()));
        (at, &mut self.nodes[at])
    }

    fn names(&mut self, folder: &Path) -> &mut Names {
        match self.node(folder).1 {
            Node::Folder { now, .. } => now,
            Node::File { .. } => panic!("{} is a file", folder.display()),
        }
    }

    fn name(&mut self, path: &Path, node: usize) {
        let name = path.file_name().unwrap().to_owned();
        self.names(path.parent().unwrap()).insert(name, node);
    }

    fn unname(&mut self, path: &Path) -> usize {
        let gone = self.names(path.parent().unwrap()).remove(path.file_name().unwrap());
        gone.unwrap_or_else(|| panic!("no {}", path.display()))
    }

    fn bytes(&mut self, path: &Path) -> (usize, &mut Vec<u8>) {
        match self.node(path) {
            (at, Node::File { now, .. }) => (at, now),
            (_, Node::Folder { .. }) => panic!("{} is a folder", path.display()),
        }
    }

    /// Puts a file's bytes or a folder's names on the disk.
    fn sync(&mut self, path: &Path) {
        match self.node(path).1 {
            Node::File { now, kept } => kept.clone_from(now),
            Node::Folder { now, kept } => kept.clone_from(now),
        }
    }

    /// Does an operation.
    pub fn apply(&mut self, done: &Done) {
        self.last_write = None;
        match done {
            Done::Create(path) if self.find(path).is_some() => self.bytes(path).1.clear(),
            Done::Create(path) => self.add(path, Node::File { now: Vec::new(), kept: Vec::new() }),
            Done::Write { path, offset, bytes } => {
                let (at, now) = self.bytes(path);
                now.resize(now.len().max(offset + bytes.len()), 0);
                now[*offset..offset + bytes.len()].copy_from_slice(bytes);
                self.last_write = Some((at, offset + bytes.len() / 2));
            }
            Done::SetLength { path, length } => self.bytes(path).1.resize(*length, 0),
            Done::Sync(path) | Done::SyncFolder(path) => self.sync(path),
            Done::Rename { from, to } => {
                let node = self.unname(from);
                self.name(to, node);
            }
            Done::Remove(path) => drop(self.unname(path)),
            Done::MakeFolder(path) => self.add(path, Node::empty_folder()),
        }
    }

    /// What is there as the system has it.
    pub fn now(&self) -> View {
        self.walked(|_| true, |_, now, _| now.to_vec())
    }

    /// What is there after the power was lost now.
    pub fn after(&self, loss: Loss) -> View {
        let random = |seed| ChaCha8Rng::seed_from_u64(seed);
        match loss {
            Loss::Torn => self.walked(
                |_| true,
                |at, now, _| match self.last_write {
                    Some((torn, end)) if torn == at => now[..end].to_vec(),
                    _ => now.to_vec(),
                },
            ),
            Loss::All => self.walked(|_| false, |_, _, kept| kept.to_vec()),
            Loss::Bytes => self.walked(|_| true, |_, _, kept| kept.to_vec()),
            Loss::Zeros => self.walked(|_| true, |_, now, kept| zeros(now, kept, now.len())),
            Loss::Holes => self.walked(
                |_| true,
                |_, now, kept| {
                    zeros(now, kept, usize::midpoint(now.len(), kept.len().min(now.len())))
                },
            ),
            Loss::Names => self.walked(|_| false, |_, now, _| now.to_vec()),
            Loss::Some { seed } => {
                let (mut of_names, mut of_bytes) = (random(seed), random(seed + (1 << 32)));
                let either = |_, now: &[u8], kept: &[u8]| {
                    if of_bytes.random() { now.to_vec() } else { kept.to_vec() }
                };
                self.walked(|_| of_names.random(), either)
            }
        }
    }

    /// The files and folders that names lead to: today's of those folders that `is_now` says, and else those on the disk. A
    /// file holds what `bytes` says of its number, of what the system has and of what is on the disk.
    fn walked(
        &self,
        mut is_now: impl FnMut(usize) -> bool,
        mut bytes: impl FnMut(usize, &[u8], &[u8]) -> Vec<u8>,
    ) -> View {
        let mut view = View::new();
        let mut folders = vec![(0, PathBuf::new())];
        while let Some((at, path)) = folders.pop() {
            let Node::Folder { now, kept } = &self.nodes[at] else { continue };
            for (name, &node) in if is_now(at) { now } else { kept } {
                let path = path.join(name);
                match &self.nodes[node] {
                    Node::File { now, kept } => {
                        view.insert(path, Some(bytes(node, now, kept)));
                    }
                    Node::Folder { .. } => {
                        view.insert(path.clone(), None);
                        folders.push((node, path));
                    }
                }
            }
        }
        view
    }
}

/// What is on the disk of a file, and zeros in the place of what is not, up to a byte from which all is there.
fn zeros(now: &[u8], kept: &[u8], end: usize) -> Vec<u8> {
    let mut found = kept[..kept.len().min(now.len())].to_vec();
    found.resize(end, 0);
    found.extend_from_slice(&now[end..]);
    found
}

/// What the clock shows of the files that a machine finds whose power was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// They are an hour old: it takes its time.
    GoesOn,
    /// They are of tomorrow: it was put back.
    JumpsBack,
}

/// Makes what a view tells, in an empty folder.
pub fn make(view: &View, folder: &Path, clock: Clock) {
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let then = match clock {
        Clock::GoesOn => now - hour,
        Clock::JumpsBack => now + 24 * hour,
    };
    for (path, bytes) in view {
        let path = folder.join(path);
        match bytes {
            None => fs::create_dir_all(path).unwrap(),
            Some(bytes) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut file = fs::File::create(path).unwrap();
                file.write_all(bytes).unwrap();
                file.set_modified(then).unwrap();
            }
        }
    }
}
