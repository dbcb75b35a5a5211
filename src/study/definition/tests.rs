//! Tests of all definitions in the repository, for every preset, and of the presets that a study has.

use std::path::{Path, PathBuf};

use toml::Table;

use super::*;
use crate::experiment::{Preset, StudyError};
use crate::experiments::heads::PredictStudy;
use crate::experiments::training::TrainStudy;
use crate::lm::TrainDefinition;
use crate::study::Plan;

/// Returns the definition files in `analysis/`, with their keys.
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

/// Reading a study alone is not enough: it may refer to runs, views or studies that exist only for another preset.
#[test]
fn every_definition_that_comes_with_the_project_reads_at_every_size() {
    let data = tempfile::tempdir().unwrap();
    let (mut wrong, mut read) = (Vec::new(), [0; 3]);
    for (path, keys) in files() {
        if !keys.contains_key("study") {
            let text = std::fs::read_to_string(&path).unwrap();
            let why = TrainDefinition::from_toml(&text).err();
            wrong.extend(why.map(|why| format!("{}: {why}", path.display())));
            continue;
        }
        for (preset, read) in Preset::ALL.into_iter().zip(&mut read) {
            match problem(&path, preset, data.path()) {
                Ok(()) => *read += 1,
                Err(StudyError::Size { preset: Preset::Quick | Preset::Smoke, .. }) => {}
                Err(error) => wrong.push(format!("at the size {preset}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        read[0] >= 18 && read[1] >= 4 && read[2] >= 12,
        "{read:?} studies of the sizes {:?}",
        Preset::ALL
    );
}

/// Returns the error that prevents a study from being measured and reported for a preset.
fn problem(path: &Path, preset: Preset, data: &Path) -> Result<(), StudyError> {
    let wrong = |why: String| Err(StudyError::Definition { path: path.to_owned(), why });
    let definition = StudyDefinition::read(path, preset)?;
    if path.file_stem() != Some(definition.study.as_ref()) {
        return wrong(format!("its study is {:?}, found by another name", definition.study));
    }
    if definition.view.is_none() {
        return wrong("has no view".to_owned());
    }
    // Models fetched to runs/ may be missing here, and need texts.
    if definition.work.measures_models && definition.text.contains("\"runs/") {
        return Ok(());
    }
    if Plan::new(&definition, data, None, None, None)?.cells().count() == 0 {
        return wrong("has no cells".to_owned());
    }
    Ok(())
}

const RUNS: &str = "study = 'runs'\nkind = 'train'\n[[run]]\nname = 'a'\n";

#[test]
fn a_study_has_a_smaller_size_where_it_makes_or_names_it() {
    let read = |text: String| StudyDefinition::parse(Path::new("runs.toml"), text, Preset::Quick);
    for text in [
        format!("{RUNS}[quick]"),
        format!("{RUNS}[quick.train]\nsteps = 2"),
        format!("presets = ['quick']\n{RUNS}"),
    ] {
        assert_eq!(read(text.clone()).unwrap().preset, Preset::Quick);
        let smoke = StudyDefinition::parse(
            Path::new("runs.toml"),
            text.replace("quick", "smoke"),
            Preset::Smoke,
        );
        assert_eq!(smoke.unwrap().preset, Preset::Smoke);
        let other = StudyDefinition::parse(Path::new("runs.toml"), text, Preset::Smoke);
        assert!(matches!(other, Err(StudyError::Size { .. })), "{other:?}");
    }
    for text in [RUNS.to_owned(), format!("presets = ['paper']\n{RUNS}")] {
        let error = read(text).unwrap_err();
        assert!(matches!(&error, StudyError::Size { study, .. } if study == "runs"), "{error}");
        assert!(error.to_string().ends_with("use the size paper"), "{error}");
    }
}

#[test]
fn a_list_for_a_key_of_one_value_makes_a_run_per_combination() {
    let text = "study = 'runs'\nkind = 'train'\n[[run]]\nname = 'a'\nlearning_rate = [1e-3, 1e-2]\npositions = ['rope', \
                'learned']\nbetas = [0.9, 0.95]\nseed = [1, 2]\n";
    let read = |text: String| StudyDefinition::parse(Path::new("runs.toml"), text, Preset::Paper);
    let study = read(text.to_owned()).unwrap();
    let study: &TrainStudy = study.work.get().unwrap();
    let found: Vec<(&str, f64)> =
        study.runs.iter().map(|run| (&*run.name, run.definition.learning_rate)).collect();
    let expected = [
        ("a-0.001-rope", 1e-3),
        ("a-0.001-learned", 1e-3),
        ("a-0.01-rope", 1e-2),
        ("a-0.01-learned", 1e-2),
    ];
    assert_eq!(found, expected);
    assert!(study.runs.iter().all(|run| run.seeds == [1, 2] && run.definition.betas[1] == 0.95));
    for wrong in ["[1e-3, 'much']", "[1e-3, 1e-3]"] {
        let error = read(text.replace("[1e-3, 1e-2]", wrong)).unwrap_err().to_string();
        assert!(error.contains("run"), "{error}");
    }
}

#[test]
fn seeds_are_shared_or_a_run_s_own_and_each_is_named_once() {
    let text = "study = 'runs'\nkind = 'train'\n[train]\nseed = [3, 4]\n[[run]]\nname = 'a'\n[[run]]\nname = 'b'\n\
                seed = 7\n";
    let read = |text: String| StudyDefinition::parse(Path::new("runs.toml"), text, Preset::Paper);
    let study = read(text.to_owned()).unwrap();
    let study: &TrainStudy = study.work.get().unwrap();
    let seeds: Vec<&[u64]> = study.runs.iter().map(|run| run.seeds.as_slice()).collect();
    assert_eq!(seeds, [&[3, 4][..], &[7]]);
    for (old, wrong) in [("[3, 4]", "[3, 4, 3]"), ("= 7", "= [7, 7]"), ("= 7", "= -1")] {
        let error = read(text.replace(old, wrong)).unwrap_err().to_string();
        assert!(error.contains("seed"), "{error}");
    }
}

/// Creates a folder of definitions, one file per study.
fn folder(studies: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (study, text) in studies {
        std::fs::write(folder.path().join(format!("{study}.toml")), text).unwrap();
    }
    folder
}

/// Returns the error of the definition of `study`, which must be the same for every preset.
fn error_of(folder: &tempfile::TempDir, study: &str) -> String {
    let path = folder.path().join(format!("{study}.toml"));
    let errors = Preset::ALL.map(|preset| match StudyDefinition::read(&path, preset) {
        Ok(_) => panic!("{study} reads at the size {preset}"),
        Err(error) => error.to_string(),
    });
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0].lines().count(), 1, "{}", errors[0]);
    errors[0].strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
}

const PARTS: &str = "study = 'parts'\nkind = 'predict'\npresets = ['quick', 'paper']\n[predict]\nof = ['runs']\n\
                     epsilon = [0.1]\n";

/// Runs of a study for the preset `paper` are not used by a study for `quick`.
#[test]
fn a_quick_study_of_trained_heads_is_of_quick_runs() {
    let beside = folder(&[("parts", PARTS), ("runs", RUNS)]);
    let error = error_of(&beside, "parts");
    assert!(error.contains("predict.of \"runs\"") && error.contains("no quick size"), "{error}");
    let beside =
        folder(&[("parts", PARTS), ("runs", &format!("{RUNS}[[quick.run]]\nname = 'b'\n"))]);
    for (preset, run) in [(Preset::Quick, "b"), (Preset::Paper, "a")] {
        let study = StudyDefinition::read(&beside.path().join("parts.toml"), preset).unwrap();
        let study: &PredictStudy = study.work.get().unwrap();
        let runs = study.models.runs().unwrap();
        assert_eq!(runs.iter().map(|(_, run)| run.name.as_str()).collect::<Vec<_>>(), [run]);
    }
}

/// An error in `[quick]` prevents new measurements, but rows of another preset stay usable.
#[test]
fn rows_are_of_one_size_of_their_definition() {
    let text = format!("{RUNS}[quick.train]\nsteps = [1, 2]\n");
    let path = Path::new("runs.toml");
    for preset in [Preset::Paper, Preset::Quick] {
        let error = StudyDefinition::parse(path, text.clone(), preset).unwrap_err().to_string();
        assert!(error.starts_with("runs.toml: [quick]: train: "), "{error}");
    }
    StudyDefinition::of_rows(path, text.clone(), Preset::Paper).unwrap();
    assert!(StudyDefinition::of_rows(path, text, Preset::Quick).is_err());
}

#[test]
fn studies_and_runs_that_are_not_there_name_the_nearest() {
    let compared = |of: &str, run: &str| {
        format!(
            "study = 'compared'\nkind = 'train'\nview = 'variants'\n[baseline]\nof = '{of}'\nruns = ['{run}']\n\
             [[run]]\nname = 'b'\n"
        )
    };
    let at_fault = |text: &str| {
        let study = text.parse::<Table>().unwrap()["study"].as_str().unwrap().to_owned();
        error_of(&folder(&[("runs", RUNS), (&study, text)]), &study)
    };
    let good = compared("runs", "a");
    let beside = folder(&[("runs", RUNS), ("compared", &good)]);
    StudyDefinition::read(&beside.path().join("compared.toml"), Preset::Paper).unwrap();
    let no_such = "no such study in this folder; did you mean \"runs\"?";
    for (text, said) in [
        (compared("rus", "a"), format!("baseline.of \"rus\": {no_such}")),
        (compared("runs", "c"), "baseline.runs has \"c\", and the runs are a;".to_owned()),
        (PARTS.replace("'runs'", "'rnus'"), format!("predict.of \"rnus\": {no_such}")),
        (
            PARTS.replace("epsilon", "runs = ['c']\nepsilon").replace("'quick', ", ""),
            "predict.runs has \"c\", and the runs are a;".to_owned(),
        ),
    ] {
        let error = at_fault(&text);
        assert!(error.starts_with(&said), "{error}");
        assert!(error.contains("did you mean"), "{error}");
    }
}

#[test]
fn what_would_have_no_effect_or_cannot_be_is_refused() {
    let grid = "[grid]\nn = [8]\nrank = [2]\ntolerance = [0.1]\n[[target]]\nfamily = 'prefix'\n";
    let fits = |view: &str, more: &str| {
        format!("study = 'fits'\nkind = 'fit'\nview = '{view}'\n{grid}{more}")
    };
    let runs = |more: &str| format!("view = 'training'\n{RUNS}[train]\nwindow = 3\n{more}");
    let bound = |keys: &str| fits("phase", &format!("[[expected]]\nwhat = 'w'\n{keys}\n"));
    for text in [
        fits("phase", ""),
        bound("column = 'inflation'\nleast = 1\nrows = { n = [8], family = 'prefix', tau = 1 }"),
    ] {
        StudyDefinition::parse(Path::new("good.toml"), text, Preset::Paper).unwrap();
    }
    for (text, said) in [
        (fits("phsae", ""), "unknown view \"phsae\"; did you mean \"phase\"?"),
        (fits("dial", ""), "view \"dial\" needs rows of kind train, but the study's kind is fit"),
        (fits("phase", "[train]\n"), "train is not used by a study of kind fit"),
        (fits("phase", "m = 3\n"), "[[target]] 1: family prefix: m is not a parameter"),
        (fits("phase", "[quick.grid]\nn = ['8']\n"), "[quick]: grid.n is \"8\""),
        (fits("phase", "[quick.grid]\nrnak = [8]\n"), "[quick]: unknown key \"grid.rnak\""),
        (
            runs("[quick.train]\nwindow = 0\n"),
            "[quick]: train: window must be at least 1 (0 found)",
        ),
        (runs("[baseline]\nof = 'x'\nruns = []\n"), "baseline.runs is empty"),
        (runs("[baseline]\nof = 'x'\nruns = ['y']\n"), "view \"training\": baseline: "),
        (runs("").replace("training", "variants"), "view \"variants\": needs a [baseline]"),
        (
            bound("column = 'inflatoin'\nleast = 1"),
            "[[expected]] 1: expected \"w\": no column = \"inflatoin\"; did you mean \"inflation\"?",
        ),
        (
            bound("column = 'outcome'\nleast = 1"),
            "[[expected]] 1: expected \"w\": column = \"outcome\" ",
        ),
        (
            bound("column = 'inflation'\nleast = 1\nrows = { arm = 'ls' }"),
            "[[expected]] 1: expected \"w\": no column rows.arm; did you mean ",
        ),
        (
            bound("column = 'inflation'\nleast = 1\nrows = { n = 0.5 }"),
            "[[expected]] 1: expected \"w\": rows.n is 0.5; it must be a whole number",
        ),
    ] {
        let path = Path::new("bad.toml");
        let error = StudyDefinition::parse(path, text, Preset::Paper).unwrap_err().to_string();
        let why = error.strip_prefix("bad.toml: ").unwrap();
        assert!(why.starts_with(said), "{why}\nis not\n{said}");
    }
}
