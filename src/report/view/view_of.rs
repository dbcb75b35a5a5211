//! What makes a view.

use crate::claims::{Group, Verdict};
use crate::figure::Figure;
use crate::report::analysis::Analysis;
use crate::report::error::ReportError;
use crate::report::measured::MeasuredStudy;
use crate::study::PredictedExponent;
use crate::table::Table;

/// A view of rows that are gathered as `T`: everything that it is.
pub(super) struct ViewOf<T> {
    /// Reads and gathers the rows of studies.
    pub rows: fn(&[MeasuredStudy]) -> Result<T, ReportError>,
    /// The tables, the most telling first.
    pub tables: fn(&T) -> Vec<Table>,
    /// The figures.
    pub figures: fn(&T, &Against) -> Vec<Figure>,
    /// The verdicts on the claims that such rows bear on.
    pub verdicts: fn(&T, &Against) -> Vec<Verdict>,
}

/// What the definitions of all studies hold their rows against.
pub(super) struct Against {
    /// What was predicted.
    pub predicted: Vec<PredictedExponent>,
    /// The names of the baseline runs.
    pub baselines: Vec<String>,
}

/// A view, whatever its rows are gathered as.
pub(super) trait Analyse: Sync {
    /// Analyses studies of the view's kind.
    fn analyse(&self, studies: &[MeasuredStudy], group: Group) -> Result<Analysis, ReportError>;
}

impl<T> Analyse for ViewOf<T> {
    fn analyse(&self, studies: &[MeasuredStudy], group: Group) -> Result<Analysis, ReportError> {
        let rows = (self.rows)(studies)?;
        let mut not_known = Vec::new();
        for study in studies {
            not_known.extend(study.check()?);
        }
        let against = Against {
            predicted: studies.iter().flat_map(|study| study.predicted.clone()).collect(),
            baselines: studies.iter().flat_map(|study| study.baselines.clone()).collect(),
        };
        Ok(Analysis {
            group,
            tables: (self.tables)(&rows)
                .into_iter()
                .filter(|table| !table.rows().is_empty())
                .collect(),
            figures: (self.figures)(&rows, &against)
                .into_iter()
                .flat_map(Figure::in_parts)
                .collect(),
            verdicts: (self.verdicts)(&rows, &against),
            not_known,
        })
    }
}
