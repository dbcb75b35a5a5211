//! Shards: equal parts of the work, for machines that share nothing but files.
//!
//! The definition alone determines the shard of each cell, not the cells already done. Every task divides all cells by
//! their estimated costs, and gets the same shards whenever it starts.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
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

/// Environment variables of a scheduler that give the number of a task in a job array.
struct Scheduler {
    name: &'static str,
    /// Variable with the task's number.
    task: &'static str,
    /// Variables with the numbers of the first and last task and the step between tasks.
    range: Option<[&'static str; 3]>,
    /// Number of the first task, if no variable gives it.
    begins_at: usize,
}

/// Supported schedulers, in the order in which their variables are checked.
const SCHEDULERS: [Scheduler; 5] = [
    Scheduler {
        name: "Slurm",
        task: "SLURM_ARRAY_TASK_ID",
        range: Some(["SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"]),
        begins_at: 0,
    },
    Scheduler {
        name: "Grid Engine",
        task: "SGE_TASK_ID",
        range: Some(["SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"]),
        begins_at: 1,
    },
    Scheduler { name: "PBS", task: "PBS_ARRAY_INDEX", range: None, begins_at: 1 },
    Scheduler { name: "LSF", task: "LSB_JOBINDEX", range: None, begins_at: 1 },
    Scheduler { name: "Kubernetes", task: "JOB_COMPLETION_INDEX", range: None, begins_at: 0 },
];

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

    /// Reads the shard from a scheduler's variables, and returns it with the name of the variable; `None` if none is
    /// set. `variable` reads one variable.
    ///
    /// # Errors
    /// A variable is not a number, or the number of tasks is unknown.
    pub fn of_task(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<(Self, &'static str)>, String> {
        // Grid Engine sets the variable to this in jobs without an array.
        let set =
            |name: &str| variable(name).filter(|value| !value.is_empty() && value != "undefined");
        for Scheduler { name, task, range, begins_at } in &SCHEDULERS {
            let Some(value) = set(task) else { continue };
            let number = |name: &str, value: &str| {
                value.parse::<usize>().map_err(|_| format!("{name} is {value:?}, not a number"))
            };
            let number_of = number(task, &value)?;
            let read = |name: &&str| set(name).map(|value| number(name, &value)).transpose();
            let [first, last, step] = match range {
                Some(names) => [read(&names[0])?, read(&names[1])?, read(&names[2])?],
                None => [None; 3],
            };
            let (Some(first), Some(last), step) = (first, last, step.unwrap_or(1).max(1)) else {
                // LSF counts from 1, and sets 0 in jobs without an array.
                if number_of < *begins_at {
                    continue;
                }
                return Err(format!(
                    "{task} is {number_of}, but {name} does not give the number of tasks; give --shard \
                     {}/N, or --shard 1/1 for all",
                    number_of - begins_at + 1
                ));
            };
            let counted = variable("SLURM_ARRAY_TASK_COUNT").filter(|_| *name == "Slurm");
            let count = last.saturating_sub(first) / step + 1;
            let is_even = number_of >= first
                && (number_of - first) % step == 0
                && counted.is_none_or(|counted| counted == count.to_string());
            if !is_even {
                return Err(format!(
                    "{task} is {number_of} of an array that is not evenly spaced; name the shard: --shard \
                     I/N"
                ));
            }
            return Self::new((number_of - first) / step, count).map(|shard| Some((shard, *task)));
        }
        Ok(None)
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
    let mut loads: BinaryHeap<Reverse<(Load, usize)>> =
        (0..count.max(1)).map(|part| Reverse((Load(0.0), part))).collect();
    let mut parts = vec![0; costs.len()];
    for cell in order {
        let Some(Reverse((Load(load), part))) = loads.pop() else { break };
        parts[cell] = part;
        loads.push(Reverse((Load(load + costs[cell].max(0.0)), part)));
    }
    parts
}

/// Seconds, with a total order.
#[derive(Clone, Copy, PartialEq)]
struct Load(f64);

impl Eq for Load {}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn of_task(variables: &[(&str, &str)]) -> Result<Option<(usize, usize)>, String> {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        let found = Shard::of_task(|name| variables.get(name).map(|&v| v.to_owned()))?;
        Ok(found.map(|(shard, _)| (shard.index(), shard.count())))
    }

    #[test]
    fn schedulers_say_which_part_a_task_is() {
        let slurm = |id, least, most, step, count| {
            of_task(&[
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", least),
                ("SLURM_ARRAY_TASK_MAX", most),
                ("SLURM_ARRAY_TASK_STEP", step),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ])
        };
        assert_eq!(slurm("0", "0", "3", "1", "4"), Ok(Some((0, 4))));
        assert_eq!(slurm("7", "1", "9", "2", "5"), Ok(Some((3, 5))));
        // For --array=3,7, Slurm does not report the number of shards.
        assert!(slurm("7", "3", "7", "1", "2").unwrap_err().contains("--shard I/N"));
        let grid = [("SGE_TASK_ID", "4"), ("SGE_TASK_FIRST", "2"), ("SGE_TASK_LAST", "8")];
        assert_eq!(of_task(&[&grid[..], &[("SGE_TASK_STEPSIZE", "2")]].concat()), Ok(Some((1, 4))));
        assert_eq!(of_task(&[("SGE_TASK_ID", "undefined")]), Ok(None));
        assert_eq!(of_task(&[("LSB_JOBINDEX", "0")]), Ok(None));
        assert_eq!(of_task(&[]), Ok(None));
        for (name, value, part) in
            [("JOB_COMPLETION_INDEX", "0", "1/N"), ("PBS_ARRAY_INDEX", "3", "3/N")]
        {
            let error = of_task(&[(name, value)]).unwrap_err();
            assert!(error.contains(&format!("--shard {part}")), "{error}");
        }
        assert!(of_task(&[("SLURM_ARRAY_TASK_ID", "x")]).unwrap_err().contains("not a number"));
    }

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
