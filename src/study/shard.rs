//! Shards: equal parts of the work, for machines that share nothing but files.
//!
//! The definition alone determines the shard of each cell, not the cells already done. Every task divides all cells by
//! their estimated costs, and gets the same shards whenever it starts.

use std::fmt;
use std::str::FromStr;

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

/// Assigns cells with these costs to `count` shards, and returns the shard of each cell. The most expensive cell comes
/// first, each goes to the shard with the least work, and ties go to the first cell and shard. This is longest
/// processing time first: at most 4/3 of the optimal makespan (Graham 1969, SIAM J. Appl. Math. 17, theorem 2).
pub fn deal(costs: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(a.cmp(&b)));
    let mut loads = vec![0.0_f64; count.max(1)];
    let mut parts = vec![0; costs.len()];
    for cell in order {
        let least = (0..loads.len()).min_by(|&a, &b| loads[a].total_cmp(&loads[b]));
        parts[cell] = least.unwrap_or(0);
        loads[parts[cell]] += costs[cell].max(0.0);
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
    use proptest::prelude::*;

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

    proptest! {
        /// Every cell belongs to one shard, and the makespan is at most (2 − 1/count) times a lower bound that holds
        /// for any assignment.
        #[test]
        fn parts_end_together(costs in prop::collection::vec(0.0..100.0f64, 0..60), count in 1usize..9) {
            let parts = deal(&costs, count);
            prop_assert!(parts.len() == costs.len() && parts.iter().all(|&part| part < count));
            let load = |part| costs.iter().zip(&parts).filter(|(_, p)| **p == part).map(|(c, _)| c).sum::<f64>();
            let makespan = (0..count).map(load).fold(0.0, f64::max);
            // Lower bounds of any makespan: the mean, the largest cost, and the two smallest of the count + 1 largest
            // costs together.
            let mut sorted = costs.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let mean = costs.iter().sum::<f64>() / count as f64;
            let pair = sorted.get(count - 1..=count).map_or(0.0, |two| two.iter().sum());
            let dearest = sorted.first().copied().unwrap_or(0.0);
            let least = mean.max(dearest).max(pair);
            // Greedy list scheduling is within 2 − 1/m of the larger of the mean and the largest cost (Graham 1966).
            prop_assert!(makespan <= (2.0 - 1.0 / count as f64) * least + 1e-9, "{makespan} {least}");
        }
    }
}
