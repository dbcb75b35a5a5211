//! The decoder's forward and reverse passes over complex numbers: with weights θ + ihv they give g + ihHv.

use std::collections::HashMap;

use ndarray::{ArrayView2, Axis, Ix2, SliceInfo, SliceInfoElem, s};

use super::complex::{Matrix, Number, function, means, product, softmax};
use crate::lm::model::ModelShape;
use crate::lm::operators::{EPSILON, Rotation};
use crate::lm::simd::{GELU_CUBIC, GELU_SLOPE};
use crate::lm::{Positions, Slopes};
use crate::targets::Visibility;

/// Queries whose logits are computed at a time, against only the keys that they attend to.
const BLOCK: usize = 64;

/// The shape of a model, and for each weight its first element in a vector of all weights and its shape; a vector is one row.
pub(super) struct Weights {
    pub shape: ModelShape,
    pub places: HashMap<String, (usize, (usize, usize))>,
}

/// The passes over one passage, and what they sum over its tokens after the first.
pub(super) struct Passes<'a> {
    weights: &'a Weights,
    values: &'a [Number],
    targets: &'a [u32],
    pub gradient: Vec<Number>,
    pub nats: f64,
    /// The largest |logit| of any head.
    pub max_abs_logit: f64,
}

/// The normalised rows x̂ of a layer norm, and 1/√(var x + ε) of each.
type Normal = [Matrix; 2];
/// A part of a matrix.
type Part = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;

impl<'a> Passes<'a> {
    pub fn over(weights: &'a Weights, values: &'a [Number], passage: &'a [u32]) -> Self {
        let (ids, targets) = (&passage[..passage.len() - 1], &passage[1..]);
        let gradient = vec![Number::default(); values.len()];
        let (nats, max_abs_logit) = (0.0, 0.0);
        let mut passes = Self { weights, values, targets, gradient, nats, max_abs_logit };
        let rows: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
        let mut x = passes.weight("token_embedding").select(Axis(0), &rows);
        let is_learned = weights.shape.positions == Positions::Learned;
        if is_learned {
            x += &passes.weight("position_embedding").slice(s![..rows.len(), ..]);
        }
        let g = passes.stages(0, x);
        if is_learned {
            passes.add("position_embedding", &g);
        }
        let (first, (_, channels)) = weights.places["token_embedding"];
        for (row, id) in g.rows().into_iter().zip(rows) {
            let to = passes.gradient[first + id * channels..].iter_mut();
            to.zip(row).for_each(|(to, g)| *to += g);
        }
        passes
    }

    fn weight(&self, name: &str) -> ArrayView2<'a, Number> {
        let (first, shape) = self.weights.places[name];
        let part = &self.values[first..first + shape.0 * shape.1];
        ArrayView2::from_shape(shape, part).expect("as many elements as the weight has")
    }

    /// Adds to the gradient of a weight, or of its first rows.
    fn add(&mut self, name: &str, gradient: &Matrix) {
        let to = self.gradient[self.weights.places[name].0..].iter_mut();
        to.zip(gradient).for_each(|(to, g)| *to += g);
    }

    fn times(&self, x: &Matrix, name: &str) -> Matrix {
        product(x.view(), self.weight(name))
    }

    /// The gradient of x from that of [`times`](Self::times).
    fn times_back(&mut self, x: &Matrix, name: &str, g: &Matrix) -> Matrix {
        self.add(name, &product(x.t(), g.view()));
        product(g.view(), self.weight(name).reversed_axes())
    }

    fn norm(&self, x: &Matrix, name: &str) -> (Matrix, Normal) {
        let centred = x - &means(x);
        let scale = means(&(&centred * &centred)).mapv(|square| {
            let scale = 1.0 / (square.re + f64::from(EPSILON)).sqrt();
            function(square, scale, -0.5 * scale.powi(3))
        });
        let normal = centred * &scale;
        (&normal * &self.weight(name), [normal, scale])
    }

    fn norm_back(&mut self, [normal, scale]: &Normal, name: &str, g: Matrix) -> Matrix {
        self.add(name, &(&g * normal).sum_axis(Axis(0)).insert_axis(Axis(0)));
        let a = g * self.weight(name);
        (&a - &means(&a) - normal * &means(&(&a * normal))) * scale
    }

    /// The gradient of the residual stream `x` before a stage: the attention or the MLP of a layer, or the output. It runs
    /// the stage, all later stages, and the stage's way back.
    fn stages(&mut self, first: usize, x: Matrix) -> Matrix {
        match (first / 2, first % 2) {
            (layer, _) if layer == self.weights.shape.layers() => self.output(&x),
            (layer, 0) => self.attention(layer, x),
            (layer, _) => self.mlp(layer, x),
        }
    }

    fn output(&mut self, x: &Matrix) -> Matrix {
        let (hidden, normal) = self.norm(x, "norm");
        let embedding = self.weight("token_embedding");
        let mut error = product(hidden.view(), embedding.reversed_axes());
        softmax(&mut error);
        for (mut p, &target) in error.rows_mut().into_iter().zip(self.targets) {
            self.nats -= p[target as usize].re.ln();
            p[target as usize] -= 1.0;
        }
        self.add("token_embedding", &product(error.t(), hidden.view()));
        self.norm_back(&normal, "norm", product(error.view(), embedding))
    }

    fn mlp(&mut self, layer: usize, x: Matrix) -> Matrix {
        let [norm, input, output] =
            ["norm", "input", "output"].map(|part| format!("layers.{layer}.mlp.{part}"));
        let (y, normal) = self.norm(&x, &norm);
        let hidden = self.times(&y, &input);
        // GELU(x) = x (1 + tanh u)/2 with u = a (x + b x³).
        let (a, b) = (f64::from(GELU_SLOPE), f64::from(GELU_CUBIC));
        let bent = |x: Number| {
            let u = (x + x * x * x * b) * a;
            function(u, u.re.tanh(), 1.0 - u.re.tanh().powi(2))
        };
        let active = hidden.mapv(|x| x * (bent(x) + 1.0) * 0.5);
        let x = x + self.times(&active, &output);
        let g = self.stages(2 * layer + 2, x);
        let rises = hidden.mapv(|x| {
            let tanh = bent(x);
            ((tanh + 1.0) + x * (-tanh * tanh + 1.0) * (x * x * (3.0 * b) + 1.0) * a) * 0.5
        });
        let d_hidden = self.times_back(&active, &output, &g) * rises;
        let dy = self.times_back(&y, &input, &d_hidden);
        g + self.norm_back(&normal, &norm, dy)
    }

    fn attention(&mut self, layer: usize, x: Matrix) -> Matrix {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let (y, normal) = self.norm(&x, &name("norm"));
        let parts = ["query", "key", "value"].map(name);
        let [q, k, v] = parts.each_ref().map(|part| self.times(&y, part));
        let scale = 1.0 / (self.weights.shape.d_head as f64).sqrt();
        let (q, of_q) = self.query_or_key(q, &name("query_norm"));
        let q = q * scale;
        let (k, of_k) = self.query_or_key(k, &name("key_norm"));
        let (mixed, blocks) = self.heads(layer, [&q, &k, &v]);
        let x = x + self.times(&mixed, &name("output"));
        let g = self.stages(2 * layer + 1, x);
        let d_mixed = self.times_back(&mixed, &name("output"), &g);
        let mut d = [(); 3].map(|()| Matrix::zeros(q.dim()));
        for (queries, keys, p) in blocks {
            let g = d_mixed.slice(queries);
            let mut add = |to: usize, part: Part, more: Matrix| {
                let mut to = d[to].slice_mut(part);
                to += &more;
            };
            add(2, keys, product(p.t(), g));
            let dp = product(g, v.slice(keys).reversed_axes());
            let sums = (&dp * &p).sum_axis(Axis(1)).insert_axis(Axis(1));
            let dz = (dp - &sums) * &p;
            add(0, queries, product(dz.view(), k.slice(keys)));
            add(1, keys, product(dz.t(), q.slice(queries)));
        }
        let [dq, dk, dv] = d;
        let dq = self.query_or_key_back(&of_q, &name("query_norm"), dq * scale);
        let dk = self.query_or_key_back(&of_k, &name("key_norm"), dk);
        let mut dy = Matrix::zeros(y.dim());
        for (part, d) in parts.iter().zip([dq, dk, dv]) {
            dy += &self.times_back(&y, part, &d);
        }
        g + self.norm_back(&normal, &name("norm"), dy)
    }

    /// softmax(QKᵀ) V of every head, with an ALiBi bias if there is one; and blocks of queries, each with the keys that they
    /// attend to and the probabilities.
    fn heads(
        &mut self,
        layer: usize,
        [q, k, v]: [&Matrix; 3],
    ) -> (Matrix, Vec<(Part, Part, Matrix)>) {
        let ModelShape { heads, d_head: d, slopes, .. } = &self.weights.shape;
        let (kinds, t) = (&heads[layer], q.nrows());
        let alibi = Slopes::of_alibi(kinds.len());
        let (mut mixed, mut blocks) = (Matrix::zeros(q.dim()), Vec::new());
        for (head, kind) in kinds.iter().enumerate() {
            let slope = if *slopes == Slopes::None { 0.0 } else { f64::from(alibi[head]) };
            for first in (0..t).step_by(BLOCK) {
                let end = t.min(first + BLOCK);
                let from = kind.columns(first, t, Visibility::Causal).start;
                let of_head = head * d..(head + 1) * d;
                let queries: Part = s![first..end, of_head.clone()];
                let keys: Part = s![from..end, of_head];
                let mut z = product(q.slice(queries), k.slice(keys).reversed_axes());
                for ((row, column), z) in z.indexed_iter_mut() {
                    let (row, column) = (first + row, from + column);
                    if kind.columns(row, t, Visibility::Causal).contains(&column) {
                        self.max_abs_logit = self.max_abs_logit.max(z.re.abs());
                        *z -= slope * (row - column) as f64;
                    } else {
                        *z = f64::NEG_INFINITY.into();
                    }
                }
                softmax(&mut z);
                mixed.slice_mut(queries).assign(&product(z.view(), v.slice(keys)));
                blocks.push((queries, keys, z));
            }
        }
        (mixed, blocks)
    }

    /// Queries or keys, (T, H·d), normalised and rotated if the model does so.
    fn query_or_key(&self, x: Matrix, norm: &str) -> (Matrix, Option<Normal>) {
        let ModelShape { d_head, qk_norm, .. } = self.weights.shape;
        if !qk_norm {
            return (self.rotated(x, 1.0), None);
        }
        let width = x.ncols();
        let (y, normal) = self.norm(&in_rows_of(x, d_head), norm);
        (self.rotated(in_rows_of(y, width), 1.0), Some(normal))
    }

    fn query_or_key_back(&mut self, normal: &Option<Normal>, norm: &str, g: Matrix) -> Matrix {
        let (width, g) = (g.ncols(), self.rotated(g, -1.0));
        let Some(normal) = normal else { return g };
        let g = in_rows_of(g, self.weights.shape.d_head);
        in_rows_of(self.norm_back(normal, norm, g), width)
    }

    fn rotated(&self, mut x: Matrix, sign: f64) -> Matrix {
        let ModelShape { d_head, positions, .. } = self.weights.shape;
        if positions != Positions::Rope {
            return x;
        }
        let (rotation, half) = (Rotation::new(x.nrows(), d_head), d_head / 2);
        let turns = rotation.turns(x.nrows());
        let pairs = x.ncols() / 2;
        let numbers = x.as_slice_mut().expect("rows in their own order");
        for (at, pair) in numbers.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let [cos, sin] = turns[at / pairs * half + at % half].map(f64::from);
            let ([x, y], sin) = (*pair, sign * sin);
            *pair = [x * cos - y * sin, x * sin + y * cos];
        }
        x
    }
}

/// The same elements in rows of another length.
fn in_rows_of(x: Matrix, columns: usize) -> Matrix {
    let rows = x.len() / columns;
    x.into_shape_with_order((rows, columns)).expect("whole rows in their own order")
}
