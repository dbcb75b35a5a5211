//! The valid name nearest to a mistyped one, for error messages.

/// A name that is not one of the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {found:?}; did you mean {nearest:?}?")]
pub struct UnknownName {
    /// What the name stands for: a family, a visibility, a key.
    pub what: &'static str,
    /// The name as given.
    pub found: String,
    /// The valid name that reads most like it.
    pub nearest: String,
}

impl UnknownName {
    /// `found`, which is none of `valid`.
    pub(crate) fn of(what: &'static str, found: &str, valid: &[&str]) -> Self {
        Self { what, found: found.to_owned(), nearest: nearest(found, valid) }
    }
}

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
