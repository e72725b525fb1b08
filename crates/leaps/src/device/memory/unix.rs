//! Limits of memory on Linux, which are files.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Bytes that this process may still take: the least of what the machine has, what its control groups leave (versions 1 and 2), and what
/// its own limits of address space and data leave (`ulimit -v`, `ulimit -d`). `None` where the system does not tell.
pub fn free_memory() -> Option<u64> {
    System { root: Path::new("/") }.free()
}

/// A system that tells about itself in files below a folder.
struct System<'a> {
    root: &'a Path,
}

/// How a version of control groups tells about memory.
struct Version {
    filesystem: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The entry of `memory.stat` for contents of files, which go when memory is wanted.
    cache: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        filesystem: "cgroup2",
        limit: "memory.max",
        usage: "memory.current",
        cache: "inactive_file",
    },
    Version {
        filesystem: "cgroup",
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        cache: "total_inactive_file",
    },
];

impl System<'_> {
    fn free(&self) -> Option<u64> {
        let own = [("Max address space", "VmSize:"), ("Max data size", "VmData:")];
        let own = own.into_iter().filter_map(|(limit, usage)| self.below_limit(limit, usage));
        let groups = VERSIONS.iter().filter_map(|version| self.below_group(version));
        let machine = kilobytes(&self.text("proc/meminfo")?, "MemAvailable:");
        machine.into_iter().chain(own).chain(groups).min()
    }

    fn text(&self, name: &str) -> Option<String> {
        read_to_string(self.root.join(name)).ok()
    }

    /// What a limit of this process leaves.
    fn below_limit(&self, limit: &str, usage: &str) -> Option<u64> {
        let limits = self.text("proc/self/limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        // The soft limit comes first; a word in place of a number is none.
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(kilobytes(&self.text("proc/self/status")?, usage)?))
    }

    /// What the control groups of this process leave: its own, and all around it.
    fn below_group(&self, version: &Version) -> Option<u64> {
        let (mount, group) = self.group(version)?;
        let groups = group.ancestors().take_while(|group| group.starts_with(&mount));
        groups.filter_map(|group| below(group, version)).min()
    }

    /// Where control groups are mounted, and the folder of this process's group there.
    fn group(&self, version: &Version) -> Option<(PathBuf, PathBuf)> {
        let groups = self.text("proc/self/cgroup")?;
        let own = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let ours = match version.filesystem {
                "cgroup2" => controllers.is_empty(),
                _ => controllers.split(',').any(|name| name == "memory"),
            };
            ours.then_some(Path::new(path))
        })?;
        let mounts = self.text("proc/self/mountinfo")?;
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let is_version = kind.next()? == version.filesystem;
            let has_memory = kind.nth(1)?.split(',').any(|option| option == "memory");
            if !is_version || !(has_memory || version.filesystem == "cgroup2") {
                return None;
            }
            let mut place = place.split(' ').skip(3);
            let (from, to) = (place.next()?, place.next()?);
            let mount = self.root.join(to.trim_start_matches('/'));
            // In a container the group may be named from the root of the machine.
            let within = own.strip_prefix(from).unwrap_or(Path::new(""));
            let within = within.strip_prefix("/").unwrap_or(within);
            Some((mount.clone(), mount.join(within)))
        })
    }
}

/// What one control group leaves.
fn below(group: &Path, version: &Version) -> Option<u64> {
    let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(version.limit)?, number(version.usage)?);
    let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cache = statistics.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if name == version.cache { value.trim().parse::<u64>().ok() } else { None }
    });
    Some(limit.saturating_sub(usage.saturating_sub(cache.unwrap_or(0))))
}

/// The bytes of a line `KEY 123 kB`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system of these files.
    fn free(files: &[(&str, &str)]) -> Option<u64> {
        let scratch = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = scratch.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        System { root: scratch.path() }.free()
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    8000 kB\n");
    const STATUS: (&str, &str) = ("proc/self/status", "VmSize:\t  100 kB\nVmData:\t 50 kB\n");

    #[test]
    fn the_least_of_machine_and_limits_counts() {
        assert_eq!(free(&[]), None);
        assert_eq!(free(&[MACHINE]), Some(8000 * 1024));
        let limits = |address: &str, data: &str| {
            let text = format!(
                "Limit   Soft Limit  Hard Limit  Units\nMax data size      {data}   unlimited   bytes\n\
                 Max address space  {address}   unlimited   bytes\n"
            );
            free(&[MACHINE, STATUS, ("proc/self/limits", &text)])
        };
        assert_eq!(limits("unlimited", "unlimited"), Some(8000 * 1024));
        assert_eq!(limits("1024000", "unlimited"), Some(1024000 - 102400));
        assert_eq!(limits("1024000", "512000"), Some(512000 - 51200));
        assert_eq!(limits("1024", "unlimited"), Some(0));
    }

    #[test]
    fn groups_of_version_2_count_with_those_around_them() {
        let own = ("proc/self/cgroup", "0::/batch/job/step\n");
        let mount = (
            "proc/self/mountinfo",
            "1 0 8:1 / / rw - ext4 /dev/root rw\n29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let group = "sys/fs/cgroup/batch/job";
        let files: Vec<(String, &str)> = [
            ("step/memory.max", "max\n"),
            ("step/memory.current", "5\n"),
            ("memory.max", "1000000\n"),
            ("memory.current", "700000\n"),
            ("memory.stat", "anon 400000\ninactive_file 300000\n"),
            ("../memory.max", "2000000\n"),
            ("../memory.current", "1900000\n"),
        ]
        .map(|(name, text)| (format!("{group}/{name}"), text))
        .to_vec();
        let named = |files: &[(String, &'static str)]| -> Option<u64> {
            let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), *t)).collect();
            free(&[&[MACHINE, own, mount], &files[..]].concat())
        };
        assert_eq!(named(&files), Some(100_000));
        assert_eq!(named(&files[..5]), Some(600_000));
        assert_eq!(named(&files[..2]), Some(8000 * 1024));
    }

    #[test]
    fn groups_of_version_1_count_inside_and_outside_of_containers() {
        let own = ("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/docker/abc\n0::/\n");
        for (root, folder) in [("/docker/abc", ""), ("/", "docker/abc/")] {
            let mounts = format!(
                "30 23 0:27 {root} /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 31 23 0:28 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            );
            let at = |name: &str| format!("sys/fs/cgroup/memory/{folder}memory.{name}");
            let files = [
                MACHINE,
                own,
                ("proc/self/mountinfo", &mounts),
                (&at("limit_in_bytes"), "500000\n"),
                (&at("usage_in_bytes"), "450000\n"),
                (&at("stat"), "inactive_file 1\ntotal_inactive_file 50000\n"),
            ];
            assert_eq!(free(&files), Some(100_000), "{root}");
        }
    }
}
