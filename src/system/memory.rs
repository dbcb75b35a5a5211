//! Memory of the process: used, and available.

use super::cgroup;

/// Returns the peak memory (resident set) of this process in bytes, or `None` if the system does not report it.
pub fn peak_rss_bytes() -> Option<u64> {
    told("/proc/self/status", "VmHWM:")
}

/// Returns how many more bytes of memory this process can use, or `None` if the system does not report it. This is the
/// smallest of the machine's free memory and the remainders under `ulimit -v` and control groups.
pub fn available_bytes() -> Option<u64> {
    let free = told("/proc/meminfo", "MemAvailable:");
    let left = limit_bytes()
        .zip(told("/proc/self/status", "VmSize:"))
        .map(|(limit, held)| limit.saturating_sub(held));
    [free, left, cgroup::left_bytes()].into_iter().flatten().min()
}

/// Requests below this size in bytes are not checked, because the check runs often.
const LITTLE: f64 = 1_048_576.0;
/// Limit in bytes if the system does not report one: the address space of a process.
const ADDRESSES: u64 = 1 << 47;

/// Error for a request that needs more memory than is available. The message gives both sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} of memory ({free} available)")]
pub struct NoMemory {
    needed: String,
    free: String,
}

/// Checks that `needed` bytes of memory are available. Callers pass a lower estimate, so that no request is refused
/// that would fit.
///
/// # Errors
/// Less memory is available.
pub fn check_memory(needed: f64) -> Result<(), NoMemory> {
    if needed < LITTLE {
        return Ok(());
    }
    let free = available_bytes().unwrap_or(ADDRESSES) as f64;
    match needed > free {
        true => Err(NoMemory { needed: in_words(needed), free: in_words(free) }),
        false => Ok(()),
    }
}

/// Formats bytes for people: in GiB, or in MiB or KiB for smaller sizes.
pub(super) fn in_words(bytes: f64) -> String {
    let [kibibyte, mebibyte, gibibyte] = [10, 20, 30].map(|power| f64::from(1 << power));
    match bytes {
        _ if bytes < mebibyte => format!("{:.0} KiB", bytes / kibibyte),
        _ if bytes < gibibyte => format!("{:.0} MiB", bytes / mebibyte),
        _ => format!("{:.1} GiB", bytes / gibibyte),
    }
}

/// Largest address space that this process may have, in bytes, or `None` if it is not limited.
fn limit_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limits = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    limits.split_whitespace().next()?.parse().ok()
}

/// Reads a value in kB from a line of a Linux /proc file and returns it in bytes.
fn told(file: &str, line: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let told = text.lines().find_map(|found| found.strip_prefix(line))?;
    let kibibytes: u64 = told.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused_and_what_is_small_is_not() {
        assert_eq!(check_memory(1.0), Ok(()));
        assert_eq!(in_words(1e5), "98 KiB");
        assert_eq!(in_words(3.0 * f64::from(1 << 20)), "3 MiB");
        assert_eq!(in_words(1.5 * f64::from(1 << 30)), "1.5 GiB");
        let error = check_memory(1e18).unwrap_err().to_string();
        assert!(error.starts_with("931322574.6 GiB of memory ("), "{error}");
        assert!(check_memory(f64::INFINITY).is_err());
    }
}
