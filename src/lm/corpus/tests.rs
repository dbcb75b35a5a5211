//! Tests of corpora: how texts are divided, encoded, cached and read again.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::lm::{LmError, TrainDefinition};

fn definition(vocabulary: &str) -> TrainDefinition {
    TrainDefinition::default().with(&format!("context=4 vocabulary={vocabulary}"))
}

fn read(definition: &TrainDefinition, texts: &Texts) -> Result<Corpus, LmError> {
    Corpus::from_texts(definition, texts, Path::new("unused"))
}

fn words(corpus: &Corpus, split: Split) -> Vec<u32> {
    corpus.split(split).iter().map(|&token| u32::from(token)).collect()
}

#[test]
fn a_text_splits_by_position() {
    let definition = TrainDefinition { valid_fraction: 0.25, ..definition("characters") };
    let text = "to be or not to be, that";
    let lengths = |corpus: &Corpus| Split::ALL.map(|split| corpus.split(split).len());
    let corpus = Corpus::from_text(&definition, text.as_bytes()).unwrap();
    assert_eq!(lengths(&corpus), [18, 6, 0, 0, 0]);
    // `printf 'to be or not to be, that' | sha256sum`
    assert_eq!(corpus.sha256, "79ef46162abb26edef98282334febbd868ea5a25087541da5cac1c1cf6f25007");
    let three = TrainDefinition { test_fraction: 0.25, ..definition };
    let corpus = Corpus::from_text(&three, text.as_bytes()).unwrap();
    assert_eq!(lengths(&corpus), [12, 6, 6, 0, 0]);
    let again: Vec<u32> = Split::ALL.iter().flat_map(|&split| words(&corpus, split)).collect();
    assert_eq!(again, corpus.vocabulary.encode(text.as_bytes()).unwrap());
}

#[test]
fn no_character_is_cut_in_two() {
    let definition = TrainDefinition { valid_fraction: 0.4, ..definition("characters") };
    for letters in 20..24 {
        let text = format!("{}{}", "a".repeat(letters), "你".repeat(20));
        let corpus = Corpus::from_text(&definition, text.as_bytes()).unwrap();
        let all = corpus.split(Split::Train).len() + corpus.split(Split::Valid).len();
        assert_eq!(all, letters + 20);
    }
}

#[test]
fn a_split_shorter_than_a_context_is_an_error_that_names_it() {
    let definition = TrainDefinition { context: 10, ..TrainDefinition::default() };
    let error = Corpus::from_text(&definition, &[b'a'; 50]).unwrap_err().to_string();
    assert!(error.contains("valid") && error.contains(" 5 of the 11 tokens"), "{error}");
}

fn folder(texts: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("below")).unwrap();
    for (name, text) in ["a.txt", "below/b.txt", "c.txt", "d.txt"].iter().zip(texts) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn a_folder_is_divided_by_document_and_every_document_has_an_end() {
    let texts = ["aaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbb", "ccccccccccccccc", "ddddddddddddddd"];
    let files = folder(&texts);
    fs::write(files.path().join("notes.md"), "not a text").unwrap();
    let definition = TrainDefinition { test_fraction: 0.1, ..definition("characters") };
    let of_folder =
        |files: &tempfile::TempDir| read(&definition, &Texts::find(files.path(), None).unwrap());
    let corpus = of_folder(&files).unwrap();
    assert_eq!((corpus.vocabulary.size(), corpus.vocabulary.end()), (5, Some(4)));
    let mut seen = Vec::new();
    for (split, documents) in [(Split::Train, 2), (Split::Valid, 1), (Split::Test, 1)] {
        let found = words(&corpus, split);
        assert_eq!(found.len(), 16 * documents, "{split:?}");
        for document in found.chunks(16) {
            let (end, letters) = document.split_last().unwrap();
            assert_eq!(*end, 4);
            assert!(letters.iter().all(|letter| *letter == letters[0]), "{document:?}");
            seen.push(letters[0]);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3], "each document is in one split");

    let renamed = folder(&[texts[2], texts[0], texts[3], texts[1]]);
    let other = of_folder(&renamed).unwrap();
    assert_eq!(other.sha256, corpus.sha256);
    assert_eq!(words(&other, Split::Train), words(&corpus, Split::Train));

    let error = of_folder(&folder(&texts[..2])).unwrap_err().to_string();
    assert!(error.contains("2 documents"), "{error}");
    let error = Texts::find(tempfile::tempdir().unwrap().path(), None).unwrap_err().to_string();
    assert!(error.contains(".txt"), "{error}");
}

#[test]
fn validation_may_have_a_text_of_its_own() {
    let files = folder(&["training text, training text", "valid text"]);
    let (train, valid) = (files.path().join("a.txt"), files.path().join("below/b.txt"));
    let texts = Texts::find(&train, Some(&valid)).unwrap();
    let corpus = read(&definition("byte"), &texts).unwrap();
    let text = |split| words(&corpus, split).iter().map(|&token| token as u8).collect::<Vec<u8>>();
    assert_eq!(text(Split::Train), b"training text, training text");
    assert_eq!(text(Split::Valid), b"valid text");
    assert_eq!(corpus.vocabulary.size(), 256);
    assert!(corpus.valid_sha256.is_some());
}

#[test]
fn documents_in_the_subfolder_upstream_are_a_text_apart() {
    let files = folder(&["a".repeat(60), "b".repeat(60)].each_ref().map(String::as_str));
    let plain = Texts::find(files.path(), None).unwrap().sha256();
    let upstream = files.path().join("upstream");
    fs::create_dir(&upstream).unwrap();
    fs::rename(files.path().join("below/b.txt"), upstream.join("b.txt")).unwrap();
    let texts = Texts::find(files.path(), None).unwrap();
    assert_ne!(texts.sha256(), plain, "another use of the same documents is another text");
    let corpus = read(&definition("characters"), &texts).unwrap();
    for (split, letter) in
        [(Split::Train, 0), (Split::Valid, 0), (Split::Upstream, 1), (Split::UpstreamValid, 1)]
    {
        let found = words(&corpus, split);
        let ended = found.iter().filter(|&&token| token == 2).count();
        assert!(found.iter().all(|&token| token == letter || token == 2), "{split:?}: {found:?}");
        assert!(found.len() - ended >= 5 && ended <= 1, "{split:?}: {found:?}");
    }
    fs::remove_file(files.path().join("a.txt")).unwrap();
    let texts = Texts::find(files.path(), None).unwrap();
    let error = read(&definition("characters"), &texts).unwrap_err();
    assert!(error.to_string().contains("upstream"), "{error}");
}

#[test]
fn a_packed_text_is_the_text() {
    let files = tempfile::tempdir().unwrap();
    let text = "pack my box with five dozen jugs ".repeat(40);
    let (plain, packed) = (files.path().join("a.txt"), files.path().join("a.txt.zst"));
    fs::write(&plain, &text).unwrap();
    fs::write(&packed, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    let [plain, packed] = [plain, packed]
        .map(|path| read(&definition("bpe:300"), &Texts::find(&path, None).unwrap()).unwrap());
    assert_eq!(plain.sha256, packed.sha256);
    assert_eq!(plain.vocabulary, packed.vocabulary);
    assert_eq!(words(&plain, Split::Valid), words(&packed, Split::Valid));
}

/// A text longer than 1 MiB, whose tokens are therefore cached, and its folder.
fn kept_text() -> (tempfile::TempDir, Texts) {
    let files = tempfile::tempdir().unwrap();
    let text: String = (0..250_000_u64).map(|i| format!("{} ", i * i % 7919)).collect();
    fs::write(files.path().join("long.txt"), text).unwrap();
    let texts = Texts::find(&files.path().join("long.txt"), None).unwrap();
    (files, texts)
}

fn kept_file(folder: &Path) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tokens"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn tokens_are_made_once_and_are_those_of_the_whole_text() {
    let (files, texts) = kept_text();
    let kept = files.path().join("kept");
    let definition = definition("bpe:400");
    let first = Corpus::from_texts(&definition, &texts, &kept).unwrap();
    let path = kept_file(&kept);
    let made = fs::metadata(&path).unwrap().modified().unwrap();
    let again = Corpus::from_texts(&definition, &texts, &kept).unwrap();
    assert_eq!(fs::metadata(kept_file(&kept)).unwrap().modified().unwrap(), made);
    assert_eq!(again.vocabulary, first.vocabulary);
    // Encoding in pieces gives the same tokens as encoding the whole text.
    let text = fs::read(files.path().join("long.txt")).unwrap();
    let train = &text[..(text.len() as f64 * 0.9) as usize];
    assert_eq!(words(&again, Split::Train), first.vocabulary.encode(train).unwrap());
    let bytes: usize =
        words(&again, Split::Train).iter().map(|&t| first.vocabulary.bytes_of(t) as usize).sum();
    assert_eq!(bytes, train.len());
}

#[test]
fn a_file_of_tokens_that_is_broken_or_anothers_is_made_anew() {
    let (files, texts) = kept_text();
    let kept = files.path().join("kept");
    let definition = definition("characters");
    let corpus = Corpus::from_texts(&definition, &texts, &kept).unwrap();
    let valid = words(&corpus, Split::Valid);
    drop(corpus);
    let path = kept_file(&kept);
    let whole = fs::read(&path).unwrap();
    let mut turned = whole.clone();
    turned[1000] ^= 1;
    let other = TrainDefinition { valid_fraction: 0.2, ..definition.clone() };
    let elsewhere = files.path().join("elsewhere");
    Corpus::from_texts(&other, &texts, &elsewhere).unwrap();
    let foreign = fs::read(kept_file(&elsewhere)).unwrap();
    for damaged in [&whole[..whole.len() / 2], &whole[..10], &[], &turned, &foreign] {
        fs::write(&path, damaged).unwrap();
        let again = Corpus::from_texts(&definition, &texts, &kept).unwrap();
        assert_eq!(words(&again, Split::Valid), valid);
        drop(again);
        assert!(fs::read(&path).unwrap() == whole, "the file was not made anew");
    }
}

#[test]
fn a_text_that_is_not_utf_8_says_where() {
    let mut text = "word ".repeat(1 << 18).into_bytes();
    let place = text.len() / 2 + 2;
    text[place] = 0xff;
    for vocabulary in ["characters", "bpe:300"] {
        let error = Corpus::from_text(&definition(vocabulary), &text).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {place}")), "{error}");
    }
    Corpus::from_text(&definition("byte"), &text).unwrap();
}
