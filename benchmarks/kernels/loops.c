/* The loops of stochastic Frank-Wolfe (logistic loss, l1 ball, open-loop steps) written by hand: what a C programmer
   would write for the same algorithm and the same arrays as condgrad's. Built and called by kernels.py. */

#include <math.h>
#include <stdint.h>

/* One run: the data, the table alpha, the estimate r, and the iterate w = scale[0] * z with scale[1] = 1 / scale[0]. */
typedef struct {
    int64_t d, half, shift; /* half: leaves of the tree, with 2^shift entries of r each */
    const double *data, *y, *weight;
    const uint32_t *indices, *indptr;
    double *alpha, *r, *tree, *z, *scale, *scalars;
    double radius, smoothing;
} run;

static double derivative(double p, double y) {
    double m = y * p, e = exp(-fabs(m));
    return -y * (m < 0.0 ? 1.0 : e) / (1.0 + e);
}

/* w <- (1 - gamma) w + gamma s for s = value e_j, with the running <r, w> and the smoothed gap. */
static void move(run *u, int64_t j, int64_t t) {
    double value = u->r[j] > 0.0 ? -u->radius : u->radius, *scalars = u->scalars;
    scalars[1] = value * u->r[j];
    double gap = scalars[0] - scalars[1];
    if (scalars[3] == 0.0) scalars[2] = gap;
    scalars[2] += u->smoothing * (gap - scalars[2]);
    scalars[3] += 1.0;
    double gamma = 2.0 / (t + 2.0);
    scalars[0] = (1.0 - gamma) * scalars[0] + gamma * scalars[1];
    double scale = (1.0 - gamma) * u->scale[0];
    if (scale < 1e-100) {
        for (int64_t k = 0; k < u->d; k++) u->z[k] *= scale;
        scale = 1.0;
    }
    u->scale[0] = scale;
    u->scale[1] = 1.0 / scale;
    u->z[j] += gamma * value * u->scale[1];
}

static int64_t largest(const double *r, int64_t d) {
    double best = -1.0;
    int64_t where = 0;
    for (int64_t start = 0; start < d; start += 256) {
        int64_t stop = start + 256 < d ? start + 256 : d, above = 0;
        for (int64_t j = start; j < stop; j++) above += fabs(r[j]) > best;
        if (above)
            for (int64_t j = start; j < stop; j++)
                if (fabs(r[j]) > best) best = fabs(r[j]), where = j;
    }
    return where;
}

/* CSR rows, r under a tournament tree. Returns the number of tree nodes that changed. */
int64_t steps_tree(run *u, const int64_t *rows, int64_t b, int64_t steps, int64_t t) {
    double *restrict r = u->r, *restrict tree = u->tree, *restrict z = u->z;
    const double *restrict data = u->data;
    const uint32_t *restrict indices = u->indices;
    uint64_t half = u->half, shift = u->shift, d = u->d;
    int64_t renewed = 0;
    for (int64_t k = 0; k < steps; k++, t++) {
        for (int64_t q = 0; q < b; q++) {
            int64_t i = rows[k * b + q];
            uint32_t start = u->indptr[i], stop = u->indptr[i + 1];
            double p = 0.0;
            for (uint32_t m = start; m < stop; m++) p += data[m] * z[indices[m]];
            p *= u->scale[0];
            double new = u->weight[i] * derivative(p, u->y[i]), change = new - u->alpha[i];
            u->alpha[i] = new;
            for (uint32_t m = start; m < stop; m++) {
                uint64_t j = indices[m], leaf = j >> shift, node = half + leaf;
                double old = fabs(r[j]), top = tree[node];
                r[j] += change * data[m];
                double best = fabs(r[j]);
                if (shift && best < top) {
                    if (old < top) continue; /* the best of the leaf is another one, and stays it */
                    uint64_t end = (leaf + 1) << shift;
                    for (uint64_t l = leaf << shift; l < (end < d ? end : d); l++)
                        if (fabs(r[l]) > best) best = fabs(r[l]);
                }
                if (shift && best == top) continue;
                tree[node] = best;
                renewed++;
                while (node > 1) {
                    double rival = tree[node ^ 1];
                    if (rival > best) best = rival;
                    node >>= 1;
                    if (tree[node] == best) break;
                    tree[node] = best;
                    renewed++;
                }
            }
            u->scalars[0] += change * p;
        }
        uint64_t node = 1;
        while (node < half) {
            node <<= 1;
            if (tree[node] < tree[node + 1]) node++;
        }
        uint64_t j = (node - half) << shift;
        while (fabs(r[j]) < tree[node]) j++;
        move(u, j, t);
    }
    return renewed;
}

/* CSR rows, the largest |r_j| found by a scan. */
int64_t steps_scan(run *u, const int64_t *rows, int64_t b, int64_t steps, int64_t t) {
    double *restrict r = u->r, *restrict z = u->z;
    const double *restrict data = u->data;
    const uint32_t *restrict indices = u->indices;
    for (int64_t k = 0; k < steps; k++, t++) {
        for (int64_t q = 0; q < b; q++) {
            int64_t i = rows[k * b + q];
            uint32_t start = u->indptr[i], stop = u->indptr[i + 1];
            double p = 0.0;
            for (uint32_t m = start; m < stop; m++) p += data[m] * z[indices[m]];
            p *= u->scale[0];
            double new = u->weight[i] * derivative(p, u->y[i]), change = new - u->alpha[i];
            u->alpha[i] = new;
            for (uint32_t m = start; m < stop; m++) r[indices[m]] += change * data[m];
            u->scalars[0] += change * p;
        }
        move(u, largest(r, u->d), t);
    }
    return 0;
}

/* Dense rows: one pass over the batch's rows for predictions and estimate together, then a scan. */
int64_t steps_dense(run *u, const int64_t *rows, int64_t b, int64_t steps, int64_t t) {
    double *restrict r = u->r, *restrict z = u->z;
    int64_t d = u->d;
    for (int64_t k = 0; k < steps; k++, t++) {
        for (int64_t q = 0; q < b; q++) {
            int64_t i = rows[k * b + q];
            const double *restrict x = u->data + i * d;
            double p = 0.0;
            for (int64_t j = 0; j < d; j++) p += x[j] * z[j];
            p *= u->scale[0];
            double new = u->weight[i] * derivative(p, u->y[i]), change = new - u->alpha[i];
            u->alpha[i] = new;
            for (int64_t j = 0; j < d; j++) r[j] += change * x[j];
            u->scalars[0] += change * p;
        }
        move(u, largest(r, d), t);
    }
    return 0;
}

/* STREAM's triad: 24 bytes an entry, counted as usual without the read for ownership. */
void triad(double *restrict a, const double *restrict b, const double *restrict c, int64_t n) {
    for (int64_t k = 0; k < n; k++) a[k] = b[k] + 3.0 * c[k];
}

double sum(const double *restrict a, int64_t n) {
    double total = 0.0;
    for (int64_t k = 0; k < n; k++) total += a[k];
    return total;
}
