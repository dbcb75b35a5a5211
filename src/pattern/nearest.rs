//! The valid name nearest to a mistyped one, for error messages.

/// The member of `valid` that reads most like `found`, by Damerau–Levenshtein distance.
pub(crate) fn nearest(found: &str, valid: &[&str]) -> String {
    valid
        .iter()
        .min_by_key(|name| strsim::damerau_levenshtein(found, name))
        .map(|name| (*name).to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_name_one_slip_away() {
        assert_eq!(nearest("dirichlet-bnad", &["decay-band", "dirichlet-band"]), "dirichlet-band");
    }
}
