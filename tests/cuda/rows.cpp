// The row-wise kernels against their formulas in double precision.
#include "check.h"

#include <stdio.h>

#include "../../src/lm/cuda/kernels/rows.cu"

namespace {

using emulation::launch;

template <class T> constexpr const char* NAME = IS_BF16<T> ? "bf16" : "f32";
template <class T> constexpr double UNIT = IS_BF16<T> ? HALF_ULP : 1.2e-7;

dim3 grid(size_t blocks) { return {static_cast<unsigned>(blocks)}; }

// A relative error of each value and an absolute one.
std::vector<double> bounds(const std::vector<double>& expected, double relative, double absolute) {
    std::vector<double> bound(expected.size());
    for (size_t i = 0; i < bound.size(); ++i) bound[i] = relative * fabs(expected[i]) + absolute;
    return bound;
}

void column_sums_of(const std::string& what, const std::string& of, const Buffer<float>& partials,
                    int rows, int columns, const std::vector<double>& expected,
                    const std::vector<double>& bound) {
    const Buffer<float> sums(columns);
    launch("column_sums", grid((columns + 63) / 64), 128, 0,
           [&] { column_sums(partials.data(), sums.data(), rows, columns); });
    expect(what, of, sums.values(), expected, bound);
}

template <class X, class Y, class Forward, class Backward>
void layer_norm(Forward forward, Backward backward, int rows, int channels, size_t shift) {
    const std::string name = std::string("layer norm ") + NAME<X> + "_" + NAME<Y>;
    const std::string of = std::to_string(rows) + " rows of " + std::to_string(channels) +
                           " channels, shift " + std::to_string(shift);
    Draws draws(rows * channels);
    auto x = draws.normals(rows * channels, 1.5);
    for (int i = 0; i < rows * channels; ++i) x[i] += i / channels % 3;
    x = held<X>(x);
    const auto gain = held<float>(draws.normals(channels, 1));
    const auto g = held<Y>(draws.normals(rows * channels, 1));

    std::vector<double> y(x.size()), dx(x.size()), d_gain(channels), means(rows), scales(rows);
    std::vector<double> d_gain_bound(channels, 1e-6);
    for (int row = 0; row < rows; ++row) {
        const size_t start = static_cast<size_t>(row) * channels;
        double mean = 0, variance = 0, sum = 0, product = 0;
        for (int i = 0; i < channels; ++i) mean += x[start + i] / channels;
        for (int i = 0; i < channels; ++i) variance += pow(x[start + i] - mean, 2) / channels;
        const double scale = 1 / sqrt(variance + 1e-5);
        for (int i = 0; i < channels; ++i) {
            const double normal = (x[start + i] - mean) * scale;
            y[start + i] = gain[i] * normal;
            d_gain[i] += g[start + i] * normal;
            d_gain_bound[i] += 2e-6 * fabs(g[start + i]) * (1 + fabs(normal));
            sum += g[start + i] * gain[i] / channels;
            product += g[start + i] * gain[i] * normal / channels;
        }
        for (int i = 0; i < channels; ++i) {
            const double normal = (x[start + i] - mean) * scale;
            dx[start + i] = (g[start + i] * gain[i] - sum - normal * product) * scale;
        }
        means[row] = mean, scales[row] = scale;
    }

    const Buffer<X> x_buffer(x, shift), dx_buffer(x.size(), shift);
    const Buffer<Y> y_buffer(x.size(), shift), gradient(g, shift);
    const Buffer<float> gain_buffer(gain), mean(rows), scale(rows);
    launch((name + " forward").c_str(), grid((rows + 3) / 4), 128, 0, [&] {
        forward(x_buffer.data(), gain_buffer.data(), y_buffer.data(), mean.data(), scale.data(),
                rows, channels);
    });
    expect(name + " y", of, y_buffer.values(), y, bounds(y, UNIT<Y>, 1e-5));
    expect(name + " mean", of, mean.values(), means, bounds(means, 1e-6, 1e-6));
    expect(name + " 1/deviation", of, scale.values(), scales, bounds(scales, 2e-6, 0));

    // One channel has a deviation of √ε: its derivatives are as large as 1/√ε.
    const double magnitude = channels == 1 ? 300 : 1;
    const int blocks = 3;
    const Buffer<float> partials(blocks * channels);
    launch((name + " backward").c_str(), grid(blocks), 128, 4 * channels * sizeof(float), [&] {
        backward(x_buffer.data(), gain_buffer.data(), mean.data(), scale.data(), gradient.data(),
                 dx_buffer.data(), partials.data(), rows, channels);
    });
    expect(name + " dx", of, dx_buffer.values(), dx, bounds(dx, UNIT<X>, 1e-5 * magnitude));
    column_sums_of(name + " d gain", of, partials, blocks, channels, d_gain, d_gain_bound);
}

void layer_norms() {
    for (const auto& [rows, channels, shift] :
         {std::tuple{37, 48, 0}, {5, 33, 0}, {9, 640, 0}, {2, 1, 0}, {14, 64, 1}}) {
        layer_norm<float, float>(layer_norm_forward_f32_f32, layer_norm_backward_f32_f32, rows,
                                 channels, shift);
        layer_norm<float, bf16>(layer_norm_forward_f32_bf16, layer_norm_backward_f32_bf16, rows,
                                channels, shift);
        layer_norm<bf16, bf16>(layer_norm_forward_bf16_bf16, layer_norm_backward_bf16_bf16, rows,
                               channels, shift);
    }
}

void sums_of_columns() {
    const int rows = 45, columns = 70;
    const auto x = held<float>(Draws(1).normals(rows * columns, 1));
    std::vector<double> expected(columns);
    for (int i = 0; i < rows * columns; ++i) expected[i % columns] += x[i];
    column_sums_of("column sums", "45 × 70", Buffer<float>(x), rows, columns, expected,
                   std::vector<double>(columns, 1e-5));
}

template <class T, class Forward, class Backward>
void gelu_kernels(Forward forward, Backward backward) {
    for (const auto& [count, shift] : {std::pair<size_t, size_t>{4099, 0}, {1021, 1}, {3, 0}}) {
        const std::string of = std::to_string(count) + " values, shift " + std::to_string(shift);
        Draws draws(count);
        auto x = draws.normals(count, 3);
        // Far out, where e^(−2u) leaves float32.
        x[0] = -100, x[1] = 100, x[2] = 0;
        x = held<T>(x);
        const auto g = held<T>(draws.normals(count, 1));
        std::vector<double> y(count), dx(count), dx_bound(count);
        for (size_t i = 0; i < count; ++i) {
            const double u = sqrt(2 / M_PI) * (x[i] + 0.044715 * pow(x[i], 3)), t = tanh(u);
            y[i] = 0.5 * x[i] * (1 + t);
            const double slope = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x[i] * x[i]);
            dx[i] = g[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * slope);
            // 1 − σ keeps no more than float32's absolute precision, here where it counts.
            const double lost = fabs(x[i]) < 7 ? 2e-7 * fabs(g[i] * x[i] * slope) : 0;
            dx_bound[i] = UNIT<T> * fabs(dx[i]) + lost + 2e-6;
        }
        const Buffer<T> in(x, shift), out(count, shift), gradient(g, shift), slopes(count, shift);
        launch("gelu_forward", grid(3), 64, 0,
               [&] { forward(in.data(), out.data(), static_cast<long long>(count)); });
        expect(std::string("gelu ") + NAME<T>, of, out.values(), y, bounds(y, UNIT<T>, 2e-6));
        launch("gelu_backward", grid(3), 64, 0, [&] {
            backward(in.data(), gradient.data(), slopes.data(), static_cast<long long>(count));
        });
        expect(std::string("gelu dx ") + NAME<T>, of, slopes.values(), dx, dx_bound);
    }
}

template <class T, class Kernel> void losses(Kernel kernel) {
    struct Case {
        int rows, symbols;
        double deviation;
        size_t shift;
    };
    for (const Case& c : {Case{5, 1000, 2, 0}, {3, 257, 2, 0}, {4, 5, 2, 0}, {3, 2048, 60, 0},
                          {2, 512, 1, 1}, {2, 1, 1, 0}}) {
        const size_t count = static_cast<size_t>(c.rows) * c.symbols;
        const std::string of = std::to_string(c.rows) + " rows of " + std::to_string(c.symbols) +
                               ", deviation " + std::to_string(c.deviation);
        Draws draws(count);
        const auto z = held<T>(draws.normals(count, c.deviation));
        const Buffer<unsigned> targets(c.rows);
        for (int row = 0; row < c.rows; ++row) {
            targets.data()[row] = row == 0 ? c.symbols - 1 : draws.below(c.symbols);
        }
        const double share = 0.125, z_loss = 0.3;
        std::vector<double> loss(c.rows), square(c.rows), gradient(count), gradient_bound(count);
        for (int row = 0; row < c.rows; ++row) {
            const size_t start = static_cast<size_t>(row) * c.symbols;
            const unsigned target = targets.data()[row];
            double max = -INFINITY, sum = 0;
            for (int i = 0; i < c.symbols; ++i) max = fmax(max, z[start + i]);
            for (int i = 0; i < c.symbols; ++i) sum += exp(z[start + i] - max);
            const double log_z = max + log(sum);
            loss[row] = log_z - z[start + target];
            square[row] = log_z * log_z;
            for (int i = 0; i < c.symbols; ++i) {
                const double p = share * (1 + 2 * z_loss * log_z) * exp(z[start + i] - log_z);
                const double g = p - (i == static_cast<int>(target) ? share : 0);
                gradient[start + i] = g;
                gradient_bound[start + i] = UNIT<T> * fabs(g) + 2e-5 * fabs(p) + 1e-8;
            }
        }
        for (const int wanted : {0, 1}) {
            const Buffer<T> logits(z, c.shift);
            const Buffer<float> entropies(c.rows), squares(c.rows);
            launch("loss_rows", grid(c.rows), 256, 0, [&] {
                kernel(logits.data(), targets.data(), entropies.data(), squares.data(), c.rows,
                       c.symbols, share, z_loss, wanted);
            });
            const std::string name = std::string("loss ") + NAME<T>;
            expect(name + " cross-entropy", of, entropies.values(), loss, bounds(loss, 1e-6, 2e-6));
            expect(name + " square", of, squares.values(), square, bounds(square, 1e-6, 2e-5));
            if (wanted) {
                expect(name + " gradient", of, logits.values(), gradient, gradient_bound);
            } else {
                expect(name + " logits", of, logits.values(), z, 0);
            }
        }
    }
}

template <class T, class Kernel> void rotations(Kernel kernel) {
    for (const auto& [d, shift] : {std::pair<int, size_t>{20, 0}, {2, 0}, {64, 1}}) {
        const int time = 7, heads = 3, rows = 2 * time, first = 5, positions = first + time;
        const std::string of = "D " + std::to_string(d);
        Draws draws(d);
        const auto x = held<T>(draws.normals(static_cast<size_t>(rows) * heads * d, 1));
        std::vector<double> turns;
        for (int at = 0; at < positions; ++at) {
            for (int pair = 0; pair < d / 2; ++pair) {
                const double angle = at * pow(10000, -2.0 * pair / d);
                turns.push_back(cos(angle)), turns.push_back(sin(angle));
            }
        }
        for (const double sign : {1.0, -1.0}) {
            std::vector<double> expected(x.size());
            for (size_t i = 0; i < x.size(); i += 2) {
                const int at = first + static_cast<int>(i / (heads * d)) % time;
                const double angle = sign * at * pow(10000, -static_cast<double>(i % d) / d);
                expected[i] = x[i] * cos(angle) - x[i + 1] * sin(angle);
                expected[i + 1] = x[i] * sin(angle) + x[i + 1] * cos(angle);
            }
            const Buffer<T> in(x, shift), out(x.size(), shift);
            const Buffer<float> table(turns);
            launch("rotate", grid(5), 64, 0, [&] {
                kernel(in.data(), out.data(), table.data(), first, rows, time, heads, d, sign);
            });
            expect(std::string("rotation ") + NAME<T>, of, out.values(), expected,
                   bounds(expected, UNIT<T>, 1e-6));
        }
    }
}

void embedding() {
    const int rows = 23, channels = 50, symbols = 9;
    Draws draws(3);
    const auto g = held<float>(draws.normals(rows * channels, 1));
    const Buffer<unsigned> ids(rows);
    std::vector<double> expected(symbols * channels);
    for (int row = 0; row < rows; ++row) {
        ids.data()[row] = row % 4 == 0 ? symbols - 1 : draws.below(symbols);
        for (int i = 0; i < channels; ++i) {
            expected[ids.data()[row] * channels + i] += g[row * channels + i];
        }
    }
    const Buffer<float> gradient(g), d_token(std::vector<double>(expected.size(), 0));
    launch("embed_backward", grid(6), 32, 0, [&] {
        embed_backward(ids.data(), gradient.data(), d_token.data(), rows, channels);
    });
    expect("embedding's gradient", "23 rows", d_token.values(), expected, 3e-6);
}

void sums_of_squares() {
    for (const auto& [count, blocks] : {std::pair<size_t, int>{5000, 4}, {3, 2}, {129, 1}}) {
        const auto x = held<float>(Draws(count).normals(count, 2));
        const Buffer<float> buffer(x), partials(blocks);
        launch("squares", grid(blocks), 96, 0,
               [&] { squares(buffer.data(), partials.data(), static_cast<long long>(count)); });
        double expected = 0, sum = 0;
        for (const double x : x) expected += x * x;
        for (const double part : partials.values()) sum += part;
        expect("sum of squares", std::to_string(count) + " values", {sum}, {expected},
               std::vector<double>{1e-6 * expected});
    }
}

void adam() {
    const size_t count = 1003;
    Draws draws(4);
    auto x = held<float>(draws.normals(count, 1)), m = std::vector<double>(count);
    auto v = std::vector<double>(count);
    const Buffer<float> weight(x), first(m), second(v);
    for (int step = 1; step <= 3; ++step) {
        const auto gradient = held<float>(draws.normals(count, 0.3));
        const double scale = 0.7, beta_1 = 0.9f, beta_2 = 0.99f, decay = 0.1, rate = 0.01;
        for (size_t i = 0; i < count; ++i) {
            const double g = scale * gradient[i];
            m[i] = beta_1 * m[i] + (1 - beta_1) * g;
            v[i] = beta_2 * v[i] + (1 - beta_2) * g * g;
            const double m_hat = m[i] / (1 - pow(beta_1, step));
            const double v_hat = v[i] / (1 - pow(beta_2, step));
            x[i] -= rate * decay * x[i] + rate * m_hat / (sqrt(v_hat) + 1e-8);
        }
        const Buffer<float> g(gradient);
        launch("adamw", grid(4), 96, 0, [&] {
            adamw(weight.data(), g.data(), first.data(), second.data(),
                  static_cast<long long>(count), static_cast<float>(scale),
                  static_cast<float>(beta_1), static_cast<float>(beta_2),
                  static_cast<float>(1 - rate * decay),
                  static_cast<float>(rate / (1 - pow(beta_1, step))),
                  static_cast<float>(1 / (1 - pow(beta_2, step))));
        });
        const std::string of = "step " + std::to_string(step);
        expect("adamw weight", of, weight.values(), x, bounds(x, 5e-7, 5e-7));
        expect("adamw first moment", of, first.values(), m, bounds(m, 1e-6, 1e-7));
        expect("adamw second moment", of, second.values(), v, bounds(v, 1e-6, 1e-9));
    }
}

}  // namespace

void test_rows() {
    layer_norms();
    sums_of_columns();
    gelu_kernels<float>(gelu_forward_f32, gelu_backward_f32);
    gelu_kernels<bf16>(gelu_forward_bf16, gelu_backward_bf16);
    losses<float>(loss_rows_f32);
    losses<bf16>(loss_rows_bf16);
    rotations<float>(rotate_f32);
    rotations<bf16>(rotate_bf16);
    embedding();
    sums_of_squares();
    adam();
}
