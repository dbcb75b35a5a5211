//! The families of target matrices, by name and parameters.

use std::fmt;
use std::path::PathBuf;

use super::draws::{self, Purpose, Row, generator};
use super::parameters::Check;
use super::{Parameters, TargetError};

/// A family of target attention matrices with its parameters.
///
/// Every family except `permuted` and `file` is causal: row i has weight on columns j ≤ i only, under either mask. The first
/// rows of a band have fewer relative distances and are normalised over those that exist.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Family {
    /// Equal weight on the last w tokens: aᵢⱼ = 1/min(w, i + 1) for i − w < j ≤ i.
    UniformBand {
        /// w ≥ 1.
        window: usize,
    },
    /// aᵢⱼ ∝ e^{−(i − j)/τ} on the last w tokens.
    DecayBand {
        /// w ≥ 1.
        window: usize,
        /// τ > 0, in tokens; default w/4.
        tau: f64,
    },
    /// Each row is drawn from the symmetric Dirichlet(α) on the last w tokens: dense, local and of high rank.
    DirichletBand {
        /// w ≥ 1.
        window: usize,
        /// α from 1e-6 to 1e6; default 1.
        alpha: f64,
    },
    /// aᵢⱼ ∝ e^{σ·g}, g a standard normal for each pair, on the last w tokens.
    LognormalBand {
        /// w ≥ 1.
        window: usize,
        /// σ > 0 in nats, at most 1e6; default 1.
        sigma: f64,
    },
    /// All weight of row i on column max(0, i − k).
    PreviousToken {
        /// The relative distance k ≥ 1.
        k: usize,
    },
    /// Dirichlet(1) weights on those of m shared columns that the causal mask allows. The columns are column 0 and m − 1
    /// others, drawn once for all rows: sparse, global, and of rank at most m.
    Landmark {
        /// m ≥ 1, at most n.
        m: usize,
    },
    /// Dirichlet(1) weights on min(k, i + 1) distinct columns j ≤ i, drawn for each row.
    RandomSparse {
        /// k ≥ 1.
        k: usize,
    },
    /// Every token is in one of c clusters, drawn uniformly. Row i has equal weights on the tokens j ≤ i of its own cluster,
    /// itself included.
    Clustered {
        /// c ≥ 1; c = 1 is `prefix`.
        c: usize,
    },
    /// Tokens are drawn uniformly from a vocabulary. All weight of row i is on column j + 1, where j < i is the last position
    /// with the same token as i. An induction head copies the token that followed it (Olsson et al. 2022, *In-context Learning
    /// and Induction Heads*). A row whose token is new has all its weight on itself.
    Induction {
        /// At least 1.
        vocabulary: usize,
    },
    /// aᵢⱼ = 1/(i + 1) for j ≤ i.
    Prefix,
    /// λ·local + (1 − λ)·global, both built from the same seed.
    Mixture {
        /// 0 < λ < 1; default 0.5.
        lambda: f64,
        /// The part with weight λ.
        local: Box<Family>,
        /// The part with weight 1 − λ.
        global: Box<Family>,
    },
    /// P A Pᵀ with one random permutation P of rows and columns. It keeps the spectrum but not the order of tokens, so it is
    /// always bidirectional.
    Permuted {
        /// The family of A.
        family: Box<Family>,
    },
    /// A matrix read from a file.
    File {
        /// A .npy, .csv, .parquet or .safetensors file.
        path: PathBuf,
    },
}

impl Family {
    /// The names of the families.
    pub const NAMES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// The family called `name` with `parameters`, defaults filled in.
    ///
    /// # Errors
    /// An unknown name; `Parameter` if a parameter is missing, does not belong to the family, or has an
    /// invalid value.
    pub fn from_parameters(name: &str, parameters: &Parameters) -> Result<Self, TargetError> {
        let family = Self::read(name, parameters)?;
        let names = |of: &Parameters| of.given().into_iter().map(|(name, _)| name).collect();
        let taken: Vec<&str> = names(&family.parameters());
        let given: Vec<&str> = names(parameters);
        let Some(stray) = given.into_iter().find(|given| !taken.contains(given)) else {
            return Ok(family);
        };
        let taken = if taken.is_empty() { "none".to_owned() } else { taken.join(", ") };
        Err(family.wrong(format!(
            "{stray} is not a parameter of this family, which takes {taken}; leave it out"
        )))
    }

    /// Reads and checks the parameters of the family; others are ignored.
    fn read(name: &str, parameters: &Parameters) -> Result<Self, TargetError> {
        let Some(&family) = Self::NAMES.iter().find(|&&valid| valid == name) else {
            return Err(TargetError::unknown("family", name, Self::NAMES));
        };
        let check = Check { family, parameters };
        Ok(match family {
            "uniform-band" => Self::UniformBand { window: check.window()? },
            "decay-band" => {
                let window = check.window()?;
                Self::DecayBand { window, tau: check.tau(window)? }
            }
            "dirichlet-band" => {
                Self::DirichletBand { window: check.window()?, alpha: check.alpha()? }
            }
            "lognormal-band" => {
                Self::LognormalBand { window: check.window()?, sigma: check.sigma()? }
            }
            "previous-token" => {
                let meaning = "the relative distance; for 0, use uniform-band with window 1";
                Self::PreviousToken { k: check.count("k", parameters.k, meaning)? }
            }
            "landmark" => {
                let meaning = "the number of columns that all rows share";
                Self::Landmark { m: check.count("m", parameters.m, meaning)? }
            }
            "random-sparse" => {
                let meaning = "the number of columns per row";
                Self::RandomSparse { k: check.count("k", parameters.k, meaning)? }
            }
            "clustered" => {
                Self::Clustered { c: check.count("c", parameters.c, "the number of clusters")? }
            }
            "induction" => {
                let (given, meaning) = (parameters.vocabulary, "the number of distinct tokens");
                Self::Induction { vocabulary: check.count("vocabulary", given, meaning)? }
            }
            "prefix" => Self::Prefix,
            "mixture" => Self::read_mixture(&check)?,
            "permuted" => Self::Permuted {
                family: Box::new(Self::read(check.part("of", &parameters.of)?, parameters)?),
            },
            "file" => Self::File { path: check.path()? },
            other => unreachable!("{other} is in NAMES, but is not read"),
        })
    }

    fn read_mixture(check: &Check<'_>) -> Result<Self, TargetError> {
        let parameters = check.parameters;
        let local = Self::read(check.part("local", &parameters.local)?, parameters)?;
        let global = Self::read(check.part("global", &parameters.global)?, parameters)?;
        if local == global {
            return Err(check
                .wrong(format!("local and global are both {local}; name two different families")));
        }
        Ok(Self::Mixture {
            lambda: check.lambda()?,
            local: Box::new(local),
            global: Box::new(global),
        })
    }

    /// The family's name on the command line.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Every parameter with its value, defaults included: `from_parameters` with the name and these gives the same family
    /// again. If the parts of a mixture built in code differ in one parameter, the value of the local part is returned.
    pub fn parameters(&self) -> Parameters {
        let mut all = Parameters::default();
        self.add_to(&mut all);
        all
    }

    fn add_to(&self, all: &mut Parameters) {
        match self {
            Self::UniformBand { window } => all.window = Some(*window),
            Self::DecayBand { window, tau } => {
                (all.window, all.tau) = (Some(*window), Some(*tau));
            }
            Self::DirichletBand { window, alpha } => {
                (all.window, all.alpha) = (Some(*window), Some(*alpha));
            }
            Self::LognormalBand { window, sigma } => {
                (all.window, all.sigma) = (Some(*window), Some(*sigma));
            }
            Self::PreviousToken { k } | Self::RandomSparse { k } => all.k = Some(*k),
            Self::Landmark { m } => all.m = Some(*m),
            Self::Clustered { c } => all.c = Some(*c),
            Self::Induction { vocabulary } => all.vocabulary = Some(*vocabulary),
            Self::Prefix => {}
            Self::Mixture { lambda, local, global } => {
                global.add_to(all);
                local.add_to(all);
                all.lambda = Some(*lambda);
                all.local = Some(local.name().to_owned());
                all.global = Some(global.name().to_owned());
            }
            Self::Permuted { family } => {
                family.add_to(all);
                all.of = Some(family.name().to_owned());
            }
            Self::File { path } => all.path = Some(path.clone()),
        }
    }

    /// The rows, each with distinct columns.
    pub(super) fn rows(&self, n: usize, seed: u64) -> Result<Vec<Row>, TargetError> {
        Ok(match self {
            Self::UniformBand { window } => draws::uniform_band(n, *window),
            Self::DecayBand { window, tau } => draws::decay_band(n, *window, *tau),
            Self::DirichletBand { window, alpha } => {
                draws::dirichlet_band(n, *window, *alpha, seed)
                    .map_err(|error| self.wrong(format!("alpha is {alpha}: {error}")))?
            }
            Self::LognormalBand { window, sigma } => {
                draws::lognormal_band(n, *window, *sigma, seed)
            }
            Self::PreviousToken { k } => {
                (0..n).map(|row| vec![(row.saturating_sub(*k), 1.0)]).collect()
            }
            Self::Landmark { m } => draws::landmark(n, *m, seed).map_err(|why| self.wrong(why))?,
            Self::RandomSparse { k } => draws::random_sparse(n, *k, seed),
            Self::Clustered { c } => {
                let mut rng = generator(seed, Purpose::Clusters, None);
                draws::clustered(&draws::classes(&mut rng, *c, n))
            }
            Self::Induction { vocabulary } => {
                let mut rng = generator(seed, Purpose::Tokens, None);
                draws::induction(&draws::classes(&mut rng, *vocabulary, n))
            }
            Self::Prefix => draws::uniform_band(n, n),
            Self::Mixture { lambda, local, global } => {
                let local = local.rows(n, seed)?;
                let global = global.rows(n, seed)?;
                local.into_iter().zip(global).map(|(l, g)| draws::mix(*lambda, l, g)).collect()
            }
            Self::Permuted { family } => draws::permuted(family.rows(n, seed)?, seed),
            Self::File { path } => self.file(path, n)?,
        })
    }

    /// The largest number of entries of a row, except that a cluster may be larger than the mean cluster.
    pub(super) fn longest_row(&self, n: usize) -> usize {
        match self {
            Self::UniformBand { window }
            | Self::DecayBand { window, .. }
            | Self::DirichletBand { window, .. }
            | Self::LognormalBand { window, .. } => n.min(*window),
            // The entries of a file are already in memory when they are counted.
            Self::PreviousToken { .. } | Self::Induction { .. } | Self::File { .. } => 1,
            Self::Landmark { m } => n.min(*m),
            Self::RandomSparse { k } => n.min(*k),
            Self::Clustered { c } => n.div_ceil(*c),
            Self::Prefix => n,
            Self::Mixture { local, global, .. } => {
                n.min(local.longest_row(n).saturating_add(global.longest_row(n)))
            }
            Self::Permuted { family } => family.longest_row(n),
        }
    }

    /// A short text for the rows' `target` column, such as `dirichlet-band(window=32,alpha=1)`.
    pub fn label(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = match self {
            Self::Mixture { lambda, local, global } => {
                format!("lambda={lambda},local={local},global={global}")
            }
            Self::Permuted { family } => format!("of={family}"),
            _ => {
                let given = self.parameters().given();
                let values = given.into_iter().map(|(name, value)| format!("{name}={value}"));
                values.collect::<Vec<_>>().join(",")
            }
        };
        match values.is_empty() {
            true => f.write_str(self.name()),
            false => write!(f, "{}({values})", self.name()),
        }
    }
}
