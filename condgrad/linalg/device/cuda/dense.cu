// Rows of a dense matrix: margins, losses and gradient in one read of X, with sums in float64.
//
// A warp takes GROUP rows at a time, and the next rows are on their way meanwhile. The margins of a group are added up
// together: after the exchange below, lanes that share (lane / (32 / GROUP)) hold the margin of one row, so that the
// losses of the group are computed at the same time. Every sum has a fixed order.
//
// ELEMENT is the type of an entry of X, VEC how many of them a load brings, PACKS how many loads a row needs of a lane.
// STAGE says what is done: EXPAND (margins, losses, gradient), EXPAND_AT (the margins are known), PREDICT (margins
// alone), COMBINE (the derivatives are known) or MEASURE (squares of the columns, largest entry).
//
// IN_SHARED says where the next rows wait: in registers, or in shared memory, to which they are copied asynchronously.
// Every lane reads what it has copied itself, so that nobody waits for others. The entries of the present group stay
// in registers between margins and gradient, as float64, because a conversion costs as much as four multiplications.

#include "copies.cuh"

struct alignas(sizeof(ELEMENT) * VEC) Pack {
    ELEMENT e[VEC];
};

__device__ __forceinline__ double number(float x) { return (double)x; }
__device__ __forceinline__ double number(double x) { return x; }
// The upper half of a float32: bfloat16.
__device__ __forceinline__ double number(unsigned short x) { return (double)__uint_as_float((unsigned)x << 16); }

#define WARPS (THREADS / 32)
#define WIDTH (32 * PACKS * VEC)  // columns that the lanes of a warp can hold
#define SAME (32 / GROUP)         // lanes that hold the margin of the same row

// Tell where the pack q of row k of the group from ``first`` on begins, or null if there is no such entry.
__device__ __forceinline__ const Pack* pack_of(const ELEMENT* __restrict__ X, long long first, long long n, int d, int k,
                                               int q) {
    const int j = ((threadIdx.x & 31) + 32 * q) * VEC;
    return j < d && first + k < n ? (const Pack*)(X + (first + k) * d + j) : nullptr;
}

#if IN_SHARED
#define SLOT (GROUP * PACKS * THREADS)                     // packs of the present groups of all warps, or of the next
#define SLOTS (2 * SLOT * VEC * (int)sizeof(ELEMENT) / 8)  // numbers in float64 that have room in both
#define PLACE(k, q) (((k) * PACKS + (q)) * THREADS + threadIdx.x)

// Begin to copy the group of rows from ``first`` on; what does not exist is zero.
__device__ __forceinline__ void begin_to_load(const ELEMENT* __restrict__ X, long long first, long long n, int d,
                                              Pack* slot) {
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
#pragma unroll
        for (int q = 0; q < PACKS; q++) {
            const Pack* from = pack_of(X, first, n, d, k, q);
            begin_copy<sizeof(Pack)>(slot + PLACE(k, q), from ? (const void*)from : (const void*)X, from != nullptr);
        }
    }
    close_copies();
}
#else
#define SLOTS 0

// Load the group of rows from ``first`` on; what does not exist is zero.
__device__ __forceinline__ void load(const ELEMENT* __restrict__ X, long long first, long long n, int d,
                                     Pack (&rows)[GROUP][PACKS]) {
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
#pragma unroll
        for (int q = 0; q < PACKS; q++) {
            const Pack* from = pack_of(X, first, n, d, k, q);
            if (from) {
                rows[k][q] = *from;
            } else {
#pragma unroll
                for (int c = 0; c < VEC; c++) rows[k][q].e[c] = (ELEMENT)0;
            }
        }
    }
}
#endif

// Convert the pack q of a row to float64, and centre it.
__device__ __forceinline__ void spread(const Pack& pack, int q, const double* shared_shift, double (&x)[VEC]) {
#pragma unroll
    for (int c = 0; c < VEC; c++) {
        x[c] = number(pack.e[c]);
#if CENTRED
        x[c] -= shared_shift[(q * VEC + c) * 32 + (threadIdx.x & 31)];
#endif
    }
}

// The numbers of one sample that a stage needs; they are loaded long before.
struct Sample {
    double y, v, o, given;
};

__device__ __forceinline__ Sample sample_at(long long i, long long n, const double* __restrict__ y,
                                            const double* __restrict__ v, double v0, const double* __restrict__ o,
                                            const double* __restrict__ given) {
    Sample s = {0.0, v0, 0.0, 0.0};
    if (i >= n) return s;
#if STAGE == EXPAND || STAGE == EXPAND_AT
    s.y = y[i];
#if HAS_OFFSET
    s.o = o[i];
#endif
#endif
#if STAGE == EXPAND_AT || STAGE == COMBINE
    s.given = given[i];
#endif
#if STAGE == EXPAND || STAGE == EXPAND_AT || STAGE == MEASURE
    if (v) s.v = v[i];
#endif
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS) dense_rows(
        const ELEMENT* __restrict__ X, long long n, int d, const double* __restrict__ shift,
        const double* __restrict__ w, double b, const double* __restrict__ y, const double* __restrict__ v, double v0,
        const double* __restrict__ o, const double* __restrict__ theta, double* p_out,
        const double* __restrict__ given, double* out, double* R, double* D) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    extern __shared__ double room[];  // the slots, WIDTH numbers for w, as many for the shift, then N_SUMS of each warp
    double* shared_w = room + SLOTS;
    double* shared_shift = shared_w + (CENTRED ? WIDTH : 0);
    double* sums_room = shared_shift + WIDTH;
    for (int at = threadIdx.x; at < WIDTH; at += THREADS) {  // lane, load and place in the load of this number
        const int j = ((at & 31) + 32 * (at / 32 / VEC)) * VEC + (at / 32) % VEC;
        shared_w[at] = w && j < d ? w[j] : 0.0;
#if CENTRED
        shared_shift[at] = j < d ? shift[j] : 0.0;
#endif
    }
    __syncthreads();
    double sums[N_SUMS], g[PACKS][VEC];
    for (int k = 0; k < N_SUMS; k++) sums[k] = 0.0;
#pragma unroll
    for (int e = 0; e < PACKS * VEC; e++) g[e / VEC][e % VEC] = 0.0;

    const long long stride = (long long)gridDim.x * WARPS * GROUP;
    long long first = ((long long)blockIdx.x * WARPS + warp) * GROUP;
    const int mine = lane / SAME;  // the row of the group whose loss this lane computes
    const bool is_first = lane % SAME == 0;
    Sample next_sample = sample_at(first + mine, n, y, v, v0, o, given);
#if IN_SHARED
    Pack* slots = (Pack*)room;
    int now = 0;  // which slot has the present group
    begin_to_load(X, first, n, d, slots);
#else
    Pack next[GROUP][PACKS];
    load(X, first, n, d, next);
#endif
    for (; first < n; first += stride) {
        const Sample sample = next_sample;
        next_sample = sample_at(first + stride + mine, n, y, v, v0, o, given);
        double x[GROUP][PACKS][VEC];
#if IN_SHARED
        const Pack* rows = slots + now * SLOT;
        now = 1 - now;
        begin_to_load(X, first + stride, n, d, slots + now * SLOT);
        wait_for_copies<1>();
#define WAITING(k, q) rows[PLACE(k, q)]
#else
#define WAITING(k, q) next[k][q]
#endif
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
#pragma unroll
            for (int q = 0; q < PACKS; q++) spread(WAITING(k, q), q, shared_shift, x[k][q]);
        }
#if !IN_SHARED
        load(X, first + stride, n, d, next);
#endif
        const long long i = first + mine;
        const bool is_inside = i < n;
        double alpha = 0.0;

#if STAGE == EXPAND || STAGE == PREDICT
        double p[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++) p[k] = 0.0;
#pragma unroll
        for (int q = 0; q < PACKS; q++) {
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
#pragma unroll
                for (int c = 0; c < VEC; c++) p[k] += shared_w[(q * VEC + c) * 32 + lane] * x[k][q][c];
            }
        }
        int far = 16;
#pragma unroll
        for (int half = GROUP / 2; half; half /= 2, far /= 2) {  // lanes of one half keep one half of the rows
            const bool is_upper = lane & far;
#pragma unroll
            for (int k = 0; k < half; k++) {
                const double kept = is_upper ? p[k + half] : p[k], sent = is_upper ? p[k] : p[k + half];
                p[k] = kept + __shfl_xor_sync(0xffffffffu, sent, far);
            }
        }
#pragma unroll
        for (; far; far /= 2) p[0] += __shfl_xor_sync(0xffffffffu, p[0], far);
#endif

#if STAGE == PREDICT
        if (is_inside && is_first) p_out[i] = p[0];
#else
        if (is_inside) {
#if STAGE == EXPAND || STAGE == EXPAND_AT
#if STAGE == EXPAND
            const double margin = p[0] + b + sample.o;
#else
            const double margin = sample.given + b + sample.o;
#endif
            double curvature, apart[N_SUMS];
            for (int k = 0; k < N_SUMS; k++) apart[k] = 0.0;
            add_sample(theta, margin, sample.y, sample.v, apart, alpha, curvature);
            if (is_first) {
                for (int k = 0; k < N_SUMS; k++) sums[k] += apart[k];
                if (D) D[i] = curvature;
            }
#elif STAGE == COMBINE
            alpha = sample.given;
#else
            alpha = sample.v;
#endif
        }
        double a[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++) a[k] = __shfl_sync(0xffffffffu, alpha, k * SAME);
#pragma unroll
        for (int q = 0; q < PACKS; q++) {
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
#pragma unroll
                for (int c = 0; c < VEC; c++) {
#if STAGE == MEASURE
                    const bool is_entry = (lane + 32 * q) * VEC + c < d && first + k < n;
                    g[q][c] += a[k] * x[k][q][c] * x[k][q][c];
                    if (is_entry) sums[0] = fmax(sums[0], fabs(x[k][q][c]));
#else
                    g[q][c] += a[k] * x[k][q][c];
#endif
                }
            }
        }
#endif
    }
#if IN_SHARED
    wait_for_copies<0>();
#endif

#if STAGE != PREDICT
    __syncthreads();  // nobody reads w any more: its room takes the sums of the warps, one warp after the other
    for (int k = 0; k < WARPS; k++) {
        if (warp == k) {
#pragma unroll
            for (int e = 0; e < PACKS * VEC; e++) {
                shared_w[e * 32 + lane] = g[e / VEC][e % VEC] + (k == 0 ? 0.0 : shared_w[e * 32 + lane]);
            }
        }
        __syncthreads();
    }
    for (int at = threadIdx.x; at < WIDTH; at += THREADS) {
        const int j = ((at & 31) + 32 * (at / 32 / VEC)) * VEC + (at / 32) % VEC;
        if (j < d) R[(long long)blockIdx.x * d + j] = shared_w[at];
    }
#if STAGE == MEASURE
    for (int o = 16; o; o >>= 1) sums[0] = fmax(sums[0], __shfl_xor_sync(0xffffffffu, sums[0], o));
    if (lane == 0) sums_room[warp] = sums[0];
    __syncthreads();
    if (threadIdx.x == 0) {
        double largest = 0.0;
        for (int k = 0; k < WARPS; k++) largest = fmax(largest, sums_room[k]);
        out[blockIdx.x] = largest;
    }
#elif STAGE != COMBINE
    store_sums(sums, sums_room, out);
#endif
#endif
}
