// Holds every kernel, on the emulated device, against a plain reference in double precision.
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

namespace {

constexpr size_t PAGE = 4096;
constexpr unsigned char MARK = 0xa5;

struct Found {
    double error = 0, share = 0;
    size_t values = 0;
    std::string where;
};
std::map<std::string, Found> summary;

void outside(int, siginfo_t* information, void*) {
    printf("%s: touches %p, outside its buffers\n", emulation::running(), information->si_addr);
    fflush(stdout);
    _exit(1);
}

}  // namespace

Pages::Pages(size_t bytes, size_t shift) : bytes_(bytes) {
    const size_t padded = (bytes + shift + 15) / 16 * 16;
    inner_ = (padded + PAGE - 1) / PAGE * PAGE;
    memory_ = static_cast<unsigned char*>(mmap(nullptr, inner_ + 2 * PAGE, PROT_NONE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + PAGE, inner_, PROT_READ | PROT_WRITE) != 0) {
        emulation::fail("no memory for a buffer");
    }
    memset(memory_ + PAGE, MARK, inner_);
    data_ = memory_ + PAGE + inner_ - padded + shift;
    memset(data_, 0xff, bytes);
}

Pages::~Pages() { munmap(memory_, inner_ + 2 * PAGE); }

void Pages::check() const {
    for (const unsigned char* p = memory_ + PAGE; p < memory_ + PAGE + inner_; ++p) {
        const bool beside = p < data_ || p >= data_ + bytes_;
        if (beside && *p != MARK) emulation::fail("a kernel wrote beside its buffer");
    }
}

double Draws::uniform() {
    // splitmix64 (Steele, Lea and Flood 2014).
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return static_cast<double>((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

double Draws::normal() {
    const double radius = sqrt(-2 * log(1 - uniform()));
    return radius * cos(2 * M_PI * uniform());
}

std::vector<double> Draws::normals(size_t count, double deviation) {
    std::vector<double> x(count);
    for (double& x : x) x = deviation * normal();
    return x;
}

void expect(const std::string& what, const std::string& of, const std::vector<double>& found,
            const std::vector<double>& expected, const std::vector<double>& bound) {
    if (found.size() != expected.size() || found.size() != bound.size()) {
        emulation::fail("%s, %s: %zu values, not %zu", what.c_str(), of.c_str(), found.size(),
                        expected.size());
    }
    Found& entry = summary[what];
    entry.values += found.size();
    for (size_t i = 0; i < found.size(); ++i) {
        const double error = fabs(found[i] - expected[i]);
        // Not a number is not within any bound.
        if (!(error <= bound[i])) {
            emulation::fail("%s, %s: value %zu of %zu is %.9g, not %.9g to %.3g", what.c_str(),
                            of.c_str(), i, found.size(), found[i], expected[i], bound[i]);
        }
        entry.error = fmax(entry.error, error);
        const double share = bound[i] > 0 ? error / bound[i] : 0;
        if (share > entry.share) {
            entry.share = share;
            entry.where = of;
        }
    }
}

void expect(const std::string& what, const std::string& of, const std::vector<double>& found,
            const std::vector<double>& expected, double bound) {
    expect(what, of, found, expected, std::vector<double>(found.size(), bound));
}

int main() {
    struct sigaction action = {};
    stack_t stack = {};
    stack.ss_size = 64 << 10;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
    action.sa_sigaction = outside;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);

    test_rows();
    test_attention();
    printf("%-40s %10s %12s %10s  %s\n", "", "values", "largest error", "of bound", "at");
    for (const auto& [what, found] : summary) {
        printf("%-40s %10zu %12.3g %9.1f%%  %s\n", what.c_str(), found.values, found.error,
               100 * found.share, found.where.c_str());
    }
    return 0;
}
