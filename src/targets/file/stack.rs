//! Selection of one matrix from an array: the array is a matrix, or a stack of matrices of heads, batches and layers.

use ndarray::{Array2, ArrayD, Axis, Ix2};

use crate::system::nearest::nearest;
use crate::targets::TargetError;

/// Returns n for an n × n shape with n ≥ 1, and the error otherwise.
pub(super) fn square(rows: usize, columns: usize) -> Result<usize, TargetError> {
    match rows {
        0 => Err(TargetError::empty()),
        _ if rows != columns => Err(TargetError::not_square(rows, columns)),
        _ => Ok(rows),
    }
}

/// The array `asked` for of a file that holds those called `names`; without a name the only one.
pub(super) fn chosen<'n>(names: &[&'n str], asked: Option<&str>) -> Result<&'n str, String> {
    match (asked, names) {
        (_, []) => Err("it holds no matrix; save one".to_owned()),
        (None, [only]) => Ok(only),
        (None, [first, ..]) => {
            Err(format!("it holds {} arrays; name one, such as FILE#{first}", names.len()))
        }
        (Some(asked), _) => names.iter().find(|name| **name == asked).copied().ok_or_else(|| {
            format!("no array {asked:?}; did you mean {:?}?", nearest(asked, names))
        }),
    }
}

/// One matrix of a stack: its index along each leading axis, from 0. An axis of length 1 needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackIndex {
    /// The layer, in a stack of shape (layers, batch, heads, n, n).
    pub layer: Option<usize>,
    /// The sequence, in a stack of shape (batch, heads, n, n) or with layers.
    pub sequence: Option<usize>,
    /// The head, in a stack of shape (heads, n, n) or with further axes.
    pub head: Option<usize>,
}

/// Returns `array` if it is a matrix, or the one at `index` of a stack.
pub(super) fn matrix_of(array: ArrayD<f64>, index: StackIndex) -> Result<Array2<f64>, TargetError> {
    const UNSUPPORTED: &str = "save a matrix, or a stack of shape (heads, n, n), (batch, heads, n, n) or (layers, \
                               batch, heads, n, n)";
    let shape = array.shape().to_vec();
    let mut stack = array;
    while stack.ndim() > 5 && stack.shape()[0] == 1 {
        stack = stack.index_axis_move(Axis(0), 0);
    }
    if !(2..=5).contains(&stack.ndim()) {
        return Err(format!("unsupported shape {shape:?}; {UNSUPPORTED}").into());
    }
    let axes = [
        ("layer", "layers", index.layer),
        ("sequence", "sequences", index.sequence),
        ("head", "heads", index.head),
    ];
    let (absent, present) = axes.split_at(5 - stack.ndim());
    if let Some((name, index)) = absent.iter().find_map(|(name, _, at)| Some((name, (*at)?))) {
        return Err(format!(
            "--{name} {index} needs a stack, but the file holds shape {shape:?}; leave --{name} out, or {UNSUPPORTED}"
        )
        .into());
    }
    for (name, several, index) in present {
        let length = stack.shape()[0];
        let all = format!("--{name} 0 to --{name} {}", length.saturating_sub(1));
        let at = match index {
            Some(at) if *at < length => *at,
            Some(at) => {
                let held = format!("the file holds {length} {several}");
                return Err(format!("--{name} {at} is out of range: {held}; give {all}").into());
            }
            None if length == 1 => 0,
            None => {
                let held = format!("the file holds a stack of {length} {several}");
                return Err(format!("{held} (shape {shape:?}); choose one with {all}").into());
            }
        };
        stack = stack.index_axis_move(Axis(0), at);
    }
    square(stack.shape()[0], stack.shape()[1])?;
    stack.into_dimensionality::<Ix2>().map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::*;

    fn told(shape: &[usize], [layer, sequence, head]: [Option<usize>; 3]) -> Result<f64, String> {
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|at| at as f64).collect();
        let array = ArrayD::from_shape_vec(shape, values).unwrap();
        let found = matrix_of(array, StackIndex { layer, sequence, head });
        found.map(|matrix| matrix[[0, 1]]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_matrix_is_taken_from_its_stack() {
        for (shape, index, value) in [
            (&[2, 2][..], [None; 3], 1.0),
            (&[3, 2, 2], [None, None, Some(2)], 9.0),
            (&[1, 3, 2, 2], [None, None, Some(1)], 5.0),
            (&[1, 2, 2], [None; 3], 1.0),
            (&[2, 3, 2, 2], [None, Some(1), Some(0)], 13.0),
            (&[2, 1, 3, 2, 2], [Some(1), None, Some(2)], 21.0),
            (&[1, 1, 1, 1, 1, 2, 2], [None; 3], 1.0),
        ] {
            assert_eq!(told(shape, index), Ok(value), "{shape:?}");
        }
    }

    #[test]
    fn what_is_no_matrix_says_what_to_do() {
        for (shape, index, part) in [
            (&[3, 2, 2][..], [None; 3], "--head 0 to --head 2"),
            (&[3, 2, 2], [None, None, Some(3)], "holds 3 heads"),
            (&[2, 2], [None, None, Some(0)], "leave --head out"),
            (&[3, 2, 2], [Some(0), None, Some(0)], "leave --layer out"),
            (&[2, 3, 2, 2], [None, None, Some(0)], "--sequence 0 to --sequence 1"),
            (&[4], [None; 3], "save a matrix"),
            (&[3, 2, 4], [None, None, Some(0)], "2 × 4"),
        ] {
            let why = told(shape, index).unwrap_err();
            assert!(why.contains(part), "{shape:?}, {index:?}: {why}");
        }
    }
}
