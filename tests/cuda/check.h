// What the tests of all kernels share: buffers that catch what lies outside them, draws, and the
// comparison of what a kernel wrote with what it should have.
#pragma once

#include <string>
#include <vector>

#include "host.h"

using bf16 = __nv_bfloat16;

// What rounding to bfloat16, of 8 bits, errs by at most, relatively.
constexpr double HALF_ULP = 1.0 / 256;

template <class T> constexpr bool IS_BF16 = sizeof(T) == 2;

// Elements between two pages that may not be touched, ending at the second, but for what 16-byte
// alignment asks, and filled with NaNs. `shift` elements off that alignment where one is given.
class Pages {
  public:
    Pages(size_t bytes, size_t shift);
    ~Pages();
    Pages(const Pages&) = delete;
    unsigned char* data() const { return data_; }
    // Fails where bytes beside the elements have changed.
    void check() const;

  private:
    unsigned char *memory_, *data_;
    size_t inner_, bytes_;
};

template <class T> class Buffer {
  public:
    explicit Buffer(size_t count, size_t shift = 0)
        : count_(count), pages_(count * sizeof(T), shift * sizeof(T)) {}
    Buffer(const std::vector<double>& from, size_t shift = 0) : Buffer(from.size(), shift) {
        for (size_t i = 0; i < count_; ++i) {
            if constexpr (IS_BF16<T>) {
                data()[i].bits = emulation::rounded(static_cast<float>(from[i]));
            } else {
                data()[i] = static_cast<T>(from[i]);
            }
        }
    }
    T* data() const { return reinterpret_cast<T*>(pages_.data()); }
    size_t size() const { return count_; }
    std::vector<double> values() const {
        pages_.check();
        std::vector<double> values(count_);
        for (size_t i = 0; i < count_; ++i) {
            if constexpr (IS_BF16<T>) {
                values[i] = emulation::widened(data()[i].bits);
            } else {
                values[i] = data()[i];
            }
        }
        return values;
    }

  private:
    size_t count_;
    Pages pages_;
};

class Draws {
  public:
    explicit Draws(uint64_t seed) : state_(seed * 2 + 1) {}
    double uniform();
    double normal();
    std::vector<double> normals(size_t count, double deviation);
    size_t below(size_t limit) { return static_cast<size_t>(uniform() * limit); }

  private:
    uint64_t state_;
};

// As T holds them.
template <class T> std::vector<double> held(std::vector<double> x) {
    for (double& x : x) {
        const float single = static_cast<float>(x);
        x = IS_BF16<T> ? emulation::widened(emulation::rounded(single)) : single;
    }
    return x;
}

// |found − expected| ≤ bound everywhere, or the test fails. Keeps by `what` the largest error and
// the largest share of its bound, for the summary.
void expect(const std::string& what, const std::string& of, const std::vector<double>& found,
            const std::vector<double>& expected, const std::vector<double>& bound);
void expect(const std::string& what, const std::string& of, const std::vector<double>& found,
            const std::vector<double>& expected, double bound);

void test_attention();
void test_rows();
