//! Trains a small model on the synthetic corpus, and says of each of its heads what its attention needed of its
//! largest logit: actual = floor · inflation · tying · drift · gauge.
//!
//! ```sh
//! cargo run --release --no-default-features --features lm --example probe_heads
//! ```

use std::error::Error;
use std::sync::atomic::AtomicBool;

use rank_study::fit::{Effort, SearchOptions};
use rank_study::lm::{Arm, Corpus, Device, Split, TrainDefinition, Trainer};
use rank_study::predict::{PARTS, TrainedHead};

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
    println!(
        "{} steps, loss {:.3} nats",
        summary.steps,
        summary.valid_loss_nats.unwrap_or(f64::NAN)
    );

    let text = corpus.split(Split::Valid);
    let passage: Vec<u32> = text.range(0..definition.context).iter().collect();
    let effort = Effort { iterations: 1000, ..Effort::default() };
    let options =
        SearchOptions { starts: 2, passes: 1, rough: effort, fine: effort, ..Default::default() };
    println!(
        "{:>5} {:>9} {:>7} {:>9}",
        "head",
        "sees",
        "actual",
        PARTS.map(|part| format!("{part:>9}")).join(" ")
    );
    for probe in trainer.model().probe(&passage)? {
        let head = TrainedHead::new(&[&probe], None)?;
        let actual = head.actual()?;
        let levels = head.parts(&actual, EPSILON, options)?.levels;
        let parts = levels
            .parts()
            .map(|part| part.map_or_else(|| "–".to_owned(), |part| format!("{part:.3}")));
        println!(
            "{:>5} {:>9} {:>7.3} {}",
            format!("{}.{}", head.layer, head.head),
            head.kind.to_string(),
            levels.actual,
            parts.map(|part| format!("{part:>9}")).join(" "),
        );
    }
    Ok(())
}
