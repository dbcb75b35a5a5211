//! Tables of this experiment.

pub mod run_course;
pub mod run_courses;
pub mod run_log;
pub mod training;
pub mod variants;
