//! Brackets the logits that a band of attention needs at several ranks, from both sides: queries and keys that
//! reach an error of ε nats, and a proof of how large the logits of any that do must be.
//!
//! ```sh
//! cargo run --release --no-default-features --example bracket
//! cargo run --release --no-default-features --example bracket -- 0.3  # another ε
//! ```

use std::env::args;
use std::error::Error;

use rank_study::solver::{LARGEST_CAP, Outcome, Problem, SearchOptions, lower_bound, needed_logit};
use rank_study::targets::{Family, Layout, Visibility};

const RANKS: [usize; 4] = [1, 2, 4, 8];

fn main() -> Result<(), Box<dyn Error>> {
    let epsilon = args().nth(1).map_or(Ok(0.02), |epsilon| epsilon.parse())?;
    let band = Family::DirichletBand { window: 8, alpha: 1.0 };
    let target = band.build(32, 0, Visibility::Causal)?;
    // The defaults look further and harder, and may find less.
    let options = SearchOptions { starts: 4, polished: 1, passes: 0, ..SearchOptions::default() };

    println!("{band} of n = {}, ε = {epsilon} nats", target.n());
    println!("{:>5} {:>8} {:>9} {:>10} {:>8}", "rank", "floor", "at least", "by", "found");
    for rank in RANKS {
        let problem = Problem::new(target.clone(), Layout::global(), rank)?;
        let needed = needed_logit(&problem, epsilon, options, &())?;
        let found = match needed.best.filter(|_| needed.outcome != Outcome::Infeasible) {
            Some(best) => format!("{:.3}", best.solution.max_abs_logit),
            None => format!("> {LARGEST_CAP}"),
        };
        // None where the heads do not see all of the target; a global one does.
        let Some(bound) = lower_bound(&problem, epsilon) else { continue };
        println!(
            "{rank:>5} {:>8.3} {:>9.3} {:>10} {found:>8}",
            bound.floor,
            bound.max_abs_logit,
            bound.by.name()
        );
    }
    Ok(())
}
