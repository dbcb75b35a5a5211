//! Rows that depend on which tokens are equal.

use std::collections::HashMap;

use super::entries::Row;

/// Row i has equal weight on the positions j ≤ i in the cluster of i. `clusters` holds the cluster of each position.
pub(super) fn clustered(clusters: &[usize]) -> Vec<Row> {
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    let row = |(row, &cluster)| {
        let seen = members.entry(cluster).or_default();
        seen.push(row);
        let p = 1.0 / seen.len() as f64;
        seen.iter().map(|&column| (column, p)).collect()
    };
    clusters.iter().enumerate().map(row).collect()
}

/// Row i has all its weight on the position after the last earlier occurrence of token i, and on itself if the token is new.
pub(super) fn induction(tokens: &[usize]) -> Vec<Row> {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let row = |(row, &token)| {
        let column = last.insert(token, row).map_or(row, |before| before + 1);
        vec![(column, 1.0)]
    };
    tokens.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_shared_evenly() {
        let rows = clustered(&[1, 0, 1, 1, 0]);
        let third = 1.0 / 3.0;
        let expected: [&[(usize, f64)]; 5] = [
            &[(0, 1.0)],
            &[(1, 1.0)],
            &[(0, 0.5), (2, 0.5)],
            &[(0, third), (2, third), (3, third)],
            &[(1, 0.5), (4, 0.5)],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_place_after_the_last_of_the_same_token_is_copied() {
        let rows = induction(&[3, 5, 3, 3, 5, 7, 3]);
        let columns: Vec<usize> = rows.iter().map(|row| row[0].0).collect();
        assert_eq!(columns, [0, 1, 1, 3, 2, 5, 4]);
        assert!(rows.iter().all(|row| row.len() == 1 && row[0].1 == 1.0), "{rows:?}");
    }
}
