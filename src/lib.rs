//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod table;
mod target;

pub use table::{
    Align, Cell, Column, Growth, GrowthCell, GrowthSeed, GrowthSlope, LayoutCell, LayoutSeed,
    Layouts, Rows, Slope, Spread, Table, TableError, significant,
};
pub use target::{HeadKind, Layout, Target, TargetError, Visibility};
