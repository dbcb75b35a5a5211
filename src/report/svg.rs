//! SVGs set into one page: what must be unique is made so.

/// `svg` with `prefix-` before every id and every reference to one, and without a prologue, so that
/// several can stand in one page.
pub(super) fn inline(svg: &str, prefix: &str) -> String {
    let body = svg.find("<svg").map_or(svg, |start| &svg[start..]);
    let mut text = body.to_owned();
    for opening in [" id=\"", "url(#", "href=\"#"] {
        text = text.replace(opening, &format!("{opening}{prefix}-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn ids_and_their_references_are_prefixed() {
        let svg = "<?xml version=\"1.0\"?>\n<svg><clipPath id=\"a\"/><g clip-path=\"url(#a)\"/>\
                   <use href=\"#a\"/></svg>";
        assert_eq!(
            inline(svg, "growth"),
            "<svg><clipPath id=\"growth-a\"/><g clip-path=\"url(#growth-a)\"/>\
             <use href=\"#growth-a\"/></svg>"
        );
    }
}
