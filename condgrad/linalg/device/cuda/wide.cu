// Rows of a dense matrix that are too long for the registers of a warp: margins and gradient read X once each.

__device__ __forceinline__ double number(float x) { return (double)x; }
__device__ __forceinline__ double number(double x) { return x; }
__device__ __forceinline__ double number(unsigned short x) { return (double)__uint_as_float((unsigned)x << 16); }

#if CENTRED
#define ENTRY(x, j) (number(x) - shift[j])
#else
#define ENTRY(x, j) number(x)
#endif

// A warp computes the margin of a row.
extern "C" __global__ void predict_wide(const ELEMENT* __restrict__ X, long long n, int d,
                                        const double* __restrict__ shift, const double* __restrict__ w, double* p) {
    const int lane = threadIdx.x & 31;
    const long long stride = (long long)gridDim.x * (blockDim.x >> 5);
    for (long long i = (long long)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); i < n; i += stride) {
        double total = 0.0;
#pragma unroll 8
        for (int j = lane; j < d; j += 32) total += w[j] * ENTRY(X[i * d + j], j);
        for (int o = 16; o; o >>= 1) total += __shfl_xor_sync(0xffffffffu, total, o);
        if (lane == 0) p[i] = total;
    }
}

// A thread adds up one column over a strip of rows; block y takes strip y. With SQUARES, squares are added and the
// largest entry of the strip is stored too.
extern "C" __global__ void combine_wide(const ELEMENT* __restrict__ X, long long n, int d,
                                        const double* __restrict__ shift, const double* __restrict__ alpha,
                                        double alpha0, long long strip, double* R, double* largest) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= d) return;
    const long long first = blockIdx.y * strip, last = first + strip < n ? first + strip : n;
    double total = 0.0, most = 0.0;
#pragma unroll 8
    for (long long i = first; i < last; i++) {
        const double entry = ENTRY(X[i * d + j], j), a = alpha ? alpha[i] : alpha0;
#if SQUARES
        total += a * entry * entry;
        most = fmax(most, fabs(entry));
#else
        total += a * entry;
#endif
    }
    R[(long long)blockIdx.y * d + j] = total;
    if (largest) largest[(long long)blockIdx.y * d + j] = most;
}
