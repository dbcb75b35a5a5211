//! The other studies that a definition names: they are defined in files beside its own.

use std::path::{Path, PathBuf};

use toml::Table;

use super::against::Baseline;
use super::preset::Preset;
use super::start::StartsFrom;
use super::study_definition::StudyDefinition;
use super::train::StudyRun;
use super::trained_models::TrainedModels;
use super::work::StudyWork;
use crate::lm::{LmError, ModelShape, Slopes, TrainDefinition};
use crate::study::StudyError;
use crate::system::FileError;
use crate::system::nearest::nearest;

/// Where trained models are.
#[derive(Clone, Debug)]
pub(crate) enum RunSource {
    /// A run of another study, at each of its seeds.
    Study { of: String, run: Box<StudyRun> },
    /// The folder of one run, or of a model from elsewhere.
    Folder(PathBuf),
}

impl StudyDefinition {
    /// Reads a definition from a file, at the size of `preset`, with an eye to the studies that it names.
    ///
    /// # Errors
    /// A file that cannot be read; those of [`StudyDefinition::parse`]; a study that is not defined beside the
    /// file, or a run that it does not have, with the nearest name.
    pub fn read(path: &Path, preset: Preset) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|e| FileError::read(path, e))?;
        for size in Preset::ALL {
            match Self::parse(path, text.clone(), size) {
                Ok(definition) => definition.check_others()?,
                Err(StudyError::Size { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Self::parse(path, text, preset)
    }

    /// Refuses names of studies that are not there, and of runs that they do not have.
    fn check_others(&self) -> Result<(), StudyError> {
        let wrong = |why| StudyError::Definition { path: self.path.clone(), why };
        let check = |[key_of, key_run]: [&str; 2], of: &str, run: &str| {
            let runs = runs_of(of, &self.path, self.preset)
                .map_err(|why| wrong(format!("{key_of} {of:?}: {why}")))?;
            let known: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            check_run(run, &known).map_err(|why| wrong(format!("{key_run} has {why}")))
        };
        if let Some(models) = self.work.trained_models() {
            models.sources()?;
        }
        if let StudyWork::Train(study) = &self.work {
            for run in &study.runs {
                run.source()?;
                let StudyRun { name, teacher: Some(teacher), .. } = run else { continue };
                let key = format!("run {name}: teacher");
                check([&key, &key], &teacher.study, &teacher.run)?;
            }
        }
        if let Some(Baseline { of, runs }) = &self.baseline {
            for run in runs {
                check(["baseline.of", "baseline.runs"], of, run)?;
            }
        }
        Ok(())
    }
}

impl TrainedModels {
    /// Where they are: the runs of other studies as they are defined now, and the folders.
    ///
    /// # Errors
    /// A study that is not defined beside this one or trains nothing, with the nearest name; a run that none of them
    /// has; a step that a run keeps no weights of.
    pub(crate) fn sources(&self) -> Result<Vec<RunSource>, StudyError> {
        self.named().map_err(|why| StudyError::Definition { path: self.path.clone(), why })
    }

    fn named(&self) -> Result<Vec<RunSource>, String> {
        let mut sources: Vec<RunSource> =
            self.folders.iter().cloned().map(RunSource::Folder).collect();
        for of in &self.of {
            let runs = runs_of(of, &self.path, self.preset)
                .map_err(|why| format!("{}.of {of:?}: {why}", self.place))?;
            let source = |run| RunSource::Study { of: of.clone(), run: Box::new(run) };
            sources.extend(runs.into_iter().map(source));
        }
        if !self.runs.is_empty() {
            let known: Vec<&str> = sources.iter().filter_map(RunSource::run).collect();
            for run in &self.runs {
                check_run(run, &known).map_err(|why| format!("{}.runs has {why}", self.place))?;
            }
            sources.retain(|source| {
                source.run().is_none_or(|name| self.runs.iter().any(|run| run == name))
            });
        }
        if !self.seeds.is_empty() {
            for source in &mut sources {
                if let RunSource::Study { run, .. } = source {
                    run.seeds.retain(|seed| self.seeds.contains(seed));
                }
            }
            let has = |source: &RunSource, seed: &u64| match source {
                RunSource::Study { run, .. } => run.seeds.contains(seed),
                RunSource::Folder(_) => false,
            };
            if let Some(seed) =
                self.seeds.iter().find(|seed| !sources.iter().any(|source| has(source, seed)))
            {
                return Err(format!(
                    "{}.seeds has {seed}, which none of these runs uses",
                    self.place
                ));
            }
        }
        for source in &sources {
            source.check(self.place, &self.steps)?;
        }
        Ok(sources)
    }
}

impl RunSource {
    /// The run's name in its study.
    pub(super) fn run(&self) -> Option<&str> {
        match self {
            Self::Study { run, .. } => Some(&run.name),
            Self::Folder(_) => None,
        }
    }

    /// Refuses steps that the run keeps no weights of.
    fn check(&self, place: &str, steps: &[usize]) -> Result<(), String> {
        let Self::Study { of, run } = self else { return Ok(()) };
        steps
            .iter()
            .try_for_each(|&step| check_kept(step, of, run))
            .map_err(|why| format!("{place}.steps has {why}"))
    }
}

/// The run that another begins with the weights of.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The run, as it is defined now.
    pub run: StudyRun,
    /// The step whose weights they are.
    pub step: usize,
}

impl StudyRun {
    /// The run whose weights it begins with; none where it draws them.
    ///
    /// # Errors
    /// A study that is not defined beside this one or trains nothing, or a run that it does not have, with the nearest
    /// name; a seed that the run is not trained at, a step that it keeps no weights of, a model of another shape.
    pub(crate) fn source(&self) -> Result<Option<Source>, StudyError> {
        let Some(start) = &self.start else { return Ok(None) };
        let wrong = |why| StudyError::Definition {
            path: start.path.clone(),
            why: format!("run {}: {why}", self.name),
        };
        start.source_for(self).map(Some).map_err(wrong)
    }
}

impl StartsFrom {
    fn source_for(&self, own: &StudyRun) -> Result<Source, String> {
        let Self { study, run: name, .. } = self;
        let runs = runs_of(study, &self.path, self.preset)
            .map_err(|why| format!("start.study {study:?}: {why}"))?;
        let known: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        let Some(run) = runs.iter().find(|run| run.name == *name) else {
            return Err(format!("start.run is {}", no_such_run(name, &known)));
        };
        if run.starts_from_another() {
            return Err(format!(
                "start.run {name:?} of {study} itself starts from another run; name one that starts from \
                 scratch"
            ));
        }
        if let Some(seed) = own.seeds.iter().find(|seed| !run.seeds.contains(seed)) {
            return Err(format!(
                "start.run {name:?} of {study} has seeds {:?}, not {seed}; add the seed there, or remove \
                 it here",
                run.seeds
            ));
        }
        let step = self.step.unwrap_or(run.definition.steps);
        check_kept(step, study, run).map_err(|why| format!("start.step is {why}"))?;
        self.check_shape(&run.definition, &own.definition).map_err(|e| format!("start: {e}"))?;
        Ok(Source { run: run.clone(), step })
    }

    /// Refuses weights of another shape than the run's, as far as definitions tell: how many symbols a text has, they do not.
    fn check_shape(&self, there: &TrainDefinition, here: &TrainDefinition) -> Result<(), LmError> {
        let [vocabulary, theirs] = [here, there].map(|of| of.vocabulary.to_string());
        if vocabulary != theirs {
            let key = "vocabulary";
            return Err(LmError::OtherShape { key, here: vocabulary, there: theirs });
        }
        let [here, mut there] = [here, there].map(|of| ModelShape::new(of, 0));
        if self.edit.is_some_and(|edit| edit.edit.adds_slopes()) {
            there.slopes = Slopes::Learned;
        }
        here.check_start(&there)
    }
}

/// The steps of a run whose weights are there in the end.
pub(crate) fn kept_steps(definition: &TrainDefinition) -> Vec<usize> {
    let mut kept = definition.keep_checkpoints.clone();
    // Those past the run's last never come.
    kept.retain(|&step| step < definition.steps);
    kept.push(definition.steps);
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Refuses a step that a run of study `of` keeps no weights of.
fn check_kept(step: usize, of: &str, run: &StudyRun) -> Result<(), String> {
    let kept = kept_steps(&run.definition);
    match kept.contains(&step) {
        true => Ok(()),
        false => Err(format!(
            "{step}, but run {} of {of} keeps the weights of steps {kept:?}; add it to keep_checkpoints \
             there",
            run.name
        )),
    }
}

/// The runs of study `of`, defined beside `path`.
fn runs_of(of: &str, path: &Path, preset: Preset) -> Result<Vec<StudyRun>, String> {
    let other = path.with_file_name(format!("{of}.toml"));
    if !other.is_file() {
        let names = studies_beside(path);
        let near = nearest(of, &names.iter().map(String::as_str).collect::<Vec<_>>());
        return Err(format!("no such study in this folder; did you mean {near:?}?"));
    }
    let text = std::fs::read_to_string(&other).map_err(|e| FileError::read(&other, e).to_string());
    match StudyDefinition::parse(&other, text?, preset).map_err(|e| e.to_string())?.work {
        StudyWork::Train(study) => Ok(study.runs),
        _ => Err("is not a study of training runs".to_owned()),
    }
}

/// The names of the studies that are defined beside `path`, its own among them.
fn studies_beside(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    let study = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).ok()?;
        Some(text.parse::<Table>().ok()?.get("study")?.as_str()?.to_owned())
    };
    let definitions = files.filter_map(|file| Some(file.ok()?.path()));
    let is_toml = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "toml");
    definitions.filter(is_toml).filter_map(study).collect()
}

/// Refuses a run that is not among `known`.
fn check_run(run: &str, known: &[&str]) -> Result<(), String> {
    match known.contains(&run) {
        true => Ok(()),
        false => Err(no_such_run(run, known)),
    }
}

fn no_such_run(run: &str, known: &[&str]) -> String {
    format!(
        "{run:?}, and the runs are {}; did you mean {:?}?",
        known.join(", "),
        nearest(run, known)
    )
}
