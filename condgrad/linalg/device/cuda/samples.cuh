// One sample: its loss, the derivatives, and the sums over samples that certificates are made of.
// The functions `value`, `derivative` and `second_derivative` are written before this text, from the formulas of the
// loss. `theta` holds the parameters of the loss.

// What is added to the prediction of sample i, if there are offsets o.
#if HAS_OFFSET
#define OFFSET(i) +o[i]
#else
#define OFFSET(i)
#endif

#define N_SUMS 9  // the fields of Totals in their order, and the sum of all curvatures

// v is the weight of the sample. The sums follow condgrad.problems.samples.total_block.
__device__ __forceinline__ void add_sample(const double* theta, double p, double y, double v, double* sums,
                                           double& alpha, double& d) {
    const double f = value(theta, p, y), f1 = derivative(theta, p, y), f2 = second_derivative(theta, p, y);
    const double span = fabs(p) + fabs(y), square = v * f2 * f2;
    alpha = v * f1;
    d = v * f2;
    sums[0] += v * f;
    sums[1] += v * fabs(f);
    sums[2] += v * f1 * f1;
    sums[3] += v * p * p;
    sums[4] += v * y * y;
    sums[5] += alpha;
    sums[6] += square * span * span;
    sums[7] += square;
    sums[8] += d;
}

// Add the sums of all threads of a block in a fixed order, so that equal runs give equal bits; thread 0 stores them.
// `room` is shared memory for N_SUMS numbers of each warp.
__device__ __forceinline__ void store_sums(double* sums, double* room, double* out) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int k = 0; k < N_SUMS; k++) {
        for (int o = 16; o; o >>= 1) sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], o);
        if (lane == 0) room[warp * N_SUMS + k] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x < N_SUMS) {
        double total = 0.0;
        for (int k = 0; k < (int)(blockDim.x >> 5); k++) total += room[k * N_SUMS + threadIdx.x];
        out[blockIdx.x * N_SUMS + threadIdx.x] = total;
    }
}
