// The attention kernels against softmax attention written out pair by pair in double precision.
#include "check.h"

#include <limits.h>
#include <stdio.h>

#include "../../src/lm/cuda/kernels/attention.cu"

namespace {

struct Case {
    int batch, time, d_head;
    std::vector<int> windows;
    double softcap = 0;
    // Deviation of queries and keys.
    double deviation = 1;
    // Elements off 16-byte alignment at which the tensors begin.
    size_t shift = 0;
    // Queries and keys of one sign, so that zeros that no row should see would be seen.
    bool positive = false;
    // Over the lag, a head; none where there is none.
    std::vector<double> slopes = {};
};

template <class T> struct Kernels {
    int channels;
    const char* name;
    void (*forward)(const T*, const T*, const T*, T*, float*, float*, const int*, const float*, int,
                    int, int, int, int, float, float);
    void (*backward)(const T*, const T*, const T*, const T*, const float*, const float*, float*, T*,
                     T*, float*, const int*, const float*, int, int, int, int, int, float, float);
};

#define KERNELS(NAME, DP) \
    {DP, #NAME "_" #DP, attention_forward_##NAME##_##DP, attention_backward_##NAME##_##DP}
const Kernels<float> FLOAT_KERNELS[] = {KERNELS(f32, 16), KERNELS(f32, 32), KERNELS(f32, 64),
                                        KERNELS(f32, 96), KERNELS(f32, 128)};
const Kernels<bf16> BF16_KERNELS[] = {KERNELS(bf16, 16), KERNELS(bf16, 32), KERNELS(bf16, 64),
                                      KERNELS(bf16, 96), KERNELS(bf16, 128)};

template <class T> const Kernels<T>& kernels_for(int d_head) {
    if constexpr (IS_BF16<T>) {
        for (const auto& kernels : BF16_KERNELS) {
            if (kernels.channels >= d_head) return kernels;
        }
    } else {
        for (const auto& kernels : FLOAT_KERNELS) {
            if (kernels.channels >= d_head) return kernels;
        }
    }
    emulation::fail("no kernel for heads of %d channels", d_head);
}

// What attention and its gradients are, and how far a kernel may be off. Beside float32's own
// errors the bfloat16 kernels round P before P V and Pᵀ dO, dS before dS K and dSᵀ Q, and what they
// write in bfloat16, each by a relative `unit` at most, 2⁻⁸ for its 8 bits; so a sum Σ p v errs by
// unit Σ p |v|, and delta passes the output's error on to dS.
struct Reference {
    std::vector<double> output, log_sum_exp, statistics, dq, dk, dv, d_slopes;
    std::vector<double> output_bound, log_sum_exp_bound, statistics_bound, dq_bound, dk_bound,
        dv_bound, d_slopes_bound;

    Reference(const Case& c, double scale, double unit, const std::vector<double>& q,
              const std::vector<double>& k, const std::vector<double>& v,
              const std::vector<double>& g) {
        const int heads = static_cast<int>(c.windows.size()), time = c.time, d = c.d_head;
        const size_t count = q.size(), rows = count / d;
        for (auto* x : {&output, &dq, &dk, &dv, &output_bound, &dq_bound, &dk_bound, &dv_bound}) {
            x->assign(count, 0);
        }
        log_sum_exp.resize(rows), log_sum_exp_bound.resize(rows);
        statistics.assign(3 * heads, 0), statistics_bound.assign(3 * heads, 0);
        d_slopes.assign(heads, 0), d_slopes_bound.assign(heads, 1e-6);
        for (int head = 0; head < heads; ++head) {
            statistics[3 * head] = -INFINITY, statistics[3 * head + 1] = INFINITY;
        }
        std::vector<double> z(time), capped(time), y(time), p(time);
        for (int index = 0; index < c.batch * heads; ++index) {
            const int head = index % heads;
            const double of_lag = c.slopes.empty() ? 0 : static_cast<float>(c.slopes[head]);
            const auto at = [&](int row) {
                return (static_cast<size_t>(index / heads * time + row) * heads + head) * d;
            };
            double* of_head = &statistics[3 * head];
            double* head_bound = &statistics_bound[3 * head];
            for (int row = 0; row < time; ++row) {
                const size_t i = at(row);
                const int first = std::max(0LL, row - static_cast<long long>(c.windows[head]) + 1);
                double max = -INFINITY, logit_error = 0;
                for (int column = first; column <= row; ++column) {
                    const size_t j = at(column);
                    double sum = 0, magnitude = 0;
                    for (int e = 0; e < d; ++e) {
                        sum += q[i + e] * k[j + e];
                        magnitude += fabs(q[i + e] * k[j + e]);
                    }
                    z[column] = scale * sum;
                    capped[column] =
                        c.softcap > 0 ? c.softcap * tanh(z[column] / c.softcap) : z[column];
                    y[column] = capped[column] + of_lag * (column - row);
                    max = std::max(max, y[column]);
                    const double error = 5e-7 * (1 + scale * magnitude + c.softcap +
                                                 fabs(of_lag) * (row - column));
                    logit_error = std::max(logit_error, error);
                    of_head[0] = std::max(of_head[0], z[column]);
                    of_head[1] = std::min(of_head[1], z[column]);
                }
                double total = 0, entropy = 0;
                for (int column = first; column <= row; ++column) total += exp(y[column] - max);
                const double log_z = max + log(total);
                for (int column = first; column <= row; ++column) {
                    p[column] = exp(y[column] - log_z);
                    entropy -= p[column] * (y[column] - log_z);
                }
                const double p_error = 2 * logit_error + 5e-7 * (1 + fabs(log_z));
                log_sum_exp[static_cast<size_t>(index) * time + row] = log_z;
                log_sum_exp_bound[static_cast<size_t>(index) * time + row] =
                    logit_error + 1e-6 * (1 + fabs(log_z));
                of_head[2] += entropy / (c.batch * time);
                head_bound[0] = std::max(head_bound[0], logit_error);
                head_bound[1] = std::max(head_bound[1], logit_error);
                // dH = −Σ p (ln p + H) dz.
                head_bound[2] = std::max(head_bound[2], 1e-5 + 12 * logit_error);

                double delta = 0, delta_error = 0;
                for (int e = 0; e < d; ++e) {
                    double sum = 0, magnitude = 0;
                    for (int column = first; column <= row; ++column) {
                        const double term = p[column] * v[at(column) + e];
                        sum += term, magnitude += fabs(term);
                    }
                    output[i + e] = sum;
                    output_bound[i + e] = (unit + p_error) * magnitude + unit * fabs(sum) + 1e-7;
                    delta += sum * g[i + e];
                    delta_error += (output_bound[i + e] + 1e-6 * fabs(sum)) * fabs(g[i + e]);
                }
                for (int column = first; column <= row; ++column) {
                    const size_t j = at(column);
                    double dp = 0, dp_error = 0;
                    for (int e = 0; e < d; ++e) {
                        dp += g[i + e] * v[j + e];
                        dp_error += 1e-6 * fabs(g[i + e] * v[j + e]);
                    }
                    const double share = c.softcap > 0 ? capped[column] / c.softcap : 0;
                    const double slope = 1 - share * share, dy = p[column] * (dp - delta);
                    const double ds = dy * slope;
                    const double dy_error = fabs(dy) * (p_error + 2e-6) +
                                            p[column] * (delta_error + dp_error);
                    d_slopes[head] += dy * (column - row);
                    d_slopes_bound[head] += dy_error * (row - column);
                    const double ds_error = fabs(ds) * (p_error + unit) +
                                            p[column] * slope * (delta_error + dp_error) +
                                            p[column] * fabs(dp - delta) * 1e-6;
                    for (int e = 0; e < d; ++e) {
                        dq[i + e] += scale * ds * k[j + e];
                        dk[j + e] += scale * ds * q[i + e];
                        dv[j + e] += p[column] * g[i + e];
                        dq_bound[i + e] += scale * (ds_error + 1e-6 * fabs(ds)) * fabs(k[j + e]);
                        dk_bound[j + e] += scale * (ds_error + 1e-6 * fabs(ds)) * fabs(q[i + e]);
                        dv_bound[j + e] += p[column] * (unit + p_error) * fabs(g[i + e]);
                    }
                }
            }
        }
        for (size_t i = 0; i < count; ++i) {
            dq_bound[i] += 1e-7;
            dk_bound[i] += unit * fabs(dk[i]) + 1e-7;
            dv_bound[i] += unit * fabs(dv[i]) + 1e-7;
        }
    }
};

template <class T> void check(const Case& c) {
    const int heads = static_cast<int>(c.windows.size()), d = c.d_head;
    const size_t rows = static_cast<size_t>(c.batch) * c.time * heads, count = rows * d;
    const Kernels<T>& kernels = kernels_for<T>(d);
    const double unit = IS_BF16<T> ? HALF_ULP : 1.2e-7;
    const auto scale = static_cast<float>(1 / sqrt(d));
    const auto softcap = static_cast<float>(c.softcap);
    char text[200];
    snprintf(text, sizeof text, "B %d, T %d, H %d, D %d, softcap %g, deviation %g, shift %zu, %s",
             c.batch, c.time, heads, d, c.softcap, c.deviation, c.shift,
             c.slopes.empty() ? "no slopes" : "slopes");
    const std::string of = text;

    Draws draws(count + c.shift);
    auto q = held<T>(draws.normals(count, c.deviation));
    auto k = held<T>(draws.normals(count, c.deviation));
    if (c.positive) {
        for (auto* x : {&q, &k}) {
            for (double& x : *x) x = fabs(x);
        }
    }
    const auto v = held<T>(draws.normals(count, 1)), g = held<T>(draws.normals(count, 1));
    const Reference reference(c, scale, unit, q, k, v, g);

    const Buffer<T> q_buffer(q, c.shift), k_buffer(k, c.shift), v_buffer(v, c.shift);
    const Buffer<T> gradient(g, c.shift), output(count, c.shift);
    const Buffer<T> dk(count, c.shift), dv(count, c.shift);
    const Buffer<float> dq(std::vector<double>(count, 0)), log_sum_exp(rows), delta(rows);
    const unsigned blocks = (c.time + 63) / 64, of_heads = c.batch * heads;
    const Buffer<float> partials(3 * blocks * of_heads), statistics(3 * heads);
    const int sloped = !c.slopes.empty();
    const Buffer<float> slopes(sloped ? c.slopes : std::vector<double>(heads, 1e6));
    const Buffer<float> d_slopes(std::vector<double>(heads, 0));
    const Buffer<int> windows(heads);
    for (int head = 0; head < heads; ++head) windows.data()[head] = c.windows[head];

    using emulation::launch;
    const std::string name = kernels.name, type = IS_BF16<T> ? "bf16" : "f32";
    launch(("attention_forward_" + name).c_str(), {blocks, of_heads}, 128, 0, [&] {
        kernels.forward(q_buffer.data(), k_buffer.data(), v_buffer.data(), output.data(),
                        log_sum_exp.data(), partials.data(), windows.data(), slopes.data(), sloped,
                        c.batch, c.time, heads, d, scale, softcap);
    });
    expect("attention " + type + " output", of, output.values(), reference.output,
           reference.output_bound);
    expect("attention " + type + " log-sum-exp", of, log_sum_exp.values(), reference.log_sum_exp,
           reference.log_sum_exp_bound);
    launch("attention_statistics", {static_cast<unsigned>(heads)}, 128, 0, [&] {
        attention_statistics(partials.data(), statistics.data(), heads, c.batch * blocks,
                             static_cast<float>(c.batch * c.time));
    });
    expect("attention " + type + " statistics", of, statistics.values(), reference.statistics,
           reference.statistics_bound);

    launch(("attention_delta_" + type).c_str(), {static_cast<unsigned>(rows + 7) / 8}, 128, 0, [&] {
        if constexpr (IS_BF16<T>) {
            attention_delta_bf16(output.data(), gradient.data(), delta.data(), c.batch, c.time,
                                 heads, d);
        } else {
            attention_delta_f32(output.data(), gradient.data(), delta.data(), c.batch, c.time,
                                heads, d);
        }
    });
    // Of the output as it was written, so that float32's own error remains.
    const auto written = output.values();
    std::vector<double> expected(rows), bound(rows);
    for (size_t token = 0; token < rows / heads; ++token) {
        for (int head = 0; head < heads; ++head) {
            const size_t to = (token / c.time * heads + head) * c.time + token % c.time;
            for (int e = 0; e < d; ++e) {
                const size_t i = (token * heads + head) * d + e;
                expected[to] += written[i] * g[i];
                bound[to] += 1e-6 * fabs(written[i] * g[i]);
            }
        }
    }
    expect("attention " + type + " delta", of, delta.values(), expected, bound);

    launch(("attention_backward_" + name).c_str(), {blocks, of_heads}, 128, 0, [&] {
        kernels.backward(q_buffer.data(), k_buffer.data(), v_buffer.data(), gradient.data(),
                         log_sum_exp.data(), delta.data(), dq.data(), dk.data(), dv.data(),
                         d_slopes.data(), windows.data(), slopes.data(), sloped, c.batch, c.time,
                         heads, d, scale, softcap);
    });
    expect("attention " + type + " dq", of, dq.values(), reference.dq, reference.dq_bound);
    expect("attention " + type + " dk", of, dk.values(), reference.dk, reference.dk_bound);
    expect("attention " + type + " dv", of, dv.values(), reference.dv, reference.dv_bound);
    if (sloped) {
        expect("attention " + type + " slopes", of, d_slopes.values(), reference.d_slopes,
               reference.d_slopes_bound);
    }
}

}  // namespace

void test_attention() {
    const int global = INT_MAX;
    // Each length, each padded size of heads, ragged and even ones, aligned or not; windows at and
    // beside the sizes of tiles; logits to 200.
    const Case cases[] = {
        {2, 1, 16, {1, 7, global}},
        {3, 2, 33, {1, 2, 7, global}},
        {2, 31, 20, {1, 7, 33, global}, 3},
        {1, 64, 64, {7, 64, 65, global}},
        {1, 65, 32, {33, 64, 65, global}, 0, 1, 1},
        {1, 65, 16, {1, 65, 64}, 3, 14},
        {2, 130, 100, {33, global}},
        {1, 130, 96, {65, global}, 3, 1, 2},
        {1, 200, 64, {1, 33, 65, 200}, 3},
        {1, 200, 128, {64, global}},
        {1, 200, 32, {7, 64, global}, 0, 7},
        {1, 130, 128, {7, global}, 3, 7},
        {1, 130, 33, {7, 130}, 0, 7},
        {3, 65, 1, {3, global}, 3, 2},
        {2, 128, 48, {63, 64, 65, 66}, 3},
        {1, 257, 16, {1, 100, 129, global}},
        {2, 130, 64, {7, 33, 64, 65, 66, global}},
        {1, 200, 96, {31, 32, 33, 97}},
        {1, 200, 128, {31, 47, 63, 79, 95}},
        {1, 191, 20, {63, 79, 95, 111, global}, 0, 1, 0, true},
        {1, 127, 96, {global}, 0, 1, 0, true},
        {2, 130, 16, {7, global, 64}, 0, 1, 0, false, {0.25, 0.004, 0}},
        {1, 200, 33, {100, global}, 3, 2, 0, false, {0.06, -0.01}},
        {1, 65, 128, {global, 33}, 3, 7, 0, false, {0.5, 0.02}},
    };
    for (const Case& c : cases) {
        check<float>(c);
        check<bf16>(c);
    }
}
