//! The figure of the heads of trained models: the factors of each head as bars.

use crate::experiments::heads::tables::heads::{FACTOR_NAMES, HeadRow, TrainedHeads};
use crate::figure::{Axis, Figure, Key, Panel, Rgb, Tile};
use crate::table::groups;

/// The maximum number of bars in a panel: the heads with the largest logits.
const MOST_BARS: usize = 16;
/// The colours of a bar's segments from bottom to top, in the order of [`FACTOR_NAMES`].
const COLOURS: [Rgb; 5] =
    [(150, 150, 150), (59, 10, 143), (216, 87, 107), (240, 150, 50), (86, 180, 233)];

/// The heads of one model at the last step, at the main ε of the study.
fn models<'h>(study: &'h TrainedHeads) -> Vec<(String, Vec<&'h HeadRow>)> {
    let (epsilon, last) = (study.epsilon_told(), study.last_step());
    let shown =
        study.heads.iter().filter(|head| head.found.epsilon == epsilon && head.step() == last);
    let model = |heads: Vec<&'h HeadRow>| {
        let name = format!("{}, seed {}", heads[0].run(), heads[0].seed());
        // If a head has several passages or ranks, the first is shown.
        let same = groups(heads, |head| (head.of.layer, head.found.head));
        (name, same.into_iter().map(|same| same[0]).collect())
    };
    groups(shown, |head| (head.run(), head.seed())).into_iter().map(model).collect()
}

/// The factors of each head's logit, stacked on a logarithmic axis. Returns `None` if no head has all of them.
pub fn parts(study: &TrainedHeads) -> Option<Figure> {
    let mut models = models(study);
    for (_, heads) in &mut models {
        heads.retain(|head| head.found.parts().is_some());
        heads.sort_by(|a, b| b.found.actual.total_cmp(&a.found.actual));
        heads.truncate(MOST_BARS);
    }
    models.retain(|(_, heads)| !heads.is_empty());
    if models.is_empty() {
        return None;
    }
    let all = || models.iter().flat_map(|(_, heads)| heads);
    let levels =
        all().flat_map(|head| [head.found.actual, head.found.floor.unwrap_or(head.found.actual)]);
    // Bars begin at half of the smallest floor, because a logarithmic axis has no zero.
    let least = levels.clone().fold(f64::INFINITY, f64::min);
    let y = Axis::log("max |logit|", levels.chain([0.5 * least]));
    let panels = models.iter().map(|(name, heads)| {
        let names =
            heads.iter().map(|head| format!("{}.{}", head.of.layer, head.found.head)).collect();
        let x = Axis::of_fields("layer.head, largest first", names);
        let mut panel = Panel::new(name, x, y.clone(), Vec::new());
        for (at, head) in heads.iter().enumerate() {
            let mut from = y.range.0;
            let mut product = 1.0;
            for (colour, part) in COLOURS.into_iter().zip(head.found.parts().into_iter().flatten())
            {
                product *= part;
                // The excess and the shift factor may be below 1; such a factor lowers the bar.
                let (low, high) = (from.min(product), from.max(product));
                panel.tiles.push(Tile {
                    x: (at as f64 + 0.15, at as f64 + 0.85),
                    y: (low, high),
                    colour,
                    text: String::new(),
                });
                from = product;
            }
        }
        panel
    });
    Some(Figure {
        name: "parts".to_owned(),
        caption: format!(
            "The factors of each head's largest logit at ε = {} nats, largest logit first. Heights are factors on a logarithmic axis; \
             the top of a bar is the head's max |logit|. A tall segment is a large factor.",
            study.epsilon_told()
        ),
        keys: FACTOR_NAMES
            .iter()
            .zip(COLOURS)
            .map(|(name, colour)| Key::field(name, colour))
            .collect(),
        panels: panels.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::experiments::heads::tables::heads::tests::{head, study};
    use crate::figure::Tile;

    #[test]
    fn bars_end_at_what_heads_have_and_the_largest_stands_first() {
        let heads = [2.0, 4.0].into_iter().enumerate().map(|(at, excess_factor)| {
            head(("mhsa", 1, 10, at), [2.0, 1.25, 2.0, excess_factor, 2.0], 1.0)
        });
        let panel = parts(&study(heads)).unwrap().panels.remove(0);
        let top = |bar: &[Tile]| bar.iter().map(|tile| tile.y.1).fold(0.0, f64::max);
        let tops: Vec<f64> = panel.tiles.chunks(5).map(top).collect();
        assert_eq!(tops.len(), 2);
        for (top, actual) in tops.iter().zip([40.0, 20.0]) {
            assert!((top / actual - 1.0).abs() < 1e-9, "{tops:?}");
        }
        let labels: Vec<&str> = panel.x.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert!(labels[0].ends_with(".1") && labels[1].ends_with(".0"), "{labels:?}");
    }
}
