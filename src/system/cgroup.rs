//! Memory limits of control groups, as containers and schedulers set them.

use std::path::{Path, PathBuf};

/// Mount point of control groups, version 1 and 2.
const MOUNT: &str = "/sys/fs/cgroup";

/// File names of one version: the limit, the usage, and the keys in `memory.stat` of page cache, which the system can
/// reclaim.
struct Files {
    limit: &'static str,
    used: &'static str,
    files: [&'static str; 2],
}

const FIRST: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: ["total_inactive_file", "total_active_file"],
};
const SECOND: Files =
    Files { limit: "memory.max", used: "memory.current", files: ["inactive_file", "active_file"] };

/// Returns the memory that the process's groups leave, in bytes, or `None` if they set no limit or cannot be read.
pub(super) fn left_bytes() -> Option<u64> {
    left_of(&std::fs::read_to_string("/proc/self/cgroup").ok()?, Path::new(MOUNT))
}

/// Smallest remainder over the groups listed in /proc/self/cgroup and the groups that contain them.
fn left_of(groups: &str, mount: &Path) -> Option<u64> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let (root, files) = match controllers {
            "" => (mount.to_owned(), &SECOND),
            some if some.split(',').any(|name| name == "memory") => (mount.join("memory"), &FIRST),
            _ => return None,
        };
        let group: PathBuf = root.join(group.trim_start_matches('/'));
        let around = group.ancestors().take_while(|folder| folder.starts_with(&root));
        around.filter_map(|folder| left_in(folder, files)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// Bytes that one group leaves: limit − usage, where page cache does not count as used.
fn left_in(folder: &Path, files: &Files) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, used) = (number(files.limit)?, number(files.used)?);
    let stat = read("memory.stat").unwrap_or_default();
    let of = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        files.files.contains(&name).then(|| bytes.parse::<u64>().ok())?
    };
    let files: u64 = stat.lines().filter_map(of).sum();
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(mount: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = mount.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_narrowest_group_around_the_process_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path();
        write(
            mount,
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "900\n"),
                ("a/memory.stat", "anon 100\ninactive_file 300\nactive_file 200\nfile 500\n"),
                ("a/b/memory.max", "max\n"),
                ("a/b/memory.current", "800\n"),
                ("a/c/memory.max", "50\n"),
                ("a/c/memory.current", "60\n"),
            ],
        );
        assert_eq!(left_of("0::/a/b\n", mount), Some(600));
        assert_eq!(left_of("0::/a\n", mount), Some(600));
        assert_eq!(left_of("0::/a/c\n", mount), Some(0));
        assert_eq!(left_of("0::/elsewhere\n", mount), None);
        assert_eq!(left_of("0::/\n1:name=systemd:/a\nnonsense\n\n", mount), None);
    }

    #[test]
    fn groups_of_the_first_version_too() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("memory/job/memory.limit_in_bytes", "4096\n"),
                ("memory/job/memory.usage_in_bytes", "4000\n"),
                ("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 904\n"),
            ],
        );
        let groups = "5:devices:/\n4:cpu,memory:/job/step\n0::/\n";
        assert_eq!(left_of(groups, folder.path()), Some(1000));
    }
}
