//! How long what is still to do may take, by what was done so far. No clock is read here: whoever tells of an event
//! says when it was, in seconds since any moment.

/// The cells of a study that are to be measured, or other work in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What tells it from other work.
    pub name: String,
    /// Estimates of one kind are wrong alike.
    pub kind: String,
    /// How many cells are measured at a time.
    pub at_a_time: usize,
    /// The cells in their order, and the seconds of one core that each may take.
    pub cells: Vec<(String, f64)>,
}

/// So many seconds, most likely, and those that they are likely to lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Seldom less.
    pub least_s: f64,
    /// The best guess.
    pub likely_s: f64,
    /// Seldom more.
    pub most_s: f64,
}

/// What a command has still to do, and how its estimates did so far.
#[derive(Clone, Debug, Default)]
pub struct TimeLeft {
    /// The work at hand, of which the cells that began are gone.
    at_hand: Option<Work>,
    running: Vec<Running>,
    waiting: Vec<Work>,
    records: Vec<Record>,
}

/// A cell that began.
#[derive(Clone, Debug)]
struct Running {
    cell: String,
    estimate_s: f64,
    began_s: f64,
    /// The share that is done, and when that was so.
    share: f64,
    share_at_s: f64,
}

/// How the estimates of one work did.
#[derive(Clone, Debug)]
struct Record {
    name: String,
    kind: String,
    /// The sums over cells, and how many these are.
    estimated_s: f64,
    took_s: f64,
    cells: f64,
    /// The sums over cells of the ratio's logarithm, and of its square.
    log_ratio: f64,
    log_ratio_squared: f64,
}

/// What is known of the ratio of measured to estimated.
struct Ratio {
    value: f64,
    /// The standard deviation of its logarithm.
    doubt: f64,
}

/// What is expected of a ratio before anything was measured weighs as much as so many cells.
const PRIOR_CELLS: f64 = 8.0;
/// Standard deviations of the logarithms of ratios, as the estimates' formulas were found to err: of a machine, of a
/// kind on it, of a study of the kind, of a cell of the study.
const MACHINE: f64 = 0.6;
const KIND: f64 = 0.35;
const STUDY: f64 = 0.35;
const CELL: f64 = 0.6;
/// A cell that has taken longer than it should takes at least this share of its time so far again.
const OVERDUE: f64 = 0.25;

impl TimeLeft {
    /// Of all this work, one after another. A cell that several works have is done once.
    pub fn of(works: Vec<Work>) -> Self {
        let mut waiting: Vec<Work> = Vec::new();
        for work in works {
            add(&mut waiting, work);
        }
        Self { waiting, ..Self::default() }
    }

    /// This work begins now, of these cells, whatever it was thought to have before.
    pub fn begin(&mut self, work: Work) {
        self.running.clear();
        let others = |other: &mut Work| {
            if other.name == work.name {
                other.cells.retain(|(cell, _)| !work.has(cell));
            }
            !other.cells.is_empty()
        };
        self.waiting.retain_mut(others);
        self.at_hand = Some(work);
    }

    /// A cell of the work at hand begins.
    pub fn started(&mut self, cell: &str, at_s: f64) {
        let Some(work) = &mut self.at_hand else { return };
        let Some(place) = work.cells.iter().position(|(name, _)| name == cell) else { return };
        let (cell, estimate_s) = work.cells.remove(place);
        let began = Running { cell, estimate_s, began_s: at_s, share: 0.0, share_at_s: at_s };
        self.running.push(began);
    }

    /// A share more of a running cell is done.
    pub fn advanced(&mut self, cell: &str, share: f64, at_s: f64) {
        if let Some(running) = self.running.iter_mut().find(|running| running.cell == cell) {
            running.share += share;
            running.share_at_s = at_s;
        }
    }

    /// A running cell has come to its end: its time tells of others.
    pub fn finished(&mut self, cell: &str, at_s: f64) {
        let Some(cell) = self.take(cell) else { return };
        let Some(Work { name, kind, .. }) = &self.at_hand else { return };
        // A training that was gone on with had some of its work behind it.
        let share = if cell.share > 0.0 { cell.share.min(1.0) } else { 1.0 };
        let seen = Record::of(name, kind, cell.estimate_s * share, at_s - cell.began_s);
        match self.records.iter_mut().find(|record| record.name == *name) {
            Some(record) => record.add(&seen),
            None => self.records.push(seen),
        }
    }

    /// A running cell has failed: its time tells nothing of others.
    pub fn failed(&mut self, cell: &str) {
        self.take(cell);
    }

    /// The names of the running cells, in the order in which they began.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.running.iter().map(|running| running.cell.as_str())
    }

    /// How long all that is still to do may take, as seen at this moment.
    pub fn left(&self, at_s: f64) -> Span {
        let records = self.records_at(at_s);
        let machine = machine(&records);
        let (mut likely, mut variance) = (0.0, 0.0);
        for (work, running) in self
            .at_hand
            .iter()
            .map(|work| (work, &*self.running))
            .chain(self.waiting.iter().map(|work| (work, [].as_slice())))
        {
            let ratio = ratio_of(work, &records, &machine);
            let left = makespan(work, running, ratio.value, at_s);
            let cells = (work.cells.len() + running.len()).max(1) as f64;
            likely += left;
            variance += (left * ratio.doubt).powi(2) + (left * spread(&records)).powi(2) / cells;
        }
        let of_works = if likely > 0.0 { variance / (likely * likely) } else { 0.0 };
        let doubt = (of_works + machine.doubt.powi(2)).sqrt();
        Span { least_s: likely * (-doubt).exp(), likely_s: likely, most_s: likely * doubt.exp() }
    }

    fn take(&mut self, cell: &str) -> Option<Running> {
        let place = self.running.iter().position(|running| running.cell == cell)?;
        Some(self.running.remove(place))
    }

    /// The records, with what the running cells tell: the share of them that is done.
    fn records_at(&self, at_s: f64) -> Vec<Record> {
        let mut records = self.records.clone();
        let Some(Work { name, kind, .. }) = &self.at_hand else { return records };
        for running in self.running.iter().filter(|running| running.share > 0.0) {
            let estimated_s = running.estimate_s * running.share.min(1.0);
            let took_s = running.share_at_s.min(at_s) - running.began_s;
            let share = running.share.min(1.0);
            let seen = Record::of(name, kind, estimated_s, took_s).weighed(share);
            match records.iter_mut().find(|record| record.name == *name) {
                Some(record) => record.add(&seen),
                None => records.push(seen),
            }
        }
        records
    }
}

/// Adds work to what waits, but for cells that are there.
fn add(waiting: &mut Vec<Work>, mut work: Work) {
    match waiting.iter_mut().find(|other| other.name == work.name) {
        Some(there) => {
            there.at_a_time = there.at_a_time.max(work.at_a_time);
            work.cells.retain(|(cell, _)| !there.has(cell));
            there.cells.append(&mut work.cells);
        }
        None => waiting.push(work),
    }
}

impl Work {
    fn has(&self, cell: &str) -> bool {
        self.cells.iter().any(|(name, _)| name == cell)
    }
}

impl Record {
    fn of(name: &str, kind: &str, estimated_s: f64, took_s: f64) -> Self {
        let log_ratio = (took_s.max(1e-3) / estimated_s.max(1e-3)).ln();
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            estimated_s,
            took_s,
            cells: 1.0,
            log_ratio,
            log_ratio_squared: log_ratio * log_ratio,
        }
    }

    /// The record of a part of a cell.
    fn weighed(self, share: f64) -> Self {
        Self {
            cells: share,
            log_ratio: self.log_ratio * share,
            log_ratio_squared: self.log_ratio_squared * share,
            ..self
        }
    }

    fn add(&mut self, other: &Self) {
        self.estimated_s += other.estimated_s;
        self.took_s += other.took_s;
        self.cells += other.cells;
        self.log_ratio += other.log_ratio;
        self.log_ratio_squared += other.log_ratio_squared;
    }
}

/// The records of each kind as one.
fn by_kind(records: &[Record]) -> Vec<Record> {
    let mut kinds: Vec<Record> = Vec::new();
    for record in records {
        match kinds.iter_mut().find(|kind| kind.kind == record.kind) {
            Some(kind) => kind.add(record),
            None => kinds.push(record.clone()),
        }
    }
    kinds
}

/// What every kind's ratio has in common: how fast the machine is, of which several kinds tell more than many cells of
/// one.
fn machine(records: &[Record]) -> Ratio {
    let (mut sum, mut weight) = (0.0, (KIND / MACHINE).powi(2));
    for kind in by_kind(records) {
        let of_kind = kind.cells / (kind.cells + PRIOR_CELLS);
        sum += of_kind * (kind.took_s.max(1e-3) / kind.estimated_s.max(1e-3)).ln();
        weight += of_kind;
    }
    Ratio { value: (sum / weight).exp(), doubt: KIND / weight.sqrt() }
}

/// The ratio of a work: that of its own cells as far as it has some, then that of its kind, then the machine's.
fn ratio_of(work: &Work, records: &[Record], machine: &Ratio) -> Ratio {
    let shrunk = |record: Option<&Record>, towards: f64| match record {
        Some(record) => {
            let prior = PRIOR_CELLS * record.estimated_s / record.cells;
            (record.took_s + prior * towards) / (record.estimated_s + prior)
        }
        None => towards,
    };
    let kinds = by_kind(records);
    let of_kind = kinds.iter().find(|kind| kind.kind == work.kind);
    let own = records.iter().find(|record| record.name == work.name);
    let doubt_after = |of_one: f64, record: Option<&Record>| {
        of_one * of_one / (1.0 + record.map_or(0.0, |record| record.cells) / PRIOR_CELLS)
    };
    Ratio {
        value: shrunk(own, shrunk(of_kind, machine.value)),
        doubt: (doubt_after(KIND, of_kind) + doubt_after(STUDY, own)).sqrt(),
    }
}

/// How far ratios of the cells of a study lie apart: the standard deviation of their logarithms.
fn spread(records: &[Record]) -> f64 {
    let (mut squares, mut cells) = (PRIOR_CELLS * CELL * CELL, PRIOR_CELLS);
    for record in records.iter().filter(|record| record.cells > 1.0) {
        squares += record.log_ratio_squared - record.log_ratio * record.log_ratio / record.cells;
        cells += record.cells - 1.0;
    }
    (squares / cells).sqrt()
}

/// The seconds until the last cell of a work ends, each cell in its turn where one ends first.
fn makespan(work: &Work, running: &[Running], ratio: f64, at_s: f64) -> f64 {
    let mut free: Vec<f64> = running.iter().map(|cell| cell.left_s(ratio, at_s)).collect();
    free.resize(work.at_a_time.max(running.len()).max(1), 0.0);
    for (_, estimate_s) in &work.cells {
        if let Some(first) = free.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *first += estimate_s * ratio;
        }
    }
    free.into_iter().fold(0.0, f64::max)
}

impl Running {
    /// The seconds that it may still take, by its own pace as far as that is known.
    fn left_s(&self, ratio: f64, at_s: f64) -> f64 {
        let elapsed = at_s - self.began_s;
        let share = self.share.min(1.0);
        let by_ratio = self.estimate_s * ratio;
        let whole = match share > 0.0 {
            true => {
                let by_pace = (self.share_at_s - self.began_s) / share;
                let known = share.sqrt();
                known * by_pace + (1.0 - known) * by_ratio
            }
            false => by_ratio,
        };
        (whole - elapsed).max(OVERDUE * elapsed * (1.0 - share))
    }
}
