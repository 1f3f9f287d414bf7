// values[row, c] = Σ_f X[row, f]·coef[c, f], summed in doubles in one fixed order: the same for any number of rows,
// functions or threads at a time, so that an item's bits never depend on its company.
#pragma once
#include "../kernel_table.hpp"
#include "vec8.hpp"

namespace CGHASH_ISA {

inline V8 load_as_double(const double* p) { return load8(p); }
inline V8 load_as_double(const float* p) {
#if defined(__GNUC__) || defined(__clang__)
    typedef float F8 __attribute__((vector_size(32)));
    F8 a;
    std::memcpy(&a, p, sizeof a);
    return __builtin_convertvector(a, V8);
#else
    V8 out;
    for (int i = 0; i < 8; ++i) out[i] = p[i];
    return out;
#endif
}

// The last d % 8 numbers of a row, with zeros behind
template <class T>
inline V8 load_tail(const T* p, std::int64_t n) {
    double padded[8]{};
    for (std::int64_t i = 0; i < n; ++i) padded[i] = p[i];
    return load8(padded);
}

template <class T, int ROWS, int FUNCTIONS>
inline void project_patch(const T* X, const double* coef, std::int64_t d, std::int64_t n_functions, double* values) {
    V8 sum[ROWS][FUNCTIONS]{};
    const std::int64_t whole = d & ~std::int64_t{7};
    for (std::int64_t f = 0; f < whole; f += 8) {
        V8 x[ROWS];
        for (int r = 0; r < ROWS; ++r) x[r] = load_as_double(X + r * d + f);
        for (int c = 0; c < FUNCTIONS; ++c) {
            const V8 w = load8(coef + c * d + f);
            for (int r = 0; r < ROWS; ++r) sum[r][c] += x[r] * w;
        }
    }
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < FUNCTIONS; ++c) {
            if (whole < d)
                sum[r][c] += load_tail(X + r * d + whole, d - whole) * load_tail(coef + c * d + whole, d - whole);
            values[r * n_functions + c] = sum8(sum[r][c]);
        }
}

template <class T, int ROWS>
inline void project_rows(const T* X, const double* coef, std::int64_t d, std::int64_t n_functions, double* values) {
    std::int64_t c = 0;
    for (; c + 4 <= n_functions; c += 4) project_patch<T, ROWS, 4>(X, coef + c * d, d, n_functions, values + c);
    for (; c < n_functions; ++c) project_patch<T, ROWS, 1>(X, coef + c * d, d, n_functions, values + c);
}

template <class T>
inline void project(const T* X, std::int64_t n_rows, const double* coef, std::int64_t d, std::int64_t n_functions,
                    double* values) {
    std::int64_t r = 0;
    for (; r + 4 <= n_rows; r += 4) project_rows<T, 4>(X + r * d, coef, d, n_functions, values + r * n_functions);
    for (; r < n_rows; ++r) project_rows<T, 1>(X + r * d, coef, d, n_functions, values + r * n_functions);
}

}  // namespace CGHASH_ISA
