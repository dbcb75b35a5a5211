//! A quantity of the rows in a file, as `analysis/notes/*.toml` write it.
//!
//! ```text
//! one(inflation; rank = 8 and n = 48)            of rows that agree on it
//! max(kl_nats; target ~ dirichlet and cap >= 8)  over rows; min and median likewise
//! count(seed by seed; run = a)                   how many seeds; without `by`, how many rows
//! min(loss[run = a] - loss[run = b] by seed)     within each seed, of one row of either run
//! max(input_factor; largest actual by run seed)         of the row of each run and seed whose `actual` is largest
//! low(loss[run = a] - loss[run = b] by seed)     the lower end of Student's 95 % interval of the mean; `mean` and
//!                                                `high` are the others
//! exp(mean(log(loss[run = a] / loss[run = b]) by seed))   a geometric mean; `log` and `exp` go around any value
//! ```
//!
//! Conditions: `=` (`a | b` is either), `!=`, `~` (contains), `<`, `<=`, `>`, `>=`, of a column or what is computed of
//! several, `n / rank >= 16`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

pub type Row = HashMap<String, String>;

pub fn read(path: &Path) -> Vec<Row> {
    let mut reader =
        csv::Reader::from_path(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = reader.deserialize().collect::<Result<Vec<Row>, _>>();
    rows.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The value of `text` over `rows`, those that meet the conditions `of`.
pub fn value(text: &str, of: &str, rows: &[Row]) -> Result<f64, String> {
    let rows = select(rows.iter().collect(), of)?;
    Parser::new(text, &rows, None).whole()
}

/// A number as prose writes it: `1,024`, `−1.2`, `10⁻⁴`, `three`.
pub fn number(text: &str) -> Option<f64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    if let Some(word) = WORDS.iter().position(|word| *word == text.to_lowercase()) {
        return Some(word as f64);
    }
    if let Some(power) = text.strip_prefix("10⁻") {
        let digit = |c| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c);
        let power = power.chars().try_fold(0, |power, c| Some(10 * power + digit(c)?))?;
        return format!("1e-{power}").parse().ok();
    }
    text.replace('−', "-").replace(',', "").parse().ok()
}

/// Half a unit of the last digit that a number is written with.
pub fn precision(text: &str) -> f64 {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 0.1f64.powi(i32::try_from(decimals).unwrap())
}

/// Every number in a text with where it stands.
pub fn numbers(text: &str) -> Vec<(usize, &str)> {
    let pattern = r"10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?";
    let before = |at: usize| text[..at].chars().next_back();
    let found = Regex::new(pattern).unwrap();
    let found = found.find_iter(text).map(|found| {
        // A hyphen between two things is no sign.
        let sign = found.as_str().starts_with('-')
            && before(found.start()).is_some_and(char::is_alphanumeric);
        let skip = usize::from(sign);
        (found.start() + skip, &found.as_str()[skip..])
    });
    found.collect()
}

fn select<'r>(mut rows: Vec<&'r Row>, conditions: &str) -> Result<Vec<&'r Row>, String> {
    let mut conditions: Vec<&str> =
        conditions.split(" and ").map(str::trim).filter(|c| !c.is_empty()).collect();
    // The largest of those that meet the rest.
    conditions.sort_by_key(|condition| condition.starts_with("largest "));
    for condition in conditions {
        if let Some(largest) = condition.strip_prefix("largest ") {
            let (column, by) = largest.split_once(" by ").ok_or("largest COLUMN by COLUMNS")?;
            let mut best: BTreeMap<Vec<String>, (f64, &Row)> = BTreeMap::new();
            for row in rows {
                let here = cell(row, column)?;
                let kept = best.entry(key(row, by)?).or_insert((here, row));
                if here > kept.0 {
                    *kept = (here, row);
                }
            }
            rows = best.into_values().map(|(_, row)| row).collect();
            continue;
        }
        let mut kept = Vec::new();
        for row in rows {
            if meets(row, condition)? {
                kept.push(row);
            }
        }
        rows = kept;
    }
    Ok(rows)
}

fn meets(row: &Row, condition: &str) -> Result<bool, String> {
    static SIGNS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^(.*?) (=|!=|~|<|<=|>|>=) (.*)$").unwrap());
    let parts = SIGNS.captures(condition).ok_or_else(|| format!("no condition: {condition:?}"))?;
    let [left, sign, wanted] = [1, 2, 3].map(|part| parts.get(part).unwrap().as_str());
    let left = left.trim();
    let text = match row.get(left) {
        Some(text) => text.clone(),
        None => Parser::new(left, &[], Some(&[row])).whole()?.to_string(),
    };
    let same = |wanted: &str| match (text.parse::<f64>(), wanted.parse::<f64>()) {
        (Ok(here), Ok(wanted)) => here == wanted,
        _ => text == wanted,
    };
    // Nothing is above or below an empty cell.
    let above = |holds: fn(f64) -> bool| {
        let bound: f64 = wanted.parse().map_err(|_| format!("{wanted:?} is no number"))?;
        Ok::<_, String>(text.parse::<f64>().is_ok_and(|here| holds(here - bound)))
    };
    match sign {
        "=" => Ok(wanted.split(" | ").any(same)),
        "!=" => Ok(!same(wanted)),
        "~" => Ok(text.contains(wanted)),
        "<" => above(|above| above < 0.0),
        "<=" => above(|above| above <= 0.0),
        ">" => above(|above| above > 0.0),
        _ => above(|above| above >= 0.0),
    }
}

fn cell(row: &Row, column: &str) -> Result<f64, String> {
    let text = row.get(column).ok_or_else(|| format!("no column {column:?}"))?;
    text.parse().map_err(|_| format!("{column} is {text:?}"))
}

fn key(row: &Row, columns: &str) -> Result<Vec<String>, String> {
    let value = |column| row.get(column).cloned().ok_or_else(|| format!("no column {column:?}"));
    columns.split(' ').map(value).collect()
}

/// Sums, products and what they are of; within an aggregate's parentheses columns, of the rows of one group.
struct Parser<'t, 'r> {
    rest: &'t str,
    rows: &'r [&'r Row],
    group: Option<&'r [&'r Row]>,
}

impl<'t, 'r> Parser<'t, 'r> {
    fn new(rest: &'t str, rows: &'r [&'r Row], group: Option<&'r [&'r Row]>) -> Self {
        Self { rest, rows, group }
    }

    fn whole(&mut self) -> Result<f64, String> {
        let value = self.sum()?;
        match self.rest.trim() {
            "" => Ok(value),
            rest => Err(format!("{rest:?} is not understood")),
        }
    }

    fn eat(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.eat('+') {
                value += self.product()?;
            } else if self.eat('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.atom()?;
        loop {
            if self.eat('*') {
                value *= self.atom()?;
            } else if self.eat('/') {
                value /= self.atom()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.eat('(') {
            let value = self.sum()?;
            return if self.eat(')') { Ok(value) } else { Err("a ( is not closed".to_owned()) };
        }
        let word = self.word(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        let function: Option<fn(f64) -> f64> = match word {
            "log" => Some(f64::ln),
            "exp" => Some(f64::exp),
            _ => None,
        };
        if let Some(function) = function {
            if !self.rest.starts_with('(') {
                return Err(format!("{word} has no parenthesis"));
            }
            return Ok(function(self.atom()?));
        }
        match self.group {
            Some(group) => self.column(word, group),
            None => self.aggregate(word),
        }
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A column of the one row of the group, or of the one that `[conditions]` pick from it.
    fn column(&mut self, column: &str, group: &[&Row]) -> Result<f64, String> {
        let mut rows = group.to_vec();
        if let Some(rest) = self.rest.strip_prefix('[') {
            let (conditions, rest) = rest.split_once(']').ok_or("a [ is not closed")?;
            rows = select(rows, conditions)?;
            self.rest = rest;
        }
        match rows[..] {
            [row] => cell(row, column),
            _ => Err(format!("{} rows for {column}", rows.len())),
        }
    }

    /// `NAME(what by columns; conditions)`.
    fn aggregate(&mut self, name: &str) -> Result<f64, String> {
        if !self.eat('(') {
            return Err(format!("{name:?} is no number and no function"));
        }
        let mut depth = 1;
        let close = self.rest.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '(') - i32::from(*c == ')');
            depth == 0
        });
        let (inner, rest) = self.rest.split_at(close.ok_or("a ( is not closed")?.0);
        self.rest = &rest[1..];
        let (what, conditions) = inner.split_once(';').unwrap_or((inner, ""));
        let rows = select(self.rows.to_vec(), conditions)?;
        let (what, by) = what.split_once(" by ").unwrap_or((what, ""));
        let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let of = if by.is_empty() { vec![format!("{at:6}")] } else { key(row, by.trim())? };
            groups.entry(of).or_default().push(row);
        }
        if name == "count" {
            return Ok(groups.len() as f64);
        }
        let of_group = |group: &Vec<&Row>| Parser::new(what, &[], Some(group)).whole();
        let mut values = groups.values().map(of_group).collect::<Result<Vec<f64>, String>>()?;
        values.sort_by(f64::total_cmp);
        let none = || format!("no row for {what} with{conditions}");
        let last = values.len().checked_sub(1).ok_or_else(none)?;
        match name {
            "one" if values[0] == values[last] => Ok(values[0]),
            "one" => Err(format!("{what} is not one number but {values:?}")),
            "min" => Ok(values[0]),
            "max" => Ok(values[last]),
            "median" => Ok(f64::midpoint(values[last / 2], values[last - last / 2])),
            "mean" => Ok(mean(&values)),
            "low" => Ok(mean(&values) - half_interval(&values)?),
            "high" => Ok(mean(&values) + half_interval(&values)?),
            _ => Err(format!("no function {name:?}")),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half of Student's 95 % interval of a mean.
fn half_interval(values: &[f64]) -> Result<f64, String> {
    let count = values.len();
    let student = StudentsT::new(0.0, 1.0, count as f64 - 1.0);
    let student = student.map_err(|_| format!("no interval of {count} values"))?;
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Ok(student.inverse_cdf(0.975) * (squares / ((count - 1) * count) as f64).sqrt())
}
