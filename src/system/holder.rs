//! Who holds a folder, as it stands in a file for whoever else wants it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::machine::{self, State};

/// A process that holds a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    host: String,
    pid: u32,
    /// What tells the process from another that the machine gave the same number; empty where it does not say.
    began: String,
    /// The job of a scheduler, which it starts anew under the same number after it has ended; empty where there is none.
    job: String,
    /// What tells this hold from another of the process.
    number: String,
}

impl Holder {
    /// This process, with a new hold.
    pub fn here() -> Self {
        static HOLDS: AtomicUsize = AtomicUsize::new(0);
        let pid = std::process::id();
        Self {
            host: host(),
            pid,
            began: machine::began(pid),
            job: std::env::var("SLURM_JOB_ID").unwrap_or_default().split_whitespace().collect(),
            number: HOLDS.fetch_add(1, Ordering::Relaxed).to_string(),
        }
    }

    /// As it stands in a file.
    pub fn written(&self) -> String {
        let Self { host, pid, began, job, number } = self;
        format!("host={host} pid={pid} began={began} job={job} number={number}\n")
    }

    /// Words that are none, as of a file that is only just made, are of nobody in particular.
    pub fn read(words: &str) -> Self {
        let of = |key: &str| {
            let found =
                words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        Self {
            host: of("host"),
            pid: of("pid").parse().unwrap_or(0),
            began: of("began"),
            job: of("job"),
            number: of("number"),
        }
    }

    /// Whether it cannot be at work any more, by what `here` knows of it: its process is not, or was of this job, which a
    /// scheduler runs once at a time, on another machine.
    pub fn is_gone(&self, here: &Self) -> bool {
        let was_this_job = !self.job.is_empty() && self.job == here.job;
        match self.host == here.host {
            true => self.state() == State::Gone,
            false => was_this_job,
        }
    }

    /// Whether it cannot be at work any more, by what any process of this machine knows of it.
    pub fn is_gone_for_all(&self) -> bool {
        self.is_gone(&Self { job: String::new(), ..Self::here() })
    }

    /// Whether it is a process of this machine that does no more work: it has ended, or was killed and is about to.
    pub fn is_ending(&self) -> bool {
        self.is_here() && self.state() != State::Runs
    }

    /// Whether it is a process of this machine that is at work.
    pub fn is_alive(&self) -> bool {
        self.is_here() && self.state() == State::Runs
    }

    fn is_here(&self) -> bool {
        self.host == host()
    }

    fn state(&self) -> State {
        let began = machine::began(self.pid);
        // What has its number by now began at another time. Of another user's process that may not be told.
        match began == self.began || began.is_empty() || self.began.is_empty() {
            true => machine::state(self.pid),
            false => State::Gone,
        }
    }

    /// What no other hold is called.
    pub fn word(&self) -> String {
        let Self { host, pid, number, .. } = self;
        format!("{host}-{pid}-{number}")
    }

    /// In words.
    pub fn describe(&self) -> String {
        match (self.host.as_str(), self.job.as_str()) {
            ("", _) => "another process".to_owned(),
            (host, "") => format!("process {} on {host}", self.pid),
            (host, job) => format!("job {job}, process {} on {host}", self.pid),
        }
    }
}

/// This machine's name, as one word.
fn host() -> String {
    machine::name().split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_begun_anew_on_another_machine_goes_on() {
        let words = "host=elsewhere pid=1 job=7 number=0\n";
        let of_job = |job: &str| Holder { job: job.to_owned(), ..Holder::here() };
        assert!(Holder::read(words).is_gone(&of_job("7")));
        assert!(!Holder::read(words).is_gone(&of_job("8")));
        assert!(!Holder::read("").is_gone(&of_job("")));
    }

    #[test]
    fn what_is_written_is_read() {
        let here = Holder::here();
        assert_eq!(Holder::read(&here.written()), here);
        assert!(here.is_alive() && !here.is_ending());
        assert!(!here.is_gone_for_all());
    }

    /// As in a container that is started anew: its processes have the numbers of those before.
    #[cfg(target_os = "linux")]
    #[test]
    fn another_process_of_its_number_is_not_the_holder() {
        let here = Holder::here();
        let before = Holder { began: "1".to_owned(), ..here.clone() };
        assert!(before.is_gone(&here) && before.is_ending() && !before.is_alive());
    }

    /// Killed, and not yet waited for by whoever started it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_and_is_still_listed_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child =
            || Holder { pid: child.id(), began: machine::began(child.id()), ..Holder::here() };
        let holder = of_child();
        assert!(holder.is_alive());
        child.kill().unwrap();
        while !holder.is_gone_for_all() {
            assert!(holder.is_ending() || holder.is_alive());
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(holder.is_gone_for_all());
    }
}
