//! What a definition asks for at one size.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::against::{Baseline, PredictedExponent, baseline, predicted};
use super::expected::{self, Expected};
use super::kind::Kind;
use super::preset::Preset;
use super::work::StudyWork;
use super::{concentration, fit, keys, latency, lattice, predict, ramp, spectrum, surgery, train};

/// The keys of a definition.
#[derive(Deserialize)]
pub(super) struct Top {
    pub study: String,
    pub kind: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub question: String,
    pub view: Option<String>,
    #[serde(default)]
    pub presets: Vec<String>,
    grid: Option<Table>,
    search: Option<Table>,
    target: Option<Vec<Table>>,
    train: Option<Table>,
    run: Option<Vec<Table>>,
    predict: Option<Table>,
    ramp: Option<Table>,
    concentration: Option<Table>,
    lattice: Option<Table>,
    surgery: Option<Table>,
    #[serde(default)]
    expected: Vec<Table>,
    predicted: Option<Table>,
    baseline: Option<Table>,
    pub text: Option<String>,
    #[expect(dead_code, reason = "read by its name")]
    quick: Option<Table>,
    #[expect(dead_code, reason = "read by its name")]
    smoke: Option<Table>,
}

/// What of a definition may differ between sizes.
pub(super) struct Size {
    pub work: StudyWork,
    pub expected: Vec<Expected>,
    pub predicted: Vec<PredictedExponent>,
    pub baseline: Option<Baseline>,
}

impl Size {
    /// What `top` asks for at the size of `preset`; `path` is the definition's file.
    ///
    /// # Errors
    /// In words, a table that studies of this kind do not take, an unknown key, a value that its key cannot take.
    pub fn read(top: &Top, kind: Kind, path: &Path, preset: Preset) -> Result<Self, String> {
        top.check_tables(kind)?;
        let nothing = Table::new();
        let search = top.search.as_ref().unwrap_or(&nothing);
        let train = top.train.as_ref().unwrap_or(&nothing);
        let target = top.target.as_deref().unwrap_or_default();
        let run = top.run.as_deref().unwrap_or_default();
        let grid = top.grid.as_ref();
        let mut of_arms = Vec::new();
        let work = match kind {
            Kind::Fit => StudyWork::Fit(Box::new(fit::read(grid, search, target)?)),
            Kind::Train => {
                let study = train::read(train, run, path, preset)?;
                if let Some(table) = &top.predicted {
                    of_arms = predicted(table, &study)?;
                }
                StudyWork::Train(study)
            }
            Kind::Spectrum => StudyWork::Spectrum(spectrum::read(grid, target)?),
            Kind::Latency => StudyWork::Latency(latency::read(grid, train, run, path, preset)?),
            Kind::Lattice => {
                let lattice = top.lattice.as_ref();
                StudyWork::Lattice(Box::new(lattice::read(lattice, search, path, preset)?))
            }
            Kind::Predict => {
                let predict = top.predict.as_ref();
                StudyWork::Predict(Box::new(predict::read(predict, search, path, preset)?))
            }
            Kind::Ramp => StudyWork::Ramp(ramp::read(top.ramp.as_ref(), path, preset)?),
            Kind::Concentration => {
                let table = top.concentration.as_ref();
                StudyWork::Concentration(concentration::read(table, path, preset)?)
            }
            Kind::Surgery => {
                let surgery = top.surgery.as_ref();
                StudyWork::Surgery(Box::new(surgery::read(surgery, search, path, preset)?))
            }
        };
        Ok(Self {
            work,
            expected: expected::read(&top.expected, kind)?,
            predicted: of_arms,
            baseline: top.baseline.as_ref().map(baseline).transpose()?,
        })
    }
}

impl Top {
    /// The keys of a definition in `table`.
    ///
    /// # Errors
    /// In words, an unknown key or a value of another kind than its key's.
    pub fn read(table: &Table) -> Result<Self, String> {
        keys::read(table, "")
    }

    /// Refuses tables that a study of this kind would do nothing with.
    fn check_tables(&self, kind: Kind) -> Result<(), String> {
        let given = [
            ("grid", self.grid.is_some()),
            ("search", self.search.is_some()),
            ("target", self.target.is_some()),
            ("train", self.train.is_some()),
            ("run", self.run.is_some()),
            ("predict", self.predict.is_some()),
            ("ramp", self.ramp.is_some()),
            ("concentration", self.concentration.is_some()),
            ("lattice", self.lattice.is_some()),
            ("surgery", self.surgery.is_some()),
            ("predicted", self.predicted.is_some()),
            ("baseline", self.baseline.is_some()),
        ];
        let taken = kind.tables();
        match given.iter().find(|(name, is_given)| *is_given && !taken.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(format!(
                "{name} is not used by a study of kind {kind}, which takes only {}; leave it out",
                taken.join(", ")
            )),
        }
    }
}
