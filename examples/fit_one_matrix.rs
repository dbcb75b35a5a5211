//! Fits one attention matrix by queries and keys of a rank: the least error within each cap on the logits, beside
//! the floor that logits of any rank pay. A matrix that is not causal wants `Visibility::Bidirectional`.
//!
//! ```sh
//! cargo run --release --no-default-features --example fit_one_matrix                     # a band, made here
//! cargo run --release --no-default-features --example fit_one_matrix -- attention.npy 8  # one's own, at rank 8
//! ```

use std::env::args;
use std::error::Error;
use std::path::Path;

use rank_study::solver::{Floor, Problem, SearchOptions, frontier};
use rank_study::targets::{Family, Layout, Target, Visibility};

const CAPS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

fn main() -> Result<(), Box<dyn Error>> {
    let target = match args().nth(1) {
        Some(file) => Target::read(Path::new(&file), Visibility::Causal)?,
        None => Family::DirichletBand { window: 8, alpha: 1.0 }.build(32, 0, Visibility::Causal)?,
    };
    let rank = args().nth(2).map_or(Ok(4), |rank| rank.parse())?;
    let problem = Problem::new(target, Layout::global(), rank)?;
    let floor = Floor::new(&problem);
    // The defaults look further and harder.
    let options = SearchOptions { starts: 4, polished: 1, passes: 0, ..SearchOptions::default() };

    println!("n = {}, rank {rank}", problem.n());
    println!("{:>5} {:>9} {:>9} {:>13}  outcome", "cap", "kl_nats", "floor", "max_abs_logit");
    for point in frontier(&problem, &CAPS, options, &())? {
        // None where the heads do not see all of the target; a global one does.
        let Some(best) = point.best else { continue };
        println!(
            "{:>5} {:>9.5} {:>9.5} {:>13.4}  {}",
            point.cap,
            best.solution.kl_nats,
            floor.kl_nats(point.cap),
            best.solution.max_abs_logit,
            best.solution.outcome.name(),
        );
    }
    Ok(())
}
