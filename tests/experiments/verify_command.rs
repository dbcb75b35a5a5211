//! `rank-study verify` through the binary: rows as they were measured hold, altered ones do not.

use std::sync::LazyLock;

use rank_study::experiments::KINDS;

use crate::common::binary::{Ended, Folder};
use crate::common::tiny;

static STUDY: LazyLock<String> = LazyLock::new(|| tiny::fits(EXPECTED));

const EXPECTED: &str = r#"
[[expected]]
what = "rank 4 costs next to nothing"
rows = { rank = 4 }
column = "inflation"
least = 0.99
most = 1.5
[[expected]]
what = "rank 2 costs more than rank 4"
rows = { rank = 2 }
over = { rank = 4 }
column = "max_abs_logit"
of = "median"
least = 1.0
"#;

fn measured(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("analysis/tiny.toml", text);
    folder.done(&["sweep", "analysis/tiny.toml", "--quiet"]);
    folder
}

/// Verifies, and gives what was said where a check failed.
fn broken(folder: &Folder, verify: &[&str]) -> String {
    let Ended { code, stdout, stderr } = folder.run(verify);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stderr.lines().last().is_some_and(|line| line.starts_with("error: ")), "{stderr}");
    stdout
}

#[test]
fn rows_as_they_were_measured_hold() {
    let folder = measured(&STUDY);
    let said = folder.done(&["verify", "tiny"]);
    assert!(said.starts_with("tiny: 4 rows, "), "{said}");
    assert_eq!(folder.done(&["verify", "tiny", "--quiet"]), "");
    let said = broken(&folder, &["verify"]);
    assert!(said.contains("data/verdicts.csv: ") && said.contains("rank-study report"), "{said}");
    folder.done(&["report", "--quiet"]);
    assert!(folder.done(&["verify"]).contains("data/verdicts.csv: agrees with the rows"));
    let verdicts = folder.read("data/verdicts.csv");
    folder.write("data/verdicts.csv", verdicts.replace("not measured", "confirmed"));
    assert!(broken(&folder, &["verify"]).contains("data/verdicts.csv: differs from the rows"));
}

#[test]
fn a_row_altered_with_its_hash_breaks_a_law_or_a_bound() {
    let folder = measured(&STUDY);
    let (_, rows) = folder.csv("data/tiny/rows.csv");
    let last = rows.last().unwrap();
    let whole = folder.read("data/tiny/rows.csv");
    let manifest = folder.read("data/tiny/manifest.toml");
    let hash = |text: &str| {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert!(manifest.contains(&hash(&whole)), "the manifest tells the rows' hash");
    let altered = whole.replace(last["max_abs_logit"].as_str(), "1000.5");
    folder.write("data/tiny/rows.csv", &altered);
    folder.write("data/tiny/manifest.toml", manifest.replace(&hash(&whole), &hash(&altered)));
    let said = broken(&folder, &["verify", "tiny"]);
    for part in ["exceeds the norms' product", "inflation is not the ratio", "rows.parquet"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn a_bound_that_does_not_hold_and_a_cell_that_is_missing_are_named() {
    let folder = measured(&STUDY);
    folder.write("analysis/tiny.toml", STUDY.replace("most = 1.5", "most = 0.995"));
    let said = broken(&folder, &["verify", "tiny"]);
    assert!(said.contains("\"rank 4 costs next to nothing\": inflation is"), "{said}");
    folder.write("analysis/tiny.toml", STUDY.replace("seed = [0, 1]", "seed = [0, 1, 2]"));
    let said = broken(&folder, &["verify", "tiny"]);
    assert!(said.contains("dirichlet-band/n16-d4-s2: no rows measured"), "{said}");
    folder.write("analysis/tiny.toml", STUDY.replace("of = \"median\"", "of = \"meidan\""));
    let error = folder.refused(&["verify", "tiny"]);
    assert!(error.contains("did you mean \"median\"?"), "{error}");
}

#[test]
fn a_study_that_lost_a_file_or_its_definition_keeps_no_other_from_its_checks() {
    let folder = measured(&STUDY);
    folder.write("analysis/other.toml", STUDY.replace("\"tiny\"", "\"other\""));
    folder.done(&["sweep", "analysis/other.toml", "--quiet"]);
    folder.done(&["report", "--quiet"]);
    for file in ["manifest.toml", "rows.csv", "rows.parquet"] {
        let path = folder.path(&format!("data/other/{file}"));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let said = broken(&folder, &["verify"]);
        let told = format!("other: {file}: ");
        assert!(said.contains(&told) && said.contains("tiny: 4 rows, "), "{file}: {said}");
        std::fs::write(&path, bytes).unwrap();
    }
    folder.done(&["verify"]);

    folder.write("analysis/other.toml", STUDY.replace("[grid]", "[grdi]"));
    let Ended { code, stdout, stderr } = folder.run(&["verify"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stdout.contains("tiny: 4 rows") && stdout.contains("agrees with the rows"), "{stdout}");
    assert!(stderr.starts_with("error: other: analysis/other.toml: unknown key"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");

    // A check that does not hold is told by the code, whatever could not be checked.
    folder.write("data/verdicts.csv", "claim\n");
    let Ended { code, stdout, stderr } = folder.run(&["verify"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stdout.contains("data/verdicts.csv: differs from the rows"), "{stdout}");
    assert!(stderr.starts_with("left out: other: analysis/other.toml: "), "{stderr}");
}

#[test]
fn every_column_of_every_kind_says_what_it_is() {
    let folder = Folder::new();
    for kind in KINDS.iter().map(|kind| kind.name()) {
        let listed = folder.done(&["list", "--columns", kind, "--json"]);
        let columns: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
        let mut names: Vec<&str> = columns.iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert!(columns.iter().all(|c| c["about"].as_str().is_some_and(|text| text.len() > 1)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns.len(), "{kind}: a name stands twice");
    }
    let Ended { code, stderr, .. } = folder.run(&["list", "--columns", "fits"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("did you mean \"fit\""), "{stderr}");
}
