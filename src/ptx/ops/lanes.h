// SPDX-License-Identifier: Apache-2.0
// Turns a function of one lane into loops over 32 lanes. Only instruction handlers (ptx/handlers)
// include this header.
//
// Contract: all functions in this header have internal linkage, so that the handlers of each x86-64
// level have their own copies. A destination register may equal a source register, but must not
// partly overlap it.
//
// Example: bin<float>(r, "add", "f32", Kind::fp32, 1, [](float a, float b) { return a + b; });
#pragma once

#include "ptx/ops/registry.h"

namespace cutegen::ptx {
namespace {

struct Half {
  uint16_t bits;
};
struct Pred {};

template <class T>
constexpr char code() {
  if (__is_same(T, float)) return 'f';
  if (__is_same(T, double)) return 'F';
  if (__is_same(T, Half)) return 'H';
  if (__is_same(T, Pred)) return 'p';
  return sizeof(T) == 2 ? 'h' : sizeof(T) == 4 ? 'w' : 'd';
}
template <class... T>
struct Signature {
  static constexpr char text[] = {code<T>()..., 0};
};

template <class T>
inline T* lanes(std::byte* r, int32_t offset) {
  return reinterpret_cast<T*>(__builtin_assume_aligned(r + offset, 64));
}
inline uint32_t& pred(std::byte* r, int32_t offset) {
  return *reinterpret_cast<uint32_t*>(r + offset);
}

template <class D, class A, class F>
void full1(std::byte* r, const Inst& in, uint32_t) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = F{}(a[i]);
}
template <class D, class A, class F>
void masked1(std::byte* r, const Inst& in, uint32_t mask) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    D t = F{}(a[i]);
    d[i] = (mask >> i & 1) ? t : d[i];
  }
}
template <class D, class A, class B, class F>
void full2(std::byte* r, const Inst& in, uint32_t) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
  const B* b = lanes<B>(r, in.b);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = F{}(a[i], b[i]);
}
template <class D, class A, class B, class F>
void masked2(std::byte* r, const Inst& in, uint32_t mask) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
  const B* b = lanes<B>(r, in.b);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    D t = F{}(a[i], b[i]);
    d[i] = (mask >> i & 1) ? t : d[i];
  }
}
template <class D, class A, class B, class C, class F>
void full3(std::byte* r, const Inst& in, uint32_t) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
  const B* b = lanes<B>(r, in.b);
  const C* c = lanes<C>(r, in.c);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = F{}(a[i], b[i], c[i]);
}
template <class D, class A, class B, class C, class F>
void masked3(std::byte* r, const Inst& in, uint32_t mask) {
  D* d = lanes<D>(r, in.d);
  const A* a = lanes<A>(r, in.a);
  const B* b = lanes<B>(r, in.b);
  const C* c = lanes<C>(r, in.c);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    D t = F{}(a[i], b[i], c[i]);
    d[i] = (mask >> i & 1) ? t : d[i];
  }
}

// Adds a form to the registry: d = f(a), with a result of type D and an operand of type A.
template <class D, class A, class F>
void un(Registry& r, const char* base, const char* type, Kind kind, int flops, F) {
  r.add(base, type, Signature<D, A>::text, full1<D, A, F>, masked1<D, A, F>, kind, flops);
}
template <class D, class A, class B, class F>
void bin3(Registry& r, const char* base, const char* type, Kind kind, int flops, F) {
  r.add(base, type, Signature<D, A, B>::text, full2<D, A, B, F>, masked2<D, A, B, F>, kind, flops);
}
template <class T, class F>
void bin(Registry& r, const char* base, const char* type, Kind kind, int flops, F f) {
  bin3<T, T, T>(r, base, type, kind, flops, f);
}
template <class D, class A, class B, class C, class F>
void tri4(Registry& r, const char* base, const char* type, Kind kind, int flops, F) {
  r.add(base, type, Signature<D, A, B, C>::text, full3<D, A, B, C, F>, masked3<D, A, B, C, F>, kind,
        flops);
}
template <class T, class F>
void tri(Registry& r, const char* base, const char* type, Kind kind, int flops, F f) {
  tri4<T, T, T, T>(r, base, type, kind, flops, f);
}

}  // namespace
}  // namespace cutegen::ptx
