// The emulated device of host.h.
#include "host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {
namespace {

constexpr int MAX_THREADS = 1024;
constexpr size_t STACK = 128 << 10;
constexpr size_t PAGE = 4096;
// Of static shared memory that a kernel may have.
constexpr size_t STATIC_LIMIT = 48 << 10;
// What lies between two shared arrays and has to stay as it is.
constexpr size_t MARGIN = 64;
constexpr unsigned char MARK = 0xa5;

enum class Meeting { BARRIER, SHUFFLE, LOAD, LOAD_TRANSPOSED, MULTIPLY };

struct Copy {
    void* to;
    const void* from;
    int bytes;
    bool valid;
};

struct Fiber {
    ucontext_t context;
    jmp_buf environment;
    bool started = false;
    bool done = false;
    // How many static arrays this thread has asked for.
    size_t arrays = 0;
    std::vector<Copy> copies;
    // What it brings to a warp's meeting, and takes from there.
    Meeting meeting;
    int line;
    const char* row;
    uint32_t word[10];
};

struct Array {
    size_t start, bytes;
};

Fiber fibers[MAX_THREADS];
int threads, current, finished;
jmp_buf scheduler;
const std::function<void()>* job;
const char* name = "no kernel";
unsigned random_state = 1;

// Threads that can go on.
int ready[MAX_THREADS], ready_first, ready_count;
// Whether a warp runs ahead of the others for as long as it can; otherwise they take turns.
bool greedy;
// Who waits at the block's barrier, and at its warp's meeting.
int at_barrier, barrier_line;
int at_meeting[MAX_THREADS / 32];

alignas(16) unsigned char statics[STATIC_LIMIT + 32 * MARGIN];
std::vector<Array> arrays;
alignas(16) unsigned char dynamics[256 << 10];
size_t dynamic_size;

unsigned next_random() {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

// In one of many orders, so that a missing barrier does not hide behind a friendly one.
void enqueue(int first, int count) {
    const unsigned way = next_random() % 4;
    const int turn = way & 2 ? next_random() % count : 0;
    if (greedy) ready_first = (ready_first + MAX_THREADS - count) % MAX_THREADS;
    const int at = greedy ? ready_first : ready_first + ready_count;
    ready_count += count;
    for (int i = 0; i < count; ++i) {
        ready[(at + i) % MAX_THREADS] = first + ((way & 1 ? count - 1 - i : i) + turn) % count;
    }
}

void suspend();

void body() {
    for (;;) {
        (*job)();
        Fiber& self = fibers[current];
        self.done = true;
        ++finished;
        suspend();
    }
}

// Goes on with the next thread that can, or back to the launch if there is none.
[[noreturn]] void dispatch() {
    if (ready_count == 0) _longjmp(scheduler, 1);
    current = ready[ready_first];
    ready_first = (ready_first + 1) % MAX_THREADS;
    --ready_count;
    threadIdx = {static_cast<unsigned>(current), 0, 0};
    Fiber& fiber = fibers[current];
    if (fiber.started) _longjmp(fiber.environment, 1);
    fiber.started = true;
    setcontext(&fiber.context);
    abort();
}

__attribute__((noinline)) void suspend() {
    if (_setjmp(fibers[current].environment) == 0) dispatch();
}

void prepare(Fiber& fiber) {
    if (fiber.started) return;
    getcontext(&fiber.context);
    if (fiber.context.uc_stack.ss_sp) return;
    auto* memory = static_cast<char*>(mmap(nullptr, STACK + PAGE, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) fail("no memory for a thread's stack");
    mprotect(memory, PAGE, PROT_NONE);
    fiber.context.uc_stack.ss_sp = memory + PAGE;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, body, 0);
}

float bf16_at(const void* p) {
    uint16_t bits;
    memcpy(&bits, p, 2);
    return widened(bits);
}

// ldmatrix .x4: lanes 8m..8m + 7 name the rows of matrix m. Lane l receives, as register m, the
// elements 2(l % 4) and 2(l % 4) + 1 of row l / 4; with .trans of column l / 4.
void load_matrices(Fiber* lanes, bool transposed) {
    for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < 4; ++matrix) {
            uint32_t word = 0;
            for (int i = 0; i < 2; ++i) {
                const int major = lane / 4, minor = 2 * (lane % 4) + i;
                const int row = transposed ? minor : major, column = transposed ? major : minor;
                uint16_t bits;
                memcpy(&bits, lanes[8 * matrix + row].row + 2 * column, 2);
                word |= static_cast<uint32_t>(bits) << 16 * i;
            }
            lanes[lane].word[matrix] = word;
        }
    }
}

// mma.m16n8k16, fragments as in the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point
// type": with group = lane / 4 and place = lane % 4,
// A: aᵢ in row group (+ 8 for i = 2, 3, 6, 7), column 2 place + i % 2 (+ 8 for i ≥ 4);
// B: bᵢ in row 2 place + i % 2 (+ 8 for i ≥ 2), column group;
// C: cᵢ in row group (+ 8 for i ≥ 2), column 2 place + i % 2.
void multiply(Fiber* lanes) {
    float a[16][16], b[16][8], c[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, place = lane % 4;
        const auto* word = lanes[lane].word;
        for (int i = 0; i < 8; ++i) {
            const bool lower = i == 2 || i == 3 || i == 6 || i == 7;
            a[group + (lower ? 8 : 0)][2 * place + i % 2 + (i >= 4 ? 8 : 0)] =
                bf16_at(reinterpret_cast<const char*>(word) + 2 * i);
        }
        for (int i = 0; i < 4; ++i) {
            b[2 * place + i % 2 + (i >= 2 ? 8 : 0)][group] =
                bf16_at(reinterpret_cast<const char*>(word + 4) + 2 * i);
            memcpy(&c[group + (i >= 2 ? 8 : 0)][2 * place + i % 2], word + 6 + i, 4);
        }
    }
    for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < 16; ++k) {
            for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, place = lane % 4;
        for (int i = 0; i < 4; ++i) {
            memcpy(lanes[lane].word + 6 + i, &c[group + (i >= 2 ? 8 : 0)][2 * place + i % 2], 4);
        }
    }
}

void shuffle(Fiber* lanes) {
    uint32_t x[32];
    for (int lane = 0; lane < 32; ++lane) x[lane] = lanes[lane ^ lanes[lane].word[1]].word[0];
    for (int lane = 0; lane < 32; ++lane) lanes[lane].word[0] = x[lane];
}

// Waits for the other 31 lanes; the last to come does what they came for.
void meet(Meeting meeting, int line) {
    const int warp = current / 32;
    Fiber* lanes = fibers + warp * 32;
    fibers[current].meeting = meeting;
    fibers[current].line = line;
    if (++at_meeting[warp] < 32) return suspend();
    at_meeting[warp] = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if (lanes[lane].meeting != meeting || lanes[lane].line != line) {
            fail("lanes of one warp meet at lines %d and %d", line, lanes[lane].line);
        }
    }
    switch (meeting) {
        case Meeting::BARRIER: break;
        case Meeting::SHUFFLE: shuffle(lanes); break;
        case Meeting::LOAD: load_matrices(lanes, false); break;
        case Meeting::LOAD_TRANSPOSED: load_matrices(lanes, true); break;
        case Meeting::MULTIPLY: multiply(lanes); break;
    }
    enqueue(warp * 32, 32);
    suspend();
}

void run_block() {
    memset(statics, MARK, sizeof statics);
    arrays.clear();
    memset(dynamics, MARK, sizeof dynamics);
    memset(dynamics, 0xff, dynamic_size);
    finished = at_barrier = 0;
    greedy = next_random() % 2;
    for (int thread = 0; thread < threads; ++thread) {
        prepare(fibers[thread]);
        fibers[thread].done = false;
        fibers[thread].arrays = 0;
    }
    enqueue(0, threads);
    if (_setjmp(scheduler) == 0) dispatch();
    if (finished < threads) {
        fail("block (%u, %u): %d threads have ended, %d wait at the barrier of line %d, %d within "
             "their warps",
             blockIdx.x, blockIdx.y, finished, at_barrier, barrier_line,
             threads - finished - at_barrier);
    }
    size_t end = 0;
    for (const Array& array : arrays) {
        for (size_t i = end; i < array.start; ++i) {
            if (statics[i] != MARK) fail("written before a shared array");
        }
        end = array.start + array.bytes;
    }
    for (size_t i = end; i < sizeof statics; ++i) {
        if (statics[i] != MARK) fail("written past the last shared array");
    }
    for (size_t i = dynamic_size; i < sizeof dynamics; ++i) {
        if (dynamics[i] != MARK) fail("written past the dynamic shared memory");
    }
    for (int thread = 0; thread < threads; ++thread) {
        if (!fibers[thread].copies.empty()) fail("a thread ends without waiting for its copies");
    }
}

}  // namespace

void launch(const char* kernel_name, dim3 grid, int count, size_t dynamic_bytes,
            const std::function<void()>& kernel) {
    name = kernel_name;
    if (count > MAX_THREADS || count % 32 != 0) fail("%d threads a block", count);
    if (dynamic_bytes > STATIC_LIMIT) fail("%zu bytes of dynamic shared memory", dynamic_bytes);
    threads = count;
    job = &kernel;
    dynamic_size = dynamic_bytes;
    gridDim = grid;
    blockDim = {static_cast<unsigned>(count), 1, 1};
    // Backwards: what a block writes past its own sequence then stays in the next one's.
    for (blockIdx.y = grid.y; blockIdx.y-- > 0;) {
        for (blockIdx.x = grid.x; blockIdx.x-- > 0;) run_block();
    }
    name = "no kernel";
}

const char* running() { return name; }

void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    _exit(1);
}

void* shared_array(size_t bytes) {
    const size_t index = fibers[current].arrays++;
    if (index == arrays.size()) {
        const size_t end = arrays.empty() ? 0 : arrays.back().start + arrays.back().bytes;
        const size_t start = (end + MARGIN + 15) / 16 * 16;
        size_t total = bytes;
        for (const Array& array : arrays) total += (array.bytes + 15) / 16 * 16;
        if (total > STATIC_LIMIT) fail("%zu bytes of static shared memory", total);
        if (start + bytes + MARGIN > sizeof statics) fail("too many shared arrays");
        arrays.push_back({start, bytes});
        memset(statics + start, 0xff, bytes);
    }
    if (arrays[index].bytes != bytes) fail("threads ask for different shared arrays");
    return statics + arrays[index].start;
}

float* dynamic_shared() { return reinterpret_cast<float*>(dynamics); }

void block_barrier(int line) {
    if (at_barrier > 0 && line != barrier_line) {
        fail("threads of one block meet at the barriers of lines %d and %d", barrier_line, line);
    }
    barrier_line = line;
    if (++at_barrier == threads) {
        at_barrier = 0;
        enqueue(0, threads);
    }
    suspend();
}

void warp_barrier(int line) { meet(Meeting::BARRIER, line); }

float shuffle_xor(float x, int mask, int line) {
    auto* word = fibers[current].word;
    memcpy(word, &x, 4);
    word[1] = mask;
    meet(Meeting::SHUFFLE, line);
    memcpy(&x, word, 4);
    return x;
}

void load_matrices(uint32_t (&x)[4], const void* row, bool transposed, int line) {
    check_alignment(row, 16);
    const auto* byte = static_cast<const unsigned char*>(row);
    if (byte < statics || byte + 16 > statics + sizeof statics) {
        fail("line %d: matrices are loaded from shared memory only", line);
    }
    fibers[current].row = static_cast<const char*>(row);
    meet(transposed ? Meeting::LOAD_TRANSPOSED : Meeting::LOAD, line);
    memcpy(x, fibers[current].word, 16);
}

void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1, int line) {
    auto* word = fibers[current].word;
    memcpy(word, a, 16);
    word[4] = b_0;
    word[5] = b_1;
    memcpy(word + 6, c, 16);
    meet(Meeting::MULTIPLY, line);
    memcpy(c, word + 6, 16);
}

void copy_async(void* to, const void* from, int bytes, bool valid) {
    check_alignment(to, bytes);
    check_alignment(from, bytes);
    fibers[current].copies.push_back({to, from, bytes, valid});
}

void wait_for_copies() {
    for (const Copy& copy : fibers[current].copies) {
        if (copy.valid) {
            memcpy(copy.to, copy.from, copy.bytes);
        } else {
            memset(copy.to, 0, copy.bytes);
        }
    }
    fibers[current].copies.clear();
}

void check_alignment(const void* p, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(p) % bytes != 0) fail("%p is not %zu-byte aligned", p, bytes);
}

}  // namespace emulation
