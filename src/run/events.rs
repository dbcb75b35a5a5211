//! TensorBoard event files: scalars over the steps of a run.
//!
//! A file is a sequence of records (TFRecord: tensorflow.org/tutorials/load_data/tfrecord). A record has the length of
//! the data (8 bytes, little-endian), its masked CRC-32C, the data, and their masked CRC-32C. The data are a protocol
//! buffer `Event` (tensorflow/core/util/event.proto) with the fields `wall_time` 1 double, `step` 2 int64,
//! `file_version` 3 string and `summary` 5. Each `value` 1 of a summary has a `tag` 1 and a `simple_value` 2 float
//! (tensorflow/core/framework/summary.proto).

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::csv_log::cut_at;
use crate::system::FileError;
use crate::system::disk::File;

/// The `file_version` in the first record of a file.
const FILE_VERSION: &str = "brain.Event:2";
/// Maximum record length in bytes, far above that of any record written here; a longer one means that the length is
/// damaged.
const LONGEST: u64 = 1 << 20;

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
    /// Creates a file; an existing file is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let start = || -> io::Result<Self> {
            let mut events = Self { file: BufWriter::new(File::create(path)?) };
            let mut event = timed(0);
            bytes(&mut event, VERSION, FILE_VERSION.as_bytes());
            write_record(&mut events.file, &event)?;
            Ok(events)
        };
        start().map_err(|e| FileError::write(path, e))
    }

    /// Continues a file after step `last`. Removes records of later steps, a record that is cut off or damaged, and
    /// everything after it, so that no step is stored twice.
    ///
    /// # Errors
    /// The file is missing or cannot be written.
    pub fn go_on(path: &Path, last: usize) -> Result<Self, FileError> {
        let failed = |e| FileError::read(path, e);
        let file = File::open(path).map_err(failed)?;
        let (mut records, mut end) = (BufReader::new(&file), 0);
        while let Some(event) = read_record(&mut records).map_err(failed)?
            && step_of(&event).is_some_and(|step| step <= last as u64)
        {
            end += event.len() as u64 + 16;
        }
        if end == 0 {
            return Self::create(path);
        }
        Ok(Self { file: BufWriter::new(cut_at(file, path, end)?) })
    }

    /// Appends scalars of one step.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, step: usize, scalars: &[(&str, f64)]) -> io::Result<()> {
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

/// Returns the step of an event that [`timed`] began.
fn step_of(event: &[u8]) -> Option<u64> {
    let (key, rest) = event.split_first()?;
    let (step, rest) = rest.get(8..)?.split_first()?;
    if (*key, *step) != (WALL_TIME, STEP) {
        return None;
    }
    let mut number = 0;
    for (at, byte) in rest.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
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

/// Returns the data of the next record; `None` at the end, or if the record is cut off or damaged.
fn read_record(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut take = |count: u64| -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        from.take(count).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 == count).then_some(bytes))
    };
    let Some(head) = take(12)? else { return Ok(None) };
    let Some((length, checksum)) = head.split_first_chunk::<8>() else { return Ok(None) };
    let count = u64::from_le_bytes(*length);
    if masked_checksum(length) != checksum || count > LONGEST {
        return Ok(None);
    }
    let Some(mut data) = take(count + 4)? else { return Ok(None) };
    let checksum = data.split_off(count as usize);
    Ok((masked_checksum(&data)[..] == checksum).then_some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every (step, tag, value) of a file, parsed field by field.
    fn scalars(mut file: &[u8]) -> Vec<(u64, String, f32)> {
        let mut found = Vec::new();
        while let Some(event) = read_record(&mut file).unwrap() {
            let step = step_of(&event).unwrap();
            for (key, field) in fields(&event) {
                let values = if key == SUMMARY { fields(field) } else { Vec::new() };
                for (_, value) in values {
                    let [(TAG, tag), (SIMPLE_VALUE, number)] = fields(value)[..] else {
                        panic!("{value:?}")
                    };
                    let number = f32::from_le_bytes(number.try_into().unwrap());
                    found.push((step, String::from_utf8(tag.to_vec()).unwrap(), number));
                }
            }
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
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn what_is_written_is_read_back_and_no_step_is_there_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let mut events = Events::create(&path).unwrap();
        for step in [1, 200, 300] {
            events.push(step, &[("loss/train", step as f64 / 8.0), ("grad_norm", 0.5)]).unwrap();
        }
        events.flush().unwrap();
        let all = scalars(&std::fs::read(&path).unwrap());
        assert_eq!(all.len(), 6);
        assert_eq!(all[2], (200, "loss/train".to_owned(), 25.0));
        let whole = std::fs::read(&path).unwrap();
        let mut turned = whole.clone();
        let place = whole.len() - 10;
        turned[place] ^= 1;
        for (found, last, left) in [
            (&whole[..], 300, 6),
            (&whole, 299, 4),
            (&whole[..place], 300, 4),
            (&turned, 300, 4),
            (&[], 300, 0),
        ] {
            std::fs::write(&path, found).unwrap();
            let mut events = Events::go_on(&path, last).unwrap();
            events.push(301, &[("loss/valid", 2.0)]).unwrap();
            events.flush().unwrap();
            let now = scalars(&std::fs::read(&path).unwrap());
            assert_eq!(now[..left], all[..left]);
            assert_eq!(now[left..], [(301, "loss/valid".to_owned(), 2.0)]);
        }
    }
}
