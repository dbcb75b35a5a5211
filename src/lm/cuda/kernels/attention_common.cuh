// Definitions shared by the attention kernels for float32 and bfloat16.
#pragma once

#include "device.cuh"

constexpr int THREADS = 128;
// Rows per block in the forward pass, columns per block in the backward pass.
constexpr int BLOCK = 64;
// Logit of a masked pair. Finite, so that no difference of two is NaN.
constexpr float HIDDEN = -1e30f;

// One head of one sequence in a tensor of shape (B, T, H, D).
struct Head {
    int time;
    int d_head;
    // Elements from one row to the next.
    size_t stride;
    // Offset of its first element in the tensor.
    size_t start;
    // Offset of its first row in an array of shape (B, H, T).
    size_t row_start;
    // Number of columns that a row attends to, ending with itself; at most T.
    int window;
    float scale;
    float softcap;
    // 1/c; undefined without a softcap.
    float inverse_cap;
    // Whether a linear position bias is added, and its slope: y + lag_slope (column − row).
    bool sloped;
    float lag_slope;
    // Index among the layer's heads.
    int index;

    DEVICE Head(const int* windows, const float* lag_slopes, int sloped, int time, int heads,
                int d_head, float scale, float softcap)
        : time(time), d_head(d_head), stride(static_cast<size_t>(heads) * d_head), scale(scale),
          softcap(softcap), inverse_cap(1.0f / softcap), sloped(sloped != 0),
          index(blockIdx.y % heads) {
        lag_slope = sloped ? lag_slopes[index] : 0.0f;
        const size_t sequence = blockIdx.y / heads;
        start = sequence * time * stride + static_cast<size_t>(index) * d_head;
        row_start = static_cast<size_t>(blockIdx.y) * time;
        window = minimum(windows[index], time);
    }

    DEVICE bool sees(int row, int column) const {
        return column <= row && column > row - window && row < time;
    }

    // The position bias of a logit.
    DEVICE float of_lag(int row, int column) const {
        return lag_slope * static_cast<float>(column - row);
    }

    // dy/dz where capped(z) = y.
    DEVICE float cap_slope(float y) const {
        const float tanh = y * inverse_cap;
        return 1.0f - tanh * tanh;
    }

    // Whether each of the rows attends to all of the columns, and whether any attends to any.
    DEVICE bool all_seen(int row, int rows, int column, int columns) const {
        return row + rows <= time && column + columns - 1 <= row &&
               column > row + rows - 1 - window;
    }
    DEVICE bool any_seen(int row, int rows, int column, int columns) const {
        return row < time && column <= row + rows - 1 && column + columns - 1 > row - window;
    }

    // c tanh(z/c), by tanh x = 1 − 2/(1 + e²ˣ); its error is c times a rounding error of float32.
    DEVICE float capped(float z) const {
        const float power = exp2_fast(z * (2.0f * LOG2_E * inverse_cap));
        return softcap * (1.0f - divide_fast(2.0f, 1.0f + power));
    }
};

// Online softmax of one row (Milakov and Gimelshein 2018, arXiv 1805.02867), with the sums for its
// entropy. The sums cover this lane's columns, the maximum covers all columns.
struct RunningSoftmax {
    float max = HIDDEN;
    float sum = 0.0f;
    // Σ p (y − max) in units of ln 2, p = e^(y − max).
    float moment = 0.0f;

    // Switches to a new maximum; returns the factor for everything that was summed under the old
    // one.
    DEVICE float raise(float seen) {
        const float next = fmaxf(max, seen);
        const float change = (max - next) * LOG2_E;
        const float factor = exp2_fast(change);
        moment = factor * (moment + change * sum);
        sum *= factor;
        max = next;
        return factor;
    }

    // The number to subtract from logits; any finite number works for a row without logits so far.
    DEVICE float origin() const { return max > HIDDEN ? max : 0.0f; }

    DEVICE float add(float power) {
        const float p = exp2_fast(power);
        sum += p;
        moment += p * power;
        return p;
    }

    // Adds up the sums over the WIDTH lanes of a row.
    template <int WIDTH> DEVICE void gather() {
        sum = lanes_sum<WIDTH>(sum);
        moment = lanes_sum<WIDTH>(moment);
    }

    // Only a row outside the sequence has a sum of 0.
    DEVICE float inverse() const { return sum > 0.0f ? 1.0f / sum : 0.0f; }
    DEVICE float log_sum_exp() const { return max + logf(sum); }
    DEVICE float entropy() const { return logf(sum) - LN_2 * moment / sum; }
};

// Adds the block's part of the gradient of a head's slope. Blocks add in any order.
DEVICE void add_of_slope(float* d_lag_slopes, const Head& head, float found) {
    SHARED(float, of_warps, THREADS / 32);
    found = lanes_sum(found);
    block_barrier();
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = found;
    block_barrier();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < THREADS / 32; ++warp) found += of_warps[warp];
        atomic_add(d_lag_slopes + head.index, found);
    }
}
