//! Each operation failing.

use super::double::{FAULTS, Fault, failing, journal};
use super::lost::on_two_threads;
use super::scenario::Scenario;
use crate::common::binary::Folder;
use crate::common::tries::{Tries, share_of};

/// Has each operation of each command fail in each way: the command then ends with one line, or does without what failed,
/// and the program itself goes on with what is left.
pub fn at_each_operation(scenarios: &[Scenario]) {
    let mut tries = Tries::of("failing-writes");
    for scenario in scenarios {
        let begun = scenario.folder();
        let whole = begun.copied();
        let operations = journal(&whole, scenario.command).len();
        // Where a try takes long, an operation fails in one way, and the next in another.
        let faults = |at: usize| match scenario.is_slow {
            true => vec![FAULTS[at % FAULTS.len()]],
            false => FAULTS.to_vec(),
        };
        let all: Vec<(usize, Fault)> = (0..operations)
            .flat_map(|at| faults(at).into_iter().map(move |fault| (at, fault)))
            .collect();
        let step = all.len() / share_of(all.len());
        // Of each command another operation and way.
        let (first, step) = (scenario.name.len() % step, step + usize::from(step > 1));
        let chosen: Vec<_> = all.into_iter().skip(first).step_by(step).collect();
        let failures = on_two_threads(&chosen, |&(at, fault)| {
            let wrong = after(scenario, &begun, &whole, at, fault).err()?;
            Some(format!("{}, {fault:?} at {at}: {wrong}", scenario.name))
        });
        tries.add(chosen.len(), failures);
    }
    tries.end();
}

fn after(
    scenario: &Scenario,
    begun: &Folder,
    whole: &Folder,
    at: usize,
    fault: Fault,
) -> Result<(), String> {
    let folder = begun.copied();
    let ended = failing(&folder, scenario.command, at, fault);
    let line = &ended.stderr;
    let mut lines = line.lines().rev();
    // What a command of several studies could not do with one of them stands above, or a study with one of its cells.
    let is_of_one = |above: &str| {
        above.is_empty() || ["left out: ", "failed: "].iter().any(|word| above.starts_with(word))
    };
    let is_one_line =
        lines.next().is_some_and(|last| last.starts_with("error: ")) && lines.all(is_of_one);
    if line.lines().any(|line| line.matches("(os error").count() > 1) {
        return Err(format!("a cause told twice: {line}"));
    }
    match ended.code {
        Some(1) if is_one_line => {}
        // What failed is not needed for the end.
        Some(0) if line.is_empty() => (scenario.wrong)(&folder, whole)?,
        code => return Err(format!("ended with {code:?}: {line}")),
    }
    scenario.go_on(&folder, whole)?;
    // Whatever a study's manifest had to tell was told in time.
    let is_manifest = |name: &String| name.ends_with("manifest.toml");
    match folder
        .tree()
        .iter()
        .find(|name| is_manifest(name) && folder.read(name).contains("not_known"))
    {
        Some(name) => Err(format!("{name}: {}", folder.read(name))),
        None => Ok(()),
    }
}
