//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod figure;
mod report;
mod table;
mod target;

pub use figure::{
    Axis, Figure, FigureError, Ink, Key, Marker, Panel, Rgb, Scale, Series, Shape, Stroke, Tick,
    head_kinds, inflation, layouts, logits_needed, training,
};
pub use report::{
    Analysis, AnalysisKind, Header, Picture, ReportError, SEEDS_TO_CONFIRM, Section, Verdict, Word,
    analyse, page, write_whole,
};
pub use table::{
    Align, Cell, Column, Curve, Growth, GrowthCell, GrowthSeed, GrowthSlope, LayoutCell,
    LayoutSeed, Layouts, Rows, RunLog, Slope, Spread, Table, TableError, TrainingRun, Trainings,
    plural, significant,
};
pub use target::{HeadKind, Layout, Target, TargetError, Visibility};
