//! Comparison of six models of needed logits L*(ε).

use crate::experiments::fits::tables::censored::{Line, Point, Value};
use crate::experiments::fits::tables::growth_cell::GrowthCell;
use crate::solver::LARGEST_CAP;
use crate::table::{Interval, Table, plural};

/// A model of L*(ε) as a function of sequence length n, rank d and support k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// (A) c·(n/d)^α, the paper's model.
    Ratio,
    /// (B) c·L⁰(ε): the logits needed at any rank, times a constant.
    Floor,
    /// (C) c·n^{γ/d}, which is n^{1/d} for γ = 1.
    Root,
    /// (D) c·k^δ, which is √k for δ = ½.
    Support,
    /// (E) L⁰(ε)·n^{γk/d}: the floor times a factor that grows with the ratio of support k to rank d. It has no
    /// constant: as k/d goes to 0, the needed logits approach the floor.
    Spread,
    /// (F) c·L⁰(ε)·(n/d)^α, the paper's model applied to the rank penalty instead of the logit.
    Penalty,
}

impl Model {
    /// Every model, in the order of their letters.
    pub const ALL: [Self; 6] =
        [Self::Ratio, Self::Floor, Self::Root, Self::Support, Self::Spread, Self::Penalty];

    /// The formula.
    pub fn formula(self) -> &'static str {
        match self {
            Self::Ratio => "(A) c·(n/d)^α",
            Self::Floor => "(B) c·L⁰(ε)",
            Self::Root => "(C) c·n^(γ/d)",
            Self::Support => "(D) c·k^δ",
            Self::Spread => "(E) L⁰(ε)·n^(γk/d)",
            Self::Penalty => "(F) c·L⁰(ε)·(n/d)^α",
        }
    }

    /// The index of the coefficient that is the exponent.
    fn exponent(self) -> Option<usize> {
        match self {
            Self::Ratio | Self::Root | Self::Support | Self::Penalty => Some(1),
            Self::Spread => Some(0),
            Self::Floor => None,
        }
    }

    /// The regressors of log L*, and an offset that is subtracted first; `None` if the cell lacks a value.
    fn regressors(self, cell: &GrowthCell) -> Option<(Vec<f64>, f64)> {
        let (n, d) = (cell.n as f64, cell.rank as f64);
        Some(match self {
            Self::Ratio => (vec![1.0, (n / d).ln()], 0.0),
            Self::Floor => (vec![1.0], cell.floor()?.median.ln()),
            Self::Root => (vec![1.0, n.ln() / d], 0.0),
            Self::Support => (vec![1.0, (cell.support? as f64).ln()], 0.0),
            Self::Spread => (vec![cell.support? as f64 * n.ln() / d], cell.floor()?.median.ln()),
            Self::Penalty => (vec![1.0, (n / d).ln()], cell.floor()?.median.ln()),
        })
    }
}

/// One model fitted to one family.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFit {
    /// The target family.
    pub family: String,
    /// The tolerance ε.
    pub tolerance: f64,
    /// The model.
    pub model: Model,
    /// Its exponent with its 95 % interval; `None` for the model of the floor, which has none.
    pub exponent: Option<Interval>,
    /// Akaike's criterion with the correction for few points (AICc), minus that of the family's best model.
    pub aicc_above_best: f64,
    /// The numbers of cells with a known median, and of cells in which most fits did not reach ε up to the largest logit bound.
    pub cells: (usize, usize),
}

/// Fits every model to every family's cells. The values are log L*(ε), the median over seeds, with normal residuals.
/// Cells in which most seeds did not reach ε are censored at the largest logit bound. Families are ordered by name,
/// models by AICc.
pub(crate) fn fit_models(cells: &[GrowthCell]) -> Vec<ModelFit> {
    let mut fits = Vec::new();
    let mut sorted: Vec<&GrowthCell> = cells.iter().collect();
    sorted.sort_by(|a, b| {
        (&a.family, &a.label).cmp(&(&b.family, &b.label)).then(a.tolerance.total_cmp(&b.tolerance))
    });
    let same =
        |a: &&GrowthCell, b: &&GrowthCell| a.family == b.family && a.tolerance == b.tolerance;
    for family in sorted.chunk_by(same) {
        let mut of_family: Vec<ModelFit> =
            Model::ALL.into_iter().filter_map(|model| fit(model, family)).collect();
        of_family.sort_by(|a, b| a.aicc_above_best.total_cmp(&b.aicc_above_best));
        let best = of_family.first().map_or(0.0, |fit| fit.aicc_above_best);
        for fit in &mut of_family {
            fit.aicc_above_best -= best;
        }
        fits.extend(of_family);
    }
    fits
}

fn fit(model: Model, cells: &[&GrowthCell]) -> Option<ModelFit> {
    let point = |cell: &&GrowthCell| {
        let (regressors, offset) = model.regressors(cell)?;
        let value = match cell.needed() {
            Some(needed) if cell.is_mostly_reached() => Value::Known(needed.median.ln() - offset),
            _ => Value::Above(LARGEST_CAP.ln() - offset),
        };
        offset.is_finite().then_some(Point { regressors, value })
    };
    let points: Vec<Point> = cells.iter().filter_map(point).collect();
    // A target that needs no logits, such as the uniform prefix, has no logarithm of them.
    if points.iter().any(|point| matches!(point.value, Value::Known(log) if !log.is_finite())) {
        return None;
    }
    let line = Line::through(&points)?;
    let known = points.iter().filter(|p| matches!(p.value, Value::Known(_))).count();
    // The residual deviation is a parameter, too.
    let parameters = (line.coefficients.len() + 1) as f64;
    let correction = points.len() as f64 - parameters - 1.0;
    if correction <= 0.0 {
        return None;
    }
    let aicc = 2.0 * parameters - 2.0 * line.log_likelihood
        + 2.0 * parameters * (parameters + 1.0) / correction;
    Some(ModelFit {
        family: cells[0].family.clone(),
        tolerance: cells[0].tolerance,
        model,
        exponent: model.exponent().map(|at| line.coefficients[at]),
        aicc_above_best: aicc,
        cells: (known, points.len() - known),
    })
}

/// The table of the models.
pub(crate) fn model_table(fits: &[ModelFit]) -> Table {
    let title = "Six models of the needed logit L*(ε), best of each family first";
    let are_censored = fits.iter().any(|fit| fit.cells.1 > 0);
    let few = fits.iter().filter(|fit| fit.cells.0 < 8).count();
    let few_note = format!("{} on fewer than 8 configurations that reached ε.", plural(few, "fit"));
    Table::from_items("models", title, fits)
        .words("family", "family", |fit| &fit.family)
        .settings("tolerance", ("ε", "nats"), |fit| fit.tolerance)
        .words("model", "model of L*(ε)", |fit| fit.model.formula())
        .numbers("aicc_above_best", "AICc above the best", |fit| fit.aicc_above_best)
        .numbers("exponent", "exponent", |fit| fit.exponent.map(|e| e.value))
        .numbers("exponent_low", "95 % CI, low", |fit| fit.exponent.map(|e| e.low))
        .numbers("exponent_high", "95 % CI, high", |fit| fit.exponent.map(|e| e.high))
        .numbers("cells", "configurations", |fit| fit.cells.0 + fit.cells.1)
        .numbers("censored", "not reached", |fit| fit.cells.1)
        .note(format!(
            "Maximum likelihood of log L*(ε), medians over seeds, all widths of a family together. \
             A configuration in which {}most seeds found no logit up to {LARGEST_CAP} counts as \
             above it. A model whose AICc is 2 lower is better, one 10 lower far better. k is the \
             number of columns that a row spreads over (w of a band). Model (D) needs several \
             widths, model (E) one.",
            if are_censored { "(as in some here) " } else { "" }
        ))
        .note_if(few > 0, few_note)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::fits::tables::growth_cell::GrowthSeed;

    /// A family whose L* is `law`(n, d, k), with a little scatter; values above the largest logit bound are not reached.
    fn family(law: fn(f64, f64, f64) -> f64) -> Vec<GrowthCell> {
        let mut cells = Vec::new();
        for k in [4usize, 8, 16] {
            for n in [48usize, 96, 192, 384] {
                for rank in [4usize, 8, 16] {
                    let scatter = 1.0 + 0.02 * ((cells.len() * 7 % 5) as f64 - 2.0);
                    let needed = scatter * law(n as f64, rank as f64, k as f64);
                    let needed = (needed <= LARGEST_CAP).then_some(needed);
                    let floor = Some(0.5 * (n as f64 / k as f64).ln());
                    let seed = |seed| GrowthSeed { seed, needed, floor, inflation: None };
                    cells.push(GrowthCell {
                        family: "f".to_owned(),
                        label: format!("f, k = {k}"),
                        support: Some(k),
                        tolerance: 0.1,
                        n,
                        rank,
                        seeds: (0..3).map(seed).collect(),
                        step_limited: 0,
                    });
                }
            }
        }
        cells
    }

    #[test]
    fn each_law_is_recognised_with_its_exponent() {
        type Law = fn(f64, f64, f64) -> f64;
        let laws: [(Model, Law, Option<f64>); 6] = [
            (Model::Ratio, |n, d, _| 3.0 * (n / d).powf(0.9), Some(0.9)),
            (Model::Floor, |n, _, k| 1.5 * 0.5 * (n / k).ln(), None),
            (Model::Root, |n, d, _| 2.0 * n.powf(1.0 / d), Some(1.0)),
            (Model::Support, |_, _, k| 4.0 * k.sqrt(), Some(0.5)),
            (Model::Spread, |n, d, k| 0.5 * (n / k).ln() * n.powf(0.2 * k / d), Some(0.2)),
            (Model::Penalty, |n, d, k| 0.7 * 0.5 * (n / k).ln() * (n / d).powf(0.4), Some(0.4)),
        ];
        for (model, law, exponent) in laws {
            let fits = fit_models(&family(law));
            assert_eq!(fits[0].model, model, "{fits:?}");
            // The penalty's model contains the floor's, with an exponent of 0.
            let rival =
                fits[1..].iter().find(|fit| (model, fit.model) != (Model::Floor, Model::Penalty));
            assert!(rival.unwrap().aicc_above_best > 10.0, "{model:?}: {fits:?}");
            if let Some(expected) = exponent {
                let Interval { value, low, high } = fits[0].exponent.unwrap();
                assert!((value - expected).abs() < 0.02, "{model:?}: {value}");
                assert!(low < expected && expected < high, "{model:?}: {low} to {high}");
            }
        }
    }
}
