// The losses of many models at once: P holds one row for each sample and one column for each model.
// A thread takes one model and a strip of samples; its sums have a fixed order. P is replaced by the derivatives, or by
// the curvatures where WANTS_CURVATURE. Model j has the weights of row owner[j] of V and the targets of row target[j] of
// Y, both from sample `first` on.

extern "C" __global__ void batch_losses(double* P, long long m, int k, const double* __restrict__ b,
                                        const double* __restrict__ Y, const double* __restrict__ V, long long n,
                                        long long first, const int* __restrict__ target, const int* __restrict__ owner,
                                        const double* __restrict__ o, const double* __restrict__ theta,
                                        long long strip, double* out) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= k) return;
    const double *v = V + owner[j] * n + first, *y = Y + target[j] * n + first;
    const double bj = b[j];
    double sums[N_SUMS];
    for (int s = 0; s < N_SUMS; s++) sums[s] = 0.0;
    const long long top = blockIdx.y * strip, end = top + strip < m ? top + strip : m;
    for (long long i = top; i < end; i++) {
        double alpha = 0.0, d = 0.0;
        const double weight = v[i];
        if (weight > 0.0) add_sample(theta, P[i * k + j] + bj OFFSET(i), y[i], weight, sums, alpha, d);
#if WANTS_CURVATURE
        P[i * k + j] = d;
#else
        P[i * k + j] = alpha;
#endif
    }
    for (int s = 0; s < N_SUMS; s++) out[((long long)blockIdx.y * k + j) * N_SUMS + s] = sums[s];
}
