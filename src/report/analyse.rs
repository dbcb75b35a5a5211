//! One study's rows into its tables, figures and verdicts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::figure::{self, Figure, FigureError};
use crate::judge::{self, Verdict, predicted};
use crate::pattern::nearest::nearest;
use crate::row::{Rows, RowsError};
use crate::study::StudyError;
use crate::table::{
    Growth, Latencies, Layouts, Spectra, Table, TableError, TrainedHeads, Trainings,
};

/// What a study's rows are to be made into: its definition's key `view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalysisKind {
    /// L*(ε) against n/d: fits with a tolerance.
    LogitGrowth,
    /// Error against cap: fits with caps, in several layouts.
    Layouts,
    /// Loss and logits against step: trainings.
    Training,
    /// Inflation over w/d and n/d: fits with a tolerance.
    Phase,
    /// Inflation of a target and of its controls: fits with a tolerance.
    Controls,
    /// Error against cap, family by family: fits with caps.
    Frontiers,
    /// Error against the local head's window: fits with caps.
    WindowRule,
    /// Singular values and effective ranks.
    Spectra,
    /// Every arm side by side: trainings.
    Arms,
    /// Perplexity against window and number of global heads: trainings.
    Ablation,
    /// Loss against the share of recall: trainings.
    Dial,
    /// Times of inference.
    Latency,
    /// What the logits of trained heads are made of, against step.
    Decomposition,
    /// Needed against actual logits, head by head.
    Prediction,
    /// What wider heads would have needed with the same inputs.
    Ranks,
    /// Runs that differ from a baseline in one thing each: trainings.
    Interventions,
}

impl AnalysisKind {
    const NAMES: [(&'static str, Self); 16] = [
        ("spectra", Self::Spectra),
        ("frontiers", Self::Frontiers),
        ("logit-growth", Self::LogitGrowth),
        ("phase", Self::Phase),
        ("controls", Self::Controls),
        ("layouts", Self::Layouts),
        ("window-rule", Self::WindowRule),
        ("training", Self::Training),
        ("arms", Self::Arms),
        ("ablation", Self::Ablation),
        ("dial", Self::Dial),
        ("latency", Self::Latency),
        ("decomposition", Self::Decomposition),
        ("prediction", Self::Prediction),
        ("ranks", Self::Ranks),
        ("interventions", Self::Interventions),
    ];
}

impl AnalysisKind {
    /// Where such a study stands in a report: targets first, then fits, then trainings.
    pub fn place(self) -> usize {
        Self::NAMES.iter().position(|(_, kind)| *kind == self).unwrap_or(Self::NAMES.len())
    }
}

impl fmt::Display for AnalysisKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for AnalysisKind {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, kind)| *kind).ok_or_else(|| ReportError::UnknownAnalysis {
            found: text.to_owned(),
            nearest: nearest(text, &Self::NAMES.map(|(name, _)| name)),
        })
    }
}

/// Why a study could not be analysed or its report written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A name of an analysis that there is not.
    #[error("unknown analysis {found:?}; did you mean {nearest:?}?")]
    UnknownAnalysis {
        /// The name as given.
        found: String,
        /// The valid name that reads most like it.
        nearest: String,
    },
    /// Rows that cannot be read or tabulated.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A figure that cannot be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A manifest that cannot be read.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A file that cannot be written.
    #[error("cannot write {}: {source}; nothing was left half-written", path.display())]
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a study's rows came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The tables, the most telling first.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims that such a study bears on.
    pub verdicts: Vec<Verdict>,
}

/// Analyses the studies of one kind whose rows are in the folders `studies`, which lie side by side.
///
/// # Errors
/// Rows that are missing, torn or of another kind of study, with file, line and what to do.
pub fn analyse(studies: &[PathBuf], kind: AnalysisKind) -> Result<Analysis, ReportError> {
    let data = studies.first().and_then(|study| study.parent()).unwrap_or(Path::new(""));
    Ok(match kind {
        AnalysisKind::LogitGrowth => {
            let growth = Growth::of(&Rows::read(studies)?)?;
            Analysis {
                tables: growth.tables(),
                figures: vec![figure::inflation(&growth), figure::logits_needed(&growth)],
                verdicts: judge::growth::growth(&growth),
            }
        }
        AnalysisKind::Layouts => {
            let layouts = Layouts::of(&Rows::read(studies)?)?;
            Analysis {
                tables: layouts.tables(),
                figures: vec![figure::layouts(&layouts)],
                verdicts: vec![judge::layouts::layouts(&layouts)],
            }
        }
        AnalysisKind::Training => {
            let trainings = Trainings::of(data, &Rows::read(studies)?)?;
            Analysis {
                tables: trainings.tables(),
                // Curves of several lengths in one panel would lie over each other.
                figures: match trainings.contexts().len() {
                    0 | 1 => [figure::training(&trainings)]
                        .into_iter()
                        .chain(figure::head_kinds(&trainings))
                        .collect(),
                    _ => figure::by_context(&trainings),
                },
                verdicts: {
                    let mut expected = Vec::new();
                    for study in studies {
                        expected.extend(predicted::exponents(study)?);
                    }
                    let mut verdicts = judge::training::training(&trainings);
                    verdicts.extend(judge::exponent::exponent(&trainings, &expected));
                    verdicts
                },
            }
        }
        AnalysisKind::Phase => {
            let growth = Growth::of(&Rows::read(studies)?)?;
            Analysis {
                tables: growth.tables(),
                figures: vec![figure::phase(&growth)],
                verdicts: vec![],
            }
        }
        AnalysisKind::Controls => {
            let growth = Growth::of(&Rows::read(studies)?)?;
            Analysis {
                tables: growth.tables(),
                figures: vec![figure::inflation(&growth)],
                verdicts: vec![judge::controls::controls(&growth)],
            }
        }
        AnalysisKind::Frontiers => {
            let frontiers = Layouts::of(&Rows::read(studies)?)?;
            Analysis {
                tables: frontiers.tables(),
                figures: vec![figure::frontiers(&frontiers)],
                verdicts: vec![],
            }
        }
        AnalysisKind::WindowRule => {
            let windows = Layouts::of(&Rows::read(studies)?)?;
            Analysis {
                tables: windows.window_tables(),
                figures: figure::window_rule(&windows),
                verdicts: vec![],
            }
        }
        AnalysisKind::Spectra => {
            let spectra = Spectra::of(&Rows::read(studies)?)?;
            Analysis {
                tables: spectra.tables(),
                figures: figure::spectra(&spectra),
                verdicts: vec![],
            }
        }
        AnalysisKind::Arms => {
            let trainings = Trainings::of(data, &Rows::read(studies)?)?;
            Analysis {
                tables: trainings.tables(),
                figures: figure::arms(&trainings),
                verdicts: judge::arms::arms(&trainings),
            }
        }
        AnalysisKind::Ablation => {
            let trainings = Trainings::of_rows(&Rows::read(studies)?)?;
            Analysis {
                tables: trainings.tables(),
                figures: vec![figure::ablation(&trainings)],
                verdicts: vec![],
            }
        }
        AnalysisKind::Dial => {
            let trainings = Trainings::of_rows(&Rows::read(studies)?)?;
            Analysis {
                tables: trainings.tables(),
                figures: vec![figure::dial(&trainings)],
                verdicts: vec![judge::arms::dial(&trainings)],
            }
        }
        AnalysisKind::Decomposition => {
            let heads = TrainedHeads::of(&Rows::read(studies)?)?;
            Analysis {
                tables: heads.tables(),
                figures: figure::decomposition(&heads).into_iter().collect(),
                verdicts: vec![judge::heads::growth(&heads)],
            }
        }
        AnalysisKind::Prediction => {
            let heads = TrainedHeads::of(&Rows::read(studies)?)?;
            Analysis {
                tables: heads.tables(),
                figures: figure::prediction(&heads),
                verdicts: vec![judge::heads::ordering(&heads)],
            }
        }
        AnalysisKind::Ranks => {
            let heads = TrainedHeads::of(&Rows::read(studies)?)?;
            Analysis {
                tables: vec![heads.ranks_table(), heads.parts_table()],
                figures: figure::ranks(&heads).into_iter().collect(),
                verdicts: vec![judge::heads::given_inputs(&heads)],
            }
        }
        AnalysisKind::Interventions => {
            let mut all = studies.to_vec();
            let mut runs = Vec::new();
            for study in studies {
                let baseline = predicted::baseline(study)?;
                all.extend(baseline.folder);
                runs.extend(baseline.runs);
            }
            let mut trainings = Trainings::of(data, &Rows::read(&all)?)?;
            trainings.keep(studies, &runs);
            Analysis {
                tables: trainings.tables(),
                figures: vec![figure::interventions(&trainings, &runs)],
                verdicts: vec![judge::interventions::interventions(&trainings, &runs)],
            }
        }
        AnalysisKind::Latency => {
            let latencies = Latencies::of(&Rows::read(studies)?)?;
            Analysis {
                tables: latencies.tables(),
                figures: vec![figure::latency(&latencies)],
                verdicts: vec![judge::latency::latency(&latencies)],
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyses_read_back_and_a_slip_names_the_nearest() {
        for (name, kind) in AnalysisKind::NAMES {
            assert_eq!(name.parse::<AnalysisKind>().unwrap(), kind);
            assert_eq!(kind.to_string(), name);
        }
        let error = "layout".parse::<AnalysisKind>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"layouts\""), "{error}");
    }
}
