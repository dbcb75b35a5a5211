//! Targets come back from files as they were, and files that hold none say why.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ShapeBuilder, arr2, s};
use ndarray_npy::write_npy;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rank_study::targets::{Family, Spectrum, Statistics, Target, TargetFile, Visibility};
use safetensors::tensor::{Dtype, TensorView, serialize};

const CAUSAL: Visibility = Visibility::Causal;
const FORMATS: [&str; 4] = ["npy", "csv", "parquet", "safetensors"];

fn example(n: usize) -> Target {
    let local = Box::new(Family::DirichletBand { window: 5, alpha: 0.5 });
    let global = Box::new(Family::Landmark { m: 3 });
    Family::Mixture { lambda: 0.3, local, global }.build(n, 7, CAUSAL).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn largest_difference(a: &Target, b: &Target) -> f64 {
    (a.dense() - b.dense()).iter().fold(0.0, |worst, d| d.abs().max(worst))
}

fn error_of(path: &Path) -> String {
    let error = Target::read(path, CAUSAL).unwrap_err().to_string();
    assert!(!error.contains('\n'), "more than one line: {error}");
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(error.contains(&name), "does not name the file: {error}");
    error
}

fn read(path: &Path) -> Array2<f64> {
    Target::read(path, CAUSAL).unwrap().dense()
}

fn named(path: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!("{}#{name}", path.display()))
}

fn file_with(folder: &tempfile::TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_format_gives_back_what_was_written() {
    let folder = folder();
    let target = example(23);
    for format in FORMATS {
        let path = folder.path().join(format!("a.{format}"));
        target.write(&path).unwrap();
        target.write(&path).unwrap();
        let read = Target::read(&path, CAUSAL).unwrap();
        let worst = largest_difference(&target, &read);
        assert!(worst < 1e-15, "{format}: off by {worst}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), FORMATS.len());
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    let folder = folder();
    let target = example(12);
    for format in ["npy", "parquet", "safetensors"] {
        let whole = folder.path().join(format!("whole.{format}"));
        target.write(&whole).unwrap();
        let bytes = fs::read(&whole).unwrap();
        for end in (0..bytes.len()).step_by(7) {
            error_of(&file_with(&folder, &format!("cut.{format}"), &bytes[..end]));
        }
    }
    let whole = folder.path().join("whole.csv");
    target.write(&whole).unwrap();
    let text = fs::read_to_string(&whole).unwrap();
    let error = error_of(&file_with(&folder, "cut.csv", &text[..text.len() * 2 / 3]));
    assert!(error.contains("12 in line 1"), "{error}");
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    let folder = folder();
    let target = example(4);
    let missing = folder.path().join("none").join("a.npy");
    let error = target.write(&missing).unwrap_err().to_string();
    assert!(error.contains("a.npy"), "{error}");
    let error = target.write(&folder.path().join("a.txt")).unwrap_err().to_string();
    assert!(error.contains(".parquet"), "{error}");
    let occupied = folder.path().join("b.npy");
    fs::create_dir(&occupied).unwrap();
    assert!(target.write(&occupied).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn numpy_types_and_orders_are_read() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    let rows = arr2(&[[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.125, 0.375]]);
    let mut fortran = Array2::<f64>::zeros((3, 3).f());
    fortran.assign(&rows);
    write_npy(&path, &fortran).unwrap();
    assert_eq!(read(&path), rows);
    write_npy(&path, &rows.mapv(|p| p as f32)).unwrap();
    assert_eq!(read(&path), rows);
    write_npy(&path, &arr2(&[[1i32, 0], [0, 1]])).unwrap();
    assert_eq!(read(&path), Array2::<f64>::eye(2));
    write_npy(&path, &arr2(&[[1i64, 0], [0, 1]])).unwrap();
    assert!(error_of(&path).contains("float64"));
    write_npy(&path, &ndarray::arr1(&[1.0])).unwrap();
    assert!(error_of(&path).contains("[1]"));
    write_npy(&path, &arr2(&[[1.0, 0.0]])).unwrap();
    assert!(error_of(&path).contains("1 × 2"));
}

#[test]
fn an_npy_header_that_claims_too_much_is_not_believed() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    write_npy(&path, &arr2(&[[1.0]])).unwrap();
    let whole = fs::read(&path).unwrap();
    let header = String::from_utf8_lossy(&whole[10..128]);
    let claim = header.replace("(1, 1)", "(3000000000, 3000000000)");
    let claim = format!("{:<117}\n", claim.trim_end());
    let bytes = [&whole[..10], claim.as_bytes(), &[0; 8]].concat();
    assert!(error_of(&file_with(&folder, "a.npy", bytes)).contains("cut off"));
}

#[test]
fn csv_headers_are_skipped_and_bad_lines_named() {
    let folder = folder();
    let path = file_with(&folder, "a.csv", "x,y\n1,0\n 0.5 , 5e-1\n");
    assert_eq!(read(&path), arr2(&[[1.0, 0.0], [0.5, 0.5]]));
    for (text, part) in [
        ("", "no rows"),
        ("1,0\n0.5,0.5,0\n", "3 in line 2 and 2 in line 1"),
        ("1,0\n0.5,x\n", "line 2, field 2"),
        ("1,\n0.5,0.5\n", "line 1, field 2"),
        ("1,0\n", "1 × 2"),
        ("1,0\nNaN,1\n", "row 1, column 0 (from 0) is NaN"),
        ("1,0\n-0.5,1.5\n", "is -0.5"),
        ("1,0\n0.5,0.4\n", "sums to 0.9"),
        ("0.5,0.5\n0,1\n", "causal mask"),
    ] {
        let error = error_of(&file_with(&folder, "a.csv", text));
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let path = file_with(&folder, "a.csv", "0.5,0.5\n0,1\n");
    assert!(Target::read(&path, Visibility::Bidirectional).is_ok());
    assert!(error_of(&file_with(&folder, "b.csv", [b'1', 0xff, b'\n'])).contains("UTF-8"));
}

#[test]
fn a_tensor_is_found_by_name_or_because_it_is_the_only_matrix() {
    let folder = folder();
    let values =
        |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let matrix = values(&[1.0, 0.0, 0.5, 0.5]);
    let halves = [1.0, 0.0, 0.25, 0.75].map(|x| half::bf16::from_f32(x).to_le_bytes()).concat();
    let bias = values(&[1.0, 2.0]);
    let tensor =
        |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data).unwrap();
    let one = [
        ("bias", tensor(Dtype::F32, &[2], &bias)),
        ("layer0", tensor(Dtype::F32, &[2, 2], &matrix)),
    ];
    let path = file_with(&folder, "one.safetensors", serialize(one.clone(), None).unwrap());
    assert_eq!(read(&path), arr2(&[[1.0, 0.0], [0.5, 0.5]]));
    let [bias, layer0] = one;
    let two = [bias, layer0, ("layer1", tensor(Dtype::BF16, &[2, 2], &halves))];
    let path = file_with(&folder, "two.safetensors", serialize(two, None).unwrap());
    assert!(error_of(&path).contains("2 arrays"));
    assert_eq!(read(&named(&path, "layer1")), arr2(&[[1.0, 0.0], [0.25, 0.75]]));
    assert!(error_of(&named(&path, "layer2")).contains("\"layer0\""));
    assert!(error_of(&named(&path, "bias")).contains("[2]"));
}

#[test]
fn files_that_are_missing_or_of_no_known_kind_are_errors() {
    let folder = folder();
    fs::create_dir(folder.path().join("b.csv")).unwrap();
    for (name, part) in [
        ("no.npy", "No such file"),
        ("a.doc", ".safetensors"),
        ("a", "extension"),
        ("b.csv", "folder"),
    ] {
        let error = error_of(&folder.path().join(name));
        assert!(error.contains(part), "{error}");
    }
}

/// A softmax of made-up logits, and its logits.
fn attention(n: usize) -> (Array2<f64>, Array2<f64>) {
    let logits = Array2::from_shape_fn((n, n), |(i, j)| ((3 * i + 5 * j) % 7) as f64 - 3.0);
    let mut attention = Array2::zeros((n, n));
    for i in 0..n {
        let sum: f64 = (0..=i).map(|j| logits[[i, j]].exp()).sum();
        (0..=i).for_each(|j| attention[[i, j]] = logits[[i, j]].exp() / sum);
    }
    (attention, logits)
}

/// A .npy file of numbers of two bytes.
fn npy_of_halves(descriptor: &str, fortran: &str, shape: &str, bits: &[u16]) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descriptor}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    // The numbers begin at a multiple of 64 bytes.
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    let big = descriptor.starts_with('>');
    bytes.extend(bits.iter().flat_map(|b| if big { b.to_be_bytes() } else { b.to_le_bytes() }));
    bytes
}

#[test]
fn half_precision_is_read_and_its_rounding_said() {
    let folder = folder();
    let (attention, _) = attention(9);
    let f16 = |x: f64| half::f16::from_f64(x).to_bits();
    let bf16 = |x: f64| half::bf16::from_f64(x).to_bits();
    for (descriptor, fortran, bits, ulp) in [
        ("<f2", "False", attention.mapv(f16), 2f64.powi(-11)),
        (">f2", "False", attention.mapv(f16), 2f64.powi(-11)),
        ("<f2", "True", attention.t().mapv(f16), 2f64.powi(-11)),
        ("<V2", "False", attention.mapv(bf16), 2f64.powi(-8)),
    ] {
        let bits: Vec<u16> = bits.iter().copied().collect();
        let name = format!("{descriptor}, by columns {fortran}");
        let bytes = npy_of_halves(descriptor, fortran, "(9, 9)", &bits);
        let read = TargetFile::at(&file_with(&folder, "a.npy", bytes)).read(CAUSAL).unwrap();
        let furthest = read.rescaled.unwrap_or_else(|| panic!("{name}: no rounding is told"));
        assert!(furthest > 1e-5 && furthest <= ulp, "{name}: {furthest}");
        let dense = read.target.dense();
        assert!((&dense - &attention).iter().all(|off| off.abs() <= 2.0 * ulp), "{name}");
        assert!(dense.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-14), "{name}");
    }
    let off = file_with(&folder, "e.csv", b"1,0\n0.5,0.49\n");
    assert!(error_of(&off).contains("0.99"), "half precision");
}

#[test]
fn logits_are_told_from_attention_and_softmaxed_where_asked() {
    let folder = folder();
    let (attention, mut logits) = attention(9);
    // What is not seen may be anything, as where the mask was to come after.
    logits[[0, 8]] = f64::NEG_INFINITY;
    let path = folder.path().join("logits.npy");
    write_npy(&path, &logits).unwrap();
    let error = error_of(&path);
    assert!(error.contains("from -3 to 3") && error.contains("--softmax"), "{error}");
    let read = TargetFile { logits: true, ..TargetFile::at(&path) }.read(CAUSAL).unwrap();
    assert_eq!(read.rescaled, None);
    assert_close(&read.target, &attention);
    logits[[3, 1]] = f64::NAN;
    write_npy(&path, &logits).unwrap();
    let wrong = TargetFile { logits: true, ..TargetFile::at(&path) }.read(CAUSAL).unwrap_err();
    assert!(wrong.to_string().contains("row 3, column 1"), "{wrong}");
    // One bad entry among rows of attention is a bad entry.
    let mut bad = attention.clone();
    bad[[2, 1]] = -0.5;
    write_npy(&path, &bad).unwrap();
    assert!(error_of(&path).contains("row 2, column 1"), "{}", error_of(&path));
}

#[test]
fn text_of_every_tool_is_read() {
    let folder = folder();
    let wanted = arr2(&[[1.0, 0.0], [0.5, 0.5]]);
    let (header, index) = ("a header", "an index");
    let of_tools: [(&str, &str, &[&str]); 11] = [
        // DataFrame(A).to_csv(): header and index
        ("a.csv", ",0,1\n0,1.0,0.0\n1,0.5,0.5\n", &[header, index]),
        // DataFrame(A).to_csv(index=False)
        ("a.csv", "0,1\n1.0,0.0\n0.5,0.5\n", &[header]),
        // DataFrame(A, index=tokens, columns=tokens).to_csv()
        ("a.csv", ",the,\"s,at\"\nthe,1.0,0.0\n\"s,at\",0.5,0.5\n", &[header, index]),
        // DataFrame(A).to_csv(header=False)
        ("a.csv", "0,1.0,0.0\n1,0.5,0.5\n", &[index]),
        // sep=";", decimal=",", as write.csv2 of R and spreadsheets in Europe
        ("a.csv", "\"\";\"V1\";\"V2\"\n\"1\";1;0\n\"2\";0,5;0,5\n", &[header, index]),
        ("a.csv", "1;0\r\n0.5;0.5\r\n", &[]),
        // write.table of R: the header is shorter by one
        ("a.txt", "V1 V2\n1 1 0\n2 0.5 0.5\n", &[header, index]),
        ("a.tsv", "1\t0\n0.5\t0.5\n", &[]),
        // numpy.savetxt, with and without a header
        ("a.txt", "1.000000000000000000e+00 0.000000000000000000e+00\n5.0e-01 5.0e-01\n", &[]),
        ("a.txt", "# attention\n1.0e+00 0.0\n5.0e-01 5.0e-01\n", &[]),
        // "CSV UTF-8" of Excel begins with a byte order mark
        ("a.csv", "\u{feff}1,0\r\n0.5,0.5\r\n", &[]),
    ];
    for (name, text, left_out) in of_tools {
        let read = TargetFile::at(&file_with(&folder, name, text)).read(CAUSAL);
        let read = read.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(read.target.dense(), wanted, "{text:?}");
        assert_eq!(read.left_out, left_out, "{text:?}");
    }
    let long = "1.0 ".repeat(300) + "x" + &"1".repeat(5000) + "\n";
    let error = error_of(&file_with(&folder, "a.txt", long));
    assert!(error.len() < 300 && error.contains("field 301"), "{error}");
}

/// Rows are divided by their sums, which may change a last digit.
fn assert_close(read: &Target, wanted: &Array2<f64>) {
    assert!((read.dense() - wanted).iter().all(|off| off.abs() < 1e-15), "{read:?}");
}

fn npz(arrays: &[(&str, &Array2<f64>)], compression: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(compression);
    for (name, array) in arrays {
        let mut bytes = Vec::new();
        ndarray_npy::WriteNpyExt::write_npy(*array, &mut bytes).unwrap();
        archive.start_file(format!("{name}.npy"), options).unwrap();
        std::io::Write::write_all(&mut archive, &bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn an_array_of_an_npz_file_is_found_by_name_or_because_it_is_the_only_one() {
    let folder = folder();
    let (attention, logits) = attention(9);
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let one = file_with(&folder, "one.npz", npz(&[("arr_0", &attention)], method));
        assert_close(&Target::read(&one, CAUSAL).unwrap(), &attention);
        let both = npz(&[("probs", &attention), ("scores", &logits)], method);
        let path = file_with(&folder, "two.npz", &both);
        assert!(error_of(&path).contains("#probs"));
        assert_close(&Target::read(&named(&path, "probs"), CAUSAL).unwrap(), &attention);
        let error = Target::read(&named(&path, "prob"), CAUSAL).unwrap_err().to_string();
        assert!(error.contains("\"probs\""), "{error}");
        for end in (0..both.len()).step_by(13) {
            error_of(&file_with(&folder, "cut.npz", &both[..end]));
        }
    }
}

#[test]
fn padding_is_told_and_left_out_where_asked() {
    let folder = folder();
    let (attention, logits) = attention(5);
    for (before, after, says) in
        [(0, 3, "rows 5 to 7"), (2, 0, "rows 0 to 1"), (1, 1, "rows 0 to 0")]
    {
        let n = before + 5 + after;
        let path = folder.path().join("padded.npy");
        let write = |matrix: &Array2<f64>, padding: f64| {
            let mut padded = Array2::from_elem((n, n), padding);
            padded.slice_mut(s![before..before + 5, before..before + 5]).assign(matrix);
            write_npy(&path, &padded).unwrap();
        };
        write(&attention, 0.0);
        let error = error_of(&path);
        assert!(error.contains(says) && error.contains("--trim-padding"), "{error}");
        let trimmed = TargetFile { trim_padding: true, ..TargetFile::at(&path) };
        let read = trimmed.read(CAUSAL).unwrap();
        assert_close(&read.target, &attention);
        assert!(read.left_out[0].starts_with(&format!("{} of {n} tokens", before + after)));
        write(&logits, f64::NEG_INFINITY);
        let read = TargetFile { logits: true, ..trimmed }.read(CAUSAL).unwrap();
        assert_close(&read.target, &attention);
    }
}

#[test]
fn attention_after_dropout_is_recognised() {
    let folder = folder();
    let target = example(64);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let dropped = target.dense().mapv(|p| if rng.random_bool(0.1) { 0.0 } else { p / 0.9 });
    let path = folder.path().join("dropped.npy");
    write_npy(&path, &dropped).unwrap();
    assert!(error_of(&path).contains("dropout"), "{}", error_of(&path));
}

#[test]
fn a_file_is_a_family_too() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    let target = example(9);
    target.write(&path).unwrap();
    let family = Family::File { path };
    assert!(largest_difference(&family.build(9, 0, CAUSAL).unwrap(), &target) < 1e-15);
    assert!(family.build(8, 0, CAUSAL).unwrap_err().to_string().contains("9 × 9"));
}

#[test]
fn statistics_have_their_known_values() {
    let n = 12;
    let effective_rank = |target: &Target, expected: f64| {
        let spectrum = Spectrum::of(target).unwrap();
        assert!((spectrum.effective_rank - expected).abs() < 1e-9, "{}", spectrum.effective_rank);
        assert_eq!(spectrum.numerical_rank as f64, expected);
    };
    let identity = Family::UniformBand { window: 1 }.build(n, 0, CAUSAL).unwrap();
    let found = Statistics::of(&identity);
    assert_eq!((found.mean_row_entropy_nats, found.mean_lag, found.largest_lag), (0.0, 0.0, 0));
    assert_eq!(found.degrees_of_freedom, n as f64);
    assert_eq!(found.density, 2.0 / (n as f64 + 1.0));
    effective_rank(&identity, n as f64);

    let row: Vec<(usize, f64)> = (0..n).map(|column| (column, 1.0 / n as f64)).collect();
    let uniform = Target::from_rows(vec![row; n], Visibility::Bidirectional).unwrap();
    let found = Statistics::of(&uniform);
    assert!((found.mean_row_entropy_nats - (n as f64).ln()).abs() < 1e-12);
    assert!((found.degrees_of_freedom - 1.0).abs() < 1e-12);
    assert_eq!((found.density, found.largest_lag), (1.0, n - 1));
    effective_rank(&uniform, 1.0);

    let prefix = Statistics::of(&Family::Prefix.build(n, 0, CAUSAL).unwrap());
    let harmonic: f64 = (1..=n).map(|i| 1.0 / i as f64).sum();
    assert!((prefix.degrees_of_freedom - harmonic).abs() < 1e-12);
    assert!((prefix.mean_lag - (n as f64 - 1.0) / 4.0).abs() < 1e-12);

    let landmark = Family::Landmark { m: 3 }.build(40, 1, CAUSAL).unwrap();
    assert!(Spectrum::of(&landmark).unwrap().numerical_rank <= 3);
}

#[test]
fn a_spectrum_that_would_take_too_long_is_refused() {
    let target = Family::PreviousToken { k: 1 }.build(5000, 0, CAUSAL).unwrap();
    assert!(Spectrum::of(&target).unwrap_err().to_string().contains("4096"));
}
