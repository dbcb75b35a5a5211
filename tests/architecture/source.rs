//! The files of `src` as the checks of its structure read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files with these endings below a folder of the project, with their text, by their path from it.
pub fn files_below(folder: &str, endings: &[&str]) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if endings.contains(&ending) {
                let file = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(file, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The Rust files of `src`.
pub fn source_files() -> BTreeMap<String, String> {
    files_below("src", &["rs"])
}

/// A file without comments and tests.
pub fn code(file: &str, text: &str) -> String {
    if file.contains("/tests/") || file.ends_with("tests.rs") || file.ends_with("fixture.rs") {
        return String::new();
    }
    let mut code = String::new();
    // The indentation of the item for tests that a line is in.
    let mut inside: Option<usize> = None;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end()) {
        let indent = line.len() - line.trim_start().len();
        match inside {
            Some(of) => {
                let ends = line.ends_with(';') || line.trim_start().starts_with('}');
                inside = (indent != of || !ends).then_some(of);
            }
            None if line.trim_start().starts_with("#[cfg(test)]") => inside = Some(indent),
            None if line.trim_start().starts_with("#[cfg(all(test") => inside = Some(indent),
            None => code += &format!("{line}\n"),
        }
    }
    code
}
