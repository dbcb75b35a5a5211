//! All that the program writes goes through `system::disk`, so that crash tests see it.

use crate::source::{code, source_files};

/// What writes to the disk past `system::disk`, as it is written in code.
const WRITES: [&str; 19] = [
    "fs::write", "fs::rename", "fs::remove_file", "fs::remove_dir", "fs::create_dir",
    "fs::DirBuilder", "fs::copy", "fs::hard_link", "fs::set_permissions", "os::unix::fs::symlink",
    "fs::{", "fs::*", "OpenOptions", "File::create", "File::options", ".set_len(", ".sync_all(",
    ".sync_data(", "tempfile",
];

/// The lines of a file's code that write to the disk past `system::disk`, and by what.
fn writes_past_the_layer(file: &str, text: &str) -> Vec<String> {
    // `bench` measures in folders that it throws away, and `system` is the layer.
    let may = |what: &str| {
        file.starts_with("system/") || (file.starts_with("cli/bench/") && what == "tempfile")
    };
    // A `File` of the layer's own, by its name alone.
    let is_the_layers = text.contains("disk::File;") || text.contains("disk::{File,");
    let mut found = Vec::new();
    for line in code(file, text).lines() {
        for what in WRITES {
            let its_own =
                is_the_layers && what.starts_with("File::create") && !line.contains("fs::File");
            if line.contains(what) && !may(what) && !its_own {
                found.push(format!("{file}: {what} in {}", line.trim()));
            }
        }
    }
    found
}

#[test]
fn all_writes_go_through_one_layer() {
    let files = source_files();
    let past = files.iter().flat_map(|(file, text)| writes_past_the_layer(file, text));
    let past: Vec<String> = past.collect();
    assert!(past.is_empty(), "\n{}", past.join("\n"));
}

#[test]
fn writes_past_the_layer_are_found() {
    let count = |file: &str, text: &str| writes_past_the_layer(file, text).len();
    let past = "use std::fs::File;\nfn f() {\n    let file = File::create(path)?;\n    file.sync_all()\n}\n";
    assert_eq!(count("run/log.rs", past), 2);
    assert_eq!(count("run/log.rs", "fn f() { std::fs::write(a, b) }"), 1);
    let by_it = "use crate::system::disk::File;\n";
    assert_eq!(count("run/log.rs", &format!("{by_it}fn f() {{ File::create(path) }}")), 0);
    assert_eq!(count("run/log.rs", &format!("{by_it}fn f() {{ fs::File::create(path) }}")), 1);
    let tests = "// fs::write is wrong\n#[cfg(test)]\nmod t { fn f() { fs::write(a, b) } }";
    assert_eq!(count("run/log.rs", tests), 0);
    assert_eq!(count("system/files.rs", past), 0);
    assert_eq!(count("cli/bench/a.rs", "fn f() { tempfile::tempdir(); fs::write(a, b) }"), 1);
}
