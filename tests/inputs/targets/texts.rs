//! Texts, plain and packed, and the tokens that are kept of them.

use std::fs;
use std::path::Path;

use rank_study::lm::{Corpus, Split, Texts, TrainDefinition};

use super::super::forms::Form;
use super::super::target::Target;
use super::{Kept, all};

const TEXT: &str = "the quick brown fox, the lazy dog\nand the quick quail 's end: don't, naïve 3.14  \n\n déjà 你好 😀\t\t<|endoftext|> ";

fn definition(vocabulary: &str) -> TrainDefinition {
    let text = format!("context = 8\nvocabulary = \"{vocabulary}\"\n");
    TrainDefinition::from_toml(&text).unwrap()
}

/// Encodes texts, and reads every token.
fn is_encoded(definition: &TrainDefinition, texts: &Path, kept: &Path) -> bool {
    let texts = Texts::find(texts, None);
    let Ok(corpus) = texts.and_then(|texts| Corpus::from_texts(definition, &texts, kept)) else {
        return false;
    };
    for split in Split::ALL {
        let most = corpus.split(split).iter().max();
        assert!(most.is_none_or(|&most| usize::from(most) < corpus.vocabulary.size()));
    }
    true
}

pub fn texts(place: &Path) -> Target {
    let folder = place.join("texts");
    fs::create_dir_all(folder.join("in")).unwrap();
    let plain = TEXT.repeat(4).into_bytes();
    fs::write(folder.join("in/other.txt"), &plain).unwrap();
    let packed = |level, text: &[u8]| zstd::encode_all(text, level).unwrap();
    let long = TEXT.repeat(60).into_bytes();
    let mut files = all(Form::Text, [plain.clone()]);
    let bombs = packed(19, &vec![b'a'; 1 << 22]);
    files.extend(all(Form::Bytes, [packed(3, &plain), packed(19, &long), bombs]));
    let definitions = ["byte", "characters", "bpe:270"].map(definition);
    let read = move |of: usize, bytes: &[u8]| {
        let (name, other) = if of == 0 { ("a.txt", "a.txt.zst") } else { ("a.txt.zst", "a.txt") };
        fs::write(folder.join(name), bytes).unwrap();
        let _ = fs::remove_file(folder.join(other));
        // A vocabulary of pairs takes longest to make.
        let which = [0, 1, 0, 1, 0, 1, 0, 2][bytes.len() % 8];
        is_encoded(&definitions[which], &folder, &folder.with_file_name("kept"))
    };
    Target { files, read: Box::new(read) }
}

pub fn token_files(place: &Path) -> Target {
    let (text, kept) = (place.join("text.txt"), place.join("kept"));
    fs::write(&text, TEXT.repeat((1 << 20) / TEXT.len() + 1)).unwrap();
    let definition = definition("characters");
    assert!(is_encoded(&definition, &text, &kept));
    let whole = Kept::of(&kept);
    let is_tokens = |path: &Path| path.extension().is_some_and(|ending| ending == "tokens");
    let place = whole.files.iter().position(|(path, _)| is_tokens(path)).unwrap();
    let files = all(Form::Tail, [whole.files[place].1.clone()]);
    let read = move |_, bytes: &[u8]| {
        whole.put_back(place, bytes);
        assert!(is_encoded(&definition, &text, &kept), "what is damaged is made anew");
        true
    };
    Target { files, read: Box::new(read) }
}
