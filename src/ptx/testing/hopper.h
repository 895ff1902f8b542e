// SPDX-License-Identifier: Apache-2.0
// For tests: runs the Hopper kernels in tests/golden/ptx/hopper on test data, and compares the
// results with reference values in double precision.
//
// Contract: the last parameter of each kernel, `fault`, selects a deliberate fault; with 0, the
// kernel is correct. outcome() runs the kernel with each `Order` of CTAs and warps, and returns the
// first failure. A failure is the kind of a `Finding` (a fault that the simulator found), the
// reason of another status, or "wrong values" if the result differs from the reference values.
// outcome() returns an empty string if every run is correct.
//
// Example: EXPECT_EQ(outcome(gemm("gemm_k_major", {96, 72, 200}), 0), "");
#pragma once

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "ptx/ops/tensor_map.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {

inline float to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

// The values of a buffer in double precision, and the bytes of the buffer that the kernel reads.
struct HopperData {
  std::vector<double> values;
  std::vector<std::byte> bytes;

  template <class T>
  void push(double value, T stored) {
    values.push_back(value);
    const auto* from = reinterpret_cast<const std::byte*>(&stored);
    bytes.insert(bytes.end(), from, from + sizeof stored);
  }
  static HopperData floats(size_t n, uint64_t seed, float scale = 1) {
    return draw(n, seed, [&](float x, HopperData& d) { d.push(x * scale, x * scale); });
  }
  static HopperData bf16s(size_t n, uint64_t seed, float scale = 1) {
    return draw(n, seed, [&](float x, HopperData& d) {
      const float v = to_bf16(x * scale);
      d.push(v, uint16_t(std::bit_cast<uint32_t>(v) >> 16));
    });
  }
  // Random e4m3 numbers with the exponent 0: from 1 to 1.875, positive and negative.
  static HopperData e4m3s(size_t n, uint64_t seed) {
    return draw(n, seed, [&](float x, HopperData& d) {
      const int fraction = int(std::abs(x) * 7.99f), sign = x < 0;
      d.push((sign ? -1 : 1) * (1 + fraction / 8.0), uint8_t(sign << 7 | 7 << 3 | fraction));
    });
  }
  static HopperData bytes_of(size_t n, uint64_t seed) {
    return draw(n, seed, [&](float x, HopperData& d) {
      d.push(std::round(x * 100), int8_t(std::round(x * 100)));
    });
  }
  static HopperData empty(size_t bytes) {
    HopperData d;
    d.bytes.resize(bytes);
    return d;
  }

 private:
  template <class F>
  static HopperData draw(size_t n, uint64_t seed, F add) {
    HopperData d;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t i = 0; i < n; ++i) add(uniform(random), d);
    return d;
  }
};

// Describes a tensor map that copies boxes of a matrix whose rows have `columns` elements.
struct HopperMap {
  TensorType type = TensorType::bf16;
  uint64_t columns = 0, rows = 0, pitch = 0;  // pitch: bytes
  uint32_t box_columns = 64, box_rows = 64;
  uint8_t swizzle = 3;
  Bytes8 at(uint64_t address) const {
    TensorMap m;
    m.type = type, m.rank = 2, m.address = address, m.sizes = {columns, rows, 1, 1, 1};
    m.strides[1] = pitch, m.box = {box_columns, box_rows, 1, 1, 1}, m.swizzle = swizzle;
    EXPECT_EQ(wrong_field(m), std::nullopt);
    const auto bytes = encode(m);
    return Bytes8(bytes.begin(), bytes.end());
  }
};

struct HopperProgram {
  std::string file, entry;
  LaunchConfig config;
  // Adds the buffers to the simulator and returns the kernel's parameters without `fault`.
  std::function<std::vector<Bytes8>(Sim&)> bind;
  std::vector<std::byte>* out = nullptr;
  // For each element of `out`: the exact value, and the largest allowed absolute error.
  std::vector<double> truth, bound;
  bool out_is_bf16 = false;
};

inline std::string wrong_values(const HopperProgram& p) {
  for (size_t i = 0; i < p.truth.size(); ++i) {
    float value = 0;
    if (p.out_is_bf16)
      std::memcpy(reinterpret_cast<std::byte*>(&value) + 2, p.out->data() + 2 * i, 2);
    else
      std::memcpy(&value, p.out->data() + 4 * i, 4);
    if (!(std::abs(double(value) - p.truth[i]) <= p.bound[i])) return "wrong values";
  }
  return "";
}

inline std::string outcome_in(const HopperProgram& p, int fault, Order order) {
  static std::map<std::string, Module> modules;
  auto it = modules.find(p.file);
  if (it == modules.end()) it = modules.emplace(p.file, golden("hopper/" + p.file)).first;
  Sim sim;
  sim.options.threads = 1, sim.options.order = order;
  std::fill(p.out->begin(), p.out->end(), std::byte{0});
  std::vector<Bytes8> args = p.bind(sim);
  args.push_back(arg(fault));
  auto r = launch(sim.context, sim.memory, it->second, p.entry, p.config, args, sim.options);
  if (!r) return r.error().text();
  if (r->status != LaunchStatus::ok) {
    if (fault == 0) ADD_FAILURE() << r->reason;
    return r->finding ? r->finding->kind : r->reason;
  }
  return wrong_values(p);
}

inline std::string outcome(const HopperProgram& p, int fault) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    if (auto found = outcome_in(p, fault, order); !found.empty()) return found;
  }
  return "";
}

// A deliberate fault, and what outcome() must return for this fault.
struct HopperFault {
  int number;
  const char* found;
};

}  // namespace cutegen::ptx
