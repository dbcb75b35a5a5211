//! The extension module `rank_study._native`: numpy arrays to the library and back.

mod fit;
mod matrix;
mod table;

use pyo3::prelude::*;

/// Runs the command line, and returns its exit code. The first word is the program's path.
#[pyfunction]
fn run(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| rank_study::run_command_line(words))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    rank_study::numerics::single_threaded_blas();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(table::read_table, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(matrix::floor, module)?)?;
    module.add_function(wrap_pyfunction!(matrix::lower_bound, module)?)?;
    module.add_function(wrap_pyfunction!(matrix::spectrum, module)?)?;
    module.add_function(wrap_pyfunction!(matrix::target, module)?)?;
    Ok(())
}
