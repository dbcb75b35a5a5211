use std::sync::Arc;

use ndarray::{Array2, concatenate};

use super::*;
use crate::heads::parts::tests::{definition, heads, heads_of, options};
use crate::lm::{HeadInputs, HeadProbe, Positions};
use crate::solver::{Measured, SolverBudget};
use crate::targets::{HeadKind, Visibility};

const TOKENS: usize = 24;

fn search() -> SearchOptions {
    let fine =
        SolverBudget { iterations: 1500, relative_decrease: 1e-6, ..SolverBudget::default() };
    let rough = SolverBudget { iterations: 300, relative_decrease: 1e-4, ..fine };
    SearchOptions { rough, fine, ..options() }
}

fn of(head: &TrainedHead, epsilons: &[f64], inputs: &[InputSet], ranks: &[usize]) -> Vec<Corner> {
    let asked = Corners { epsilons, inputs, ranks, search: search() };
    head.lattice(&asked, &mut || true).unwrap().unwrap()
}

fn needed(corners: &[Corner], inputs: InputSet, rank: RankLimit) -> f64 {
    let corner = corners.iter().find(|c| (c.inputs, c.rank) == (inputs, rank)).unwrap();
    corner.found.max_abs_logit.unwrap_or(f64::INFINITY)
}

/// A causal global head of rank d with this residual stream and these weights, on one passage.
fn head_of(stream: Array2<f64>, weights: [Array2<f64>; 2]) -> TrainedHead {
    let [queries, keys] = weights.map(|w| stream.dot(&w).mapv(|v| v as f32));
    let probe = HeadProbe {
        layer: 0,
        head: 0,
        visibility: Visibility::Causal,
        kind: HeadKind::Global,
        key_head: 0,
        scale: 1.0 / (queries.ncols() as f64).sqrt(),
        softcap: None,
        slope: None,
        sink: None,
        inputs: HeadInputs {
            stream: Arc::new(stream.mapv(|v| v as f32)),
            projected: [queries.clone(), keys.clone()],
            normalised: None,
            turns: None,
        },
        queries,
        keys,
    };
    TrainedHead::new(&[&probe], None).unwrap()
}

fn wave(rows: usize, columns: usize, shift: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (1.3 * (i * (j + 2)) as f64 + shift).sin())
}

/// Columns of ones and of positions, followed by `others` other columns.
fn with_positions(others: usize) -> Array2<f64> {
    let line = Array2::from_shape_fn((TOKENS, 2), |(i, c)| [1.0, i as f64][c]);
    concatenate(Axis(1), &[line.view(), wave(TOKENS, others, 0.4).view()]).unwrap()
}

/// The ramp z = c·j: queries are constant, keys are the position times `slope`.
fn ramp(stream: Array2<f64>, slope: f64) -> TrainedHead {
    let mut weights = [0, 1].map(|_| Array2::zeros((stream.ncols(), 2)));
    weights[0][[0, 0]] = 2f64.sqrt();
    weights[1][[1, 0]] = slope;
    head_of(stream, weights)
}

/// A residual stream that already contains the line gains nothing from it, at any ε.
#[test]
fn positions_that_the_stream_has_are_worth_nothing() {
    let stream = with_positions(3);
    let weights = [0.3, 0.8].map(|shift| 2.5 * wave(stream.ncols(), 2, shift));
    let mut head_stream = stream.clone();
    // The line is scaled so that logits stay moderate.
    head_stream.column_mut(1).mapv_inplace(|j| j / TOKENS as f64);
    let head = head_of(head_stream, weights);
    for epsilon in [0.05, 0.005] {
        let inputs = [InputSet::Own, InputSet::Line, InputSet::Free];
        let corners = of(&head, &[epsilon], &inputs, &[]);
        // At any rank the problem is convex and has one minimum.
        let [own, line, floor] = inputs.map(|set| needed(&corners, set, RankLimit::Any));
        assert!((0.99..=1.0).contains(&(line / own)), "{line} over {own} at {epsilon}");
        let bound = corners.iter().find(|c| c.inputs == InputSet::Own && c.lower_bound.is_some());
        let bound = bound.and_then(|corner| corner.lower_bound).unwrap();
        assert!(bound >= 0.9 * own && bound <= own && floor < bound, "{floor}, {bound}, {own}");
    }
}

/// softmax(c·j) behind a causal mask has rank one. As ε falls, free queries and keys of rank one need the half-range
/// c·(n − 1)/2 of the last row. Logits of any rank need the same, because the ratios of that row's probabilities are fixed.
#[test]
fn a_ramp_needs_its_half_spread_at_rank_one_and_at_any() {
    let slope = 0.35;
    let head = ramp(with_positions(0), slope);
    let half_spread = 0.5 * slope * (TOKENS - 1) as f64;
    let own = Measured::of(&head.problem, &head.own).unwrap();
    assert!((own.logit_spread - 2.0 * half_spread).abs() < 1e-4);
    let corners = of(&head, &[1e-8], &[InputSet::Own, InputSet::Free], &[1]);
    let of_rank = |rank| needed(&corners, InputSet::Free, rank);
    let [one, any] = [RankLimit::Of(1), RankLimit::Any].map(of_rank);
    assert!((0.97..=1.001).contains(&(one / half_spread)), "{one} of {half_spread}");
    assert!(any <= one && any >= 0.97 * half_spread, "{any} of {half_spread}");
    // Inputs that contain the line reach it as well.
    let own = needed(&corners, InputSet::Own, RankLimit::Of(1));
    assert!((0.999 * one..=1.01 * half_spread).contains(&own), "{own}");
}

/// A line, or a column for each position, lowers the needed logit of a residual stream of waves.
#[test]
fn a_line_for_nothing_spares_a_stream_that_has_none() {
    let stream = wave(TOKENS, 6, 0.2);
    let weights = [0.3, 0.9].map(|shift| 1.2 * wave(6, 2, shift));
    let head = head_of(stream, weights);
    let asked =
        [InputSet::Own, InputSet::Bias, InputSet::Line, InputSet::Positions, InputSet::Free];
    let corners = of(&head, &[0.02], &asked, &[1]);
    let any = |set| needed(&corners, set, RankLimit::Any);
    // With a column for each position any logits are possible, and the floor is exact.
    let ratio = any(InputSet::Positions) / any(InputSet::Free);
    assert!((1.0..1.02).contains(&ratio), "{ratio}");
    let chain = asked.map(any);
    assert!(chain.is_sorted_by(|a, b| a >= b) && chain[0] > 1.02 * chain[4], "{chain:?}");
}

/// needed never increases up the lattice or with ε, factors are certificates, and lower bounds hold.
#[test]
fn a_trained_head_s_lattice_is_monotone_and_certified() {
    for (actual, head) in
        heads_of(&definition("mhsa", Positions::Learned, &[]), None).iter().take(1)
    {
        let inputs = [InputSet::Own, InputSet::Line, InputSet::Pair, InputSet::Free];
        let corners = of(head, &[0.1, 0.01], &inputs, &[1, 4]);
        assert_eq!(corners.len(), 2 * 4 * 4, "d = 8 and any beside the ranks asked for");
        for above in &corners {
            for below in &corners {
                let is_above = below.inputs.is_within(above.inputs)
                    && below.rank <= above.rank
                    && below.epsilon <= above.epsilon;
                let [least, most] = [above, below].map(|c| c.found.max_abs_logit);
                let falls = least.is_some_and(|least| most.is_none_or(|most| least <= most));
                assert!(!is_above || falls || most.is_none(), "{least:?} over {most:?}");
                if let (true, Some(bound)) = (is_above, above.lower_bound) {
                    assert!(most.is_none_or(|most| bound <= most * (1.0 + 1e-6)));
                }
            }
            let Found { max_abs_logit, factors, .. } = &above.found;
            let (Some(needed), Some(factors)) = (max_abs_logit, factors) else { continue };
            let problem = Problem::new(
                head.problem.target().clone(),
                head.problem.layout().clone(),
                factors.rank(),
            );
            let again = Measured::of(&problem.unwrap(), factors).unwrap();
            assert!(again.kl_nats <= above.epsilon && again.max_abs_logit == *needed);
            if let RankLimit::Of(rank) = above.rank {
                assert!(factors.rank() <= rank);
            }
        }
        let own = RankLimit::Of(head.rank());
        assert!(needed(&corners, InputSet::Own, own) <= actual.max_abs_logit * (1.0 + 1e-6));
        let parts = head.parts(actual, 0.01, search()).unwrap();
        assert_eq!(Some(needed(&corners, InputSet::Free, RankLimit::Any)), parts.levels.floor);
    }
}

#[test]
fn turned_heads_have_free_corners_and_their_own_alone_and_a_stop_ends_all() {
    let heads = heads(&definition("mhsa", Positions::Rope, &[]));
    let corners = of(&heads[0], &[0.05], &[InputSet::Own, InputSet::Line, InputSet::Free], &[2]);
    let found: Vec<_> = corners.iter().map(|c| format!("{} {}", c.inputs, c.rank)).collect();
    assert_eq!(found, ["own 8", "free 2", "free 8", "free any"]);
    let asked =
        Corners { epsilons: &[0.05], inputs: &InputSet::ALL, ranks: &[2], search: search() };
    let mut left = 2;
    let mut goes_on = || {
        left -= 1;
        left > 0
    };
    assert!(heads[0].lattice(&asked, &mut goes_on).unwrap().is_none());
}
