//! The time left, held against recorded runs: what was told on the way, and what it took.

#![cfg(feature = "study")]

use rank_study::study::{Kind, TimeLeft, Work};

/// A run of `reproduce` over every study as it was on 2026-11-23: the configurations in the order in which it began them,
/// each with the estimate in seconds of one core and what it took. Definitions that change later do not change it.
const RECORD: &str = include_str!("progress/recorded-run.csv");
/// From this share of the run on the time left is within [`WITHIN`] of the truth, or [`SECONDS`] of it.
const FROM: usize = 10;
const WITHIN: f64 = 0.25;
const SECONDS: f64 = 10.0;

/// Some cells of a study, one after another, and how long each took.
struct Stretch {
    work: Work,
    took_s: Vec<f64>,
}

/// What happened, of which stretch or cell.
enum Event<'a> {
    Begun(&'a Work),
    Started(&'a str),
    Advanced(&'a str),
    Finished(&'a str),
}

/// How often a cell that tells how far it is does so.
const TOLD: usize = 10;

/// The recorded run.
fn recorded() -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for line in RECORD.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [study, kind, at_a_time, cell, cost_s, took_s] = fields[..] else { panic!("{line}") };
        let at_a_time = at_a_time.parse().unwrap();
        if stretches.last().is_none_or(|stretch| stretch.work.name != study) {
            let (name, kind) = (study.to_owned(), kind.to_owned());
            let work = Work { name, kind, at_a_time, cells: Vec::new() };
            stretches.push(Stretch { work, took_s: Vec::new() });
        }
        let stretch = stretches.last_mut().unwrap();
        stretch.work.cells.push((cell.to_owned(), cost_s.parse().unwrap()));
        stretch.took_s.push(took_s.parse().unwrap());
    }
    stretches
}

/// What happens when, in seconds, where every cell takes `slower` times what it took, and when all is done.
fn events(stretches: &[Stretch], slower: f64) -> (Vec<(f64, Event<'_>)>, f64) {
    let (mut events, mut now) = (Vec::new(), 0.0_f64);
    for Stretch { work, took_s } in stretches {
        events.push((now, Event::Begun(work)));
        let mut free = vec![now; work.at_a_time];
        let tells = ![Kind::Fit, Kind::Latency].iter().any(|kind| kind.to_string() == work.kind)
            && work.kind != work.name;
        for ((cell, _), took_s) in work.cells.iter().zip(took_s) {
            let thread = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            events.push((*thread, Event::Started(cell)));
            for part in (1..=TOLD).filter(|_| tells) {
                let share = part as f64 / TOLD as f64;
                events.push((*thread + share * slower * took_s, Event::Advanced(cell)));
            }
            *thread += slower * took_s;
            events.push((*thread, Event::Finished(cell)));
        }
        now = free.into_iter().fold(now, f64::max);
    }
    // Those of one moment stay in their order.
    events.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    (events, now)
}

#[test]
fn the_time_left_of_a_recorded_run_is_within_a_quarter_of_the_truth() {
    let stretches = recorded();
    for slower in [1.0, 3.0, 1.0 / 3.0] {
        let (events, whole_s) = events(&stretches, slower);
        let mut left = TimeLeft::of(stretches.iter().map(|s| s.work.clone()).collect());
        let mut events = events.into_iter().peekable();
        let (mut wrong, mut outside) = (Vec::new(), 0);
        for percent in 1..100 {
            let now_s = whole_s * percent as f64 / 100.0;
            while let Some((at_s, event)) = events.next_if(|(at_s, _)| *at_s <= now_s) {
                match event {
                    Event::Begun(work) => left.begin(work.clone()),
                    Event::Started(cell) => left.started(cell, at_s),
                    Event::Advanced(cell) => left.advanced(cell, 1.0 / TOLD as f64, at_s),
                    Event::Finished(cell) => left.finished(cell, at_s),
                }
            }
            let (told, true_s) = (left.left(now_s), whole_s - now_s);
            assert!(told.least_s <= told.likely_s && told.likely_s <= told.most_s, "{told:?}");
            let off_s = (told.likely_s - true_s).abs();
            println!("{slower:.2}: {percent:>2} %: {true_s:.0} s left, told {told:.0?}");
            if percent >= FROM && off_s > (WITHIN * true_s).max(SECONDS) {
                wrong.push((percent, true_s, told));
            }
            let is_inside = told.least_s - SECONDS <= true_s && true_s <= told.most_s + SECONDS;
            outside += usize::from(percent >= FROM && !is_inside);
        }
        assert!(wrong.is_empty(), "{slower} times as slow: {wrong:.0?}");
        assert!(outside <= 5, "{slower} times as slow: outside of what was told {outside} times");
    }
}

fn work(name: &str, at_a_time: usize, cells: &[(&str, f64)]) -> Work {
    let cells = cells.iter().map(|(cell, cost)| ((*cell).to_owned(), *cost)).collect();
    Work { name: name.to_owned(), kind: "fit".to_owned(), at_a_time, cells }
}

#[test]
fn cells_are_done_beside_each_other_and_works_one_after_another() {
    let first = work("first", 2, &[("a", 10.0), ("b", 20.0), ("c", 15.0)]);
    let second = work("second", 1, &[("a", 5.0), ("b", 5.0)]);
    // A cell that is needed by another study is in two works and done once.
    let again = work("first", 1, &[("a", 10.0)]);
    let mut left = TimeLeft::of(vec![again.clone(), first.clone(), second.clone()]);
    assert_eq!(left.left(0.0).likely_s, 35.0, "(a, then c) beside b, then the two of the second");
    left.begin(again);
    left.started("a", 0.0);
    left.finished("a", 10.0);
    left.begin(work("first", 2, &[("b", 20.0), ("c", 15.0)]));
    assert_eq!(left.left(10.0).likely_s, 30.0);
    left.started("b", 10.0);
    left.started("c", 10.0);
    assert_eq!(left.running().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(left.left(20.0).likely_s, 20.0);
    left.failed("b");
    assert_eq!(left.left(20.0).likely_s, 15.0);
    left.finished("c", 25.0);
    left.begin(second);
    assert_eq!(left.left(25.0).likely_s, 10.0);
}

#[test]
fn a_cell_tells_its_own_pace_and_an_overdue_one_is_not_said_to_end_at_once() {
    let mut left = TimeLeft::of(Vec::new());
    left.begin(work("one", 1, &[("a", 100.0)]));
    let unknown = left.left(0.0);
    assert!(unknown.least_s < 75.0 && unknown.most_s > 133.0, "{unknown:?}");
    left.started("a", 0.0);
    assert!(left.left(150.0).likely_s >= 30.0);
    left.advanced("a", 0.9, 900.0);
    let known = left.left(900.0);
    assert!((known.likely_s - 100.0).abs() < 60.0, "{known:?}");
    left.advanced("a", 0.1, 1000.0);
    left.finished("a", 1000.0);
    assert_eq!(left.left(1000.0).likely_s, 0.0);
}
