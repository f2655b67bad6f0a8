// The losses of all samples at known predictions p: sums, and derivatives and curvatures where they are wanted.
// A null pointer v says that every sample has the weight v0; a null pointer p, that every prediction is zero.

extern "C" __global__ void expand_samples(long long n, const double* p, double b, const double* y, const double* v,
                                          double v0, const double* o, const double* theta, double* alpha, double* D, double* out) {
    extern __shared__ double room[];
    double sums[N_SUMS];
    for (int k = 0; k < N_SUMS; k++) sums[k] = 0.0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        double a, d;
        add_sample(theta, (p ? p[i] : 0.0) + b OFFSET(i), y[i], v ? v[i] : v0, sums, a, d);
        if (alpha) alpha[i] = a;
        if (D) D[i] = d;
    }
    store_sums(sums, room, out);
}
