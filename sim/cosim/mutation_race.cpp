// Plays a recorded replay to several mutants; each ends at the first difference. Prints: mutant, cycle, port or "-".
#include "V$top.h"
#include "V${top}___024root.h"
#include "verilated.h"
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define ZERO(port) for (size_t i = 0; i < sizeof top->port / 4; i++) top->port[i] = 0;
#define SET(port, first) for (size_t i = 0; i < sizeof top->port / 4; i++) { \
    top->port[i] = static_cast<uint32_t>(row[first + i / 2] >> 32 * (i % 2)); }
#define GET(port, first) for (size_t i = 0; i < sizeof top->port / 4; i++) { \
    if (i % 2 == 0) got[first + i / 2] = 0; \
    got[first + i / 2] |= static_cast<uint64_t>(top->port[i]) << 32 * (i % 2); }

static const char *const names[] = {$names};
static const int gates[] = {$gates};
static const size_t width = $width;
static std::vector<uint64_t> trace;

struct Round { size_t begin, cycles; int reset_cycles; size_t compared; };
static const Round rounds[] = {$rounds};

static void use(V$top *top, const Round &round) {
    const size_t rows = trace.size() / width, begin = std::min(round.begin, rows);
    const uint64_t *const end = trace.data() + width * std::min(begin + round.cycles, rows);
    for (const uint64_t *row = trace.data() + width * begin; row < end; row += width) {
$uses
    top->eval();
    $tick
    }
}

static void reset(V$top *top, int cycles) {
    $reset
}

static void poke(V$top *top, uint64_t counts) {
$pokes
}

static int compare(V$top *top, size_t cycles, uint64_t &cycle) {
    uint64_t got[$outputs];
    const size_t rows = std::min(trace.size() / width, cycles);
    cycle = 0;
    for (const uint64_t *row = trace.data(); row < trace.data() + width * rows; row += width) {
$sets
        top->eval();
$gets
        const uint64_t *const want = row + $inputs;
        for (int i = 0; i < $outputs && cycle >= $settle_cycles; i++) {
            if (got[i] == want[i] || (gates[i] >= 0 && !want[gates[i]])) continue;
            return i;
        }
        $tick
        cycle++;
    }
    return -1;
}

int main(int argc, char **argv) {
    FILE *const file = fopen(argv[1], "rb");
    if (!file) return 2;
    uint64_t block[width];
    while (fread(block, sizeof block, 1, file) == 1) trace.insert(trace.end(), block, block + width);
    fclose(file);
    const bool poked = argv[2][0] != '-';
    for (int argument = 3; argument < argc; argument++) {
        uint64_t cycle = 0;
        int signal = -1;
        for (const Round &round : rounds) {
            const auto context = std::make_unique<VerilatedContext>();
            const auto top = std::make_unique<V$top>(context.get());
            top->$selector = atoi(argv[argument]);
            use(top.get(), round);
            reset(top.get(), round.reset_cycles);
            if (poked) poke(top.get(), strtoull(argv[2], nullptr, 10));
            signal = compare(top.get(), round.compared, cycle);
            top->final();
            if (signal >= 0) break;
        }
        printf("%s %" PRIu64 " %s\n", argv[argument], cycle, signal < 0 ? "-" : names[signal]);
        fflush(stdout);
    }
    return 0;
}
