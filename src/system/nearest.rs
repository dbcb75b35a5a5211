//! Suggestions for error messages: the valid name nearest to a mistyped one.

use std::path::Path;

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

/// Returns ` (did you mean FILE?)` with the files beside a missing one that have similar names; empty if there are
/// none.
pub fn near_files(path: &Path) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let files = std::fs::read_dir(listed).into_iter().flatten().flatten();
    let names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut near = near_names(&name, names.iter().map(String::as_str));
    if near.is_empty() {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let holds = |other: &&String| stem.len() > 2 && other.starts_with(&*stem);
        near = names.iter().filter(holds).map(String::as_str).take(3).collect();
    }
    let near: Vec<String> =
        near.iter().map(|name| folder.join(name).display().to_string()).collect();
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
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
