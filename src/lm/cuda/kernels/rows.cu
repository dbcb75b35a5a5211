// The row-wise kernels of a training step: layer norm, GELU, the loss, rotary positions, the
// gradient of the embedding, and AdamW. All loops stride over the grid, so any grid is correct;
// each kernel states the intended one. Arithmetic is float32 for all tensor types.
#include "device.cuh"

// Rows per block of the layer norm, one warp each.
constexpr int WARPS = 4;
constexpr float LAYER_NORM_EPSILON = 1e-5f;
constexpr int LOSS_THREADS = 256;
constexpr float ADAM_EPSILON = 1e-8f;
// √(2/π) and the cubic coefficient of the tanh form of GELU.
constexpr float GELU_SLOPE = 0.7978846f;
constexpr float GELU_CUBIC = 0.044715f;

DEVICE long long global_thread() {
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

DEVICE long long global_threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

template <int COUNT> struct Count {
    static constexpr int VALUE = COUNT;
};

// Calls each(channel, count) for the channels of a row, distributed over the lanes of a warp: in
// runs of RUN channels if `runs`, otherwise one by one. The count, RUN or 1, is passed as a type.
template <int RUN, class Each> DEVICE void over_row(int channels, bool runs, const Each& each) {
    const int lane = threadIdx.x % 32;
    if (runs) {
        for (int channel = lane * RUN; channel < channels; channel += 32 * RUN) {
            each(channel, Count<RUN>());
        }
    } else {
        for (int channel = lane; channel < channels; channel += 32) each(channel, Count<1>());
    }
}

// Four channels of the wider type are one access of 16 bytes.
constexpr int RUN = 4;

template <class T> DEVICE bool in_runs(const T* x) { return is_aligned(x, RUN * sizeof(T)); }

template <class X, class Y>
DEVICE void layer_norm_forward(const X* x, const float* gain, Y* y, float* mean,
                               float* inverse_deviation, int rows, int channels) {
    const bool runs = channels % RUN == 0 && in_runs(x) && in_runs(gain) && in_runs(y);
    const float share = 1.0f / channels;
    for (int row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += gridDim.x * WARPS) {
        const X* from = x + static_cast<size_t>(row) * channels;
        Y* to = y + static_cast<size_t>(row) * channels;
        float sum = 0.0f;
        over_row<RUN>(channels, runs, [&](int channel, auto count) {
            float a[decltype(count)::VALUE];
            load(a, from + channel);
            for (float a : a) sum += a;
        });
        const float centre = lanes_sum(sum) * share;
        float square = 0.0f;
        over_row<RUN>(channels, runs, [&](int channel, auto count) {
            float a[decltype(count)::VALUE];
            load(a, from + channel);
            for (float a : a) square += (a - centre) * (a - centre);
        });
        const float scale = 1.0f / sqrtf(lanes_sum(square) * share + LAYER_NORM_EPSILON);
        over_row<RUN>(channels, runs, [&](int channel, auto count) {
            constexpr int COUNT = decltype(count)::VALUE;
            float a[COUNT], b[COUNT];
            load(a, from + channel);
            load(b, gain + channel);
            UNROLL
            for (int i = 0; i < COUNT; ++i) a[i] = b[i] * ((a[i] - centre) * scale);
            store(to + channel, a);
        });
        if (threadIdx.x % 32 == 0) {
            mean[row] = centre;
            inverse_deviation[row] = scale;
        }
    }
}

// With x̂ the normalised row and a = gradient ∘ gain,
// dx = (a − mean a − x̂ mean(a ∘ x̂)) / deviation.
template <class X, class Y>
DEVICE void layer_norm_backward(const X* x, const float* gain, const float* mean,
                                const float* inverse_deviation, const Y* gradient, X* dx,
                                float* partials, int rows, int channels) {
    DYNAMIC_SHARED(d_gain);
    // Each warp sums gradient ∘ x̂ separately; each lane has its own channels.
    float* const own = d_gain + threadIdx.x / 32 * channels;
    const bool runs = channels % RUN == 0 && in_runs(x) && in_runs(gain) && in_runs(gradient) &&
                      in_runs(dx);
    const float share = 1.0f / channels;
    over_row<RUN>(channels, runs, [&](int channel, auto count) {
        for (int i = 0; i < decltype(count)::VALUE; ++i) own[channel + i] = 0.0f;
    });
    for (int row = blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += gridDim.x * WARPS) {
        const size_t start = static_cast<size_t>(row) * channels;
        const float centre = mean[row], scale = inverse_deviation[row];
        float sum = 0.0f, product = 0.0f;
        over_row<RUN>(channels, runs, [&](int channel, auto count) {
            constexpr int COUNT = decltype(count)::VALUE;
            float a[COUNT], b[COUNT], g[COUNT], total[COUNT];
            load(a, x + start + channel);
            load(b, gain + channel);
            load(g, gradient + start + channel);
            load(total, own + channel);
            UNROLL
            for (int i = 0; i < COUNT; ++i) {
                const float normal = (a[i] - centre) * scale;
                total[i] += g[i] * normal;
                sum += g[i] * b[i];
                product += g[i] * b[i] * normal;
            }
            store(own + channel, total);
        });
        const float mean_scaled = lanes_sum(sum) * share;
        const float mean_product = lanes_sum(product) * share;
        over_row<RUN>(channels, runs, [&](int channel, auto count) {
            constexpr int COUNT = decltype(count)::VALUE;
            float a[COUNT], b[COUNT], g[COUNT];
            load(a, x + start + channel);
            load(b, gain + channel);
            load(g, gradient + start + channel);
            UNROLL
            for (int i = 0; i < COUNT; ++i) {
                const float normal = (a[i] - centre) * scale;
                a[i] = (g[i] * b[i] - mean_scaled - normal * mean_product) * scale;
            }
            store(dx + start + channel, a);
        });
    }
    block_barrier();
    for (int channel = threadIdx.x; channel < channels; channel += 32 * WARPS) {
        float sum = 0.0f;
        for (int warp = 0; warp < WARPS; ++warp) sum += d_gain[warp * channels + channel];
        partials[static_cast<size_t>(blockIdx.x) * channels + channel] = sum;
    }
}

// Forward: grid ⌈rows/4⌉. Backward: a few blocks per multiprocessor, each of which writes one row
// of the partial sums of d gain (gridDim.x, channels); 4 · channels floats of dynamic shared
// memory.
#define LAYER_NORM(NAME, X, Y)                                                                     \
    KERNEL(32 * WARPS)                                                                             \
    layer_norm_forward_##NAME(const X* x, const float* gain, Y* y, float* mean,                    \
                              float* inverse_deviation, int rows, int channels) {                  \
        layer_norm_forward(x, gain, y, mean, inverse_deviation, rows, channels);                   \
    }                                                                                              \
    KERNEL(32 * WARPS)                                                                             \
    layer_norm_backward_##NAME(const X* x, const float* gain, const float* mean,                   \
                               const float* inverse_deviation, const Y* gradient, X* dx,           \
                               float* partials, int rows, int channels) {                          \
        layer_norm_backward(x, gain, mean, inverse_deviation, gradient, dx, partials, rows,        \
                            channels);                                                             \
    }

LAYER_NORM(f32_f32, float, float)
LAYER_NORM(f32_bf16, float, bf16)
LAYER_NORM(bf16_bf16, bf16, bf16)

// Sums of each column of (rows, columns): 32 columns per block of whole warps, grid ⌈columns/32⌉.
// Each warp adds a run of rows in order, then the runs are added in order. So the result depends
// on the number of threads per block alone.
KERNEL(1024)
column_sums(const float* partials, float* sums, int rows, int columns) {
    SHARED(float, of_runs, 1024);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int run = (rows + warps - 1) / warps, end = minimum(rows, (warp + 1) * run);
    for (int first = blockIdx.x * 32; first < columns; first += gridDim.x * 32) {
        const int column = first + lane;
        float sum = 0.0f;
        if (column < columns) {
            UNROLL_BY(8)
            for (int row = warp * run; row < end; ++row) {
                sum += partials[static_cast<size_t>(row) * columns + column];
            }
        }
        of_runs[threadIdx.x] = sum;
        block_barrier();
        if (warp == 0 && column < columns) {
            for (int other = 1; other < warps; ++other) sum += of_runs[other * 32 + lane];
            sums[column] = sum;
        }
        block_barrier();
    }
}

DEVICE float sigmoid_of_twice(float u) { return 1.0f / (1.0f + exp2_fast(-2.0f * LOG2_E * u)); }

// GELU in its tanh form, x σ(2u) with u = √(2/π) (x + 0.044715 x³).
DEVICE float gelu(float x) {
    return x * sigmoid_of_twice(GELU_SLOPE * (x + GELU_CUBIC * x * x * x));
}

DEVICE float gelu_slope(float x) {
    const float square = x * x;
    const float slope = GELU_SLOPE * (1.0f + 3.0f * GELU_CUBIC * square);
    const float sigma = sigmoid_of_twice(GELU_SLOPE * (x + GELU_CUBIC * x * square));
    return sigma + 2.0f * x * sigma * (1.0f - sigma) * slope;
}

template <class T> DEVICE void gelu_forward(const T* x, T* y, long long count) {
    constexpr int COUNT = 16 / sizeof(T);
    const long long whole = is_aligned(x, 16) && is_aligned(y, 16) ? count / COUNT : 0;
    for (long long i = global_thread(); i < whole; i += global_threads()) {
        float a[COUNT];
        load(a, x + i * COUNT);
        UNROLL
        for (int j = 0; j < COUNT; ++j) a[j] = gelu(a[j]);
        store(y + i * COUNT, a);
    }
    for (long long i = whole * COUNT + global_thread(); i < count; i += global_threads()) {
        y[i] = from_float<T>(gelu(to_float(x[i])));
    }
}

template <class T>
DEVICE void gelu_backward(const T* x, const T* gradient, T* dx, long long count) {
    constexpr int COUNT = 16 / sizeof(T);
    const bool aligned = is_aligned(x, 16) && is_aligned(gradient, 16) && is_aligned(dx, 16);
    const long long whole = aligned ? count / COUNT : 0;
    for (long long i = global_thread(); i < whole; i += global_threads()) {
        float a[COUNT], g[COUNT];
        load(a, x + i * COUNT);
        load(g, gradient + i * COUNT);
        UNROLL
        for (int j = 0; j < COUNT; ++j) a[j] = g[j] * gelu_slope(a[j]);
        store(dx + i * COUNT, a);
    }
    for (long long i = whole * COUNT + global_thread(); i < count; i += global_threads()) {
        dx[i] = from_float<T>(to_float(gradient[i]) * gelu_slope(to_float(x[i])));
    }
}

// A running maximum and Σ e^(z − maximum).
struct Terms {
    // Finite, so that no difference of two is NaN.
    float max = -3e38f;
    float sum = 0.0f;

    DEVICE void add(float z) {
        if (z > max) {
            sum = sum * exp2_fast((max - z) * LOG2_E) + 1.0f;
            max = z;
        } else {
            sum += exp2_fast((z - max) * LOG2_E);
        }
    }

    DEVICE void join(float other_max, float other_sum) {
        const float joint = fmaxf(max, other_max);
        sum = sum * exp2_fast((max - joint) * LOG2_E) +
              other_sum * exp2_fast((other_max - joint) * LOG2_E);
        max = joint;
    }
};

// One block per row. If `wanted`, the logits are replaced by their gradient.
template <class T>
DEVICE void loss_rows(T* logits, const unsigned* targets, float* cross_entropy, float* square,
                      int rows, int symbols, float share, float z_loss, int wanted) {
    constexpr int COUNT = 16 / sizeof(T);
    SHARED(float, of_warps, 2 * LOSS_THREADS / 32);
    const int warp = threadIdx.x / 32;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        T* z = logits + static_cast<size_t>(row) * symbols;
        const int target = targets[row];
        const float hit = to_float(z[target]);
        const int whole = is_aligned(z, 16) ? symbols / COUNT : 0;
        Terms terms;
        for (int i = threadIdx.x; i < whole; i += LOSS_THREADS) {
            float a[COUNT];
            load(a, z + i * COUNT);
            UNROLL
            for (int j = 0; j < COUNT; ++j) terms.add(a[j]);
        }
        for (int i = whole * COUNT + threadIdx.x; i < symbols; i += LOSS_THREADS) {
            terms.add(to_float(z[i]));
        }
        UNROLL
        for (int mask = 16; mask > 0; mask /= 2) {
            terms.join(shuffle_xor(terms.max, mask), shuffle_xor(terms.sum, mask));
        }
        if (threadIdx.x % 32 == 0) {
            of_warps[2 * warp] = terms.max;
            of_warps[2 * warp + 1] = terms.sum;
        }
        // Also ensures that every thread has read the target's logit before it is overwritten.
        block_barrier();
        terms = Terms();
        for (int other = 0; other < LOSS_THREADS / 32; ++other) {
            terms.join(of_warps[2 * other], of_warps[2 * other + 1]);
        }
        const float log_sum = logf(terms.sum), log_z = terms.max + log_sum;
        if (threadIdx.x == 0) {
            cross_entropy[row] = (terms.max - hit) + log_sum;
            square[row] = log_z * log_z;
        }
        if (wanted) {
            const float factor = share * (1.0f + 2.0f * z_loss * log_z) / terms.sum;
            const auto slope = [&](float z, int symbol) {
                const float p = factor * exp2_fast((z - terms.max) * LOG2_E);
                return symbol == target ? p - share : p;
            };
            for (int i = threadIdx.x; i < whole; i += LOSS_THREADS) {
                float a[COUNT];
                load(a, z + i * COUNT);
                UNROLL
                for (int j = 0; j < COUNT; ++j) a[j] = slope(a[j], i * COUNT + j);
                store(z + i * COUNT, a);
            }
            for (int i = whole * COUNT + threadIdx.x; i < symbols; i += LOSS_THREADS) {
                z[i] = from_float<T>(slope(to_float(z[i]), i));
            }
        }
        block_barrier();
    }
}

// Rotates the pairs (2i, 2i + 1) of each head by the angle of the row's position; backwards for a
// sign of −1. Blocks stride over rows, threads over the pairs of a row; y may be x.
template <class T>
DEVICE void rotate(const T* x, T* y, const float* turns, int first, int rows, int time, int heads,
                   int d_head, float sign) {
    const int pairs = d_head / 2;
    const bool aligned = is_aligned(x, 2 * sizeof(T)) && is_aligned(y, 2 * sizeof(T));
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const size_t start = static_cast<size_t>(row) * heads * d_head;
        const float* of_row = turns + static_cast<size_t>(first + row % time) * d_head;
        for (int i = threadIdx.x; i < heads * pairs; i += blockDim.x) {
            float turn[2], a[2], b[2];
            load(turn, of_row + i % pairs * 2);
            const T* from = x + start + 2 * i;
            T* to = y + start + 2 * i;
            if (aligned) {
                load(a, from);
            } else {
                a[0] = to_float(from[0]);
                a[1] = to_float(from[1]);
            }
            const float cosine = turn[0], sine = sign * turn[1];
            b[0] = a[0] * cosine - a[1] * sine;
            b[1] = a[0] * sine + a[1] * cosine;
            if (aligned) {
                store(to, b);
            } else {
                to[0] = from_float<T>(b[0]);
                to[1] = from_float<T>(b[1]);
            }
        }
    }
}

// GELU: one thread per 16 bytes, or fewer threads. Loss: grid (rows). Rotation: grid (rows).
#define ELEMENTS(NAME, T)                                                                          \
    KERNEL(1024) gelu_forward_##NAME(const T* x, T* y, long long count) {                          \
        gelu_forward(x, y, count);                                                                 \
    }                                                                                              \
    KERNEL(1024) gelu_backward_##NAME(const T* x, const T* gradient, T* dx, long long count) {     \
        gelu_backward(x, gradient, dx, count);                                                     \
    }                                                                                              \
    KERNEL(LOSS_THREADS)                                                                           \
    loss_rows_##NAME(T* logits, const unsigned* targets, float* cross_entropy, float* square,      \
                     int rows, int symbols, float share, float z_loss, int wanted) {               \
        loss_rows(logits, targets, cross_entropy, square, rows, symbols, share, z_loss, wanted);   \
    }                                                                                              \
    KERNEL(1024)                                                                                   \
    rotate_##NAME(const T* x, T* y, const float* turns, int first, int rows, int time, int heads,  \
                  int d_head, float sign) {                                                        \
        rotate(x, y, turns, first, rows, time, heads, d_head, sign);                               \
    }

ELEMENTS(f32, float)
ELEMENTS(bf16, bf16)

// Adds each row's gradient to that of its token, in any order. Blocks stride over rows.
KERNEL(1024)
embed_backward(const unsigned* ids, const float* gradient, float* d_token, int rows, int channels) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float* to = d_token + static_cast<size_t>(ids[row]) * channels;
        const float* from = gradient + static_cast<size_t>(row) * channels;
        for (int channel = threadIdx.x; channel < channels; channel += blockDim.x) {
            atomic_add(to + channel, from[channel]);
        }
    }
}

// Each block's part of Σ x²; a block has whole warps.
KERNEL(1024)
squares(const float* x, float* partials, long long count) {
    SHARED(float, of_warps, 32);
    float sum = 0.0f;
    for (long long i = global_thread(); i < count; i += global_threads()) sum += x[i] * x[i];
    sum = lanes_sum(sum);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    block_barrier();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; ++warp) sum += of_warps[warp];
        partials[blockIdx.x] = sum;
    }
}

// One AdamW step: `keep` is 1 − η λ, `rate` η/(1 − β₁ᵗ), `second_scale` 1/(1 − β₂ᵗ).
KERNEL(1024)
adamw(float* weight, const float* gradient, float* first, float* second, long long count,
      float gradient_scale, float beta_1, float beta_2, float keep, float rate,
      float second_scale) {
    for (long long i = global_thread(); i < count; i += global_threads()) {
        const float g = gradient[i] * gradient_scale;
        const float m = beta_1 * first[i] + (1.0f - beta_1) * g;
        const float v = beta_2 * second[i] + (1.0f - beta_2) * g * g;
        first[i] = m;
        second[i] = v;
        weight[i] = weight[i] * keep - rate * m / (sqrtf(v * second_scale) + ADAM_EPSILON);
    }
}
