//! Compares exported heads with the results of `transformers` and with the same models read natively
//! (tests/reference/exported), and tests that invalid files are refused.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::ExportedHeads;
use crate::lm::tensor_file::SafetensorsFile;
use crate::lm::{HeadProbe, NormalisedInputs, PretrainedModel, Probed as _};
use crate::targets::Visibility;

const MODELS: [&str; 8] =
    ["bert", "gemma2", "gpt2", "gpt_neox", "gpt_oss", "llama-yarn", "olmo2", "qwen3"];
/// Number of tokens of the passage with results of transformers; other passages of a file are longer.
const TOKENS: usize = 24;

fn reference(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(path)
}

fn exported(name: &str) -> ExportedHeads {
    ExportedHeads::read(&reference(&format!("exported/{name}.safetensors"))).unwrap()
}

fn farthest<'a>(
    one: impl IntoIterator<Item = &'a f32>,
    other: impl IntoIterator<Item = &'a f32>,
) -> f32 {
    let pairs = one.into_iter().zip(other);
    pairs.fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

/// Compares with the logits and attention of transformers' eager attention in float32.
#[test]
fn logits_and_attention_are_those_of_transformers() {
    for name in MODELS {
        let heads = exported(name);
        let path = reference(&format!("published/{name}/expected.safetensors"));
        let expected = SafetensorsFile::open(&path).unwrap();
        let probes = heads.probe(&heads.own_passages().unwrap()[0][..TOKENS]).unwrap();
        assert_eq!(probes.len(), heads.heads() * heads.held_layers().len());
        for of_layer in probes.chunks(heads.heads()) {
            let layer = of_layer[0].layer;
            let shape = [heads.heads(), TOKENS, TOKENS];
            let [logits, attention] = ["logits", "attention"]
                .map(|what| expected.tensor(&format!("{what}.{layer}"), &shape).unwrap());
            for (probe, (logits, attention)) in of_layer
                .iter()
                .zip(logits.chunks(TOKENS * TOKENS).zip(attention.chunks(TOKENS * TOKENS)))
            {
                let at = format!("{name} {layer}.{}", probe.head);
                for (found, expected) in probe.logits().iter().zip(logits) {
                    let off = (found - f64::from(*expected)).abs();
                    assert!(off < 1e-5 || *found == f64::NEG_INFINITY, "{at}: logits off by {off}");
                }
                let all: Vec<usize> = (0..TOKENS).collect();
                let left = probe.sink_shares_of(&all);
                for ((row, column), found) in probe.attention().indexed_iter() {
                    let expected = f64::from(attention[row * TOKENS + column]);
                    let off = (found * (1.0 - left[row]) - expected).abs();
                    assert!(off < 1e-5, "{at}: attention off by {off}");
                }
            }
        }
    }
}

#[test]
fn attention_with_a_position_bias_is_that_of_transformers() {
    for (name, visibility) in [("t5", Visibility::Bidirectional), ("bloom", Visibility::Causal)] {
        let heads = exported(name);
        let path = reference(&format!("exported/attention/{name}.safetensors"));
        let expected = SafetensorsFile::open(&path).unwrap();
        let expected = expected.tensor("attention", &[3, TOKENS, TOKENS]).unwrap();
        let probes = heads.probe_layer(&heads.own_passages().unwrap()[..1], 1).unwrap();
        for (probe, expected) in probes[0].iter().zip(expected.chunks(TOKENS * TOKENS)) {
            assert_eq!(probe.visibility, visibility);
            let mut plain = probe.clone();
            plain.bias = None;
            let found = [probe, &plain].map(|probe| probe.attention().mapv(|p| p as f32));
            let [off, without] = found.each_ref().map(|found| farthest(found, expected));
            assert!(off < 1e-5 && without > 1e-3, "{name} {}: {off}, {without}", probe.head);
        }
    }
}

/// All other properties of the heads agree with those read from the model's own files.
#[test]
fn heads_are_those_of_the_model_read_natively() {
    for name in MODELS {
        let (heads, model) = (
            exported(name),
            PretrainedModel::read(&reference(&format!("published/{name}"))).unwrap(),
        );
        assert_eq!((heads.name(), heads.model_type()), (name, model.name()));
        assert_eq!((heads.layers(), heads.model_context()), (model.layers(), model.context()));
        for passage in heads.own_passages().unwrap() {
            for layer in heads.held_layers() {
                let passage = std::slice::from_ref(passage);
                let [found, expected] = [&heads as &dyn crate::lm::Probed, &model]
                    .map(|m| m.probe_layer(passage, layer).unwrap());
                assert_eq!(found[0].len(), expected[0].len());
                for (found, expected) in found[0].iter().zip(&expected[0]) {
                    are_alike(found, expected, &format!("{name} {layer}.{}", found.head));
                }
            }
        }
    }
}

fn are_alike(found: &HeadProbe, expected: &HeadProbe, at: &str) {
    let told =
        |p: &HeadProbe| (p.head, p.key_head, p.kind, p.visibility, p.softcap, p.bias.is_some());
    assert_eq!(told(found), told(expected), "{at}");
    assert!((found.scale / expected.scale - 1.0).abs() < 1e-6, "{at}: {}", found.scale);
    assert_eq!(found.sink.is_some(), expected.sink.is_some(), "{at}");
    assert!(farthest(&found.sink, &expected.sink) < 1e-6, "{at}");
    let matrices = |p: &HeadProbe| -> Vec<Array2<f32>> {
        let [queries, keys] = p.inputs.projected.clone();
        vec![p.queries.clone(), p.keys.clone(), (*p.inputs.stream).clone(), queries, keys]
    };
    for (which, (one, other)) in matrices(found).iter().zip(&matrices(expected)).enumerate() {
        assert_eq!(one.dim(), other.dim(), "{at}, matrix {which}");
        let largest = other.iter().fold(1.0f32, |most, v| most.max(v.abs()));
        let off = farthest(one, other) / largest;
        assert!(off < 1e-5, "{at}, matrix {which}: off by {off} of its largest");
    }
    let turns = |p: &HeadProbe| -> Vec<f32> {
        p.inputs.turns.iter().flat_map(|turns| turns.iter().copied().flatten()).collect()
    };
    // The form of the normalisation and its numbers.
    let normalised = |p: &HeadProbe| match &p.inputs.normalised {
        None => (None, Vec::new()),
        Some(NormalisedInputs::Each { gains, epsilon, centred }) => {
            (Some((*epsilon, *centred)), gains.iter().flatten().copied().collect())
        }
        Some(NormalisedInputs::Together { scales }) => (
            Some((0.0, false)),
            scales.iter().flat_map(|of| of.iter().copied()).collect::<Vec<f32>>(),
        ),
    };
    let ((form, numbers), (other_form, others)) = (normalised(found), normalised(expected));
    assert_eq!(form, other_form, "{at}");
    for (found, expected) in [(turns(found), turns(expected)), (numbers, others)] {
        assert_eq!(found.len(), expected.len(), "{at}");
        assert!(farthest(&found, &expected) < 1e-5, "{at}");
    }
}

#[test]
fn the_beginning_of_a_causal_passage_has_the_same_heads_and_of_others_there_is_none() {
    let heads = exported("olmo2");
    let passage = heads.own_passages().unwrap()[1].clone();
    let beginning = vec![passage[..10].to_vec()];
    let [whole, first] =
        [&[passage][..], &beginning].map(|passages| heads.probe_layer(passages, 1).unwrap());
    for (whole, first) in whole[0].iter().zip(&first[0]) {
        assert_eq!(first.inputs.stream.dim(), (10, 32));
        let (whole, first) = (whole.logits(), first.logits());
        assert_eq!(whole.slice(ndarray::s![..10, ..10]), first);
    }
    let not_held = heads.probe_layer(&beginning, 0).unwrap();
    assert!(not_held[0].is_empty(), "heads of a layer that is not held");
    let unknown = heads.probe_layer(&[vec![1, 2, 3]], 1).unwrap_err().to_string();
    assert!(unknown.contains("2 passages"), "{unknown}");
    let bert = exported("bert");
    let first = bert.own_passages().unwrap()[0][..5].to_vec();
    let cut = bert.probe_layer(&[first], 1).unwrap_err().to_string();
    assert!(cut.contains("not causal"), "{cut}");
}

/// The metadata and tensors of a file, to be modified and written again.
struct Altered {
    note: Value,
    tensors: HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl Altered {
    fn of(name: &str) -> Self {
        let bytes = fs::read(reference(&format!("exported/{name}.safetensors"))).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let note = &header.metadata().as_ref().unwrap()["rank-study-heads"];
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        });
        Self { note: serde_json::from_str(note).unwrap(), tensors: tensors.collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        let views = self.tensors.iter().map(|(name, (dtype, shape, data))| {
            (name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        let notes = HashMap::from([("rank-study-heads".to_owned(), self.note.to_string())]);
        serialize(views, Some(notes)).unwrap()
    }

    fn floats(&mut self, name: &str, alter: impl Fn(&mut Vec<f32>)) {
        let (_, _, data) = self.tensors.get_mut(name).unwrap();
        let mut all: Vec<f32> =
            data.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        alter(&mut all);
        *data = all.into_iter().flat_map(f32::to_le_bytes).collect();
    }
}

/// The error message, without the path, of reading a file or its heads.
fn said(bytes: &[u8]) -> String {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heads.safetensors");
    fs::write(&path, bytes).unwrap();
    let read = ExportedHeads::read(&path)
        .and_then(|heads| heads.probe(&heads.own_passages().unwrap()[0].clone()));
    let Err(error) = read else { panic!("the file was read") };
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text.replacen(&format!("{}: ", path.display()), "", 1)
}

/// Asserts that an altered file is refused with a message that names this.
fn refused(name: &str, named: &str, alter: impl FnOnce(&mut Altered)) {
    let mut file = Altered::of(name);
    alter(&mut file);
    let said = said(&file.bytes());
    assert!(said.contains(named), "{said}\nnot\n{named}");
}

#[test]
fn what_a_file_says_of_itself_is_held_to_itself() {
    let of_note = |named: &str, alter: &dyn Fn(&mut Value)| {
        refused("qwen3", named, |file| alter(&mut file.note));
    };
    of_note("version 2", &|note| note["version"] = json!(2));
    of_note("version none", &|note| drop(note.as_object_mut().unwrap().remove("version")));
    of_note("no passage", &|note| note["tokens"] = json!([]));
    of_note("empty", &|note| note["tokens"] = json!([[], []]));
    of_note("of 2 and of 1 tokens", &|note| note["tokens"] = json!([[1, 2], [3]]));
    of_note("passages 0 and 1", &|note| note["tokens"][0] = note["tokens"][1].clone());
    of_note("-1", &|note| note["tokens"][0][0] = json!(-1));
    of_note("names layer 1", &|note| note["layers"] = json!(1));
    of_note("no layer", &|note| note["heads"] = json!([]));
    of_note("layer 1 twice", &|note| {
        note["heads"] = json!([note["heads"][0], note["heads"][0]]);
    });
    of_note("header", &|note| note["model"] = Value::Null);
    for (key, value, named) in [
        ("scale", json!(0.0), "layer 1 has scale 0"),
        ("window", json!(0), "layer 1 has window 0"),
        ("softcap", json!(-3.0), "layer 1 has softcap -3"),
        ("pairs", json!("thirds"), "`thirds`"),
        ("alibi", json!(true), "`alibi`"),
        (
            "norm",
            json!({"over": "head", "centred": false, "epsilon": 2.0}),
            "layer 1 has epsilon 2",
        ),
    ] {
        of_note(named, &|note| note["heads"][0][key] = value.clone());
    }
    let no_note = serialize(HashMap::<String, TensorView<'_>>::new(), None).unwrap();
    assert!(said(&no_note).contains("\"rank-study-heads\""), "{}", said(&no_note));

    let mut renamed = Altered::of("gpt2");
    renamed.note["model"] = json!("some/where/../.My model: é/");
    let folder = tempdir().unwrap();
    let path = folder.path().join("heads.safetensors");
    fs::write(&path, renamed.bytes()).unwrap();
    assert_eq!(ExportedHeads::read(&path).unwrap().name(), "My-model--é");
}

#[test]
fn tensors_that_do_not_fit_together_are_named() {
    let absent = "layers.1.keys_gains";
    refused("qwen3", absent, |file| drop(file.tensors.remove(absent)));
    for (name, tensor, shape, named) in [
        ("qwen3", "keys", &[2, 2, 95, 12][..], "layers.1.keys is [2, 2, 95, 12]"),
        ("qwen3", "keys", &[2, 3, 96, 12], "4 query heads and 3 key heads"),
        ("qwen3", "queries", &[2, 0, 96, 12], "0 query heads"),
        ("qwen3", "stream", &[2, 96], "layers.1.stream is [2, 96]"),
        ("qwen3", "cos", &[96, 5], "layers.1.sin is [96, 6], but [96, 5]"),
        ("qwen3", "queries_before", &[2, 4, 96, 4], "layers.1.queries_before is"),
        ("t5", "position_bias", &[3, 46], "layers.1.position_bias is [3, 46], but [3, 47]"),
    ] {
        refused(name, named, |file| {
            let zeros = vec![0; 4 * shape.iter().product::<usize>()];
            let tensor = file.tensors.get_mut(&format!("layers.1.{tensor}")).unwrap();
            *tensor = (Dtype::F32, shape.to_vec(), zeros);
        });
    }
    refused("qwen3", "cosines and sines", |file| file.floats("layers.1.cos", |all| all[7] = 3.0));
    refused("gpt_neox", "1.200 for 2 of 8", |file| {
        for name in ["layers.1.cos", "layers.1.sin"] {
            file.floats(name, |all| all.iter_mut().for_each(|v| *v *= 1.2));
        }
    });
    refused("qwen3", "layers.1.keys has values that are NaN or infinite", |file| {
        file.floats("layers.1.keys", |all| all[5] = f32::NAN);
    });
}

#[test]
fn files_that_are_cut_short_or_absurd_are_refused() {
    let whole = Altered::of("gpt2").bytes();
    let mut broken: Vec<Vec<u8>> =
        [0, 4, 100, whole.len() / 2, whole.len() - 1].map(|end| whole[..end].to_vec()).into();
    let absurd = r#"{"x":{"dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,18446744073709551612]}}"#;
    for header in ["{", "[1]", r#"{"x":3}"#, absurd] {
        broken.push([&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat());
    }
    broken.push([&[0xff; 8][..], &[b'{'; 32]].concat());
    broken.push([&whole[..], &[0; 8]].concat());
    for bytes in broken {
        assert!(said(&bytes).contains("get a whole copy"), "{}", said(&bytes));
    }
}
