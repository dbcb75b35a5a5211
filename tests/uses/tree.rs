//! The modules of a crate with the names in them, and what a path in one of them leads to.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use super::paths::{self, segments};

pub struct Module {
    /// Relative to `src`.
    pub file: String,
    pub items: Vec<Item>,
    parent: Option<usize>,
    root: usize,
    names: HashMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

enum Name {
    Module(usize),
    Item,
    Import(Vec<String>),
}

/// What a path leads to.
pub enum Found {
    Module(usize),
    /// `name` as `module` defines it, and the path's rest, as a variant or a function of a type.
    Item {
        module: usize,
        name: String,
        rest: Vec<String>,
    },
}

pub struct Tree {
    pub modules: Vec<Module>,
    library: String,
    bodies: HashMap<(usize, String), TokenStream>,
    /// Imports that are being followed: module, name, and which of its imports.
    open: RefCell<HashSet<(usize, String, usize)>>,
}

/// The library's root; the binary's, where there is one, is read after it.
const LIBRARY: usize = 0;

impl Tree {
    pub fn read(src: &Path, library: &str) -> Tree {
        let mut tree = Tree {
            modules: Vec::new(),
            library: library.to_owned(),
            bodies: HashMap::new(),
            open: RefCell::default(),
        };
        for root in ["lib.rs", "main.rs"] {
            if src.join(root).exists() {
                tree.file(src, &src.join(root), src, None);
            }
        }
        tree
    }

    /// Reads a file whose modules lie in `folder`.
    fn file(&mut self, src: &Path, path: &Path, folder: &Path, parent: Option<usize>) -> usize {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let items =
            syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())).items;
        let file = path.strip_prefix(src).unwrap().to_string_lossy().replace('\\', "/");
        self.module(src, file, folder, parent, items)
    }

    fn module(
        &mut self,
        src: &Path,
        file: String,
        folder: &Path,
        parent: Option<usize>,
        mut items: Vec<Item>,
    ) -> usize {
        items.retain(|item| !is_for_tests(attributes(item)));
        let id = self.modules.len();
        let root = parent.map_or(id, |parent| self.modules[parent].root);
        let (names, globs) = (HashMap::new(), Vec::new());
        let module = Module { file: file.clone(), items: vec![], parent, root, names, globs };
        self.modules.push(module);
        for item in &items {
            if let Item::Mod(item) = item {
                let name = item.ident.to_string();
                let inner = folder.join(&name);
                let child = match &item.content {
                    Some((_, items)) => {
                        self.module(src, file.clone(), &inner, Some(id), items.clone())
                    }
                    None => {
                        let path = module_file(&src.join(&file), &inner, &item.attrs);
                        self.file(src, &path, &inner, Some(id))
                    }
                };
                self.name(id, &name, Name::Module(child));
                continue;
            }
            for name in defined(item) {
                self.name(id, &name, Name::Item);
            }
            if let Item::Macro(item) = item
                && let Some(name) = &item.ident
            {
                self.bodies.insert((id, name.to_string()), item.mac.tokens.clone());
            }
            let mut imports = Imports::default();
            imports.visit_item(item);
            for import in imports.0 {
                match import.name {
                    Some(name) => self.name(id, &name, Name::Import(import.path)),
                    None => self.modules[id].globs.push(import.path),
                }
            }
        }
        self.modules[id].items = items;
        id
    }

    fn name(&mut self, module: usize, name: &str, is: Name) {
        self.modules[module].names.entry(name.to_owned()).or_default().push(is);
    }

    /// What a path written in a module leads to; nothing, where it leads out of the crate.
    pub fn resolve(&self, module: usize, path: &[String]) -> Vec<Found> {
        let Module { root, parent, .. } = self.modules[module];
        let first = match path[0].as_str() {
            "crate" => vec![Found::Module(root)],
            "self" => vec![Found::Module(module)],
            "super" => parent.map(Found::Module).into_iter().collect(),
            name if name == self.library && root != LIBRARY => vec![Found::Module(LIBRARY)],
            name => self.look_up(module, name),
        };
        path[1..].iter().fold(first, |mut found, name| {
            // Of a module and a function of one name, only the module has something in it.
            if found.iter().any(|found| matches!(found, Found::Module(_))) {
                found.retain(|found| matches!(found, Found::Module(_)));
            }
            let next = |found| match found {
                Found::Module(at) if name == "super" => {
                    self.modules[at].parent.map(Found::Module).into_iter().collect()
                }
                Found::Module(at) => self.look_up(at, name),
                Found::Item { module, name: item, mut rest } => {
                    rest.push(name.clone());
                    vec![Found::Item { module, name: item, rest }]
                }
            };
            found.into_iter().flat_map(next).collect()
        })
    }

    fn look_up(&self, at: usize, name: &str) -> Vec<Found> {
        let module = &self.modules[at];
        let mut found = Vec::new();
        for (entry, known) in module.names.get(name).into_iter().flatten().enumerate() {
            match known {
                Name::Module(child) => found.push(Found::Module(*child)),
                Name::Item => {
                    found.push(Found::Item { module: at, name: name.to_owned(), rest: vec![] });
                }
                Name::Import(path) => {
                    found.extend(self.once((at, name, entry), || self.resolve(at, path)));
                }
            }
        }
        if !found.iter().any(|found| matches!(found, Found::Item { .. })) {
            let names = module.names.get(name).map_or(0, Vec::len);
            for (glob, path) in module.globs.iter().enumerate() {
                let from = self.once((at, name, names + glob), || {
                    let modules =
                        self.resolve(at, path).into_iter().filter_map(|found| match found {
                            Found::Module(from) => Some(self.look_up(from, name)),
                            Found::Item { .. } => None,
                        });
                    modules.flatten().collect()
                });
                found.extend(from);
            }
        }
        found
    }

    /// Follows an import unless it is being followed already, as where `use a::a` asks what `a` is.
    fn once(&self, import: (usize, &str, usize), follow: impl Fn() -> Vec<Found>) -> Vec<Found> {
        let import = (import.0, import.1.to_owned(), import.2);
        if !self.open.borrow_mut().insert(import.clone()) {
            return Vec::new();
        }
        let found = follow();
        self.open.borrow_mut().remove(&import);
        found
    }

    /// The crate's own macros that a name means: file, name and body. Without a path, those of the modules around too.
    pub fn macros(&self, module: usize, path: &[String]) -> Vec<(String, String, TokenStream)> {
        let mut at = Some(module);
        while let Some(module) = at {
            let mut known = Vec::new();
            for found in self.resolve(module, path) {
                if let Found::Item { module, name, .. } = found
                    && let Some(body) = self.bodies.get(&(module, name.clone()))
                {
                    known.push((self.modules[module].file.clone(), name, body.clone()));
                }
            }
            if !known.is_empty() || path.len() > 1 {
                return known;
            }
            at = self.modules[module].parent;
        }
        Vec::new()
    }
}

/// The file of `mod name;`, whose own modules lie in `inner`.
fn module_file(declared_in: &Path, inner: &Path, attributes: &[Attribute]) -> PathBuf {
    for attribute in attributes {
        if attribute.path().is_ident("path")
            && let syn::Meta::NameValue(pair) = &attribute.meta
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value
        {
            return declared_in.with_file_name(path.value());
        }
    }
    let file = inner.with_extension("rs");
    if file.exists() { file } else { inner.join("mod.rs") }
}

/// Every `use`, those within functions too.
#[derive(Default)]
struct Imports(Vec<paths::Import>);

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0.extend(paths::imports(&item.tree));
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }
}

/// The names that an item defines. A macro's invocation may define any that stands in it.
fn defined(item: &Item) -> Vec<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => match &item.ident {
            Some(ident) => ident,
            None => {
                let ident = |token| match token {
                    TokenTree::Ident(ident) => Some(ident.to_string()),
                    _ => None,
                };
                return item.mac.tokens.clone().into_iter().filter_map(ident).collect();
            }
        },
        _ => return Vec::new(),
    };
    vec![ident.to_string()]
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether the item is there in tests only.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.parse_args().is_ok_and(|meta| needs_test(&meta))
        }
        syn::Meta::NameValue(_) => false,
    })
}

/// Whether a condition holds in tests only.
fn needs_test(condition: &syn::Meta) -> bool {
    let inner = |list: &syn::MetaList| {
        list.parse_args_with(
            syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated,
        )
        .unwrap_or_default()
    };
    match condition {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if segments(&list.path) == ["all"] => {
            inner(list).iter().any(needs_test)
        }
        syn::Meta::List(list) if segments(&list.path) == ["any"] => {
            inner(list).iter().all(needs_test)
        }
        _ => false,
    }
}
