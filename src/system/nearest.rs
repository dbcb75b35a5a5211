//! Suggestions for error messages: the valid name nearest to a mistyped one.

/// A name that is not one of the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {found:?}; {instead}")]
pub struct UnknownName {
    /// Kind of name: a family, a visibility, a key.
    pub what: &'static str,
    /// The name as given.
    pub found: String,
    /// Advice: the most similar valid name, then all others.
    pub instead: String,
}

impl UnknownName {
    /// Creates the error for the name `found`, which is not in `valid`.
    pub(crate) fn of(what: &'static str, found: &str, valid: &[&str]) -> Self {
        Self { what, found: found.to_owned(), instead: instead(found, valid) }
    }
}

/// Returns the member of `valid` that is most similar to `found`: a synonym, or the least Damerau–Levenshtein distance.
pub(crate) fn nearest(found: &str, valid: &[&str]) -> String {
    let nearest = || valid.iter().min_by_key(|name| strsim::damerau_levenshtein(found, name));
    synonym(found, valid).or_else(|| nearest().copied()).unwrap_or_default().to_owned()
}

/// Returns up to three of `names` that are so similar to `name` that they may be meant, the nearest first.
pub fn near_names<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let most = (name.chars().count() / 3).clamp(1, 3);
    let mut near: Vec<(usize, &str)> =
        names.map(|other| (strsim::damerau_levenshtein(name, other), other)).collect();
    near.sort_unstable();
    near.dedup();
    near.retain(|(slips, other)| *slips <= most || (name.len() > 2 && other.contains(name)));
    near.into_iter().map(|(_, other)| other).take(3).collect()
}

/// Names that other programs and papers use, and the names used here.
const SYNONYMS: [(&str, &str); 24] = [
    ("rotary", "rope"),
    ("nope", "none"),
    ("mha", "mhsa"),
    ("d", "rank"),
    ("d_head", "rank"),
    ("epsilon", "tolerance"),
    ("eps", "tolerance"),
    ("tolerance", "epsilon"),
    ("max_logit", "caps"),
    ("width", "window"),
    ("fp32", "float32"),
    ("bf16", "bfloat16"),
    ("lr", "learning_rate"),
    ("wd", "weight_decay"),
    ("n", "context"),
    ("block_size", "context"),
    ("seq_len", "context"),
    ("n_embd", "d_model"),
    ("hidden_size", "d_model"),
    ("n_head", "heads"),
    ("num_heads", "heads"),
    ("n_layer", "layers"),
    ("num_layers", "layers"),
    ("batch_size", "batch"),
];

/// Returns the valid name that is a synonym of `found`.
fn synonym<'v>(found: &str, valid: &[&'v str]) -> Option<&'v str> {
    let found = found.to_lowercase();
    let mut meant = SYNONYMS.iter().filter(|(elsewhere, _)| *elsewhere == found);
    meant.find_map(|(_, here)| valid.iter().find(|name| *name == here).copied())
}

/// Advises what to write instead of `found`, which is not in `valid`.
pub(crate) fn instead(found: &str, valid: &[&str]) -> String {
    let near = synonym(found, valid);
    let near = near.or_else(|| near_names(found, valid.iter().copied()).first().copied());
    let others: Vec<&str> = valid.iter().copied().filter(|name| Some(*name) != near).collect();
    let others = others.join(", ");
    match near {
        Some(near) if others.is_empty() => format!("did you mean {near:?}?"),
        Some(near) => format!("did you mean {near:?}? (others: {others})"),
        None => format!("use one of {others}"),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_name_one_slip_away() {
        assert_eq!(nearest("dirichlet-bnad", &["decay-band", "dirichlet-band"]), "dirichlet-band");
        assert_eq!(nearest("epsilon", &["n", "rank", "tolerance"]), "tolerance", "a synonym");
    }
}
