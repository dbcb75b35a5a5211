// The largest and smallest logit and the entropy of each head: per block, then over all blocks.
#pragma once

#include "attention_common.cuh"

// Combines the extremes and entropies of all threads of a block.
DEVICE void write_partials(float* partials, int row_block, int heads, float high, float low,
                           float entropy) {
    SHARED(float, measured, 3 * (THREADS / 32));
    high = lanes_max(high);
    low = lanes_min(low);
    entropy = lanes_sum(entropy);
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        measured[3 * warp] = high;
        measured[3 * warp + 1] = low;
        measured[3 * warp + 2] = entropy;
    }
    block_barrier();
    if (threadIdx.x == 0) {
        for (int other = 1; other < THREADS / 32; ++other) {
            high = fmaxf(high, measured[3 * other]);
            low = fminf(low, measured[3 * other + 1]);
            entropy += measured[3 * other + 2];
        }
        const size_t blocks = static_cast<size_t>(gridDim.y / heads) * gridDim.x;
        const size_t block = blockIdx.y / heads * gridDim.x + row_block;
        float* to = partials + 3 * (blockIdx.y % heads * blocks + block);
        to[0] = high;
        to[1] = low;
        to[2] = entropy;
    }
}

// Each head's max z, min z and mean entropy from the blocks' partial results (H, count, 3). One
// block of THREADS threads per head; the order of the additions depends on `count` alone.
KERNEL(THREADS)
attention_statistics(const float* partials, float* statistics, int heads, int count, float rows) {
    SHARED(float, found, 3 * THREADS);
    for (int head = blockIdx.x; head < heads; head += gridDim.x) {
        const float* of_head = partials + 3 * static_cast<size_t>(head) * count;
        float high = -INFINITY, low = INFINITY, entropy = 0.0f;
        for (int i = threadIdx.x; i < count; i += THREADS) {
            high = fmaxf(high, of_head[3 * static_cast<size_t>(i)]);
            low = fminf(low, of_head[3 * static_cast<size_t>(i) + 1]);
            entropy += of_head[3 * static_cast<size_t>(i) + 2];
        }
        found[threadIdx.x] = high;
        found[THREADS + threadIdx.x] = low;
        found[2 * THREADS + threadIdx.x] = entropy;
        block_barrier();
        if (threadIdx.x == 0) {
            for (int i = 1; i < THREADS; ++i) {
                high = fmaxf(high, found[i]);
                low = fminf(low, found[THREADS + i]);
                entropy += found[2 * THREADS + i];
            }
            statistics[3 * head] = high;
            statistics[3 * head + 1] = low;
            statistics[3 * head + 2] = entropy / rows;
        }
        block_barrier();
    }
}
