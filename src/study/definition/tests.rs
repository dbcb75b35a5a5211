//! Every definition that comes with the project, at every size, and which sizes a study has.

use super::*;
use crate::lm::TrainDefinition;
use crate::report::AnalysisKind;
use crate::study::Plan;

const PRESETS: [Preset; 2] = [Preset::Quick, Preset::Paper];

/// The files of `analysis/` that are definitions, with their keys.
fn files() -> Vec<(PathBuf, Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let keys = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.parse::<Table>().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.into_iter().map(|path| (path.clone(), keys(&path))).collect()
}

/// A study that reads at one size may name runs, views or studies that there are at another only.
#[test]
fn every_definition_that_comes_with_the_project_reads_at_every_size() {
    let data = tempfile::tempdir().unwrap();
    let (mut wrong, mut read) = (Vec::new(), [0; 2]);
    for (path, keys) in files() {
        if !keys.contains_key("study") {
            let text = std::fs::read_to_string(&path).unwrap();
            let why = TrainDefinition::from_toml(&text).err();
            wrong.extend(why.map(|why| format!("{}: {why}", path.display())));
            continue;
        }
        for (preset, read) in PRESETS.into_iter().zip(&mut read) {
            match problem(&path, preset, data.path()) {
                Ok(()) => *read += 1,
                Err(StudyError::Size { preset: Preset::Quick, .. }) => {}
                Err(error) => wrong.push(format!("at the size {preset}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read[0] >= 12 && read[1] >= 18, "{read:?} studies of the sizes {PRESETS:?}");
}

/// What keeps a study from being measured and reported at a size.
fn problem(path: &Path, preset: Preset, data: &Path) -> Result<(), StudyError> {
    let wrong = |why: String| Err(StudyError::Definition { path: path.to_owned(), why });
    let definition = StudyDefinition::read(path, preset)?;
    if path.file_stem() != Some(definition.study.as_ref()) {
        return wrong(format!("its study is {:?}, found by another name", definition.study));
    }
    if let Err(error) = definition.view.parse::<AnalysisKind>() {
        return wrong(format!("view: {error}"));
    }
    if Plan::new(&definition, data, None, None, None)?.cells().count() == 0 {
        return wrong("has no cells".to_owned());
    }
    for (study, run) in named_runs(&definition) {
        let of = StudyDefinition::read(&path.with_file_name(format!("{study}.toml")), preset)?;
        let StudyWork::Train(of) = of.work else { return wrong(format!("{study} trains nothing")) };
        if !of.runs.iter().any(|other| other.name == run) {
            return wrong(format!("{study} has no run {run}"));
        }
    }
    Ok(())
}

/// The runs of other studies that a study of training runs names: teachers, and what its own are held against.
fn named_runs(definition: &StudyDefinition) -> Vec<(String, String)> {
    let StudyWork::Train(study) = &definition.work else { return Vec::new() };
    let teachers = study.runs.iter().filter_map(|run| run.teacher.as_ref());
    let mut named: Vec<(String, String)> =
        teachers.map(|teacher| (teacher.study.clone(), teacher.run.clone())).collect();
    let keys: Table = definition.text.parse().unwrap();
    if let Some(baseline) = keys.get("baseline") {
        let of = baseline["of"].as_str().unwrap();
        let runs = baseline["runs"].as_array().unwrap();
        named.extend(runs.iter().map(|run| (of.to_owned(), run.as_str().unwrap().to_owned())));
    }
    named
}

const RUNS: &str = "study = 'runs'\nkind = 'train'\n[[run]]\nname = 'a'\n";

#[test]
fn a_study_has_the_quick_size_where_it_makes_or_names_it() {
    let read = |text: String| StudyDefinition::parse(Path::new("runs.toml"), text, Preset::Quick);
    for text in [
        format!("{RUNS}[quick]"),
        format!("{RUNS}[quick.train]\nsteps = 2"),
        format!("presets = ['quick']\n{RUNS}"),
    ] {
        assert_eq!(read(text).unwrap().preset, Preset::Quick);
    }
    for text in [RUNS.to_owned(), format!("presets = ['paper']\n{RUNS}")] {
        let error = read(text).unwrap_err();
        assert!(matches!(&error, StudyError::Size { study, .. } if study == "runs"), "{error}");
        assert!(error.to_string().ends_with("ask for --preset paper"), "{error}");
    }
}

/// Runs of a study at the paper's size are none of a quick study's.
#[test]
fn a_quick_study_of_trained_heads_is_of_quick_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parts.toml");
    let parts = "study = 'parts'\nkind = 'predict'\npresets = ['quick', 'paper']\n[predict]\nof = ['runs']\n\
                 epsilon = [0.1]\n";
    std::fs::write(&path, parts).unwrap();
    let of = path.with_file_name("runs.toml");
    std::fs::write(&of, RUNS).unwrap();
    StudyDefinition::read(&path, Preset::Paper).unwrap();
    let error = StudyDefinition::read(&path, Preset::Quick).unwrap_err().to_string();
    assert!(error.contains("predict.of \"runs\"") && error.contains("no quick size"), "{error}");
    std::fs::write(&of, format!("{RUNS}[[quick.run]]\nname = 'b'\n")).unwrap();
    let quick = StudyDefinition::read(&path, Preset::Quick).unwrap();
    let StudyWork::Predict(quick) = quick.work else { panic!("another kind of study") };
    let names: Vec<String> = quick.sources.iter().filter_map(RunSource::run).collect();
    assert_eq!(names, ["b"]);
}
