//! What the process holds of the machine's memory.

/// The most memory that this process has held, in bytes; none where the system does not say.
pub fn peak_rss_bytes() -> Option<u64> {
    told("/proc/self/status", "VmHWM:")
}

/// How much more memory this process can have: what the machine has free, or what `ulimit -v` leaves, where that is
/// less. None where the system does not say.
#[cfg(feature = "lm")]
pub fn available_bytes() -> Option<u64> {
    let free = told("/proc/meminfo", "MemAvailable:");
    let left = limit_bytes()
        .zip(told("/proc/self/status", "VmSize:"))
        .map(|(limit, held)| limit.saturating_sub(held));
    [free, left].into_iter().flatten().min()
}

/// The most address space that this process may have, where it is limited.
#[cfg(all(unix, feature = "lm"))]
fn limit_bytes() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(all(not(unix), feature = "lm"))]
fn limit_bytes() -> Option<u64> {
    None
}

/// Bytes as one reads them: in GiB.
#[cfg(feature = "lm")]
pub fn gibibytes(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / f64::from(1 << 30))
}

/// The bytes that a line of a file of Linux's tells in kB.
fn told(file: &str, line: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let told = text.lines().find_map(|found| found.strip_prefix(line))?;
    let kibibytes: u64 = told.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
