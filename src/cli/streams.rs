//! Printing: results on standard output, all else on standard error.
//!
//! A closed stream sends no SIGPIPE here, because that would end a sweep whose progress nobody reads any more. Failed
//! writes to standard error are ignored. A failed write to standard output ends the process, because it loses the
//! result; files are already on the disk by then.
//!
//! Much of the output was read from files: names, errors in rows, tokens, manifests. All output is escaped here, so
//! that a terminal interprets none of it.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::system::{printable, printable_lines};

/// Prints a line of the result, as `println!` does.
macro_rules! say {
    ($($told:tt)*) => {
        $crate::cli::streams::say_line(format_args!($($told)*))
    };
}
pub(super) use say;

/// Prints the line of [`say!`].
pub fn say_line(line: Arguments<'_>) {
    print(format_args!("{line}\n"));
}

/// Prints a part of the result.
pub fn print(text: Arguments<'_>) {
    let text = text.to_string();
    let mut out = io::stdout().lock();
    let written = out.write_all(printable_lines(&text).as_bytes());
    if let Err(error) = written.and_then(|()| out.flush()) {
        drop(out);
        std::process::exit(not_printed(&error).into());
    }
}

/// Prints a line on standard error. A failed write, as to a terminal that was closed, is ignored, because it must not
/// stop the work.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Whether `--quiet` is given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Makes this process print only results and errors.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns `true` if only results and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// [`tell`], unless only results and errors are printed.
pub fn inform(line: &str) {
    if !is_quiet() {
        tell(line);
    }
}

/// Prints clap's output: the help, or errors of the arguments.
pub fn print_of_clap(said: &clap::Error) -> u8 {
    let printed = match printable_lines(&said.render().to_string()) {
        // The message may contain file names from the arguments.
        Cow::Owned(shown) if said.use_stderr() => io::stderr().write_all(shown.as_bytes()),
        _ => said.print(),
    };
    match printed {
        Err(error) if !said.use_stderr() => not_printed(&error),
        _ => u8::try_from(said.exit_code()).unwrap_or(1),
    }
}

/// Reports a failed write to standard output and returns the exit code. If the reader is gone (`| head`), the process
/// ends here without a message, as other tools do.
fn not_printed(error: &io::Error) -> u8 {
    if error.kind() == ErrorKind::BrokenPipe {
        end_by_signal();
        return 0;
    }
    tell(&format!(
        "error: cannot write the result to standard output: {error}; check the free space"
    ));
    1
}

/// Ends the process with SIGPIPE, so that shells see why it ended.
fn end_by_signal() {
    // SAFETY: the default action ends the process and runs none of its code.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
}
