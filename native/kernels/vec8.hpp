// Eight doubles at a time, in every instruction set: the compiler lowers V8 to what the machine has, and lane i of
// every sum is the same sum everywhere, so all instruction sets give the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace CGHASH_ISA {

#if defined(__GNUC__) || defined(__clang__)
typedef double V8 __attribute__((vector_size(64)));
typedef std::int64_t I8 __attribute__((vector_size(64)));
inline V8 max0(V8 a) { return a > 0.0 ? a : V8{}; }
inline V8 step(V8 a) { return a > 0.0 ? V8{} + 1.0 : V8{}; }  // 1 where a > 0
inline V8 select(V8 condition, V8 yes, V8 no) { return condition > 0.0 ? yes : no; }
inline V8 min8(V8 a, double b) { return a < b ? a : V8{} + b; }
inline V8 max8(V8 a, double b) { return a > b ? a : V8{} + b; }
inline V8 power_of_two(V8 k) {  // 2^k for whole k in [-1022, 1023]
    I8 bits = (__builtin_convertvector(k, I8) + 1023) << 52;
    V8 out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}
#else
struct alignas(64) V8 {
    double v[8]{};
    double& operator[](int i) { return v[i]; }
    double operator[](int i) const { return v[i]; }
};
template <class F> inline V8 map8(F f) {
    V8 o;
    for (int i = 0; i < 8; ++i) o.v[i] = f(i);
    return o;
}
inline V8 operator+(V8 a, V8 b) {
    return map8([&](int i) { return a.v[i] + b.v[i]; });
}
inline V8 operator-(V8 a, V8 b) {
    return map8([&](int i) { return a.v[i] - b.v[i]; });
}
inline V8 operator*(V8 a, V8 b) {
    return map8([&](int i) { return a.v[i] * b.v[i]; });
}
inline V8 operator/(V8 a, V8 b) {
    return map8([&](int i) { return a.v[i] / b.v[i]; });
}
inline V8 operator+(V8 a, double b) {
    return map8([&](int i) { return a.v[i] + b; });
}
inline V8 operator-(V8 a, double b) {
    return map8([&](int i) { return a.v[i] - b; });
}
inline V8 operator*(V8 a, double b) {
    return map8([&](int i) { return a.v[i] * b; });
}
inline V8 operator+(double a, V8 b) { return b + a; }
inline V8 operator-(double a, V8 b) {
    return map8([&](int i) { return a - b.v[i]; });
}
inline V8 operator*(double a, V8 b) { return b * a; }
inline V8 operator/(double a, V8 b) {
    return map8([&](int i) { return a / b.v[i]; });
}
inline V8& operator+=(V8& a, V8 b) { return a = a + b; }
inline V8 max0(V8 a) {
    return map8([&](int i) { return a.v[i] > 0.0 ? a.v[i] : 0.0; });
}
inline V8 step(V8 a) {
    return map8([&](int i) { return a.v[i] > 0.0 ? 1.0 : 0.0; });
}
inline V8 select(V8 c, V8 y, V8 n) {
    return map8([&](int i) { return c.v[i] > 0.0 ? y.v[i] : n.v[i]; });
}
inline V8 min8(V8 a, double b) {
    return map8([&](int i) { return a.v[i] < b ? a.v[i] : b; });
}
inline V8 max8(V8 a, double b) {
    return map8([&](int i) { return a.v[i] > b ? a.v[i] : b; });
}
inline V8 power_of_two(V8 k) {
    return map8([&](int i) { return std::ldexp(1.0, static_cast<int>(k.v[i])); });
}
#endif

inline V8 load8(const double* p) {
    V8 a;
    std::memcpy(&a, p, sizeof a);
    return a;
}
inline void store8(double* p, V8 a) { std::memcpy(p, &a, sizeof a); }
inline V8 splat(double a) { return V8{} + a; }
inline double sum8(V8 a) { return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7])); }

// exp(x), relative error below 4e-16 on [-708, 709]; arguments outside are clamped to it.
inline V8 exp8(V8 x) {
    x = min8(max8(x, -708.0), 709.0);
    const double magic = 6755399441055744.0;  // 1.5·2^52: adding and taking it away rounds to a whole number
    V8 k = (x * 1.4426950408889634 + magic) - magic;
    V8 r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;  // ln 2 in two parts
    V8 p = splat(1.0 / 6227020800.0);
    const double inverse_factorials[] = {1.0 / 479001600.0,
                                         1.0 / 39916800.0,
                                         1.0 / 3628800.0,
                                         1.0 / 362880.0,
                                         1.0 / 40320.0,
                                         1.0 / 5040.0,
                                         1.0 / 720.0,
                                         1.0 / 120.0,
                                         1.0 / 24.0,
                                         1.0 / 6.0,
                                         0.5,
                                         1.0,
                                         1.0};
    for (double c : inverse_factorials) p = p * r + c;
    return p * power_of_two(k);
}

// log(1 + e) for 0 <= e <= 1, by 2·atanh(e / (2 + e)).
inline V8 log1p8(V8 e) {
    V8 s = e / (2.0 + e), s2 = s * s;  // s <= 1/3
    V8 p = splat(1.0 / 33.0);
    for (int odd = 31; odd >= 1; odd -= 2) p = p * s2 + 1.0 / odd;
    return 2.0 * s * p;
}

}  // namespace CGHASH_ISA
