//! The paths in code, in `use` trees and in tokens.

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};
use syn::UseTree;

/// A path with its generic arguments left out.
pub fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// One leaf of a `use`.
pub struct Import {
    pub path: Vec<String>,
    pub line: usize,
    /// The name in scope; none for a glob.
    pub name: Option<String>,
}

pub fn imports(tree: &UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

fn walk(tree: &UseTree, before: &[String], found: &mut Vec<Import>) {
    let mut add = |ident: &syn::Ident, name: &syn::Ident| {
        let mut path = before.to_vec();
        if ident != "self" || before.is_empty() {
            path.push(ident.to_string());
        }
        // `use a::{self}` brings `a` into scope.
        let name = if name == "self" { path.last().unwrap().clone() } else { name.to_string() };
        found.push(Import { path, line: ident.span().start().line, name: Some(name) });
    };
    match tree {
        UseTree::Name(leaf) => add(&leaf.ident, &leaf.ident),
        UseTree::Rename(leaf) => add(&leaf.ident, &leaf.rename),
        UseTree::Glob(leaf) => {
            let line = leaf.star_token.spans[0].start().line;
            found.push(Import { path: before.to_vec(), line, name: None });
        }
        UseTree::Path(part) => {
            let before: Vec<String> =
                before.iter().cloned().chain([part.ident.to_string()]).collect();
            walk(&part.tree, &before, found);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, found)),
    }
}

/// `a::b::c` wherever it stands in tokens, with its line; `$crate` is `crate`, `a::{b, c}` is two.
pub fn paths_of(tokens: TokenStream) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    scan(tokens, &[], &mut found);
    found
}

fn scan(tokens: TokenStream, before: &[String], found: &mut Vec<(Vec<String>, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == sign);
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => scan(group.stream(), &[], found),
            // Neither a field, nor a method, nor a lifetime, nor the rest of a path from outside.
            TokenTree::Ident(ident)
                if at == 0
                    || !(is(at - 1, '.') && !is_range(&tokens, at)
                        || is(at - 1, '\'')
                        || is(at - 1, ':') && at > 1 && is(at - 2, ':')) =>
            {
                let line = ident.span().start().line;
                let mut path = before.to_vec();
                path.push(ident.to_string());
                while is(at + 1, ':') && is(at + 2, ':') {
                    match tokens.get(at + 3) {
                        Some(TokenTree::Ident(next)) => path.push(next.to_string()),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                            scan(group.stream(), &path, found);
                        }
                        _ => break,
                    }
                    at += 3;
                }
                found.push((path, line));
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether the dot before is the end of `..` or `..=`.
fn is_range(tokens: &[TokenTree], at: usize) -> bool {
    at > 1 && matches!(&tokens[at - 2], TokenTree::Punct(p) if p.as_char() == '.')
}

/// The paths in quotes, as serde's attributes name functions.
pub fn quoted(tokens: TokenStream) -> Vec<(Vec<String>, usize)> {
    let path = |literal: &Literal| {
        let text: syn::LitStr = syn::parse_str(&literal.to_string()).ok()?;
        Some((segments(&text.parse::<syn::Path>().ok()?), literal.span().start().line))
    };
    let found = tokens.into_iter().filter_map(|token| match token {
        TokenTree::Literal(literal) => path(&literal),
        _ => None,
    });
    found.collect()
}
