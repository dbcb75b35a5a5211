// Causal multi-head attention with global and local heads, and statistics of the logits. Tensors
// have shape (B, T, H, D); row t of head h attends to the columns max(0, t − windows[h] + 1)..=t.
// Logits are z = scale q·k, or c tanh(z/c) with a softcap c > 0. If `sloped` is not 0,
// lag_slopes[h] (column − row) is added to them.
//
// Each block of rows keeps one log-sum-exp per row, from which the backward pass recomputes the
// probabilities; no T × T array is allocated. Sums have a fixed order, except for dq and the
// gradients of the slopes: blocks of columns add to them atomically, in any order.
#include "attention_bf16.cuh"
#include "attention_f32.cuh"

// Grid (⌈T/64⌉, B·H) with THREADS threads per block, for d_head ≤ DP.
#define ATTENTION(T, NAME, DP)                                                                     \
    KERNEL(THREADS)                                                                                \
    attention_forward_##NAME##_##DP(const T* q, const T* k, const T* v, T* output,                 \
                                    float* log_sum_exp, float* partials, const int* windows,       \
                                    const float* lag_slopes, int sloped, int /*batch*/, int time,  \
                                    int heads, int d_head, float scale, float softcap) {           \
        attention_forward<DP>(q, k, v, output, log_sum_exp, partials, windows, lag_slopes, sloped, \
                              time, heads, d_head, scale, softcap);                                \
    }                                                                                              \
    KERNEL(THREADS)                                                                                \
    attention_backward_##NAME##_##DP(const T* q, const T* k, const T* v, const T* gradient,        \
                                     const float* log_sum_exp, const float* delta, float* dq,      \
                                     T* dk, T* dv, float* d_lag_slopes, const int* windows,        \
                                     const float* lag_slopes, int sloped, int /*batch*/, int time, \
                                     int heads, int d_head, float scale, float softcap) {          \
        attention_backward<DP>(q, k, v, gradient, log_sum_exp, delta, dq, dk, dv, d_lag_slopes,    \
                               windows, lag_slopes, sloped, time, heads, d_head, scale, softcap);  \
    }

ATTENTION(float, f32, 16)
ATTENTION(float, f32, 32)
ATTENTION(float, f32, 64)
ATTENTION(float, f32, 96)
ATTENTION(float, f32, 128)
ATTENTION(bf16, bf16, 16)
ATTENTION(bf16, bf16, 32)
ATTENTION(bf16, bf16, 64)
ATTENTION(bf16, bf16, 96)
ATTENTION(bf16, bf16, 128)

// delta = Σ output ∘ gradient for each row of each head. One warp per row, whole warps, any grid.
template <class T>
DEVICE void attention_delta(const T* output, const T* gradient, float* delta, int batch, int time,
                            int heads, int d_head) {
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const long long rows = static_cast<long long>(batch) * time * heads;
    const bool pairs =
        d_head % 2 == 0 && is_aligned(output, 2 * sizeof(T)) && is_aligned(gradient, 2 * sizeof(T));
    for (long long row = static_cast<long long>(blockIdx.x) * warps + threadIdx.x / 32; row < rows;
         row += static_cast<long long>(gridDim.x) * warps) {
        const T* x = output + row * d_head;
        const T* g = gradient + row * d_head;
        float sum = 0.0f;
        if (pairs) {
            for (int channel = 2 * lane; channel < d_head; channel += 64) {
                float a[2], b[2];
                load(a, x + channel);
                load(b, g + channel);
                sum += a[0] * b[0] + a[1] * b[1];
            }
        } else {
            for (int channel = lane; channel < d_head; channel += 32) {
                sum += to_float(x[channel]) * to_float(g[channel]);
            }
        }
        sum = lanes_sum(sum);
        if (lane == 0) {
            // From (B, T, H) to (B, H, T).
            const long long token = row / heads, sequence = token / time;
            delta[(sequence * heads + row % heads) * time + token % time] = sum;
        }
    }
}

KERNEL(1024)
attention_delta_f32(const float* output, const float* gradient, float* delta, int batch, int time,
                    int heads, int d_head) {
    attention_delta(output, gradient, delta, batch, time, heads, d_head);
}

KERNEL(1024)
attention_delta_bf16(const bf16* output, const bf16* gradient, float* delta, int batch, int time,
                     int heads, int d_head) {
    attention_delta(output, gradient, delta, batch, time, heads, d_head);
}
