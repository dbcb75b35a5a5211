//! The text that a study's models read, and the name of a study and its folder for that text.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::error::StudyError;
use crate::lm::Texts;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::run::run_manifest::CORPUS;
use crate::system::sha256;

/// Keys of the manifest for the texts' paths and hashes, if models read texts.
pub(crate) const TEXT: &str = "text";
pub(crate) const VALID_TEXT: &str = "valid_text";
pub(crate) const TEXT_HASH: &str = "text_sha256";
pub(crate) const VALID_TEXT_HASH: &str = "valid_text_sha256";

/// The longest name of a text. A folder's name also holds the study's name before it and digits of a hash after it.
const LONGEST_NAME: usize = 80;

/// Texts to train on.
#[derive(Clone, Debug)]
pub(crate) struct TextSource {
    /// The name of the file or folder without its extension, made safe for a folder's name.
    pub name: String,
    /// The path of the texts.
    pub path: String,
    /// The path of the texts for validation; empty if they are a part of the others.
    pub valid_path: String,
    hashes: TextHashes,
}

impl TextSource {
    /// Reads the texts at `path`, with separate texts for validation at `valid` if given.
    ///
    /// # Errors
    /// Texts that cannot be read.
    pub fn read(path: &Path, valid: Option<&Path>) -> Result<(Self, Texts), StudyError> {
        let texts = Texts::find(path, valid)?;
        let source = Self {
            name: Self::name_of(path, path.is_dir()),
            path: path.display().to_string(),
            valid_path: valid.map_or_else(String::new, |path| path.display().to_string()),
            hashes: TextHashes { text: texts.sha256(), valid: texts.valid_sha256() },
        };
        Ok((source, texts))
    }

    /// The name of the texts at `path`, made safe for a folder's name.
    fn name_of(path: &Path, is_folder: bool) -> String {
        let name = path.file_name().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let stem = match is_folder {
            true => &name,
            false => {
                let unpacked = name.strip_suffix(".zst").unwrap_or(&name);
                unpacked.rsplit_once('.').map_or(unpacked, |(stem, _)| stem)
            }
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        match stem {
            "" => "text".to_owned(),
            stem => stem.chars().map(plain).take(LONGEST_NAME).collect(),
        }
    }

    /// The texts of the rows in `folder`, of the study `own`, from their manifest. Returns `None` if it names no text.
    pub fn of_rows(folder: &Path, own: &str, manifest: &Manifest) -> Option<Self> {
        let hashes = TextHashes::told_by(manifest)?;
        // The folder of a study of published models has only the study's name, for any text.
        let name = match text_name(folder, own, Some(&hashes)) {
            Some(name) => name.to_owned(),
            None => Self::name_of(Path::new(manifest.text(TEXT)), false),
        };
        Some(Self {
            name,
            path: manifest.text(TEXT).to_owned(),
            valid_path: manifest.text(VALID_TEXT).to_owned(),
            hashes,
        })
    }

    /// The hashes of the texts.
    pub fn hashes(&self) -> &TextHashes {
        &self.hashes
    }

    /// The name of a study and its folder in `data`: the study's own name, followed by the text's name if there is one.
    /// If that folder holds rows or runs of another text, the first digits of this text's hash follow, so that neither
    /// overwrites the other. All code that locates a study on a text uses this rule. That is its own sweep, studies
    /// that need its runs, and, through [`on_the_same_text`], comparisons of its rows with other studies.
    pub fn name_of_study(data: &Path, study: &str, text: Option<&Self>) -> String {
        match text {
            None => study.to_owned(),
            Some(text) => text.hashes().folder(data, format!("{study}-{}", text.name)),
        }
    }
}

/// Identifies texts by the SHA-256 of those for training, and of those for validation if they are separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextHashes {
    pub text: String,
    pub valid: Option<String>,
}

impl TextHashes {
    /// The hashes as settings of a cell.
    pub fn settings(&self) -> Table {
        let valid = self.valid.iter().map(|hash| (VALID_TEXT_HASH.to_owned(), hash.clone().into()));
        let text = (TEXT_HASH.to_owned(), self.text.clone().into());
        [text].into_iter().chain(valid).collect()
    }

    /// The texts of the rows or runs in a study's folder. Returns `None` if no manifest there records them, as with
    /// rows of older versions; such a folder belongs to the text in its name.
    fn of_study(folder: &Path) -> Option<Self> {
        Self::of_rows(folder).or_else(|| runs_in(folder).iter().find_map(|run| Self::of_run(run)))
    }

    fn of_rows(folder: &Path) -> Option<Self> {
        Self::told_by(&Manifest::read(&folder.join(MANIFEST)).ok()?)
    }

    /// The texts that a study's manifest records.
    fn told_by(manifest: &Manifest) -> Option<Self> {
        let text = |key| Some(manifest.text(key).to_owned()).filter(|hash| !hash.is_empty());
        Some(Self { text: text(TEXT_HASH)?, valid: text(VALID_TEXT_HASH) })
    }

    /// The texts that the training run in a folder reads.
    pub fn of_run(folder: &Path) -> Option<Self> {
        let manifest = Manifest::read(&folder.join(MANIFEST)).ok()?;
        let corpus = manifest.more.get(CORPUS).and_then(Value::as_table)?;
        let text = |key| corpus.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self { text: text("sha256")?, valid: text("valid_sha256") })
    }

    /// The digits for a folder's name: the first 8 of the text's hash, or of a hash of both with texts for validation.
    fn short(&self) -> String {
        let mut digits = match &self.valid {
            None => self.text.clone(),
            Some(valid) => sha256(format!("{} {valid}", self.text).as_bytes()),
        };
        digits.truncate(8);
        digits
    }

    /// The folder in `data` for these texts: `named`, or `named` with their digits. A folder that already has their
    /// digits stays theirs, even if `named` has become free.
    fn folder(&self, data: &Path, named: String) -> String {
        let own = format!("{named}-{}", self.short());
        let of_others = || Self::of_study(&data.join(&named)).is_some_and(|there| there != *self);
        if data.join(&own).exists() || of_others() { own } else { named }
    }
}

/// The folders of the training runs of a study, sorted by path.
fn runs_in(study: &Path) -> Vec<PathBuf> {
    let within = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let mut runs: Vec<PathBuf> = within(study).iter().flat_map(|run| within(run)).collect();
    runs.retain(|run| run.join(MANIFEST).is_file());
    runs.sort();
    runs
}

/// The folder of the study `of` on the same text as the rows in `folder`, which belong to the study `own`.
pub(crate) fn on_the_same_text(folder: &Path, own: &str, of: &str) -> Option<PathBuf> {
    let data = folder.parent()?;
    if !folder.file_name()?.to_str()?.starts_with(own) {
        return None;
    }
    let hashes = TextHashes::of_rows(folder);
    let named = match text_name(folder, own, hashes.as_ref()) {
        Some(text) => format!("{of}-{text}"),
        None => of.to_owned(),
    };
    Some(data.join(match hashes {
        None => named,
        Some(hashes) => hashes.folder(data, named),
    }))
}

/// The text's name within the name of a folder of rows of the study `own`.
fn text_name<'f>(folder: &'f Path, own: &str, hashes: Option<&TextHashes>) -> Option<&'f str> {
    let text = folder.file_name()?.to_str()?.strip_prefix(own)?.strip_prefix('-')?;
    let digits = hashes.map(|hashes| format!("-{}", hashes.short()));
    Some(digits.and_then(|digits| text.strip_suffix(&*digits)).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(folder: &Path, name: &str, words: &str) -> TextSource {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, words).unwrap();
        TextSource::read(&path, None).unwrap().0
    }

    fn tell(folder: &Path, of: &TextSource) {
        let mut manifest = Manifest::begin(1, "float32");
        manifest.more.insert(TEXT_HASH.to_owned(), of.hashes().text.clone().into());
        manifest.write(&folder.join(MANIFEST)).unwrap();
    }

    #[test]
    fn texts_of_one_name_have_folders_of_their_own_for_good() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let first = text(place.path(), "a/book.txt", "one");
        let second = text(place.path(), "b/book.txt", "two");
        let name = |study, text| TextSource::name_of_study(&data, study, Some(text));
        assert_eq!(name("lm", &first), "lm-book");
        assert_eq!(name("lm", &second), "lm-book", "nobody's yet");
        tell(&data.join("lm-book"), &first);
        assert_eq!(name("lm", &first), "lm-book");
        let own = format!("lm-book-{}", &second.hashes().text[..8]);
        assert_eq!(name("lm", &second), own);
        // The other study is there on the second text only.
        tell(&data.join("heads-book"), &second);
        let beside = |folder: &str, own, other| on_the_same_text(&data.join(folder), own, other);
        assert_eq!(beside("heads-book", "heads", "lm"), Some(data.join(&own)));
        assert_eq!(beside("lm-book", "lm", "lm"), Some(data.join("lm-book")));
        tell(&data.join(&own), &second);
        assert_eq!(beside(&own, "lm", "heads"), Some(data.join("heads-book")));
        std::fs::remove_dir_all(data.join("lm-book")).unwrap();
        assert_eq!(name("lm", &second), own, "found again though the name is free");
    }

    #[test]
    fn the_same_text_with_another_for_validation_is_another() {
        let place = tempfile::tempdir().unwrap();
        let valid = text(place.path(), "valid.txt", "three");
        let alone = text(place.path(), "book.txt", "one");
        let [path, valid] = [&alone.path, &valid.path].map(Path::new);
        let held = TextSource::read(path, Some(valid)).unwrap().0;
        assert_ne!(alone.hashes().short(), held.hashes().short());
        tell(&place.path().join("lm-book"), &alone);
        let name = TextSource::name_of_study(place.path(), "lm", Some(&held));
        assert_eq!(name, format!("lm-book-{}", held.hashes().short()));
    }

    #[test]
    fn a_folder_without_the_studys_hash_is_known_by_its_runs_or_its_name() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (text(place.path(), "a/b.txt", "1"), text(place.path(), "c/b.txt", "2"));
        let folder = place.path().join("lm-b");
        let manifest = Manifest::begin(1, "float32");
        manifest.write(&folder.join(MANIFEST)).unwrap();
        let name = |text| TextSource::name_of_study(place.path(), "lm", Some(text));
        assert_eq!((name(&one), name(&two)), ("lm-b".to_owned(), "lm-b".to_owned()));
        let mut run = manifest;
        let corpus = [("sha256".to_owned(), Value::from(one.hashes().text.clone()))];
        run.more.insert(CORPUS.to_owned(), toml::Table::from_iter(corpus).into());
        run.write(&folder.join("mhsa/s0").join(MANIFEST)).unwrap();
        assert_eq!(name(&one), "lm-b");
        assert_eq!(name(&two), format!("lm-b-{}", two.hashes().short()));
    }
}
