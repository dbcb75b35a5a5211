//! Stages: the order in which cells can be measured, after their prerequisites; and the division of stages into shards.

use std::collections::HashSet;

use super::StudyError;
use super::plan::Plan;
use super::shard::{Shard, deal};
use crate::experiment::{Cell, Needs};

/// The cells of some studies by stage. Cells of a stage need only cells of earlier stages.
///
/// The definitions alone determine cells, stages and shards, not the cells already done. So every task of a job gets
/// the same result, whenever it starts.
pub struct Stages {
    plans: Vec<Plan>,
    /// Stage of each cell, counted from 0, by plan and cell.
    stage_of: Vec<Vec<usize>>,
}

/// One stage of the work, divided into shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Shard of each cell, counted from 0.
    pub parts: Vec<usize>,
    /// Number of cells left in each shard.
    pub left: Vec<usize>,
}

impl Stages {
    /// Divides plans into stages; the plans must include all prerequisites. Several plans of one study are joined.
    ///
    /// # Errors
    /// Rows of shards cannot be read.
    pub fn of(plans: Vec<Plan>) -> Result<Self, StudyError> {
        let mut all: Vec<Plan> = Vec::new();
        for plan in plans {
            match all.iter_mut().find(|other| other.name() == plan.name()) {
                Some(other) => other.add(plan),
                None => all.push(plan),
            }
        }
        all.iter_mut().try_for_each(Plan::look_into_parts)?;
        // Runs whose rows exist are made again if cells that are left need their files, and these are missing.
        let lacking: Vec<Needs> = all.iter().flat_map(Plan::lacking).collect();
        all.iter_mut().for_each(|plan| plan.measure_again(&lacking));
        Ok(Self { stage_of: stages(&all), plans: all })
    }

    /// The whole plans; a plan comes after those that it needs.
    pub fn into_plans(self) -> Vec<Plan> {
        self.plans
    }

    /// The number of stages.
    pub fn count(&self) -> usize {
        self.stage_of.iter().flatten().max().map_or(0, |last| last + 1)
    }

    /// Returns a stage, divided into `parts` shards.
    pub fn stage(&self, stage: usize, parts: usize) -> Stage {
        let cells = self.cells_of(stage);
        let key = |&(plan, cell): &(usize, usize)| &*self.plans[plan].cells[cell].key;
        let dealt = deal(&cells.iter().map(key).collect::<Vec<_>>(), parts);
        let mut left = vec![0; parts];
        for (&(plan, cell), &part) in cells.iter().zip(&dealt) {
            let plan = &self.plans[plan];
            left[part] += usize::from(!plan.is_done(&plan.cells[cell]));
        }
        Stage { parts: dealt, left }
    }

    /// Returns the plans of one shard by stage; plans without cells are left out.
    ///
    /// # Errors
    /// Rows of the shard cannot be read.
    pub fn into_part(self, shard: Shard) -> Result<Vec<Vec<Plan>>, StudyError> {
        let own = |stage: usize| {
            let Stage { parts, .. } = self.stage(stage, shard.count());
            let mut keys = vec![HashSet::new(); self.plans.len()];
            for ((plan, cell), part) in self.cells_of(stage).into_iter().zip(parts) {
                if part == shard.index() {
                    keys[plan].insert(self.plans[plan].cells[cell].key.clone());
                }
            }
            keys
        };
        let keys: Vec<Vec<HashSet<String>>> = (0..self.count()).map(own).collect();
        let stages = keys.into_iter().map(|keys| {
            let plans = self.plans.iter().zip(&keys).filter(|(_, keys)| !keys.is_empty());
            plans.map(|(plan, keys)| plan.part(shard, keys)).collect()
        });
        stages.collect()
    }

    /// Cells of a stage, as indices of plan and cell.
    fn cells_of(&self, stage: usize) -> Vec<(usize, usize)> {
        let of_plan = |(plan, stages): (usize, &Vec<usize>)| {
            let cells = stages.iter().enumerate().filter(move |(_, of)| **of == stage);
            cells.map(move |(cell, _)| (plan, cell)).collect::<Vec<_>>()
        };
        self.stage_of.iter().enumerate().flat_map(of_plan).collect()
    }
}

/// The stage of each cell: 1 if one of these plans has the training run that it needs, otherwise 0.
fn stages(plans: &[Plan]) -> Vec<Vec<usize>> {
    let runs: HashSet<(&str, &str)> = plans
        .iter()
        .flat_map(|plan| {
            plan.cells.iter().map(|cell| (plan.definition.study.as_str(), cell.key.as_str()))
        })
        .collect();
    let stage = |cell: &Cell| {
        let needs = cell.needs.as_ref();
        usize::from(needs.is_some_and(|needs| runs.contains(&(&*needs.study, &*needs.cell))))
    };
    plans.iter().map(|plan| plan.cells.iter().map(stage).collect()).collect()
}
