//! Tests of corpora of records: no record is lost, cut or read twice.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::lm::{SyntheticCorpus, TrainDefinition};

const BEGIN: u32 = 256;

fn definition(records: usize) -> TrainDefinition {
    let mut definition = TrainDefinition::default();
    definition.set("records", &records.to_string()).unwrap();
    definition
}

/// Uniformly random bytes.
fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    (0..bytes).map(|_| rng.random()).collect()
}

/// The records of a split. Checks that each begins with the start symbol and has no other one.
fn records(corpus: &Corpus, split: Split, record: usize) -> Vec<Vec<u8>> {
    let tokens: Vec<u32> = corpus.split(split).iter().collect();
    assert!(tokens.len().is_multiple_of(record + 1), "{} tokens", tokens.len());
    let one = |tokens: &[u32]| {
        assert_eq!(tokens[0], BEGIN);
        tokens[1..].iter().map(|&token| u8::try_from(token).unwrap()).collect()
    };
    tokens.chunks(record + 1).map(one).collect()
}

#[test]
fn every_byte_of_every_record_comes_back_from_plain_packed_and_kept_files() {
    let files = tempfile::tempdir().unwrap();
    // Longer than a piece of 1 MiB, which is not a multiple of the record: pieces cut records in two.
    let (record, bytes) = (784, noise(784 * 1700));
    fs::write(files.path().join("a.bin"), &bytes).unwrap();
    fs::write(files.path().join("b.bin.zst"), zstd::encode_all(&*bytes, 1).unwrap()).unwrap();
    let definition = TrainDefinition { test_fraction: 0.2, ..definition(record) };
    for name in ["a.bin", "b.bin.zst", "a.bin"] {
        let texts = Texts::find(&files.path().join(name), None).unwrap();
        let corpus = Corpus::from_texts(&definition, &texts, &files.path().join("kept")).unwrap();
        let found = Split::ALL.map(|split| records(&corpus, split, record));
        assert_eq!(found.each_ref().map(Vec::len), [1190, 170, 340], "{name}");
        assert!(found.concat().concat() == bytes, "{name}: not the bytes of the file");
        assert_eq!((corpus.vocabulary.size(), corpus.vocabulary.end()), (257, None));
        assert_eq!(corpus.sha256, crate::system::sha256(&bytes));
    }
}

#[test]
fn the_same_bytes_as_text_and_as_records_are_kept_apart() {
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("a.bin"), noise(1 << 20)).unwrap();
    let texts = Texts::find(&files.path().join("a.bin"), None).unwrap();
    let kept = files.path().join("kept");
    let as_text = TrainDefinition { records: 0, ..definition(1024) };
    for (definition, tokens) in
        [(definition(1024), 921 * 1025), (definition(64), 14745 * 65), (as_text, 943_718)]
    {
        let corpus = Corpus::from_texts(&definition, &texts, &kept).unwrap();
        let off = corpus.split(Split::Train).len().abs_diff(tokens);
        assert!(off <= 3 && (definition.records == 0 || off == 0), "{off}");
    }
}

#[test]
fn a_last_record_that_is_not_whole_is_refused_with_the_sizes() {
    for (bytes, told) in [(785, "1 records and 1 bytes"), (783, "0 records"), (0, "0 bytes")] {
        let error = Corpus::from_text(&definition(784), &noise(bytes)).unwrap_err().to_string();
        let size = format!("{bytes} bytes are not a whole number of records of 784");
        assert!(error.contains(&size) && error.contains(told), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    let files = tempfile::tempdir().unwrap();
    let (train, valid) = (files.path().join("a.bin"), files.path().join("v.bin"));
    fs::write(&train, noise(40)).unwrap();
    fs::write(&valid, noise(15)).unwrap();
    let texts = Texts::find(&train, Some(&valid)).unwrap();
    let error = Corpus::from_texts(&definition(4), &texts, Path::new("unused")).unwrap_err();
    assert!(error.to_string().contains("v.bin: 15 bytes"), "{error}");
    let model = Vocabulary { symbols: Symbols::Bytes, has_end: false, record: Some(4) };
    let error = texts.documents(&definition(4), &model, None).err().unwrap();
    assert!(error.to_string().contains("v.bin: 15 bytes"), "{error}");
}

#[test]
fn validation_may_have_records_of_its_own_and_folders_have_no_ends() {
    let files = tempfile::tempdir().unwrap();
    let bytes = noise(60);
    for (name, part) in [("train/a.bin", 0..24), ("train/b.bin", 24..40), ("valid.bin", 40..60)] {
        let path = files.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &bytes[part]).unwrap();
    }
    let texts =
        Texts::find(&files.path().join("train"), Some(&files.path().join("valid.bin"))).unwrap();
    let corpus = Corpus::from_texts(&definition(4), &texts, Path::new("unused")).unwrap();
    let mut train = records(&corpus, Split::Train, 4);
    train.sort();
    let mut wanted: Vec<Vec<u8>> = bytes[..40].chunks(4).map(<[u8]>::to_vec).collect();
    wanted.sort();
    assert_eq!(train, wanted);
    assert_eq!(records(&corpus, Split::Valid, 4).concat(), bytes[40..]);
}

#[test]
fn synthetic_records_have_the_entropy_of_their_source() {
    let source = SyntheticCorpus {
        tokens: 1_000_000,
        alphabet: 3,
        columns: 5,
        recall: 0.0,
        ..SyntheticCorpus::default()
    };
    let definition = TrainDefinition { corpus: source, ..definition(20) };
    let corpus = Corpus::synthetic(&definition).unwrap();
    assert_eq!((corpus.vocabulary.size(), corpus.vocabulary.begin()), (4, Some(3)));
    let tokens: Vec<u32> = Split::ALL.iter().flat_map(|&s| corpus.split(s).iter()).collect();
    assert_eq!(tokens.len(), 1_000_000 / 21 * 21);
    // Counts of the next symbol given the previous one and the one above; symbol 0 before a record's start.
    let mut counts: HashMap<[u32; 2], [f64; 3]> = HashMap::new();
    let mut sum = 0.0;
    for record in tokens.chunks(21) {
        assert_eq!(record[0], 3);
        let before = |at: usize, lag: usize| if at > lag { record[at - lag] } else { 0 };
        for (at, &symbol) in record.iter().enumerate().skip(1) {
            counts.entry([before(at, 1), before(at, 5)]).or_default()[symbol as usize] += 1.0;
            sum += 1.0;
        }
    }
    let nats = |row: &[f64; 3]| -> f64 {
        let all: f64 = row.iter().sum();
        row.iter().filter(|&&n| n > 0.0).map(|n| -n / sum * (n / all).ln()).sum()
    };
    let counted: f64 = counts.values().map(nats).sum();
    let told = corpus.entropy_nats.unwrap();
    assert!((counted - told).abs() < 0.002, "{counted} against {told}");
    // Without the symbol above, the entropy is higher: that symbol carries information.
    let mut pairs: HashMap<u32, [f64; 3]> = HashMap::new();
    for ([before, _], row) in &counts {
        let pair = pairs.entry(*before).or_default();
        pair.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    let before_alone: f64 = pairs.values().map(nats).sum();
    assert!(before_alone > told + 0.1, "{before_alone} against {told}");

    let flat = TrainDefinition { corpus: SyntheticCorpus::default(), ..definition };
    let error = Corpus::synthetic(&flat).unwrap_err().to_string();
    assert!(error.contains("corpus.columns"), "{error}");
}
