use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::{Scope, ScopedJoinHandle, scope, sleep};
use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn meeting<'a>(folder: &'a Path, rank: usize, world: usize) -> Meeting<'a> {
    Meeting {
        rank,
        world,
        folder,
        launch: "",
        on_this_machine: true,
        address: None,
        kind: "0.1.0",
        patience: PATIENCE,
        meanwhile: &|| Ok(()),
    }
}

/// What each rank of `world` comes to with `work`.
fn together<T: Send>(world: usize, work: impl Fn(Tcp) -> T + Sync) -> Vec<T> {
    let folder = tempfile::tempdir().unwrap();
    scope(|scope| {
        let of = |rank| {
            let (folder, work) = (folder.path(), &work);
            scope.spawn(move || work(meeting(folder, rank, world).hold().unwrap()))
        };
        let ranks: Vec<_> = (0..world).map(of).collect();
        let found = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays behind");
        found
    })
}

/// What each rank comes to with `work`, after which it says that it is done.
fn in_step<T: Send>(world: usize, work: impl Fn(&dyn Collective) -> T + Sync) -> Vec<T> {
    together(world, |ranks| {
        let found = work(&ranks);
        ranks.leave(None);
        found
    })
}

/// Numbers of very different sizes, so that no order of additions gives another's bits by luck.
fn numbers(rank: usize, count: usize) -> Vec<f32> {
    let number =
        |at: usize| ((at * 7919 + rank * 104_729) % 10_007) as f32 * 1.37f32.powi(at as i32 % 40);
    (0..count).map(number).collect()
}

#[test]
fn sums_are_the_same_bits_on_every_rank() {
    for world in [2, 3, 4, 7] {
        // Fewer numbers than ranks, none at all, and more than a socket holds.
        for count in [0, 1, 5, 1000, 300_001] {
            let given: Vec<_> = (0..world).map(|rank| numbers(rank, count)).collect();
            let found = in_step(world, |ranks| {
                let mut numbers = given[ranks.rank()].clone();
                ranks.sum(&mut numbers).unwrap();
                numbers
            });
            assert!(found.iter().all(|of_rank| *of_rank == found[0]), "{world} ranks, {count}");
            for (at, sum) in found[0].iter().enumerate() {
                let exact: f64 = given.iter().map(|of_rank| f64::from(of_rank[at])).sum();
                assert!((f64::from(*sum) - exact).abs() <= 1e-6 * exact.abs(), "{sum} for {exact}");
            }
            if world == 2 {
                let added = given[0].iter().zip(&given[1]).map(|(a, b)| a + b);
                assert_eq!(found[0], added.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn what_is_gathered_is_there_by_rank_whatever_its_length() {
    for world in [2, 5] {
        let message = |rank: usize| vec![rank as u8; rank * rank * 20_000];
        let all: Vec<_> = (0..world).map(message).collect();
        for found in in_step(world, |ranks| ranks.gather(&message(ranks.rank())).unwrap()) {
            assert_eq!(found, all);
        }
    }
    let found = in_step(3, |ranks| {
        let mine = vec![f64::NAN, ranks.rank() as f64 + 0.1];
        (
            ranks.any(ranks.rank() == 1).unwrap(),
            ranks.any(false).unwrap(),
            ranks.gather_numbers(&mine).unwrap(),
        )
    });
    for (one, none, numbers) in found {
        assert!(one && !none && numbers.iter().all(|of| of[0].is_nan()));
        assert_eq!(numbers.iter().map(|of| of[1]).collect::<Vec<_>>(), [0.1, 1.1, 2.1]);
    }
}

#[test]
fn one_alone_has_what_it_gave() {
    let alone: &dyn Collective = &Alone;
    let mut numbers = [1.0, 2.0];
    alone.sum(&mut numbers).unwrap();
    assert_eq!((numbers, alone.rank(), alone.world()), ([1.0, 2.0], 0, 1));
    assert_eq!(alone.gather(b"this").unwrap(), [b"this"]);
    assert!(alone.any(true).unwrap() && !alone.any(false).unwrap());
}

/// What the others say once `lost` has done what `ends` does.
fn after(world: usize, lost: usize, ends: impl Fn(Tcp) + Sync) -> Vec<CollectiveError> {
    let found = together(world, |ranks| {
        let began = Instant::now();
        let all_are_there = ranks.gather(b"x");
        if ranks.rank() == lost {
            ends(ranks);
            return None;
        }
        // Some may still have been at the first operation when one ended.
        let error = all_are_there.and_then(|_| ranks.sum(&mut numbers(0, 100_000))).unwrap_err();
        assert!(began.elapsed() < PATIENCE / 2, "{error}: after {:?}", began.elapsed());
        ranks.leave(Some(&error.to_string()));
        Some(error)
    });
    found.into_iter().flatten().collect()
}

#[test]
fn every_rank_names_the_one_that_was_lost() {
    // Many times: who hears of it first is never the same.
    for _ in 0..8 {
        for (world, lost) in [(2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)] {
            let gone = CollectiveError::Gone { rank: lost };
            assert_eq!(after(world, lost, drop), vec![gone; world - 1], "{lost} of {world}");
            let ended = CollectiveError::Ended { rank: lost, why: "the disk is full".to_owned() };
            let ends = |ranks: Tcp| ranks.leave(Some("the disk is full"));
            assert_eq!(after(world, lost, ends), vec![ended; world - 1], "{lost} of {world}");
        }
    }
}

#[test]
fn ranks_that_end_well_alarm_nobody() {
    let ended = together(4, |ranks| {
        ranks.gather(b"").unwrap();
        sleep(Duration::from_millis(20 * ranks.rank() as u64));
        ranks.leave(None);
    });
    assert_eq!(ended.len(), 4);
}

#[test]
fn a_rank_at_another_operation_is_told_of() {
    let errors = together(2, |ranks| match ranks.rank() {
        0 => ranks.sum(&mut [1.0; 4]).unwrap_err(),
        _ => ranks.gather(b"seven b").unwrap_err(),
    });
    for (error, other) in errors.iter().zip([1, 0]) {
        assert!(
            [CollectiveError::OutOfStep { rank: other }, CollectiveError::Gone { rank: other }]
                .contains(error),
            "{error}"
        );
    }
    assert!(errors.iter().any(|error| matches!(error, CollectiveError::OutOfStep { .. })));
}

#[test]
fn a_rank_that_says_nothing_is_waited_for_and_not_for_ever() {
    let (done, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let done = std::sync::Mutex::new(Some(done));
    let folder = tempfile::tempdir().unwrap();
    let errors = scope(|scope| {
        let of = |rank| {
            let (folder, wait, done) = (folder.path(), &wait, &done);
            scope.spawn(move || {
                let patience = Duration::from_secs(2);
                let ranks = Meeting { patience, ..meeting(folder, rank, 2) }.hold().unwrap();
                if rank == 1 {
                    let _ = wait.lock().unwrap().recv();
                    return None;
                }
                let error = ranks.gather(b"").unwrap_err();
                drop(done.lock().unwrap().take());
                Some(error)
            })
        };
        [0, 1].map(of).map(|rank| rank.join().unwrap())
    });
    assert_eq!(errors, [Some(CollectiveError::Silent { rank: 1, seconds: 2 }), None]);
}

/// A process that tries to take part.
fn tries<'scope>(
    scope: &'scope Scope<'scope, '_>,
    meeting: Meeting<'scope>,
) -> ScopedJoinHandle<'scope, Result<Tcp, String>> {
    // What a meeting asks meanwhile need not go from thread to thread.
    let Meeting { rank, world, folder, launch, on_this_machine, address, kind, patience, .. } =
        meeting;
    scope.spawn(move || {
        let meanwhile = &|| Ok(());
        Meeting { rank, world, folder, launch, on_this_machine, address, kind, patience, meanwhile }
            .hold()
            .map_err(|error| error.to_string())
    })
}

#[test]
fn who_does_not_come_is_named_to_those_who_did() {
    let folder = tempfile::tempdir().unwrap();
    let brief =
        |rank| Meeting { patience: Duration::from_secs(1), ..meeting(folder.path(), rank, 4) };
    let found = scope(|scope| {
        [0, 2].map(|rank| tries(scope, brief(rank))).map(|rank| rank.join().unwrap().err())
    });
    let why =
        "process 1, 3 of 4 processes did not start within 1 s; start all of them, or wait longer";
    assert_eq!(found[0].as_deref(), Some(why));
    let other = found[1].as_deref().unwrap();
    // Its time may be up first.
    assert!(other == why || other.starts_with("process 0 was not found within 1 s"), "{other}");
    let alone = brief(1).hold().err().unwrap().to_string();
    assert!(alone.ends_with(".meeting.toml does not exist; start process 0 too"), "{alone}");
}

#[test]
fn a_reason_not_to_wait_ends_the_meeting() {
    let folder = tempfile::tempdir().unwrap();
    let meanwhile = || Err("process 1 ended with exit code 1".to_owned());
    for rank in [0, 1] {
        let error =
            Meeting { meanwhile: &meanwhile, ..meeting(folder.path(), rank, 2) }.hold().err();
        assert_eq!(
            error,
            Some(CollectiveError::Refused("process 1 ended with exit code 1".to_owned()))
        );
    }
}

#[test]
fn others_are_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let host = meeting(folder.path(), 0, 2);
    for (guest, why) in [
        (
            Meeting { world: 3, ..meeting(folder.path(), 1, 2) },
            "process 1 was started as one of 3, process 0 as one of 2",
        ),
        (
            Meeting { kind: "0.2.0", ..meeting(folder.path(), 1, 2) },
            "process 1 is 0.2.0, but process 0 is 0.1.0",
        ),
    ] {
        let found = scope(|scope| {
            [tries(scope, Meeting { ..host }), tries(scope, guest)]
                .map(|rank| rank.join().unwrap().err().unwrap())
        });
        assert!(found.iter().all(|found| found.starts_with(why)), "{found:?}");
    }
}

/// A file left behind by an earlier launch, a port where something else listens, a caller that is none, a second
/// process of the same rank: the right ones meet in spite of all.
#[test]
fn strangers_and_what_is_left_of_others_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".meeting.toml");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    let machine = crate::system::machine::name();
    let left = format!(
        "launch = \"\"\nword = \"w\"\non_this_machine = true\n[place]\nmachine = \"{machine}\"\naddresses = []\nport = {port}\n"
    );
    std::fs::write(&file, left).unwrap();
    scope(|scope| {
        let first = tries(scope, meeting(folder.path(), 1, 3));
        // It calls whoever listens there, who hangs up.
        drop(nobody.accept().unwrap());
        drop(nobody);
        let host = tries(scope, meeting(folder.path(), 0, 3));
        // A caller that says nothing of sense, as one that looks for open ports.
        while !std::fs::read_to_string(&file).is_ok_and(|text| !text.contains("\"w\"")) {
            sleep(Duration::from_millis(5));
        }
        let notice: toml::Table = std::fs::read_to_string(&file).unwrap().parse().unwrap();
        let port = notice["place"]["port"].as_integer().unwrap() as u16;
        let mut caller = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        std::io::Write::write_all(&mut caller, b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // Another of the same rank, and one of another launch.
        let other = Meeting {
            launch: "another",
            patience: Duration::from_secs(1),
            ..meeting(folder.path(), 2, 3)
        };
        let why = tries(scope, other).join().unwrap().err().unwrap();
        assert!(why.contains("belongs to another launch"), "{why}");
        let last = tries(scope, meeting(folder.path(), 2, 3));
        let ranks = [host, first, last].map(|rank| rank.join().unwrap().unwrap());
        let sums = ranks.map(|ranks| {
            scope.spawn(move || {
                let all = ranks.gather(b"x").unwrap();
                ranks.leave(None);
                (ranks.rank(), all.len())
            })
        });
        assert_eq!(sums.map(|sum| sum.join().unwrap()), [(0, 3), (1, 3), (2, 3)]);
    });
}
