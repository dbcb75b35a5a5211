//! Selection of one matrix from an array: the array is a matrix or a stack of matrices, one per head.

use ndarray::{Array2, ArrayD, Axis, Ix2};

use crate::targets::TargetError;

/// The reason why a file holds no square matrix that can be a target.
pub(super) enum Problem {
    /// The bytes cannot be read as a matrix.
    Unreadable(String),
    /// The matrix cannot be a target.
    Unfit(TargetError),
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// Returns n for an n × n shape with n ≥ 1, and the error otherwise.
pub(super) fn square(rows: usize, columns: usize) -> Result<usize, Problem> {
    if rows == 0 {
        Err(Problem::Unfit(TargetError::Empty))
    } else if rows != columns {
        Err(Problem::Unfit(TargetError::NotSquare { rows, columns }))
    } else {
        Ok(rows)
    }
}

/// Returns `array` if it is a matrix, or head `head` of a stack (heads, n, n). Leading axes of length 1 before a stack are
/// removed.
pub(super) fn matrix_of(array: ArrayD<f64>, head: Option<usize>) -> Result<Array2<f64>, Problem> {
    let shape = array.shape().to_vec();
    let mut stack = array;
    while stack.ndim() > 3 && stack.shape()[0] == 1 {
        stack = stack.index_axis_move(Axis(0), 0);
    }
    let matrix = match (stack.ndim(), head) {
        (2, None) => stack,
        (2, Some(head)) => {
            return Err(format!(
                "--head {head} needs a stack of heads, but the file holds one matrix of shape {shape:?}; \
                 leave --head out"
            )
            .into());
        }
        (3, head) => {
            let heads = stack.shape()[0];
            let all = format!("--head 0 to --head {}", heads.saturating_sub(1));
            match head {
                Some(head) if head < heads => stack.index_axis_move(Axis(0), head),
                Some(head) => {
                    return Err(format!(
                        "--head {head} is out of range: the file holds {heads} heads; give {all}"
                    )
                    .into());
                }
                None => {
                    return Err(format!(
                        "the file holds a stack of {heads} heads (shape {shape:?}); choose one with {all}"
                    )
                    .into());
                }
            }
        }
        _ => {
            return Err(format!(
                "unsupported shape {shape:?}; save a matrix, or a stack of heads of shape (heads, n, n)"
            )
            .into());
        }
    };
    square(matrix.shape()[0], matrix.shape()[1])?;
    matrix.into_dimensionality::<Ix2>().map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::{Problem, matrix_of};

    fn told(shape: &[usize], head: Option<usize>) -> Result<f64, String> {
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|at| at as f64).collect();
        let array = ArrayD::from_shape_vec(shape, values).unwrap();
        match matrix_of(array, head) {
            Ok(matrix) => Ok(matrix[[0, 1]]),
            Err(Problem::Unreadable(why)) => Err(why),
            Err(Problem::Unfit(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_head_is_taken_from_its_stack() {
        assert_eq!(told(&[2, 2], None), Ok(1.0));
        assert_eq!(told(&[3, 2, 2], Some(2)), Ok(9.0));
        assert_eq!(told(&[1, 3, 2, 2], Some(1)), Ok(5.0));
    }

    #[test]
    fn what_is_no_matrix_says_what_to_do() {
        for (shape, head, part) in [
            (&[3, 2, 2][..], None, "--head 0 to --head 2"),
            (&[3, 2, 2], Some(3), "holds 3 heads"),
            (&[2, 2], Some(0), "leave --head out"),
            (&[2, 3, 2, 2], Some(0), "save a matrix, or a stack of heads"),
            (&[4], None, "save a matrix"),
            (&[3, 2, 4], Some(0), "2 × 4"),
        ] {
            let why = told(shape, head).unwrap_err();
            assert!(why.contains(part), "{shape:?}, {head:?}: {why}");
        }
    }
}
