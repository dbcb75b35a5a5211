//! Memory of the process: used, and available within the limits of the machine, `ulimit` and control groups.

use std::path::{Path, PathBuf};

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
    [free, left, left_of_groups()].into_iter().flatten().min()
}

/// Requests below this size in bytes are not checked, because the check runs often.
const LITTLE: f64 = 1_048_576.0;
/// Limit in bytes if the system does not report one: the address space of a process.
const ADDRESSES: u64 = 1 << 47;

/// Error for a request that needs more memory, or more space of a disk, than is free. The message gives both sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoRoom(pub(super) String);

/// Checks that `needed` bytes of memory are available. Callers pass a lower estimate, so that no request is refused
/// that would fit.
///
/// # Errors
/// Less memory is available.
pub fn check_memory(needed: f64) -> Result<(), NoRoom> {
    if needed < LITTLE {
        return Ok(());
    }
    let free = available_bytes().unwrap_or(ADDRESSES) as f64;
    match needed > free {
        true => {
            Err(NoRoom(format!("{} of memory ({} available)", in_words(needed), in_words(free))))
        }
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

/// Mount point of control groups.
const MOUNT: &str = "/sys/fs/cgroup";
/// Keys of a group's `memory.stat` with page cache, which the system can reclaim.
const PAGE_CACHE: [&str; 2] = ["inactive_file", "active_file"];

/// Returns the memory that the process's groups leave, in bytes, or `None` if they set no limit or cannot be read.
fn left_of_groups() -> Option<u64> {
    left_of(&std::fs::read_to_string("/proc/self/cgroup").ok()?, Path::new(MOUNT))
}

/// Smallest remainder over the group listed in /proc/self/cgroup and the groups that contain it.
fn left_of(groups: &str, mount: &Path) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group: PathBuf = mount.join(group.trim_start_matches('/'));
    let around = group.ancestors().take_while(|folder| folder.starts_with(mount));
    around.filter_map(left_in).min()
}

/// Bytes that one group leaves: limit − usage, where page cache does not count as used.
fn left_in(folder: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, used) = (number("memory.max")?, number("memory.current")?);
    let stat = read("memory.stat").unwrap_or_default();
    let of = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        PAGE_CACHE.contains(&name).then(|| bytes.parse::<u64>().ok())?
    };
    let cached: u64 = stat.lines().filter_map(of).sum();
    Some(limit.saturating_sub(used.saturating_sub(cached)))
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

    #[test]
    fn the_narrowest_group_around_the_process_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path();
        for (name, text) in [
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/memory.stat", "anon 100\ninactive_file 300\nactive_file 200\nfile 500\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "800\n"),
            ("a/c/memory.max", "50\n"),
            ("a/c/memory.current", "60\n"),
        ] {
            let path = mount.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(left_of("0::/a/b\n", mount), Some(600));
        assert_eq!(left_of("0::/a\n", mount), Some(600));
        assert_eq!(left_of("0::/a/c\n", mount), Some(0));
        assert_eq!(left_of("0::/elsewhere\n", mount), None);
        assert_eq!(left_of("0::/\n1:name=systemd:/a\nnonsense\n\n", mount), None);
    }
}
