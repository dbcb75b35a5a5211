//! Which file of `src` uses which: the paths that a file writes, resolved to the files that define what they name.
//!
//! Known are `use` trees with their renames, globs and re-exports, paths in code, in types, in attributes and in
//! the tokens of macros, this crate's macros with what their bodies name, and functions that a type has in another
//! file. Out of reach is what no path names: methods called on a value, fields, and what a trait resolves to.
//!
//! A re-export is no use: it is followed to what it exports. A module's name alone is none either. Neither
//! `#[cfg(test)]` nor `tests.rs` counts.

mod circles;
mod paths;
mod tree;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use syn::visit::{self, Visit};

pub use circles::circles;
use paths::{paths_of, segments};
use tree::{Found, Tree, is_for_tests};

/// That `from` names `item`, which `to` defines; files relative to `src`, the line in `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub from: String,
    pub to: String,
    pub item: String,
    pub line: usize,
}

/// What the files under `lib.rs` and `main.rs` use of each other, the first line of each pair.
pub fn uses(src: &Path, library: &str) -> Vec<Use> {
    let tree = Tree::read(src, library);
    let impls = functions(&tree);
    let mut first = BTreeMap::new();
    for (module, read) in tree.modules.iter().enumerate() {
        let mut reader =
            Reader { tree: &tree, impls: &impls, module, own_type: None, found: vec![] };
        read.items.iter().for_each(|item| reader.visit_item(item));
        for (to, item, line) in reader.found {
            if to != read.file {
                let at = first.entry((read.file.clone(), to)).or_insert((line, item.clone()));
                *at = (line, item).min(at.clone());
            }
        }
    }
    let used = |((from, to), (line, item))| Use { from, to, item, line };
    first.into_iter().map(used).collect()
}

/// The files in which a type's functions stand, by the type's module and name and the function's.
type Functions = HashMap<(usize, String, String), String>;

fn functions(tree: &Tree) -> Functions {
    let mut functions = Functions::new();
    for (module, read) in tree.modules.iter().enumerate() {
        for item in &read.items {
            let syn::Item::Impl(item) = item else { continue };
            let (None, Some(own)) = (&item.trait_, type_path(&item.self_ty)) else { continue };
            for found in tree.resolve(module, &own) {
                let Found::Item { module, name, .. } = found else { continue };
                for function in &item.items {
                    let function = match function {
                        syn::ImplItem::Fn(function) => function.sig.ident.to_string(),
                        syn::ImplItem::Const(constant) => constant.ident.to_string(),
                        _ => continue,
                    };
                    functions.insert((module, name.clone(), function), read.file.clone());
                }
            }
        }
    }
    functions
}

fn type_path(ty: &syn::Type) -> Option<Vec<String>> {
    match ty {
        syn::Type::Path(path) => Some(segments(&path.path)),
        _ => None,
    }
}

struct Reader<'a> {
    tree: &'a Tree,
    impls: &'a Functions,
    module: usize,
    /// What `Self` is.
    own_type: Option<Vec<String>>,
    found: Vec<(String, String, usize)>,
}

impl Reader<'_> {
    fn path(&mut self, path: &[String], line: usize) {
        let own = self.own_type.as_ref().filter(|_| path[0] == "Self");
        let path = match own {
            Some(own) => own.iter().chain(&path[1..]).cloned().collect(),
            None => path.to_vec(),
        };
        for found in self.tree.resolve(self.module, &path) {
            let Found::Item { module, name, rest } = found else { continue };
            self.found.push((self.tree.modules[module].file.clone(), name.clone(), line));
            let Some(function) = rest.first() else { continue };
            if let Some(file) = self.impls.get(&(module, name.clone(), function.clone())) {
                self.found.push((file.clone(), format!("{name}::{function}"), line));
            }
        }
    }

    fn tokens(&mut self, tokens: &proc_macro2::TokenStream) {
        for (path, line) in paths_of(tokens.clone()) {
            self.path(&path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(tree::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    /// A module of its own, read as the others are.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) {
            for import in paths::imports(&item.tree) {
                self.path(&import.path, import.line);
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.own_type, type_path(&item.self_ty));
        visit::visit_item_impl(self, item);
        self.own_type = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs[..],
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.path(&segments(path), path.segments[0].ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.ident.is_none() {
            visit::visit_item_macro(self, item);
            return;
        }
        // What a body names from the crate's root, it names here; the rest where it is invoked.
        for (path, line) in paths_of(item.mac.tokens.clone()) {
            if path[0] == "crate" {
                self.path(&path, line);
            }
        }
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.tokens(&invoked.tokens);
        let line = invoked.path.segments[0].ident.span().start().line;
        for (file, name, body) in self.tree.macros(self.module, &segments(&invoked.path)) {
            self.found.push((file, name, line));
            for (path, _) in paths_of(body) {
                if path[0] != "crate" {
                    self.path(&path, line);
                }
            }
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        self.tokens(&list.tokens);
        if list.path.is_ident("serde") {
            for (path, line) in paths::quoted(list.tokens.clone()) {
                self.path(&path, line);
            }
        }
    }
}
