//! Trains a small model on the synthetic corpus, and says of each of its heads what its attention needed of its
//! largest logit: actual = floor · inflation · input_factor · excess_factor · shift_factor.
//!
//! ```sh
//! cargo run --release --no-default-features --features lm --example probe_heads
//! ```

use std::error::Error;
use std::fmt::Display;
use std::sync::atomic::AtomicBool;

use rank_study::heads::{HeadMeasurement, PARTS, TrainedHead};
use rank_study::lm::{Arm, Corpus, Device, Split, TrainDefinition, Trainer};
use rank_study::solver::SearchOptions;

const EPSILON: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let definition = TrainDefinition {
        arm: Arm::Ls,
        layers: 2,
        d_model: 32,
        heads: 4,
        context: 48,
        steps: 200,
        warmup_steps: 20,
        learning_rate: 1e-2,
        ..TrainDefinition::default()
    };
    let corpus = Corpus::synthetic(&definition)?;
    let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu)?;
    let summary = trainer.run(&mut (), &AtomicBool::new(false))?;
    println!("{} steps, {:?}", summary.steps, summary.outcome);

    let text = corpus.split(Split::Valid);
    let passage: Vec<u32> = text[..definition.context].iter().map(|&token| token.into()).collect();
    let options = SearchOptions { starts: 2, passes: 1, ..SearchOptions::default() };
    println!("{:>5} {:>9} {:>9} {}", "head", "sees", "actual", padded(PARTS));
    for probe in trainer.model().probe(&passage)? {
        let head = TrainedHead::new(&[&probe], None)?;
        let screened = HeadMeasurement::screened(&[&probe], None)?;
        let found = screened.fitted(&head.parts(EPSILON, options)?, 0.0);
        // None where the head's attention is within ε of uniform, and so needs no logits.
        let parts =
            found.factors().map(|part| part.map_or("–".to_owned(), |p| format!("{p:.3}")));
        let (number, sees) = (format!("{}.{}", head.layer, head.head), head.kind.to_string());
        println!("{number:>5} {sees:>9} {:>9.3} {}", found.actual, padded(parts));
    }
    Ok(())
}

fn padded(columns: [impl Display; 5]) -> String {
    columns.map(|column| format!("{column:>9}")).join(" ")
}
