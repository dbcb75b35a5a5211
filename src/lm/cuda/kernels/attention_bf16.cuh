// Attention on tensor cores: bfloat16 operands, float32 sums. The tiling is that of
// FlashAttention-2 (Dao 2023, arXiv 2307.08691): a warp owns 16 rows (backward: 16 columns).
#pragma once

#include "attention_common.cuh"
#include "head_statistics.cuh"

// Shared rows are 16 bytes longer than DP channels: 8 rows of a matrix then use all 32 banks.
constexpr int PADDING = 8;

// The number of adjacent elements that one access to global memory can read.
enum class Access { ONE, TWO, EIGHT };

template <class... Pointers> DEVICE Access access(int d_head, Pointers... pointers) {
    const auto fits = [&](int count) {
        return d_head % count == 0 && (is_aligned(pointers, 2 * count) && ...);
    };
    return fits(8) ? Access::EIGHT : fits(2) ? Access::TWO : Access::ONE;
}

// Offset in a 16×16 tile of the row that a lane passes to load_matrices. MAJOR: the matrices
// follow each other down the rows first, as for A, and for B stored by its k.
template <bool MAJOR> DEVICE int lane_offset(int pitch) {
    const int lane = threadIdx.x % 32;
    const int first = lane / 8 % 2 * 8, second = lane / 16 * 8;
    return MAJOR ? (lane % 8 + first) * pitch + second : (lane % 8 + second) * pitch + first;
}

template <int COUNT, int DP>
DEVICE void start_copy(bf16* tile, const bf16* from, const Head& head, int first, int i) {
    constexpr int PIECES = DP / COUNT;
    const int row = i / PIECES, channel = i % PIECES * COUNT;
    const bool inside = first + row < head.time && channel < head.d_head;
    const size_t offset = inside ? (first + row) * head.stride + channel : 0;
    copy_async<2 * COUNT>(tile + row * (DP + PADDING) + channel, from + offset, inside);
}

// Starts loading rows first..first + ROWS of a head; zeros outside the sequence and d_head.
template <int ROWS, int DP>
DEVICE void start_loading(bf16* tile, const bf16* from, const Head& head, int first,
                          Access access) {
    from += head.start;
    if (access == Access::EIGHT) {
        UNROLL
        for (int i = threadIdx.x; i < ROWS * DP / 8; i += THREADS) {
            start_copy<8, DP>(tile, from, head, first, i);
        }
    } else if (access == Access::TWO) {
        NO_UNROLL
        for (int i = threadIdx.x; i < ROWS * DP / 2; i += THREADS) {
            start_copy<2, DP>(tile, from, head, first, i);
        }
    } else {
        NO_UNROLL
        for (int i = threadIdx.x; i < ROWS * DP; i += THREADS) {
            const int row = i / DP, channel = i % DP;
            const bool inside = first + row < head.time && channel < head.d_head;
            tile[row * (DP + PADDING) + channel] =
                inside ? from[(first + row) * head.stride + channel] : from_float<bf16>(0.0f);
        }
    }
}

// Stores a warp's 16 rows of DP sums to rows first.. of a head, through the warp's own part of
// shared memory; scaled by one factor for each of the lane's rows, lane / 4 and lane / 4 + 8.
template <int DP>
DEVICE void store_rows(bf16* to, bf16* tile, const float (&sums)[DP / 8][4],
                       const float (&scale)[2], const Head& head, int first, Access access) {
    constexpr int PITCH = DP + PADDING;
    const int lane = threadIdx.x % 32;
    warp_barrier();
    UNROLL
    for (int n = 0; n < DP / 8; ++n) {
        bf16* at = tile + lane / 4 * PITCH + n * 8 + lane % 4 * 2;
        write_word(at, pack(sums[n][0] * scale[0], sums[n][1] * scale[0]));
        write_word(at + 8 * PITCH, pack(sums[n][2] * scale[1], sums[n][3] * scale[1]));
    }
    warp_barrier();
    to += head.start;
    if (access == Access::EIGHT) {
        UNROLL
        for (int i = lane; i < 16 * (DP / 8); i += 32) {
            const int row = i / (DP / 8), channel = i % (DP / 8) * 8;
            if (first + row < head.time && channel < head.d_head) {
                write_vector<bf16, 8>(to + (first + row) * head.stride + channel,
                                      read_vector<bf16, 8>(tile + row * PITCH + channel));
            }
        }
    } else {
        NO_UNROLL
        for (int i = lane; i < 16 * DP; i += 32) {
            const int row = i / DP, channel = i % DP;
            if (first + row < head.time && channel < head.d_head) {
                to[(first + row) * head.stride + channel] = tile[row * PITCH + channel];
            }
        }
    }
}

// The sums of 16×8 tiles n and n + 1 as the A operand whose k they span.
DEVICE void as_operand(uint32_t (&a)[4], const float (&left)[4], const float (&right)[4]) {
    a[0] = pack(left[0], left[1]);
    a[1] = pack(left[2], left[3]);
    a[2] = pack(right[0], right[1]);
    a[3] = pack(right[2], right[3]);
}

// sums += a xᵀ for an A operand of k = 16 and 16·PAIRS rows of x, starting at its lane offset.
template <int PAIRS>
DEVICE void multiply_transposed(float (*sums)[4], const uint32_t (&a)[4], const bf16* x,
                                int pitch) {
    UNROLL
    for (int pair = 0; pair < PAIRS; ++pair) {
        uint32_t b[4];
        load_matrices<false>(b, x + pair * 16 * pitch);
        multiply_add(sums[2 * pair], a, b[0], b[1]);
        multiply_add(sums[2 * pair + 1], a, b[2], b[3]);
    }
}

// sums += a x for an A operand of k = 16 and 16 rows of x with 16·PAIRS channels.
template <int PAIRS>
DEVICE void multiply(float (*sums)[4], const uint32_t (&a)[4], const bf16* x) {
    UNROLL
    for (int pair = 0; pair < PAIRS; ++pair) {
        uint32_t b[4];
        load_matrices<true>(b, x + pair * 16);
        multiply_add(sums[2 * pair], a, b[0], b[1]);
        multiply_add(sums[2 * pair + 1], a, b[2], b[3]);
    }
}

template <int DP>
DEVICE void attention_forward(const bf16* q, const bf16* k, const bf16* v, bf16* output,
                              float* log_sum_exp, float* partials, const int* windows,
                              const float* lag_slopes, int sloped, int time, int heads,
                              int d_head, float scale, float softcap) {
    constexpr int COLUMNS = DP <= 64 ? 64 : 32, PITCH = DP + PADDING;
    constexpr int STAGE = COLUMNS * PITCH;
    SHARED(bf16, keys, 2 * STAGE);
    SHARED(bf16, values, 2 * STAGE);
    const Head head(windows, lag_slopes, sloped, time, heads, d_head, scale, softcap);
    const Access access = ::access(d_head, q, k, v, output);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // The longest rows come first, so that the last blocks to run are short ones.
    const int row_block = gridDim.x - 1 - blockIdx.x;
    const int first_row = row_block * BLOCK, warp_row = first_row + warp * 16;
    const int first_tile = maximum(0, first_row - head.window + 1) / COLUMNS;
    const int last_tile = (minimum(time, first_row + BLOCK) - 1) / COLUMNS;
    const int by_row = lane_offset<true>(PITCH), by_column = lane_offset<false>(PITCH);

    // Q passes through the keys' memory, which is at least BLOCK rows long, into registers.
    uint32_t query[DP / 16][4];
    start_loading<BLOCK, DP>(keys, q, head, first_row, access);
    wait_for_copies();
    block_barrier();
    UNROLL
    for (int part = 0; part < DP / 16; ++part) {
        load_matrices<false>(query[part], keys + warp * 16 * PITCH + part * 16 + by_row);
    }
    block_barrier();

    float sums[DP / 8][4] = {};
    RunningSoftmax rows[2];
    float high = -INFINITY, low = INFINITY;
    start_loading<COLUMNS, DP>(keys, k, head, first_tile * COLUMNS, access);
    start_loading<COLUMNS, DP>(values, v, head, first_tile * COLUMNS, access);
    NO_UNROLL
    for (int tile = first_tile; tile <= last_tile; ++tile) {
        const int stage = (tile - first_tile) % 2, column = tile * COLUMNS;
        wait_for_copies();
        // This tile has arrived, and no thread reads the previous one any more.
        block_barrier();
        if (tile < last_tile) {
            const int next = (1 - stage) * STAGE;
            start_loading<COLUMNS, DP>(keys + next, k, head, column + COLUMNS, access);
            start_loading<COLUMNS, DP>(values + next, v, head, column + COLUMNS, access);
        }
        if (!head.any_seen(warp_row, 16, column, COLUMNS)) continue;

        float y[COLUMNS / 8][4] = {};
        UNROLL
        for (int part = 0; part < DP / 16; ++part) {
            multiply_transposed<COLUMNS / 16>(
                y, query[part], keys + stage * STAGE + part * 16 + by_column, PITCH);
        }
        if (head.all_seen(warp_row, 16, column, COLUMNS)) {
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    y[n][i] *= scale;
                    high = fmaxf(high, y[n][i]);
                    low = fminf(low, y[n][i]);
                }
            }
        } else {
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int row = warp_row + lane / 4 + i / 2 * 8;
                    if (head.sees(row, column + n * 8 + lane % 4 * 2 + i % 2)) {
                        y[n][i] *= scale;
                        high = fmaxf(high, y[n][i]);
                        low = fminf(low, y[n][i]);
                    } else {
                        y[n][i] = HIDDEN;
                    }
                }
            }
        }
        if (softcap > 0.0f) {
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    if (y[n][i] > HIDDEN) y[n][i] = head.capped(y[n][i]);
                }
            }
        }
        if (head.sloped) {
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int row = warp_row + lane / 4 + i / 2 * 8;
                    const int seen_column = column + n * 8 + lane % 4 * 2 + i % 2;
                    if (y[n][i] > HIDDEN) y[n][i] += head.of_lag(row, seen_column);
                }
            }
        }
        UNROLL
        for (int half = 0; half < 2; ++half) {
            float seen = HIDDEN;
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                seen = fmaxf(seen, fmaxf(y[n][2 * half], y[n][2 * half + 1]));
            }
            const float factor = rows[half].raise(lanes_max<4>(seen));
            const float origin = rows[half].origin() * LOG2_E;
            UNROLL
            for (int n = 0; n < COLUMNS / 8; ++n) {
                UNROLL
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    y[n][i] = rows[half].add(fmaf(y[n][i], LOG2_E, -origin));
                }
            }
            UNROLL
            for (int n = 0; n < DP / 8; ++n) {
                sums[n][2 * half] *= factor;
                sums[n][2 * half + 1] *= factor;
            }
        }
        UNROLL
        for (int part = 0; part < COLUMNS / 16; ++part) {
            uint32_t p[4];
            as_operand(p, y[2 * part], y[2 * part + 1]);
            multiply<DP / 16>(sums, p, values + stage * STAGE + part * 16 * PITCH + by_row);
        }
    }

    float inverse[2], entropy = 0.0f;
    UNROLL
    for (int half = 0; half < 2; ++half) {
        rows[half].gather<4>();
        inverse[half] = rows[half].inverse();
        const int row = warp_row + lane / 4 + 8 * half;
        // One of the four lanes of a row writes its results.
        if (lane % 4 == 0 && row < time) {
            log_sum_exp[head.row_start + row] = rows[half].log_sum_exp();
            entropy += rows[half].entropy();
        }
    }
    // Its first barrier also frees the keys for the output.
    write_partials(partials, row_block, heads, high, low, entropy);
    store_rows<DP>(output, keys + warp * 16 * PITCH, sums, inverse, head, warp_row, access);
}

template <int DP>
DEVICE void attention_backward(const bf16* q, const bf16* k, const bf16* v, const bf16* gradient,
                               const float* log_sum_exp, const float* delta, float* dq, bf16* dk,
                               bf16* dv, float* d_lag_slopes, const int* windows,
                               const float* lag_slopes, int sloped, int time, int heads,
                               int d_head, float scale, float softcap) {
    constexpr int ROWS = DP <= 64 ? 64 : 32, PITCH = DP + PADDING, SLOPE_PITCH = ROWS + PADDING;
    SHARED(bf16, keys, BLOCK * PITCH);
    SHARED(bf16, tiles, 2 * ROWS * PITCH);
    SHARED(bf16, slopes, BLOCK * SLOPE_PITCH);
    SHARED(float, of_rows, 2 * ROWS);
    bf16* const queries = tiles;
    bf16* const gradients = tiles + ROWS * PITCH;
    const Head head(windows, lag_slopes, sloped, time, heads, d_head, scale, softcap);
    const Access access = ::access(d_head, q, k, v, gradient, dk, dv);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_column = blockIdx.x * BLOCK, warp_column = first_column + warp * 16;
    // The last column is attended to by at most `window` rows.
    const int end_row = minimum(time, first_column + BLOCK - 1 + head.window);
    const int by_row = lane_offset<true>(PITCH), by_column = lane_offset<false>(PITCH);

    // V passes through the row tiles' memory, BLOCK rows or more, into registers.
    uint32_t value[DP / 16][4];
    start_loading<BLOCK, DP>(keys, k, head, first_column, access);
    start_loading<BLOCK, DP>(tiles, v, head, first_column, access);
    wait_for_copies();
    block_barrier();
    UNROLL
    for (int part = 0; part < DP / 16; ++part) {
        load_matrices<false>(value[part], tiles + warp * 16 * PITCH + part * 16 + by_row);
    }
    block_barrier();

    const auto start_rows = [&](int row) {
        start_loading<ROWS, DP>(queries, q, head, row, access);
        start_loading<ROWS, DP>(gradients, gradient, head, row, access);
        if (threadIdx.x < ROWS) {
            const int at = row + threadIdx.x;
            of_rows[threadIdx.x] = at < time ? log_sum_exp[head.row_start + at] * LOG2_E : 0.0f;
            of_rows[ROWS + threadIdx.x] = at < time ? delta[head.row_start + at] : 0.0f;
        }
    };

    float key_sums[DP / 8][4] = {}, value_sums[DP / 8][4] = {}, of_slope = 0.0f;
    start_rows(first_column);
    NO_UNROLL
    for (int row = first_column; row < end_row; row += ROWS) {
        wait_for_copies();
        block_barrier();
        // The place in shared memory for this lane's part of dSᵀ.
        bf16* const slope = slopes + (warp * 16 + lane / 4) * SLOPE_PITCH + lane % 4 * 2;
        if (head.any_seen(row, ROWS, warp_column, 16)) {
            // Both are computed transposed, so that they are operands of the next products in
            // place.
            float y[ROWS / 8][4] = {}, ds[ROWS / 8][4] = {};
            UNROLL
            for (int part = 0; part < DP / 16; ++part) {
                uint32_t key[4];
                load_matrices<false>(key, keys + warp * 16 * PITCH + part * 16 + by_row);
                multiply_transposed<ROWS / 16>(y, key, queries + part * 16 + by_column, PITCH);
                multiply_transposed<ROWS / 16>(ds, value[part], gradients + part * 16 + by_column,
                                               PITCH);
            }
            UNROLL
            for (int n = 0; n < ROWS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) y[n][i] *= scale;
            }
            // dS = P ∘ (dP − delta) ∘ dy/dz.
            UNROLL
            for (int n = 0; n < ROWS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    ds[n][i] -= of_rows[ROWS + n * 8 + lane % 4 * 2 + i % 2];
                }
            }
            const bool all_seen = head.all_seen(row, ROWS, warp_column, 16);
            if (softcap > 0.0f) {
                UNROLL
                for (int n = 0; n < ROWS / 8; ++n) {
                    UNROLL
                    for (int i = 0; i < 4; ++i) y[n][i] = head.capped(y[n][i]);
                }
            }
            // The gradient of the slope is that of y, before the derivative of the softcap is
            // applied.
            if (head.sloped) {
                UNROLL
                for (int n = 0; n < ROWS / 8; ++n) {
                    UNROLL
                    for (int i = 0; i < 4; ++i) {
                        const int at = n * 8 + lane % 4 * 2 + i % 2;
                        const int column = warp_column + lane / 4 + i / 2 * 8;
                        if (!all_seen && !head.sees(row + at, column)) continue;
                        const float z = y[n][i] + head.of_lag(row + at, column);
                        const float dy = exp2_fast(fmaf(z, LOG2_E, -of_rows[at])) * ds[n][i];
                        of_slope += dy * static_cast<float>(column - row - at);
                    }
                }
            }
            if (softcap > 0.0f) {
                UNROLL
                for (int n = 0; n < ROWS / 8; ++n) {
                    UNROLL
                    for (int i = 0; i < 4; ++i) ds[n][i] *= head.cap_slope(y[n][i]);
                }
            }
            if (head.sloped) {
                UNROLL
                for (int n = 0; n < ROWS / 8; ++n) {
                    UNROLL
                    for (int i = 0; i < 4; ++i) {
                        y[n][i] += head.of_lag(row + n * 8 + lane % 4 * 2 + i % 2,
                                               warp_column + lane / 4 + i / 2 * 8);
                    }
                }
            }
            UNROLL
            for (int n = 0; n < ROWS / 8; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int at = n * 8 + lane % 4 * 2 + i % 2;
                    y[n][i] = exp2_fast(fmaf(y[n][i], LOG2_E, -of_rows[at]));
                    if (!all_seen && !head.sees(row + at, warp_column + lane / 4 + i / 2 * 8)) {
                        y[n][i] = 0.0f;
                    }
                    ds[n][i] *= y[n][i];
                }
            }
            UNROLL
            for (int part = 0; part < ROWS / 16; ++part) {
                uint32_t a[4];
                as_operand(a, y[2 * part], y[2 * part + 1]);
                multiply<DP / 16>(value_sums, a, gradients + part * 16 * PITCH + by_row);
                as_operand(a, ds[2 * part], ds[2 * part + 1]);
                write_word(slope + part * 16, a[0]);
                write_word(slope + part * 16 + 8 * SLOPE_PITCH, a[1]);
                write_word(slope + part * 16 + 8, a[2]);
                write_word(slope + part * 16 + 8 * SLOPE_PITCH + 8, a[3]);
                multiply<DP / 16>(key_sums, a, queries + part * 16 * PITCH + by_row);
            }
        } else {
            UNROLL
            for (int n = 0; n < ROWS / 8; ++n) {
                write_word(slope + n * 8, 0);
                write_word(slope + n * 8 + 8 * SLOPE_PITCH, 0);
            }
        }
        block_barrier();
        // No thread needs these rows any more: load the next ones while dQ is computed.
        if (row + ROWS < end_row) start_rows(row + ROWS);

        // dQ = dS K: a warp has 16 rows and all channels, or half of them if there are 32 rows.
        constexpr int SHARES = BLOCK / ROWS, PAIRS = DP / 16 / SHARES;
        const int part_row = warp % (ROWS / 16) * 16, first_pair = warp / (ROWS / 16) * PAIRS;
        uint32_t a[BLOCK / 16][4];
        UNROLL
        for (int part = 0; part < BLOCK / 16; ++part) {
            load_matrices<true>(a[part], slopes + part * 16 * SLOPE_PITCH + part_row +
                                             lane_offset<false>(SLOPE_PITCH));
        }
        NO_UNROLL
        for (int pair = first_pair; pair < first_pair + PAIRS; ++pair) {
            float sums[2][4] = {};
            UNROLL
            for (int part = 0; part < BLOCK / 16; ++part) {
                multiply<1>(sums, a[part], keys + part * 16 * PITCH + pair * 16 + by_row);
            }
            UNROLL
            for (int n = 0; n < 2; ++n) {
                UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int at = row + part_row + lane / 4 + i / 2 * 8;
                    const int channel = pair * 16 + n * 8 + lane % 4 * 2 + i % 2;
                    if (at < time && channel < d_head) {
                        atomic_add(dq + head.start + at * head.stride + channel,
                                   scale * sums[n][i]);
                    }
                }
            }
        }
    }

    // The last tile's second barrier has freed the row tiles.
    bf16* const own = tiles + warp * 16 * PITCH;
    const float as_is[2] = {1.0f, 1.0f}, scales[2] = {scale, scale};
    store_rows<DP>(dv, own, value_sums, as_is, head, warp_column, access);
    store_rows<DP>(dk, own, key_sums, scales, head, warp_column, access);
    if (head.sloped) add_of_slope(d_lag_slopes, head, of_slope);
}
