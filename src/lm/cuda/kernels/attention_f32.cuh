// Attention in float32, without tensor cores, which would compute in TF32. A block multiplies
// tiles of 64 × 64 (or 64 × 32), 8 × 4 (or 8 × 2) per thread. Channels pass through shared
// memory in chunks, so every d_head needs the same 32 KiB.
#pragma once

#include "attention_common.cuh"
#include "head_statistics.cuh"

// Number of rows of a row-major tile in shared memory at a time.
constexpr int STRIP = 32;

template <class... Pointers> DEVICE bool in_fours(int d_head, Pointers... pointers) {
    return d_head % 4 == 0 && (is_aligned(pointers, 16) && ...);
}

// Loads CHANNELS channels of ROWS rows by channel: tile[channel · ROWS + row]. Zeros outside.
template <int ROWS, int CHANNELS>
DEVICE void load_by_channel(float* tile, const float* from, const Head& head, int first,
                            int first_channel, bool fours) {
    from += head.start;
    if (fours) {
        UNROLL
        for (int i = threadIdx.x; i < ROWS * CHANNELS / 4; i += THREADS) {
            const int row = i % ROWS, channel = i / ROWS * 4;
            float x[4] = {};
            if (first + row < head.time && first_channel + channel < head.d_head) {
                load(x, from + (first + row) * head.stride + first_channel + channel);
            }
            UNROLL
            for (int j = 0; j < 4; ++j) tile[(channel + j) * ROWS + row] = x[j];
        }
    } else {
        NO_UNROLL
        for (int i = threadIdx.x; i < ROWS * CHANNELS; i += THREADS) {
            const int row = i / CHANNELS, channel = i % CHANNELS;
            const bool inside = first + row < head.time && first_channel + channel < head.d_head;
            tile[channel * ROWS + row] =
                inside ? from[(first + row) * head.stride + first_channel + channel] : 0.0f;
        }
    }
}

// Loads STRIP whole rows: tile[row · DP + channel].
template <int DP>
DEVICE void load_by_row(float* tile, const float* from, const Head& head, int first, bool fours) {
    from += head.start;
    if (fours) {
        UNROLL
        for (int i = threadIdx.x; i < STRIP * DP / 4; i += THREADS) {
            const int row = i / (DP / 4), channel = i % (DP / 4) * 4;
            float x[4] = {};
            if (first + row < head.time && channel < head.d_head) {
                load(x, from + (first + row) * head.stride + channel);
            }
            store(tile + row * DP + channel, x);
        }
    } else {
        NO_UNROLL
        for (int i = threadIdx.x; i < STRIP * DP; i += THREADS) {
            const int row = i / DP, channel = i % DP;
            const bool inside = first + row < head.time && channel < head.d_head;
            tile[i] = inside ? from[(first + row) * head.stride + channel] : 0.0f;
        }
    }
}

// sums += left right for tiles stored by channel: 64 rows on the left, 16·WIDTH on the right.
template <int CHANNELS, int WIDTH>
DEVICE void add_products(float (&sums)[8][WIDTH], const float* left, const float* right) {
    left += threadIdx.x / 16 * 8;
    right += threadIdx.x % 16 * WIDTH;
    UNROLL_BY(8)
    for (int channel = 0; channel < CHANNELS; ++channel) {
        float a[2][4], b[WIDTH];
        load(a[0], left + channel * BLOCK);
        load(a[1], left + channel * BLOCK + 4);
        load(b, right + channel * 16 * WIDTH);
        UNROLL
        for (int i = 0; i < 8; ++i) {
            UNROLL
            for (int j = 0; j < WIDTH; ++j) sums[i][j] += a[i / 4][i % 4] * b[j];
        }
    }
}

// Assignment of channels to the 16 threads of a row, in runs.
template <int DP> struct Dealt {
    static constexpr int COUNT = DP / 16;
    static constexpr int RUN = COUNT % 4 == 0 ? 4 : COUNT % 2 == 0 ? 2 : 1;
    static DEVICE int channel(int i) {
        return (i / RUN * 16 + threadIdx.x % 16) * RUN + i % RUN;
    }
    static DEVICE void read(float (&x)[COUNT], const float* row) {
        UNROLL
        for (int i = 0; i < COUNT; i += RUN) {
            float run[RUN];
            load(run, row + channel(i));
            UNROLL
            for (int j = 0; j < RUN; ++j) x[i + j] = run[j];
        }
    }
};

// A tile of weights, 64 for each of 16·WIDTH lines. Groups of four are permuted within a line, so
// that neither writing 8 × WIDTH per thread nor reading along a line causes bank conflicts.
template <int WIDTH> struct Weights {
    float* tile;

    DEVICE float* four(int line, int four) const {
        return tile + line * BLOCK + (four ^ line / WIDTH % 16) * 4;
    }

    DEVICE void write(const float (&x)[8][WIDTH]) const {
        UNROLL
        for (int j = 0; j < WIDTH; ++j) {
            UNROLL
            for (int half = 0; half < 2; ++half) {
                float run[4];
                UNROLL
                for (int i = 0; i < 4; ++i) run[i] = x[4 * half + i][j];
                store(four(threadIdx.x % 16 * WIDTH + j, threadIdx.x / 16 * 2 + half), run);
            }
        }
    }

    // sums += weightsᵀ x over STRIP lines starting at `first`, with x stored by row.
    template <int DP>
    DEVICE void add_lines(float (&sums)[8][DP / 16], const float* x, int first) const {
        UNROLL_BY(4)
        for (int line = 0; line < STRIP; ++line) {
            float a[2][4], b[DP / 16];
            load(a[0], four(first + line, threadIdx.x / 16 * 2));
            load(a[1], four(first + line, threadIdx.x / 16 * 2 + 1));
            Dealt<DP>::read(b, x + line * DP);
            UNROLL
            for (int i = 0; i < 8; ++i) {
                UNROLL
                for (int j = 0; j < DP / 16; ++j) sums[i][j] += a[i / 4][i % 4] * b[j];
            }
        }
    }

    // sums += weights x over STRIP of the 64 weights of each line, starting at `first`; 2·WIDTH
    // lines per thread.
    template <int DP>
    DEVICE void add_across(float (&sums)[2 * WIDTH][DP / 16], const float* x, int first) const {
        NO_UNROLL
        for (int at = 0; at < STRIP; at += 4) {
            float b[4][DP / 16];
            UNROLL
            for (int m = 0; m < 4; ++m) Dealt<DP>::read(b[m], x + (at + m) * DP);
            UNROLL
            for (int i = 0; i < 2 * WIDTH; ++i) {
                float a[4];
                load(a, four(threadIdx.x / 16 * 2 * WIDTH + i, (first + at) / 4));
                UNROLL
                for (int m = 0; m < 4; ++m) {
                    UNROLL
                    for (int j = 0; j < DP / 16; ++j) sums[i][j] += a[m] * b[m][j];
                }
            }
        }
    }
};

template <int DP> constexpr int CHUNK = DP < 32 ? DP : 32;

// Size of the larger of two chunks stored by channel and one strip stored by row.
template <int DP> constexpr int PASSING = STRIP * DP > 2 * BLOCK * CHUNK<DP> ? STRIP * DP
                                                                            : 2 * BLOCK * CHUNK<DP>;

template <int DP>
DEVICE void attention_forward(const float* q, const float* k, const float* v, float* output,
                              float* log_sum_exp, float* partials, const int* windows,
                              const float* lag_slopes, int sloped, int time, int heads,
                              int d_head, float scale, float softcap) {
    SHARED(float, passing, PASSING<DP>);
    SHARED(float, tile, BLOCK * BLOCK);
    const Weights<4> weights{tile};
    const Head head(windows, lag_slopes, sloped, time, heads, d_head, scale, softcap);
    const bool fours = in_fours(d_head, q, k, v);
    // The longest rows come first, so that the last blocks to run are short ones.
    const int row_block = gridDim.x - 1 - blockIdx.x;
    const int first_row = row_block * BLOCK, own_row = first_row + threadIdx.x / 16 * 8;
    const int first_tile = maximum(0, first_row - head.window + 1) / BLOCK;

    float sums[8][DP / 16] = {};
    RunningSoftmax rows[8];
    float high = -INFINITY, low = INFINITY;
    NO_UNROLL
    for (int column = first_tile * BLOCK; column <= first_row; column += BLOCK) {
        float y[8][4] = {};
        NO_UNROLL
        for (int channel = 0; channel < d_head; channel += CHUNK<DP>) {
            float* const right = passing + BLOCK * CHUNK<DP>;
            block_barrier();
            load_by_channel<BLOCK, CHUNK<DP>>(passing, q, head, first_row, channel, fours);
            load_by_channel<BLOCK, CHUNK<DP>>(right, k, head, column, channel, fours);
            block_barrier();
            add_products<CHUNK<DP>>(y, passing, right);
        }
        UNROLL
        for (int i = 0; i < 8; ++i) {
            UNROLL
            for (int j = 0; j < 4; ++j) {
                const int seen_column = column + threadIdx.x % 16 * 4 + j;
                if (head.sees(own_row + i, seen_column)) {
                    y[i][j] *= scale;
                    high = fmaxf(high, y[i][j]);
                    low = fminf(low, y[i][j]);
                    if (softcap > 0.0f) y[i][j] = head.capped(y[i][j]);
                    if (head.sloped) y[i][j] += head.of_lag(own_row + i, seen_column);
                } else {
                    y[i][j] = HIDDEN;
                }
            }
            const float seen = fmaxf(fmaxf(y[i][0], y[i][1]), fmaxf(y[i][2], y[i][3]));
            const float factor = rows[i].raise(lanes_max<16>(seen));
            const float origin = rows[i].origin();
            UNROLL
            for (int j = 0; j < 4; ++j) y[i][j] = rows[i].add((y[i][j] - origin) * LOG2_E);
            UNROLL
            for (int j = 0; j < DP / 16; ++j) sums[i][j] *= factor;
        }
        // The barriers of the chunks guarantee that no thread still reads the tile.
        weights.write(y);
        NO_UNROLL
        for (int strip = 0; strip < BLOCK; strip += STRIP) {
            block_barrier();
            load_by_row<DP>(passing, v, head, column + strip, fours);
            block_barrier();
            weights.template add_lines<DP>(sums, passing, strip);
        }
    }

    float entropy = 0.0f;
    UNROLL
    for (int i = 0; i < 8; ++i) {
        rows[i].template gather<16>();
        const float inverse = rows[i].inverse();
        const int row = own_row + i;
        if (row >= time) continue;
        // One of the sixteen threads of a row writes its results.
        if (threadIdx.x % 16 == 0) {
            log_sum_exp[head.row_start + row] = rows[i].log_sum_exp();
            entropy += rows[i].entropy();
        }
        UNROLL
        for (int j = 0; j < DP / 16; ++j) {
            const int channel = Dealt<DP>::channel(j);
            if (channel < d_head) {
                output[head.start + row * head.stride + channel] = sums[i][j] * inverse;
            }
        }
    }
    write_partials(partials, row_block, heads, high, low, entropy);
}

// Stores a thread's 8 columns of dK or dV.
template <int DP>
DEVICE void store_columns(float* to, const float (&sums)[8][DP / 16], float scale,
                          const Head& head, int first) {
    UNROLL
    for (int i = 0; i < 8; ++i) {
        UNROLL
        for (int j = 0; j < DP / 16; ++j) {
            const int channel = Dealt<DP>::channel(j);
            if (first + i < head.time && channel < head.d_head) {
                to[head.start + (first + i) * head.stride + channel] = scale * sums[i][j];
            }
        }
    }
}

template <int DP>
DEVICE void attention_backward(const float* q, const float* k, const float* v,
                               const float* gradient, const float* log_sum_exp, const float* delta,
                               float* dq, float* dk, float* dv, float* d_lag_slopes,
                               const int* windows, const float* lag_slopes, int sloped, int time,
                               int heads, int d_head, float scale, float softcap) {
    // A thread has 8 columns and WIDTH rows of a tile: fewer if the sums take more registers.
    constexpr int WIDTH = DP <= 64 ? 4 : 2, ROWS = 16 * WIDTH;
    SHARED(float, passing, PASSING<DP>);
    SHARED(float, tile, BLOCK * ROWS);
    float* const right = passing + BLOCK * CHUNK<DP>;
    const Weights<WIDTH> weights{tile};
    const Head head(windows, lag_slopes, sloped, time, heads, d_head, scale, softcap);
    const bool fours = in_fours(d_head, q, k, v, gradient);
    const int first_column = blockIdx.x * BLOCK, own_column = first_column + threadIdx.x / 16 * 8;
    // The last column is attended to by at most `window` rows.
    const int end_row = minimum(time, first_column + BLOCK - 1 + head.window);

    float key_sums[8][DP / 16] = {}, value_sums[8][DP / 16] = {}, of_slope = 0.0f;
    NO_UNROLL
    for (int row = first_column; row < end_row; row += ROWS) {
        float y[8][WIDTH] = {}, ds[8][WIDTH] = {};
        NO_UNROLL
        for (int channel = 0; channel < d_head; channel += CHUNK<DP>) {
            block_barrier();
            load_by_channel<BLOCK, CHUNK<DP>>(passing, k, head, first_column, channel, fours);
            load_by_channel<ROWS, CHUNK<DP>>(right, q, head, row, channel, fours);
            block_barrier();
            add_products<CHUNK<DP>>(y, passing, right);
            block_barrier();
            load_by_channel<BLOCK, CHUNK<DP>>(passing, v, head, first_column, channel, fours);
            load_by_channel<ROWS, CHUNK<DP>>(right, gradient, head, row, channel, fours);
            block_barrier();
            add_products<CHUNK<DP>>(ds, passing, right);
        }
        UNROLL
        for (int j = 0; j < WIDTH; ++j) {
            const int at = row + threadIdx.x % 16 * WIDTH + j;
            const float origin = at < time ? log_sum_exp[head.row_start + at] : 0.0f;
            const float shift = at < time ? delta[head.row_start + at] : 0.0f;
            UNROLL
            for (int i = 0; i < 8; ++i) {
                float z = y[i][j] * scale, slope = 1.0f;
                if (softcap > 0.0f) {
                    z = head.capped(z);
                    slope = head.cap_slope(z);
                }
                const int column = own_column + i;
                if (head.sloped) z += head.of_lag(at, column);
                const bool sees = head.sees(at, column);
                y[i][j] = sees ? exp2_fast((z - origin) * LOG2_E) : 0.0f;
                const float dy = y[i][j] * (ds[i][j] - shift);
                if (head.sloped) of_slope += dy * static_cast<float>(column - at);
                ds[i][j] = dy * slope;
            }
        }
        // dV += Pᵀ dO, then dK += dSᵀ Q and dQ = dS K, through the same tile. The barriers of the
        // chunks guarantee that no thread still reads it.
        weights.write(y);
        NO_UNROLL
        for (int strip = 0; strip < ROWS; strip += STRIP) {
            block_barrier();
            load_by_row<DP>(passing, gradient, head, row + strip, fours);
            block_barrier();
            weights.template add_lines<DP>(value_sums, passing, strip);
        }
        block_barrier();
        weights.write(ds);
        NO_UNROLL
        for (int strip = 0; strip < ROWS; strip += STRIP) {
            block_barrier();
            load_by_row<DP>(passing, q, head, row + strip, fours);
            block_barrier();
            weights.template add_lines<DP>(key_sums, passing, strip);
        }
        float sums[2 * WIDTH][DP / 16] = {};
        NO_UNROLL
        for (int strip = 0; strip < BLOCK; strip += STRIP) {
            block_barrier();
            load_by_row<DP>(passing, k, head, first_column + strip, fours);
            block_barrier();
            weights.template add_across<DP>(sums, passing, strip);
        }
        UNROLL
        for (int i = 0; i < 2 * WIDTH; ++i) {
            const int at = row + threadIdx.x / 16 * 2 * WIDTH + i;
            UNROLL
            for (int j = 0; j < DP / 16; ++j) {
                const int channel = Dealt<DP>::channel(j);
                if (at < time && channel < d_head) {
                    atomic_add(dq + head.start + at * head.stride + channel, scale * sums[i][j]);
                }
            }
        }
    }
    store_columns<DP>(dv, value_sums, 1.0f, head, own_column);
    store_columns<DP>(dk, key_sums, scale, head, own_column);
    if (head.sloped) add_of_slope(d_lag_slopes, head, of_slope);
}
