//! Checks the page headers of a Parquet file against its metadata before decompression. The library trusts the numbers in these
//! headers, so a damaged one makes it allocate any amount of memory.

use std::io::{Cursor, Read as _};
use std::ops::Range;

use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;

/// Bytes that a page may take in addition to its values.
const OF_A_PAGE: usize = 4096;

/// Checks the pages of one column, at bytes `column` of `file`: at most `rows` rows of at most `of_a_row` bytes each.
///
/// # Errors
/// A message that describes the first invalid page header.
pub(super) fn check(
    file: &[u8],
    column: Range<u64>,
    rows: usize,
    of_a_row: usize,
) -> Result<(), String> {
    let [start, end] =
        [column.start, column.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let bytes = file.get(start..end).ok_or("a column lies outside the file")?;
    let mut reader = Cursor::new(bytes);
    let mut seen = 0;
    while seen < rows {
        let mut protocol = TCompactInputProtocol::new(&mut reader, bytes.len());
        let header = PageHeader::read_from_in_protocol(&mut protocol)
            .map_err(|error| format!("a page header cannot be read: {error}"))?;
        let values = header.data_page_header.as_ref().map(|page| page.num_values);
        let values = values.or(header.data_page_header_v2.as_ref().map(|page| page.num_values));
        let of_dictionary = header.dictionary_page_header.as_ref().map(|page| page.num_values);
        let within =
            |count: i32, most: usize| usize::try_from(count).is_ok_and(|count| count <= most);
        let most = OF_A_PAGE.saturating_add(of_a_row.saturating_mul(rows));
        let holds = within(values.unwrap_or(0), rows - seen)
            && within(of_dictionary.unwrap_or(0), rows)
            && within(header.uncompressed_page_size, most);
        if !holds {
            let size = header.uncompressed_page_size;
            let count = values.or(of_dictionary).unwrap_or(0);
            return Err(format!(
                "a page announces {count} values in {size} bytes of a column with {rows} rows"
            ));
        }
        seen += values.unwrap_or(0) as usize;
        let length = u64::try_from(header.compressed_page_size).unwrap_or(u64::MAX);
        let skipped = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink());
        if skipped.ok() != Some(length) {
            return Err("a page extends past its column".to_owned());
        }
    }
    Ok(())
}
