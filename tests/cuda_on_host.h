// Runs CUDA kernels on the processor, for tests: the threads of a block are coroutines that take turns.
// A thread runs until it exchanges numbers within its warp or waits for its block; then the next one runs.
// Coroutines are made once, by makecontext; they take turns by longjmp, which needs no call of the system.

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct Dim { unsigned x = 1, y = 1, z = 1; };
static Dim threadIdx, blockIdx, blockDim, gridDim;
double room[1 << 16];  // the shared memory of the block that runs

namespace host {
const size_t STACK = 1 << 17;

struct Thread {
    jmp_buf place;  // where it goes on
    std::vector<char> stack = std::vector<char>(STACK);
    bool has_begun = false, is_done = false;
    int n_exchanges = 0;
    double slot[2];  // what it offers in the last two exchanges
};

static std::vector<Thread> threads;
static jmp_buf scheduler;
static unsigned current = 0, n_waiting = 0, generation = 0;
static void (*body)() = nullptr;

inline void take_turns() {
    if (!_setjmp(threads[current].place)) _longjmp(scheduler, 1);
}

static void live() {
    for (;;) {  // one round for each block
        body();
        threads[current].is_done = true;
        take_turns();
    }
}

static void begin(Thread& thread) {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = thread.stack.data();
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, live, 0);
    thread.has_begun = true;
    setcontext(&context);
}

inline void resume(Thread& thread) {
    if (_setjmp(scheduler)) return;
    if (!thread.has_begun) begin(thread);
    _longjmp(thread.place, 1);
}

inline void wait_for_block() {
    const unsigned before = generation;
    if (++n_waiting == blockDim.x) { n_waiting = 0; generation++; return; }
    while (generation == before) take_turns();
}

inline double exchange(double value, unsigned other_lane) {
    Thread& mine = threads[current];
    const int turn = mine.n_exchanges++;
    mine.slot[turn & 1] = value;
    const unsigned other = (current & ~31u) + other_lane;
    while (threads[other].n_exchanges <= turn) take_turns();
    const double found = threads[other].slot[turn & 1];
    take_turns();  // nobody writes a slot again before all lanes have read it
    return found;
}

inline void run_block() {
    for (Thread& thread : threads) {
        thread.is_done = false;
        thread.n_exchanges = 0;
    }
    n_waiting = 0;
    for (bool is_running = true; is_running;) {
        is_running = false;
        for (current = 0; current < threads.size(); current++) {
            if (threads[current].is_done) continue;
            is_running = true;
            threadIdx.x = current;
            resume(threads[current]);
        }
    }
}

template <class... A, size_t... K>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<K...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[K])...);
}

static void** now;

template <auto kernel, class... A>
void run_of(void (*)(A...), void** arguments, unsigned grid_x, unsigned grid_y, unsigned n_threads) {
    if (threads.size() != n_threads) threads = std::vector<Thread>(n_threads);
    blockDim.x = n_threads, gridDim.x = grid_x, gridDim.y = grid_y, now = arguments;
    body = [] { call(static_cast<void (*)(A...)>(kernel), now, std::index_sequence_for<A...>()); };
    for (blockIdx.y = 0; blockIdx.y < grid_y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < grid_x; blockIdx.x++) run_block();
}
}  // namespace host

inline void __syncthreads() { host::wait_for_block(); }
inline double __shfl_xor_sync(unsigned, double value, int far) { return host::exchange(value, (host::current & 31) ^ far); }
inline double __shfl_sync(unsigned, double value, int lane) { return host::exchange(value, lane); }
inline void atomicAdd(double* to, double term) { *to += term; }
inline float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
