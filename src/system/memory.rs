//! Memory of the process: used, and available.

use super::cgroup;

/// The most memory that this process has held, in bytes; none where the system does not say.
pub fn peak_rss_bytes() -> Option<u64> {
    told("/proc/self/status", "VmHWM:")
}

/// How much more memory this process can have: what the machine has free, or what `ulimit -v` or its control groups
/// leave, where that is less. None where the system does not say.
pub fn available_bytes() -> Option<u64> {
    let free = told("/proc/meminfo", "MemAvailable:");
    let left = limit_bytes()
        .zip(told("/proc/self/status", "VmSize:"))
        .map(|(limit, held)| limit.saturating_sub(held));
    [free, left, cgroup::left_bytes()].into_iter().flatten().min()
}

/// What is so little is not worth looking for: this is asked again and again.
const LITTLE: f64 = 1_048_576.0;
/// What a process can have where the system does not say: its addresses.
const ADDRESSES: u64 = 1 << 47;

/// A request that takes more memory than there is. Its message says how much, and what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} of memory ({free} available)")]
pub struct NoMemory {
    needed: String,
    free: String,
}

/// Refuses what takes so many bytes of memory, where that is more than can be had. What is estimated is the least that
/// is needed, so that nothing is refused that would have fitted.
///
/// # Errors
/// Less memory than that.
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

/// Bytes as one reads them: in GiB, or in MiB or KiB where they are fewer.
pub(super) fn in_words(bytes: f64) -> String {
    let [kibibyte, mebibyte, gibibyte] = [10, 20, 30].map(|power| f64::from(1 << power));
    match bytes {
        _ if bytes < mebibyte => format!("{:.0} KiB", bytes / kibibyte),
        _ if bytes < gibibyte => format!("{:.0} MiB", bytes / mebibyte),
        _ => format!("{:.1} GiB", bytes / gibibyte),
    }
}

/// The most address space that this process may have, where it is limited.
fn limit_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limits = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    limits.split_whitespace().next()?.parse().ok()
}

/// The bytes that a line of a file of Linux's tells in kB.
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
