//! Rows of studies, as `table`, `figure`, `report`, `sweep` and `verify` read them, and those of parts, as `merge` does.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use rank_study::experiment::{MeasuredStudy, View};
use rank_study::report::{Header, Section, analyse, measured_study, page};
use rank_study::run::Manifest;
use rank_study::study::{
    Plan, Preset, StudyDefinition, check_merged, merge, stored_lines, unmerged_parts, verify,
};

use super::super::forms::Form;
use super::super::target::Target;
use super::{Kept, all, here, program};

/// Rows of a study that are taken, evenly from all.
const ROWS: usize = 16;

/// A study of data/, with a few of its rows.
struct Study {
    measured: MeasuredStudy,
    view: View,
    definition: StudyDefinition,
}

impl Study {
    /// A copy of the study in `folder` under `data`; none of what is no study.
    fn copy(folder: &Path, data: &Path) -> Option<(Self, Vec<u8>)> {
        let rows = fs::read_to_string(folder.join("rows.csv")).ok()?;
        let manifest = Manifest::read(&folder.join("manifest.toml")).ok()?;
        let copy = data.join(folder.file_name()?);
        fs::create_dir_all(&copy).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let to = copy.join(path.file_name()?);
            // Runs' curves; tables are what is made.
            match path.is_dir() {
                true if path.ends_with("tables") => {}
                true => std::os::unix::fs::symlink(&path, to).unwrap(),
                false => drop(fs::copy(&path, to).unwrap()),
            }
        }
        let (measured, _, view) = measured_study(&copy, &manifest).ok()?;
        let path = Path::new("a.toml");
        let text = manifest.text("definition").to_owned();
        let definition = StudyDefinition::of_rows(path, text, Preset::Paper).ok()?;
        let lines: Vec<&str> = rows.split_inclusive('\n').collect();
        let every = (lines.len() - 1).div_ceil(ROWS).max(1);
        let few: String =
            lines[..1].iter().chain(lines[1..].iter().step_by(every)).copied().collect();
        Some((Self { measured, view, definition }, few.into_bytes()))
    }

    /// Does what `table`, `figure` and `report` do.
    fn is_drawn(&self, with_pixels: bool) -> bool {
        let Ok(analysis) = analyse(std::slice::from_ref(&self.measured), self.view) else {
            return false;
        };
        for table in &analysis.tables {
            black_box((table.to_csv(), table.to_markdown(), table.to_latex()));
        }
        for figure in analysis.figures.iter().filter(|_| with_pixels) {
            figure.png().unwrap();
        }
        let section = Section { analysis, ..Section::default() };
        page(&Header::default(), &[section]).unwrap();
        true
    }

    /// Does what `sweep` and `verify` do before they measure anything.
    fn is_planned(&self, data: &Path) {
        let folder = &self.measured.folder;
        if let Ok(plan) = Plan::new(&self.definition, data, None, None, None) {
            black_box((plan.left(), plan.damaged().len(), plan.to_set_aside()));
        }
        let _ = stored_lines(self.definition.work.kind(), folder);
        verify(&self.definition, folder);
    }
}

pub fn rows(place: &Path) -> Target {
    let data = place.join("data");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(here("data")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let found = folders.iter().filter_map(|folder| Study::copy(folder, &data));
    let (studies, files): (Vec<Study>, Vec<Vec<u8>>) = found.unzip();
    let views =
        studies.iter().map(|study| study.view.name).collect::<std::collections::BTreeSet<_>>();
    assert!(views.len() > 15, "{views:?}");
    let mut count = 0;
    let read = move |of: usize, bytes: &[u8]| {
        count += 1;
        let study: &Study = &studies[of];
        fs::write(study.measured.folder.join("rows.csv"), bytes).unwrap();
        let is_drawn = study.is_drawn(count % 40 == 0);
        if count % 4 == 0 {
            study.is_planned(&data);
        }
        is_drawn
    };
    Target { files: all(Form::Text, files), read: Box::new(read) }
}

const STUDY: &str = r#"
study = "tiny"
kind = "fit"
presets = ["paper"]
grid = { n = [8, 12], rank = [2], seed = [0], tolerance = [0.4] }
search = { starts = 1, polished = 1, rough_iterations = 20, iterations = 20 }
target = [{ family = "dirichlet-band", window = 4 }]
"#;

pub fn parts(place: &Path) -> Target {
    fs::create_dir_all(place.join("analysis")).unwrap();
    fs::write(place.join("analysis/tiny.toml"), STUDY).unwrap();
    for part in ["1/2", "2/2"] {
        program(place, &["sweep", "analysis/tiny.toml", "--shard", part, "--quiet"]);
    }
    let definition = StudyDefinition::parse(Path::new("a.toml"), STUDY.to_owned(), Preset::Paper);
    let (definition, data) = (definition.unwrap(), place.join("data"));
    let kept = Kept::of(&data);
    let files = all(Form::Text, kept.files.iter().map(|(_, bytes)| bytes.clone()));
    let read = move |of: usize, bytes: &[u8]| {
        kept.put_back(of, bytes);
        let study = data.join("tiny");
        let _ = (unmerged_parts(&study), check_merged(&study));
        let _ = Plan::new(&definition, &data, None, None, None);
        matches!(merge(&study), Ok(Some(_)))
    };
    Target { files, read: Box::new(read) }
}
