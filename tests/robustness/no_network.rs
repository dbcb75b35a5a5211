//! Nothing reaches for the network: every command does its work where the system kills whoever opens a socket.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output};

use crate::common::binary::{Folder, words};
use crate::common::tiny;
use crate::common::tries::Tries;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Every kind of work, in an order in which each finds what it needs.
const COMMANDS: [&str; 18] = [
    "target --family dirichlet-band --window 4 --n 16 --stats --out a.npy",
    "fit --target a.npy --rank 2 --max-logit 4 --starts 2 --out f",
    "show f",
    "train run.toml --out r",
    "train run.toml --text text.txt --set vocabulary=bpe:260 --out t",
    "train run.toml --text text.txt --set vocabulary=bpe:260 --set steps=6 --out t --resume",
    "evaluate t --text text.txt",
    "dump t --text text.txt --out d",
    "predict t --text text.txt --passages 1 --out p",
    "diagnose t --text text.txt --passages 1 --most 1 --out page",
    "sweep analysis/growth.toml",
    "sweep analysis/growth.toml --shard 1/2",
    "merge growth",
    "table growth",
    "figure growth",
    "reproduce --preset paper",
    "report growth --out report/index.html",
    "verify growth",
];

/// Kills the process at a socket of any kind but those between processes of one machine, and at what could open one
/// unseen.
fn without_sockets() -> BpfProgram {
    let family =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::AF_UNIX as u64);
    let rule = SeccompRule::new(vec![family.unwrap()]).unwrap();
    let rules: BTreeMap<i64, Vec<SeccompRule>> =
        BTreeMap::from([(libc::SYS_socket, vec![rule]), (libc::SYS_io_uring_setup, vec![])]);
    let [allow, kill] = [SeccompAction::Allow, SeccompAction::KillProcess];
    let here = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules, allow, kill, here).unwrap().try_into().unwrap()
}

/// The command as the system lets it run.
fn confined(command: &mut Command) -> Output {
    let filter = without_sockets();
    // SAFETY: between fork and exec only the system calls are made that set the filter, of memory that is there.
    unsafe {
        command.pre_exec(move || {
            seccompiler::apply_filter(&filter).map_err(|_| std::io::ErrorKind::Unsupported.into())
        });
    }
    command.output().unwrap()
}

#[test]
fn every_command_does_its_work_where_sockets_are_forbidden() {
    let folder = Folder::new();
    folder.write("run.toml", tiny::training("checkpoint_every = 2\nkeep_checkpoints = [2]"));
    folder.write("analysis/growth.toml", tiny::fits("study = \"growth\"\ngrid.n = [12, 16]"));
    folder.write("text.txt", "the quick brown fox jumps over the lazy dog\n".repeat(30));
    let mut tries = Tries::of("no-network");
    for line in COMMANDS {
        let Output { status, stderr, .. } = confined(&mut folder.command(&words(line)));
        let told = format!("{line}: {status}: {}", String::from_utf8_lossy(&stderr));
        tries.tried(if status.success() { Ok(()) } else { Err(told) });
    }
    tries.end();
    // The page, too, brings all that it shows: what it names is to be clicked, not loaded.
    for page in ["report/index.html", "page/index.html"] {
        let text = folder.read(page);
        for loads in ["src=\"http", "src=\"//", "url(http", "url(//", "@import", "fetch("] {
            assert!(!text.contains(loads), "{page} has {loads}");
        }
    }
}

#[test]
fn the_filter_kills_what_opens_a_socket() {
    let ended = confined(Command::new("bash").args(["-c", "exec 3<>/dev/tcp/127.0.0.1/9"]));
    assert_eq!(ended.status.signal(), Some(libc::SIGSYS), "{ended:?}");
}
