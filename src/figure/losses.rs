//! The axis of losses: untrained weights lose so much more than trained ones that they would press the rest together.

use super::model::{Axis, Series, Shape};

/// The share of a run's steps that counts as its start.
const START: f64 = 0.1;

/// What captions say of a panel with this axis.
pub(super) const START_LEFT_OUT: &str =
    "Losses above the axis in the first tenth of a run are cut off.";

/// A linear axis that holds the losses after the start of each run.
pub(super) fn loss_axis(series: &[Series]) -> Axis {
    let later = |line: &Series| {
        let last = line.points.last().map_or(0.0, |point| point.0);
        let after = move |point: &&(f64, f64)| point.0 >= START * last;
        line.points.iter().filter(after).map(|point| point.1).collect::<Vec<_>>()
    };
    Axis::linear("loss (nats per token)", series.iter().flat_map(later), None)
}

/// `series` without what lies above `axis` at its start: a line from where it comes down into the panel for good.
pub(super) fn entered(mut series: Series, axis: &Axis) -> Series {
    let most = axis.range.1;
    if let Some(over) = series.points.iter().rposition(|point| point.1 > most) {
        let (x, y) = series.points[over];
        let mut inside = series.points.split_off(over + 1);
        if let (Some(&(next_x, next_y)), Shape::Line) = (inside.first(), series.shape) {
            inside.insert(0, (x + (next_x - x) * (y - most) / (y - next_y), most));
        }
        series.points = inside;
    }
    series
}

#[cfg(test)]
mod tests {
    use super::super::style::{Ink, Stroke};
    use super::*;

    #[test]
    fn the_start_does_not_spread_the_axis_and_lines_come_in_at_its_top() {
        let falling = vec![(1.0, 9.0), (5.0, 5.0), (10.0, 3.0), (50.0, 2.5), (100.0, 2.0)];
        let of = |shape| Series::new("run", Ink::grey(Stroke::Solid), shape, falling.clone());
        let axis = loss_axis(&[of(Shape::Line)]);
        assert!((axis.range.0 - 1.95).abs() < 1e-12 && (axis.range.1 - 3.05).abs() < 1e-12);
        let line = entered(of(Shape::Line), &axis).points;
        assert_eq!((line.len(), line[0].1, line[1]), (4, axis.range.1, (10.0, 3.0)));
        assert!((line[0].0 - 9.875).abs() < 1e-9, "{line:?}");
        assert_eq!(entered(of(Shape::Points), &axis).points, falling[2..], "no point is made up");
        let all = Axis { range: (0.0, 10.0), ..axis };
        assert_eq!(entered(of(Shape::Line), &all).points, falling);
    }
}
