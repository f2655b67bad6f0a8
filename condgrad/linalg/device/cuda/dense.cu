// Rows of a dense matrix: margins, losses and gradient in one read of X, with sums in float64.
//
// A warp takes GROUP rows at a time and keeps them in registers between the margins and the gradient, as float64: the
// conversion of an entry costs as much as four multiplications. The next rows are loaded meanwhile. The margins of a
// group are added up together: after the exchange below, lanes that share (lane / (32 / GROUP)) hold the margin of one
// row, so that the losses of the group are computed at the same time. Every sum has a fixed order.
//
// ELEMENT is the type of an entry of X, VEC how many of them a load brings, PACKS how many loads a row needs of a lane.
// STAGE says what is done: EXPAND (margins, losses, gradient), EXPAND_AT (the margins are known), PREDICT (margins
// alone), COMBINE (the derivatives are known) or MEASURE (squares of the columns, largest entry).

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

// Load the rows first, ..., first + GROUP - 1 where they exist, and zeros otherwise.
__device__ __forceinline__ void load(const ELEMENT* __restrict__ X, long long first, long long n, int d,
                                     Pack (&rows)[GROUP][PACKS]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
#pragma unroll
        for (int q = 0; q < PACKS; q++) {
            const int j = (lane + 32 * q) * VEC;
            if (j < d && first + k < n) {
                rows[k][q] = *(const Pack*)(X + (first + k) * d + j);
            } else {
#pragma unroll
                for (int c = 0; c < VEC; c++) rows[k][q].e[c] = (ELEMENT)0;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) dense_rows(
        const ELEMENT* __restrict__ X, long long n, int d, const double* __restrict__ shift,
        const double* __restrict__ w, double b, const double* __restrict__ y, const double* __restrict__ v, double v0,
        const double* __restrict__ o, const double* __restrict__ theta, double* p_out, const double* __restrict__ given, double* out, double* R,
        double* D) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    extern __shared__ double room[];  // WIDTH numbers for w, as many for the shift, then N_SUMS of each warp
    double* shared_w = room;
#if CENTRED
    double* shared_shift = room + WIDTH;
    double* sums_room = room + 2 * WIDTH;
#else
    double* sums_room = room + WIDTH;
#endif
    for (int at = threadIdx.x; at < WIDTH; at += THREADS) {  // lane, load and place in the load of this number
        const int j = ((at & 31) + 32 * (at / 32 / VEC)) * VEC + (at / 32) % VEC;
        shared_w[at] = w && j < d ? w[j] : 0.0;
#if CENTRED
        shared_shift[at] = j < d ? shift[j] : 0.0;
#endif
    }
    __syncthreads();
    double sums[N_SUMS], g[PACKS * VEC];
    for (int k = 0; k < N_SUMS; k++) sums[k] = 0.0;
#pragma unroll
    for (int e = 0; e < PACKS * VEC; e++) g[e] = 0.0;

    const long long stride = (long long)gridDim.x * WARPS * GROUP;
    long long first = ((long long)blockIdx.x * WARPS + warp) * GROUP;
    Pack next[GROUP][PACKS];
    load(X, first, n, d, next);
    for (; first < n; first += stride) {
        double x[GROUP][PACKS * VEC];
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
#pragma unroll
            for (int e = 0; e < PACKS * VEC; e++) {
                x[k][e] = number(next[k][e / VEC].e[e % VEC]);
#if CENTRED
                x[k][e] -= shared_shift[e * 32 + lane];
#endif
            }
        }
        load(X, first + stride, n, d, next);
        const int mine = lane / SAME;  // the row of the group whose loss this lane computes
        const long long i = first + mine;
        const bool is_inside = i < n, is_first = lane % SAME == 0;
        double alpha = 0.0;

#if STAGE == EXPAND || STAGE == PREDICT
        double p[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++) p[k] = 0.0;
#pragma unroll
        for (int e = 0; e < PACKS * VEC; e++) {
            const double wj = shared_w[e * 32 + lane];
#pragma unroll
            for (int k = 0; k < GROUP; k++) p[k] += wj * x[k][e];
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
            const double margin = p[0] + b OFFSET(i);
#else
            const double margin = given[i] + b OFFSET(i);
#endif
            double curvature, apart[N_SUMS];
            for (int k = 0; k < N_SUMS; k++) apart[k] = 0.0;
            add_sample(theta, margin, y[i], v ? v[i] : v0, apart, alpha, curvature);
            if (is_first) {
                for (int k = 0; k < N_SUMS; k++) sums[k] += apart[k];
                if (D) D[i] = curvature;
            }
#elif STAGE == COMBINE
            alpha = given[i];
#else
            alpha = v ? v[i] : v0;
#endif
        }
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            const double a = __shfl_sync(0xffffffffu, alpha, k * SAME);
#pragma unroll
            for (int e = 0; e < PACKS * VEC; e++) {
#if STAGE == MEASURE
                const int j = (lane + 32 * (e / VEC)) * VEC + e % VEC;
                g[e] += a * x[k][e] * x[k][e];
                if (j < d && first + k < n) sums[0] = fmax(sums[0], fabs(x[k][e]));
#else
                g[e] += a * x[k][e];
#endif
            }
        }
#endif
    }

#if STAGE != PREDICT
    __syncthreads();  // nobody reads w any more: its room takes the sums of the warps, one warp after the other
    for (int k = 0; k < WARPS; k++) {
        if (warp == k) {
#pragma unroll
            for (int e = 0; e < PACKS * VEC; e++) {
                shared_w[e * 32 + lane] = g[e] + (k == 0 ? 0.0 : shared_w[e * 32 + lane]);
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
