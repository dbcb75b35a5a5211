//! What is wrong with files and requests is told in a line, and costs nothing that was there.

use crate::common::binary::Folder;
use crate::common::tiny;

fn with_run() -> Folder {
    let folder = Folder::new();
    folder.write(
        "run.toml",
        tiny::training("steps = 10\neval_every = 5\ncheckpoint_every = 5\nkeep_checkpoints = [5]"),
    );
    folder
}

/// The one line of a command that must fail; the folder of the run that it would have made may be there, empty or not.
fn says(folder: &Folder, arguments: &[&str]) -> String {
    let ended = folder.run(arguments);
    assert_eq!(ended.code, Some(1), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    ended.stderr
}

#[test]
fn a_checkpoint_with_one_bit_changed_is_not_used() {
    let folder = with_run();
    folder.write("text.txt", "the quick brown fox jumps over the lazy dog\n".repeat(30));
    let of_text = [
        "train", "run.toml", "--out", "r", "--quiet", "--text", "text.txt", "--set",
        "vocabulary=byte",
    ];
    folder.done(&of_text);
    let resume = [&of_text[..], &["--resume", "--set", "steps=12"]].concat();
    let kept = "r/checkpoint/step-000005.safetensors";
    let evaluate = ["evaluate", "r", "--text", "text.txt", "--step", "5", "--quiet"];
    let read = |file: &str| std::fs::read(folder.path(file)).unwrap();
    let data = |whole: &[u8]| 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let change = |file: &str, whole: &[u8], place: usize, bit: usize| {
        let mut changed = whole.to_vec();
        changed[place] ^= 1 << bit;
        folder.write(file, &changed);
    };
    for (file, command) in
        [("r/checkpoint/training.safetensors", &resume[..]), (kept, &evaluate[..])]
    {
        let whole = read(file);
        let data = data(&whole);
        // All over the numbers, their first and last bits among them.
        let places = (0..=40).map(|at| data + (whole.len() - data - 1) * at / 40);
        for (place, bit) in places.zip((0..8).cycle()) {
            change(file, &whole, place, bit);
            let why = says(&folder, command);
            assert!(why.contains("is damaged"), "{file}, byte {place}: {why}");
        }
        folder.write(file, &whole);
    }
    let whole = read(kept);
    let said = folder.done(&evaluate);
    // In the header it is found, or changes nothing, as where the note of the checksum has another name.
    for place in (0..data(&whole)).step_by(3) {
        for bit in [0, 3, 7] {
            change(kept, &whole, place, bit);
            let ended = folder.run(&evaluate);
            match ended.code {
                Some(0) => assert_eq!(ended.stdout, said, "byte {place}"),
                Some(1) => {
                    assert_eq!(ended.stderr.lines().count(), 1, "byte {place}: {}", ended.stderr)
                }
                code => panic!("byte {place}: {code:?}, {}", ended.stderr),
            }
        }
    }
    folder.write(kept, &whole);
    folder.done(&resume);
}

#[cfg(unix)]
#[test]
fn texts_reached_by_links_are_read_once_and_pipes_are_refused() {
    let folder = with_run();
    let text = "the quick brown fox jumps over the lazy dog\n".repeat(30);
    folder.write("texts/one.txt", &text);
    folder.write("texts/inner/two.txt", text.to_uppercase());
    let run = |out: &str| {
        folder.done(&[
            "train", "run.toml", "--text", "texts", "--set", "vocabulary=byte", "--quiet", "--out",
            out,
        ]);
        let manifest: toml::Table = folder.read(&format!("{out}/manifest.toml")).parse().unwrap();
        manifest["corpus"].clone()
    };
    let plain = run("plain");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path(name)).unwrap();
    link(".", "texts/itself");
    link("../../texts", "texts/inner/outer");
    assert_eq!(run("linked"), plain);

    let pipe = folder.path("texts/pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for text in ["texts", "texts/pipe.txt"] {
        let train = ["train", "run.toml", "--text", text, "--quiet", "--out", "piped"];
        let why = says(&folder, &train);
        assert!(why.contains("pipe.txt"), "{why}");
    }
}
