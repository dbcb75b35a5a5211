//! What a page may do: its own scripts and styles, and pictures that stand in it.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest as _, Sha256};

/// The Content-Security-Policy of a page that has these scripts and styles, and nothing else that runs: whatever a name
/// in the page might smuggle in stays dead. Nothing is fetched, sent, framed or evaluated; pictures are in the page
/// itself. A name cannot become markup through a script either, since no string may.
pub(super) fn policy<'t>(
    scripts: impl Iterator<Item = &'t str>,
    styles: impl Iterator<Item = &'t str>,
) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        sources(scripts),
        sources(styles)
    )
}

fn sources<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let source = |text| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    texts.map(source).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::policy;

    /// The hash of `alert('Hello, world.');` is the example of the specification (CSP 3, § 8.3).
    #[test]
    fn what_the_page_has_is_named_by_its_hash() {
        let policy = policy(["alert('Hello, world.');"].into_iter(), ["", "a{}"].into_iter());
        let script = "script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=';";
        assert!(policy.contains(script), "{policy}");
        assert_eq!(policy.matches("'sha256-").count(), 3);
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
