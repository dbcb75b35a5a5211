//! TensorBoard event files: scalars over the steps of a run.
//!
//! A file is a sequence of records (TFRecord: tensorflow.org/tutorials/load_data/tfrecord). A record has the length of
//! the data (8 bytes, little-endian), its masked CRC-32C, the data, and their masked CRC-32C. The data are a protocol
//! buffer `Event` (tensorflow/core/util/event.proto) with the fields `wall_time` 1 double, `step` 2 int64,
//! `file_version` 3 string and `summary` 5. Each `value` 1 of a summary has a `tag` 1 and a `simple_value` 2 float
//! (tensorflow/core/framework/summary.proto).

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::system::disk::File;

/// The scalars of a step: tags and values.
pub(crate) type Scalars = Vec<(String, f64)>;

/// The `file_version` in the first record of a file.
const FILE_VERSION: &str = "brain.Event:2";

// Keys of fields: the field number, shifted left by 3, and the wire type.
const WALL_TIME: u8 = 1 << 3 | 1;
const STEP: u8 = 2 << 3;
const VERSION: u8 = 3 << 3 | 2;
const SUMMARY: u8 = 5 << 3 | 2;
const VALUE: u8 = 1 << 3 | 2;
const TAG: u8 = 1 << 3 | 2;
const SIMPLE_VALUE: u8 = 2 << 3 | 5;

/// A growing event file.
pub(crate) struct Events {
    file: BufWriter<File>,
}

impl Events {
    /// Creates a file with the scalars of steps so far; an existing file is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, so_far: &[(usize, Scalars)]) -> io::Result<Self> {
        let mut events = Self { file: BufWriter::new(File::create(path)?) };
        let mut event = timed(0);
        bytes(&mut event, VERSION, FILE_VERSION.as_bytes());
        write_record(&mut events.file, &event)?;
        for (step, scalars) in so_far {
            events.push(*step, scalars)?;
        }
        Ok(events)
    }

    /// Appends scalars of one step.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, step: usize, scalars: &[(String, f64)]) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, number) in scalars {
            let mut value = Vec::new();
            bytes(&mut value, TAG, tag.as_bytes());
            value.push(SIMPLE_VALUE);
            value.extend((*number as f32).to_le_bytes());
            bytes(&mut summary, VALUE, &value);
        }
        let mut event = timed(step);
        bytes(&mut event, SUMMARY, &summary);
        write_record(&mut self.file, &event)
    }

    /// Returns once the appended scalars are on the disk itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync()
    }

    /// Passes the appended scalars to the operating system, so that TensorBoard can read them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Begins an event of `step` with the current time.
fn timed(step: usize) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
    let mut event = vec![WALL_TIME];
    event.extend(now.to_le_bytes());
    event.push(STEP);
    variable(&mut event, step as u64);
    event
}

/// Appends a varint: groups of seven bits, the lowest first.
fn variable(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a field of bytes: key, length, bytes.
fn bytes(to: &mut Vec<u8>, key: u8, field: &[u8]) {
    to.push(key);
    variable(to, field.len() as u64);
    to.extend(field);
}

/// CRC-32C, rotated and offset. This keeps the checksum of data that contain checksums strong.
fn masked_checksum(data: &[u8]) -> [u8; 4] {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn write_record(to: &mut impl Write, data: &[u8]) -> io::Result<()> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_checksum(&length));
    record.extend(data);
    record.extend(masked_checksum(data));
    to.write_all(&record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every (step, tag, value) of a file, parsed field by field.
    fn scalars(mut file: &[u8]) -> Vec<(u64, String, f32)> {
        let mut found = Vec::new();
        while let Some((length, rest)) = file.split_first_chunk::<8>() {
            let (checksum, rest) = rest.split_at(4);
            assert_eq!(checksum, masked_checksum(length));
            let (event, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            let (checksum, rest) = rest.split_at(4);
            assert_eq!(checksum, masked_checksum(event));
            let all = fields(event);
            for &(_, summary) in all.iter().filter(|(key, _)| *key == SUMMARY) {
                for (_, value) in fields(summary) {
                    let [(TAG, tag), (SIMPLE_VALUE, number)] = fields(value)[..] else {
                        panic!("{value:?}")
                    };
                    let (STEP, step) = all[1] else { panic!("{event:?}") };
                    let step = step.iter().rev().fold(0, |all, b| all << 7 | u64::from(b & 0x7f));
                    let number = f32::from_le_bytes(number.try_into().unwrap());
                    found.push((step, String::from_utf8(tag.to_vec()).unwrap(), number));
                }
            }
            file = rest;
        }
        assert!(file.is_empty(), "{} bytes are no record", file.len());
        found
    }

    /// Returns the fields of a message: keys and contents.
    fn fields(mut message: &[u8]) -> Vec<(u8, &[u8])> {
        let mut found = Vec::new();
        while let Some((&key, rest)) = message.split_first() {
            let (start, length) = match key & 7 {
                0 => (0, 1 + rest.iter().position(|byte| byte & 0x80 == 0).unwrap()),
                1 => (0, 8),
                5 => (0, 4),
                _ => (1, usize::from(rest[0])),
            };
            found.push((key, &rest[start..start + length]));
            message = &rest[start + length..];
        }
        found
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let of_step = |step: usize| {
            let values = [("loss/train", step as f64 / 8.0), ("grad_norm", 0.5)];
            (step, values.map(|(tag, value)| (tag.to_owned(), value)).to_vec())
        };
        let mut events = Events::create(&path, &[of_step(1), of_step(200)]).unwrap();
        let (step, last) = of_step(300);
        events.push(step, &last).unwrap();
        events.flush().unwrap();
        let all = scalars(&std::fs::read(&path).unwrap());
        assert_eq!(all.len(), 6);
        assert_eq!(all[2], (200, "loss/train".to_owned(), 25.0));
        assert_eq!(all[5], (300, "grad_norm".to_owned(), 0.5));
    }
}
