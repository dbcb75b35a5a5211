//! The binary at work in a folder of its own.

// Each test crate uses its own part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// One row of a CSV file: its fields by column.
pub type Record = BTreeMap<String, String>;

/// A temporary folder that the binary runs in.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The header and the records of a CSV file, every one of which must be whole.
    pub fn csv(&self, name: &str) -> (Vec<String>, Vec<Record>) {
        let text = self.read(name);
        assert!(text.ends_with('\n'), "{name} is torn: {text}");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let records = reader
            .records()
            .map(|record| record.unwrap_or_else(|e| panic!("{name}: {e}\n{text}")))
            .map(|record| header.iter().cloned().zip(record.iter().map(str::to_owned)).collect())
            .collect();
        (header, records)
    }

    /// Every file and folder below this one, sorted.
    pub fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.0.path(), self.0.path(), &mut found);
        found.sort();
        found
    }

    /// Another folder with the same files.
    pub fn copied(&self) -> Self {
        let copy = Self::new();
        for name in self.tree() {
            match self.path(&name) {
                path if path.is_dir() => fs::create_dir_all(copy.path(&name)).unwrap(),
                path => copy.write(&name, fs::read(path).unwrap()),
            }
        }
        copy
    }

    /// The binary with these arguments, here, with nothing to read on standard input.
    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("rank-study"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        #[cfg(unix)]
        hear_hangups(&mut command);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(&self.command(arguments).output().unwrap())
    }

    /// What a run that must succeed printed on standard output.
    pub fn done(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// The one line on standard error of a run that must be refused, and must change no file.
    pub fn refused(&self, arguments: &[&str]) -> String {
        // A wrong value is 2; a file that is not there, or holds something else, 1.
        self.refused_with(&[1, 2], arguments)
    }

    /// As [`Self::refused`], of a run that must end as one with a wrong flag or value.
    pub fn wrong_usage(&self, arguments: &[&str]) -> String {
        self.refused_with(&[2], arguments)
    }

    fn refused_with(&self, codes: &[i32], arguments: &[&str]) -> String {
        let before = self.tree();
        let Ended { code, stdout, stderr } = self.run(arguments);
        let is_refused = code.is_some_and(|code| codes.contains(&code));
        assert!(is_refused, "{arguments:?}: {code:?} {stdout}{stderr}");
        assert_eq!(stdout, "", "{arguments:?} printed a result");
        let one_line = stderr.lines().count() == 1 && stderr.starts_with("error: ");
        assert!(one_line, "{arguments:?}: {stderr}");
        assert!(!stderr["error: ".len()..].contains("error: "), "{arguments:?}: {stderr}");
        let cause = "(os error";
        assert!(stderr.matches(cause).count() <= 1, "a cause told twice: {stderr}");
        assert_eq!(self.tree(), before, "{arguments:?} left something behind");
        stderr
    }
}

/// What sends each of the signals that stop a run, as `kill` names them.
#[cfg(unix)]
pub const SIGNALS: [&str; 3] = ["-INT", "-TERM", "-HUP"];
/// The exit code of a run that one of them stopped.
pub const STOPPED: Option<i32> = Some(4);

/// Has a command begin with SIGHUP as it is by default, also where `nohup` runs the tests.
#[cfg(unix)]
fn hear_hangups(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: between fork and exec only `signal` is called, which may be there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        });
    }
}

#[cfg(unix)]
pub fn send(signal: &str, child: &std::process::Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// What a run of the binary came to.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.strip_prefix(root).unwrap().display().to_string());
        if path.is_dir() {
            walk(root, &path, found);
        }
    }
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A field as a number.
pub fn number(record: &Record, column: &str) -> f64 {
    record[column].parse().unwrap_or_else(|e| panic!("{column} = {:?}: {e}", record[column]))
}
