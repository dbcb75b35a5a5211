//! A headless browser, and the checks that Node has it make of a page.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The browser, or what to install.
fn browser() -> Result<&'static str, String> {
    let browser = BROWSERS.into_iter().find(|program| runs(program));
    let missing: Vec<&str> = [("chromium", browser.is_some()), ("nodejs", runs("node"))]
        .into_iter()
        .filter_map(|(package, there)| (!there).then_some(package))
        .collect();
    browser.filter(|_| missing.is_empty()).ok_or_else(|| {
        let packages = missing.join(" ");
        format!("no {packages} here: `make setup-browser`, or apt-get install {packages}")
    })
}

/// Whether there is a browser; without one the test is passed over, and in CI it fails.
pub fn is_there() -> bool {
    match browser() {
        Ok(_) => true,
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing}"),
        Err(missing) => {
            // Past the capture of what passing tests print.
            let mut standard_error = std::io::stderr();
            writeln!(standard_error, "skipped: {missing}").unwrap();
            false
        }
    }
}

/// Runs `checks`, a script of this folder, on pages; at least so many lines must tell of checks that held.
pub fn check(checks: &str, pages: &[&Path], least: usize) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/browser").join(checks);
    let output = Command::new("node").arg(script).arg(browser().unwrap()).args(pages).output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "\n{stdout}{stderr}");
    assert!(stdout.lines().count() >= least, "\n{stdout}{stderr}");
}
