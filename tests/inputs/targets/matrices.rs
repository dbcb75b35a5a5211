//! Files with a matrix, as `fit`, `target` and `show` read them.

use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use ::safetensors::tensor::{Dtype, TensorView, serialize};
use ndarray::{Array2, Array3, ShapeBuilder as _};
use ndarray_npy::WriteNpyExt as _;
use rank_study::solver::{Problem, lower_bound};
use rank_study::targets::{
    Family, Layout, StackIndex, Target as Matrix, TargetFile, Visibility, write_matrix,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::super::forms::{Form, Headed};
use super::super::target::{Target, Whole};
use super::{all, here};

/// Attention of so many tokens.
fn attention(n: usize) -> Matrix {
    let band = Family::DirichletBand { window: 3, alpha: 1.0 };
    band.build(n, 7, Visibility::Causal).unwrap()
}

/// Attention and logits as the program writes them.
fn written(place: &Path, ending: &str) -> Vec<Vec<u8>> {
    let path = place.join(format!("whole.{ending}"));
    let logits = Array2::from_shape_fn((4, 4), |(row, column)| 0.3 * row as f64 - column as f64);
    let matrices = [attention(1).dense(), attention(4).dense(), attention(12).dense(), logits];
    let write = |matrix: &Array2<f64>| {
        write_matrix(matrix, &path).unwrap();
        fs::read(&path).unwrap()
    };
    matrices.iter().map(write).collect()
}

fn target(place: &Path, ending: &str, files: Vec<Whole>) -> Target {
    target_in(place, ending, files, <[u8]>::to_vec)
}

/// As [`target`], of files that hold the altered bytes.
fn target_in(
    place: &Path,
    ending: &str,
    files: Vec<Whole>,
    file_with: fn(&[u8]) -> Vec<u8>,
) -> Target {
    let path = place.join(format!("matrix.{ending}"));
    let read = move |_, bytes: &[u8]| {
        fs::write(&path, file_with(bytes)).unwrap();
        let file = |logits| TargetFile { logits, ..TargetFile::at(&path) };
        let used = [false, true].map(|logits| {
            file(logits).read(Visibility::Causal).is_ok_and(|read| is_used(read.target))
        });
        let index = StackIndex { head: Some(1), ..StackIndex::default() };
        let head = TargetFile { index, trim_padding: true, ..file(false) };
        let _ = head.read(Visibility::Bidirectional);
        used.contains(&true)
    };
    Target { files, read: Box::new(read) }
}

fn is_used(matrix: Matrix) -> bool {
    assert!(matrix.mean_log_likelihood_of_itself().is_finite());
    if matrix.n() > 1 && matrix.n() <= 16 {
        let problem = Problem::new(matrix, Layout::global(), 1).unwrap();
        lower_bound(&problem, 0.3);
    }
    true
}

pub fn npy(place: &Path) -> Target {
    let mut files = written(place, "npy");
    let ones = Array2::<f64>::eye(3);
    let mut add = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        files.push(bytes);
    };
    add(&|to| ones.mapv(|x| x as f32).write_npy(to).unwrap());
    add(&|to| ones.mapv(|x| x as i32).write_npy(to).unwrap());
    add(&|to| ones.mapv(|x| x as u8).write_npy(to).unwrap());
    add(&|to| Array2::<f64>::zeros((3, 3).f()).write_npy(to).unwrap());
    add(&|to| Array3::<f64>::ones((2, 3, 3)).write_npy(to).unwrap());
    target(place, "npy", all(Form::Headed(Headed::Npy), files))
}

pub fn npz(place: &Path) -> Target {
    let array = &written(place, "npy")[1];
    let files = [CompressionMethod::Stored, CompressionMethod::Deflated]
        .map(|method| archive(&[("arr_0.npy", array)], method));
    target(place, "npz", all(Form::Bytes, files))
}

fn archive(files: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in files {
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Altered pickles, in an archive beside a storage of 36 numbers.
pub fn torch(place: &Path) -> Target {
    let pickle = |name: &str| {
        let file = fs::File::open(here(&format!("tests/reference/torch/{name}"))).unwrap();
        let mut archive = ZipArchive::new(file).unwrap();
        let names: Vec<String> =
            archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        let pickle = names.iter().find(|name| name.ends_with("data.pkl")).unwrap();
        let mut bytes = Vec::new();
        archive.by_name(pickle).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let pickles = ["view.pt", "attentions.pt", "state.pth", "none.pt"].map(pickle);
    target_in(place, "pt", all(Form::Bytes, pickles), |pickle| {
        let numbers = 0.25_f64.to_le_bytes().repeat(144);
        let files = [("a/data.pkl", pickle), ("a/data/0", &numbers), ("a/data/1", &numbers)];
        archive(&files, CompressionMethod::Stored)
    })
}

pub fn csv(place: &Path) -> Target {
    let mut files = written(place, "csv");
    let of_tools = [
        "a,b\n1,0\n 0.5 , 0.5\n",
        ",0,1\n0,1.0,0.0\n1,0.5,0.5\n",
        "\"\";\"V1\";\"V2\"\n\"1\";1;0\n\"2\";0,5;0,5\n",
        "# a\n1.0e+00 0.0\n5.0e-01 5.0e-01\n",
    ];
    files.extend(of_tools.map(|text| text.as_bytes().to_vec()));
    target(place, "csv", all(Form::Text, files))
}

pub fn parquet(place: &Path) -> Target {
    let files = written(place, "parquet");
    target(place, "parquet", all(Form::Bytes, files))
}

pub fn safetensors(place: &Path) -> Target {
    let mut files = written(place, "safetensors");
    for (dtype, width) in [(Dtype::F32, 4), (Dtype::BF16, 2), (Dtype::I64, 8)] {
        let zeros = vec![0; 9 * width];
        let view = TensorView::new(dtype, vec![3, 3], &zeros).unwrap();
        files.push(serialize([("z", view)], None).unwrap());
    }
    target(place, "safetensors", all(Form::Headed(Headed::Safetensors), files))
}
