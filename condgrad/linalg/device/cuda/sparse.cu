// Rows of a sparse matrix (CSR) or of codes of categories: margins, losses and gradient in one pass over the entries.
//
// Features are numbered by how often they occur. The sums of the HOT most frequent ones are kept in shared memory, where
// many rows add to them at once; those of the others are added in global memory. The order of these additions differs
// from run to run, and with it the last bits of the gradient.
//
// IS_ONE_HOT: `index` holds one code for each field and row, field by field, and a thread takes a row; a code of -1 is
// no entry. Otherwise LANES lanes take a row. STAGE is as for dense rows.

__device__ __forceinline__ void add_to(double* hot_sums, double* R, int j, double term) {
    if (j < HOT) atomicAdd(hot_sums + j, term); else atomicAdd(R + j, term);
}

extern "C" __global__ void sparse_rows(const long long* __restrict__ indptr, const int* __restrict__ index,
                                       const ELEMENT* __restrict__ data, long long n, int n_fields,
                                       const double* __restrict__ w, double b, const double* __restrict__ y,
                                       const double* __restrict__ v, double v0, const double* __restrict__ o,
                                       const double* __restrict__ theta,
                                       double* p_out, const double* __restrict__ given, double* out, double* R,
                                       double* D) {
    extern __shared__ double room[];  // HOT sums, then N_SUMS of each warp
#if STAGE != PREDICT
    for (int j = threadIdx.x; j < HOT; j += blockDim.x) room[j] = 0.0;
    __syncthreads();
#endif
    double sums[N_SUMS];
    for (int k = 0; k < N_SUMS; k++) sums[k] = 0.0;
#if IS_ONE_HOT
    const int lane = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long start = (long long)blockIdx.x * blockDim.x + threadIdx.x;
#else
    const int lane = threadIdx.x % LANES;
    const long long stride = (long long)gridDim.x * (blockDim.x / LANES);
    const long long start = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
#endif
    // All lanes of a warp make the same number of rounds: they exchange numbers.
    const long long rounds = n <= 0 ? 0 : (n + stride - 1) / stride;
    for (long long round = 0; round < rounds; round++) {
        const long long i = start + round * stride;
        const bool is_inside = i < n;
        double alpha = 0.0;
#if STAGE == EXPAND || STAGE == PREDICT
        double p = 0.0;
#if IS_ONE_HOT
        if (is_inside) {
#pragma unroll 4
            for (int q = 0; q < n_fields; q++) {
                const int j = index[q * n + i];
                if (j >= 0) p += w[j];
            }
        }
#else
        if (is_inside) {
            for (long long m = indptr[i] + lane; m < indptr[i + 1]; m += LANES) p += w[index[m]] * (double)data[m];
        }
        for (int o = LANES / 2; o; o >>= 1) p += __shfl_xor_sync(0xffffffffu, p, o);
#endif
#endif
#if STAGE == PREDICT
        if (is_inside && lane == 0) p_out[i] = p;
#else
        if (is_inside) {
#if STAGE == EXPAND || STAGE == EXPAND_AT
#if STAGE == EXPAND
            const double margin = p + b OFFSET(i);
#else
            const double margin = given[i] + b OFFSET(i);
#endif
            double curvature, apart[N_SUMS];
            for (int k = 0; k < N_SUMS; k++) apart[k] = 0.0;
            add_sample(theta, margin, y[i], v ? v[i] : v0, apart, alpha, curvature);
            if (lane == 0) {
                for (int k = 0; k < N_SUMS; k++) sums[k] += apart[k];
                if (D) D[i] = curvature;
            }
#elif STAGE == COMBINE
            alpha = given[i];
#else
            alpha = v ? v[i] : v0;
#endif
#if IS_ONE_HOT
#pragma unroll 4
            for (int q = 0; q < n_fields; q++) {
                const int j = index[q * n + i];
                if (j >= 0) add_to(room, R, j, alpha);
            }
#else
            for (long long m = indptr[i] + lane; m < indptr[i + 1]; m += LANES) {
                const double x = (double)data[m];
#if STAGE == MEASURE
                add_to(room, R, index[m], alpha * x * x);
#else
                add_to(room, R, index[m], alpha * x);
#endif
            }
#endif
        }
#endif
    }
#if STAGE != PREDICT
    __syncthreads();
    for (int j = threadIdx.x; j < HOT; j += blockDim.x) {
        if (room[j] != 0.0) atomicAdd(R + j, room[j]);
    }
#if STAGE == EXPAND || STAGE == EXPAND_AT
    store_sums(sums, room + HOT, out);
#endif
#endif
}
