//! Printing: results on standard output, all else on standard error.
//!
//! A stream whose reader is gone sends no signal here, since that would end a sweep whose progress nobody reads any
//! more. What cannot be said on standard error is left unsaid. Standard output that cannot be written ends the process:
//! what it prints is what was asked for, and is on the disk by then, where it goes there.
//!
//! Much of what is said was read from files: names, errors in rows, tokens, what manifests tell. Nothing of it is a command
//! to the terminal: what one would obey is written out, here, for all that is printed.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use rank_study::system::{printable, printable_lines};

/// Prints a line of the result, as `println!` does.
macro_rules! say {
    ($($told:tt)*) => {
        $crate::cli::streams::say_line(format_args!($($told)*))
    };
}
pub(super) use say;

/// What [`say!`] does.
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

/// Prints a line on standard error. Where that cannot be written, as to a terminal that hung up, what
/// is under way matters more than the line.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Prints what clap has to say: the help, or what is wrong with the arguments.
pub fn print_of_clap(said: &clap::Error) -> ExitCode {
    let printed = match printable_lines(&said.render().to_string()) {
        // An argument may be a file's name.
        Cow::Owned(shown) if said.use_stderr() => io::stderr().write_all(shown.as_bytes()),
        _ => said.print(),
    };
    match printed {
        Err(error) if !said.use_stderr() => ExitCode::from(not_printed(&error)),
        _ => ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(1)),
    }
}

/// The exit code where standard output could not be written. Where its reader is gone, as `head` is after its lines, the
/// process ends here and as quietly as other tools do.
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

/// Ends the process by the signal of a pipe without a reader, by which shells know why it ended.
#[cfg(unix)]
fn end_by_signal() {
    // SAFETY: the default action, which runs no code of the process, is to end it.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
}

#[cfg(not(unix))]
fn end_by_signal() {}
