// A CUDA device in miniature, for tests: the kernels compiled as plain C++ run one block at a time,
// each of its threads a fiber. Barriers and warp-wide operations are meeting points that fail loudly
// where threads part ways, and matrix fragments lie as the PTX ISA says, whatever kernels assume.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

struct __nv_bfloat16 {
    uint16_t bits;
};

namespace emulation {

inline float widened(uint16_t bits) {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float x;
    memcpy(&x, &word, 4);
    return x;
}

// To the nearest bfloat16, ties to even.
inline uint16_t rounded(float x) {
    uint32_t word;
    memcpy(&word, &x, 4);
    if (x != x) return 0x7fff;
    return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

// Runs a kernel, its call with all arguments, over a grid. Memory that kernels share is filled with
// NaNs before each block. The order in which threads run differs from block to block.
void launch(const char* name, dim3 grid, int threads, size_t dynamic_bytes,
            const std::function<void()>& kernel);

// The name of the launch that is running, for messages.
const char* running();
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// This thread's next static array, 16-byte aligned: the same for all threads of a block.
void* shared_array(size_t bytes);
float* dynamic_shared();

void block_barrier(int line);
void warp_barrier(int line);
float shuffle_xor(float x, int mask, int line);
void load_matrices(uint32_t (&x)[4], const void* row, bool transposed, int line);
void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1, int line);

// A copy happens when it is waited for, not before.
void copy_async(void* to, const void* from, int bytes, bool valid);
void wait_for_copies();

void check_alignment(const void* p, size_t bytes);

}  // namespace emulation
