//! Tests of all definitions in the repository, for every preset, and of the presets that a study has.

use std::path::Path;

use toml::Table;

use super::*;
use crate::experiment::{Preset, StudyError};
use crate::experiments::heads::PredictStudy;
use crate::experiments::training::TrainStudy;
use crate::lm::TrainDefinition;
use crate::study::Plan;

/// Reading a study alone is not enough: it may refer to runs, views or studies that exist only for another preset.
#[test]
fn every_definition_that_comes_with_the_project_reads_at_every_size() {
    let data = tempfile::tempdir().unwrap();
    let (mut wrong, mut read) = (Vec::new(), [0; 3]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.parse::<Table>().unwrap().contains_key("study") {
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
    let enough = read[0] >= 18 && read[1] >= 4 && read[2] >= 12;
    assert!(enough, "{read:?} studies of the sizes {:?}", Preset::ALL);
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

fn parse(text: impl Into<String>, preset: Preset) -> Result<StudyDefinition, StudyError> {
    StudyDefinition::parse(Path::new("study.toml"), text.into(), preset)
}

/// The error of a definition, without its path.
fn error_in(text: impl Into<String>, preset: Preset) -> String {
    let error = parse(text, preset).unwrap_err().to_string();
    error.strip_prefix("study.toml: ").unwrap().to_owned()
}

#[test]
fn a_study_has_a_smaller_size_where_it_makes_or_names_it() {
    for text in [
        format!("{RUNS}[quick]"),
        format!("{RUNS}[quick.train]\nsteps = 2"),
        format!("presets = ['quick']\n{RUNS}"),
    ] {
        let smoke = text.replace("quick", "smoke");
        assert_eq!(parse(smoke, Preset::Smoke).unwrap().preset, Preset::Smoke);
        assert_eq!(parse(text.clone(), Preset::Quick).unwrap().preset, Preset::Quick);
        let other = parse(text, Preset::Smoke);
        assert!(matches!(other, Err(StudyError::Size { .. })), "{other:?}");
    }
    for text in [RUNS.to_owned(), format!("presets = ['paper']\n{RUNS}")] {
        let error = parse(text, Preset::Quick).unwrap_err();
        assert!(matches!(&error, StudyError::Size { study, .. } if study == "runs"), "{error}");
        assert!(error.to_string().ends_with("use the size paper"), "{error}");
    }
}

#[test]
fn a_list_for_a_key_of_one_value_makes_a_run_per_combination() {
    let text = format!(
        "{RUNS}learning_rate = [1e-3, 1e-2]\npositions = ['rope', 'learned']\nbetas = [0.9, 0.95]\nseed = [1, 2]\n"
    );
    let study = parse(&*text, Preset::Paper).unwrap();
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
        let error = error_in(text.replace("[1e-3, 1e-2]", wrong), Preset::Paper);
        assert!(error.contains("run"), "{error}");
    }
}

#[test]
fn seeds_are_shared_or_a_run_s_own_and_each_is_named_once() {
    let text = format!("{RUNS}[[run]]\nname = 'b'\nseed = 7\n[train]\nseed = [3, 4]\n");
    let study = parse(&*text, Preset::Paper).unwrap();
    let study: &TrainStudy = study.work.get().unwrap();
    let seeds: Vec<&[u64]> = study.runs.iter().map(|run| run.seeds.as_slice()).collect();
    assert_eq!(seeds, [&[3, 4][..], &[7]]);
    for (old, wrong) in [("[3, 4]", "[3, 4, 3]"), ("= 7", "= [7, 7]"), ("= 7", "= -1")] {
        let error = error_in(text.replace(old, wrong), Preset::Paper);
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
    let error = error_of(&folder(&[("parts", PARTS), ("runs", RUNS)]), "parts");
    assert!(error.contains("predict.of \"runs\"") && error.contains("no quick size"), "{error}");
    let runs = format!("{RUNS}[[quick.run]]\nname = 'b'\n");
    let beside = folder(&[("parts", PARTS), ("runs", &runs)]);
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
    for preset in [Preset::Paper, Preset::Quick] {
        let error = error_in(&*text, preset);
        assert!(error.starts_with("[quick]: train: "), "{error}");
    }
    let path = Path::new("runs.toml");
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
    let beside = folder(&[("runs", RUNS), ("compared", &compared("runs", "a"))]);
    StudyDefinition::read(&beside.path().join("compared.toml"), Preset::Paper).unwrap();
    let of_one_size = PARTS.replace("'quick', ", "");
    for (study, text, key, meant) in [
        ("compared", compared("rus", "a"), "baseline.of \"rus\"", "runs"),
        ("compared", compared("runs", "c"), "baseline.runs has \"c\"", "a"),
        ("parts", PARTS.replace("'runs'", "'rnus'"), "predict.of \"rnus\"", "runs"),
        (
            "parts",
            of_one_size.replace("epsilon", "runs = ['c']\nepsilon"),
            "predict.runs has \"c\"",
            "a",
        ),
    ] {
        let error = error_of(&folder(&[("runs", RUNS), (study, &text)]), study);
        assert!(error.starts_with(key), "{error}");
        assert!(error.contains(&format!("did you mean \"{meant}\"")), "{error}");
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
        parse(text, Preset::Paper).unwrap();
    }
    for (text, place, wrong) in [
        (fits("phsae", ""), "unknown view ", "\"phsae\"; did you mean \"phase\"?"),
        (fits("dial", ""), "view \"dial\"", "kind train"),
        (fits("phase", "[train]\n"), "train ", "kind fit"),
        (fits("phase", "m = 3\n"), "[[target]] 1: ", "prefix: m "),
        (fits("phase", "[quick.grid]\nn = ['8']\n"), "[quick]: grid.n", "\"8\""),
        (fits("phase", "[quick.grid]\nrnak = [8]\n"), "[quick]: ", "\"grid.rnak\""),
        (runs("[quick.train]\nwindow = 0\n"), "[quick]: train: window", "(0 found)"),
        (runs("[baseline]\nof = 'x'\nruns = []\n"), "baseline.runs", "empty"),
        (runs("[baseline]\nof = 'x'\nruns = ['y']\n"), "view \"training\": baseline: ", ""),
        (runs("").replace("training", "variants"), "view \"variants\": ", "[baseline]"),
    ] {
        let error = error_in(text, Preset::Paper);
        assert!(error.starts_with(place) && error.contains(wrong), "{error}");
    }
    for (keys, wrong) in [
        ("column = 'inflatoin'\nleast = 1", "did you mean \"inflation\"?"),
        ("column = 'outcome'\nleast = 1", "column = \"outcome\""),
        ("column = 'inflation'\nleast = 1\nrows = { arm = 'ls' }", "rows.arm; did you mean "),
        ("column = 'inflation'\nleast = 1\nrows = { n = 0.5 }", "rows.n is 0.5"),
    ] {
        let error = error_in(bound(keys), Preset::Paper);
        assert!(error.starts_with("[[expected]] 1: expected \"w\": "), "{error}");
        assert!(error.contains(wrong), "{error}");
    }
}
