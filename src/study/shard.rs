//! Shards: equal parts of the work, for machines that share nothing but files.
//!
//! The definition alone determines the shard of each cell, not the cells already done. So every task gets the same shards,
//! whenever it starts.

use std::fmt;
use std::str::FromStr;

use crate::system::sha256;

/// Shard `index` of `count`, counted from 0; written as `I/N`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// Maximum number of shards: file systems of clusters are slow with more files in a folder.
pub const MOST_SHARDS: usize = 10_000;

impl Shard {
    /// The whole work as one shard.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Creates shard `index` of `count`, counted from 0.
    ///
    /// # Errors
    /// `count` is 0 or above [`MOST_SHARDS`], or `index` is not below `count`.
    pub fn new(index: usize, count: usize) -> Result<Self, String> {
        if count == 0 || count > MOST_SHARDS {
            return Err(format!("{count} shards; use 1 to {MOST_SHARDS}"));
        }
        if index >= count {
            return Err(format!(
                "shard {} of {count} does not exist; shards are 1 to {count}",
                index + 1
            ));
        }
        Ok(Self { index, count })
    }

    /// The number of the shard, counted from 0.
    pub fn index(self) -> usize {
        self.index
    }

    /// The number of shards.
    pub fn count(self) -> usize {
        self.count
    }

    /// Name of the folder of its rows.
    pub(super) fn folder_name(self) -> String {
        format!("{}-of-{}", self.index + 1, self.count)
    }
}

/// Assigns cells with these keys to `count` shards in turn, and returns the shard of each cell. The order is that of the
/// keys' hashes. In the order of a definition, cells that are alike would be a fixed distance apart, and one shard could
/// get all the large ones.
pub(super) fn deal(keys: &[&str], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_cached_key(|&cell| (sha256(keys[cell].as_bytes()), cell));
    let mut parts = vec![0; keys.len()];
    for (turn, cell) in order.into_iter().enumerate() {
        parts[cell] = turn % count.max(1);
    }
    parts
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((0, _)) => Err("shards are numbered from 1: 1/8 is the first of eight".to_owned()),
            Some((index, count)) => Self::new(index - 1, count),
            None => Err(format!(
                "{text:?} is not a shard; write I/N, such as 3/8 for the third of eight"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn parts_are_written_from_one() {
        for text in ["1/1", "3/8", "10000/10000"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for (text, why) in
            [("0/8", "from 1"), ("9/8", "1 to 8"), ("1/0", "1 to 10000"), ("3", "I/N")]
        {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn parts_are_of_equal_size_and_mix_the_cells() {
        let keys: Vec<String> = (0..64).map(|at| format!("band/n{}-s{}", at % 4, at / 4)).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let parts = deal(&keys, 4);
        for part in 0..4 {
            let own: Vec<usize> = (0..64).filter(|&cell| parts[cell] == part).collect();
            assert_eq!(own.len(), 16);
            let lengths: HashSet<usize> = own.iter().map(|cell| cell % 4).collect();
            assert_eq!(lengths.len(), 4, "part {part}");
        }
    }
}
