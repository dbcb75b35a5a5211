// Device functions that the kernels use: intrinsics and PTX under nvcc, otherwise the
// emulation against which the tests compile the same kernels.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <stdint.h>
#define DEVICE __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(count) PRAGMA(unroll count)
#define SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]
#else
#include "host.h"
#define DEVICE inline
#define KERNEL(threads) extern "C" void
#define UNROLL
#define NO_UNROLL
#define UNROLL_BY(count)
#define SHARED(type, name, count) \
    type* const name = static_cast<type*>(emulation::shared_array((count) * sizeof(type)))
#define DYNAMIC_SHARED(name) float* const name = emulation::dynamic_shared()
#endif

using bf16 = __nv_bfloat16;

constexpr float LOG2_E = 1.44269504088896341f;
constexpr float LN_2 = 0.693147180559945309f;

DEVICE int minimum(int a, int b) { return a < b ? a : b; }
DEVICE int maximum(int a, int b) { return a > b ? a : b; }

#ifdef __CUDACC__

DEVICE float to_float(float x) { return x; }
DEVICE float to_float(bf16 x) { return __bfloat162float(x); }
template <class T> DEVICE T from_float(float x);
template <> DEVICE float from_float<float>(float x) { return x; }
template <> DEVICE bf16 from_float<bf16>(float x) { return __float2bfloat16_rn(x); }

// Two bfloat16 in a word, `low` at the lower address.
DEVICE uint32_t pack(float low, float high) {
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

// 2ˣ with an error of up to two units in the last place.
DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// a / b with an error of up to two units in the last place, 0 for b = ∞.
DEVICE float divide_fast(float a, float b) { return __fdividef(a, b); }

DEVICE void block_barrier() { __syncthreads(); }
DEVICE void warp_barrier() { __syncwarp(); }
DEVICE float shuffle_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE void atomic_add(float* to, float x) { atomicAdd(to, x); }

DEVICE uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Loads four 8×8 matrices of bfloat16; lane l passes the address of row l % 8 of matrix l / 8.
template <bool TRANSPOSED> DEVICE void load_matrices(uint32_t (&x)[4], const bf16* row) {
    if constexpr (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(row))
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(row))
                     : "memory");
    }
}

// c += a b for a of 16×16 and b of 16×8.
DEVICE void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}

// Starts to copy 4 or 16 bytes from global to shared memory; copies zeros unless `valid`.
template <int BYTES> DEVICE void copy_async(void* to, const void* from, bool valid) {
    const int size = valid ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(size)
                     : "memory");
    } else {
        static_assert(BYTES == 4);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(size)
                     : "memory");
    }
}

// Waits for this thread's copies; other threads see them after a barrier.
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

inline float to_float(float x) { return x; }
inline float to_float(bf16 x) { return emulation::widened(x.bits); }
template <class T> T from_float(float x);
template <> inline float from_float<float>(float x) { return x; }
template <> inline bf16 from_float<bf16>(float x) { return {emulation::rounded(x)}; }
inline uint32_t pack(float low, float high) {
    return emulation::rounded(low) | static_cast<uint32_t>(emulation::rounded(high)) << 16;
}
inline float exp2_fast(float x) { return exp2f(x); }
inline float divide_fast(float a, float b) { return a / b; }
inline void block_barrier(int line = __builtin_LINE()) { emulation::block_barrier(line); }
inline void warp_barrier(int line = __builtin_LINE()) { emulation::warp_barrier(line); }
inline float shuffle_xor(float x, int mask, int line = __builtin_LINE()) {
    return emulation::shuffle_xor(x, mask, line);
}
inline void atomic_add(float* to, float x) { *to += x; }
template <bool TRANSPOSED>
inline void load_matrices(uint32_t (&x)[4], const bf16* row, int line = __builtin_LINE()) {
    emulation::load_matrices(x, row, TRANSPOSED, line);
}
inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1,
                         int line = __builtin_LINE()) {
    emulation::multiply_add(c, a, b_0, b_1, line);
}
template <int BYTES> inline void copy_async(void* to, const void* from, bool valid) {
    emulation::copy_async(to, from, BYTES, valid);
}
inline void wait_for_copies() { emulation::wait_for_copies(); }

#endif

// COUNT adjacent elements moved as one word of COUNT · sizeof(T) bytes; must be aligned to it.
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector {
    T x[COUNT];
};

template <class T, int COUNT> DEVICE Vector<T, COUNT> read_vector(const T* from) {
#ifdef __CUDACC__
    return *reinterpret_cast<const Vector<T, COUNT>*>(from);
#else
    emulation::check_alignment(from, COUNT * sizeof(T));
    Vector<T, COUNT> vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
#endif
}

template <class T, int COUNT> DEVICE void write_vector(T* to, const Vector<T, COUNT>& vector) {
#ifdef __CUDACC__
    *reinterpret_cast<Vector<T, COUNT>*>(to) = vector;
#else
    emulation::check_alignment(to, COUNT * sizeof(T));
    memcpy(to, &vector, sizeof vector);
#endif
}

// Vector access with conversion to and from float.
template <class T, int COUNT> DEVICE void load(float (&x)[COUNT], const T* from) {
    const auto vector = read_vector<T, COUNT>(from);
    UNROLL
    for (int i = 0; i < COUNT; ++i) x[i] = to_float(vector.x[i]);
}

template <class T, int COUNT> DEVICE void store(T* to, const float (&x)[COUNT]) {
    Vector<T, COUNT> vector;
    UNROLL
    for (int i = 0; i < COUNT; ++i) vector.x[i] = from_float<T>(x[i]);
    write_vector<T, COUNT>(to, vector);
}

// Writes two adjacent elements that are packed in one word.
DEVICE void write_word(bf16* to, uint32_t word) {
#ifdef __CUDACC__
    *reinterpret_cast<uint32_t*>(to) = word;
#else
    emulation::check_alignment(to, 4);
    memcpy(to, &word, 4);
#endif
}

DEVICE bool is_aligned(const void* p, int bytes) {
    return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

// Reductions over groups of WIDTH lanes; every lane gets the result.
template <int WIDTH = 32> DEVICE float lanes_sum(float x) {
    UNROLL
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
    return x;
}

template <int WIDTH = 32> DEVICE float lanes_max(float x) {
    UNROLL
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) x = fmaxf(x, shuffle_xor(x, mask));
    return x;
}

template <int WIDTH = 32> DEVICE float lanes_min(float x) {
    UNROLL
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) x = fminf(x, shuffle_xor(x, mask));
    return x;
}
