// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/registers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace cutegen::ptx {
namespace {

std::byte* allocate(size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  return static_cast<std::byte*>(p);
}

bool between(Special which, Special first, Special last) {
  return which >= first && which <= last;
}
size_t axis_of(Special which, Special x) {
  return size_t(which) - size_t(x);
}
bool differs_by_cta(Special which) {
  return between(which, Special::ctaid_x, Special::ctaid_z) ||
         between(which, Special::clusterid_x, Special::cluster_ctarank);
}

// The value of a special register that differs between lanes.
uint32_t lane_value(const Job& job, Special which, size_t warp, int lane) {
  if (between(which, Special::tid_x, Special::tid_z)) {
    const auto& b = job.config.block;
    const int64_t t = int64_t(warp) * 32 + lane;
    const int64_t xyz[3] = {t % b[0], t / b[0] % b[1], t / (b[0] * b[1])};
    return uint32_t(xyz[axis_of(which, Special::tid_x)]);
  }
  switch (which) {
    case Special::laneid:
      return uint32_t(lane);
    case Special::lanemask_eq:
      return 1u << lane;
    case Special::lanemask_lt:
      return (1u << lane) - 1;
    case Special::lanemask_le:
      return (2u << lane) - 1;
    case Special::lanemask_ge:
      return ~((1u << lane) - 1);
    default:
      return ~((2u << lane) - 1);
  }
}

}  // namespace

RegisterFile::RegisterFile(const Job& job, size_t warps)
    : job_(job),
      program_(job.program),
      warps_(warps),
      bytes_(size_t(job.program.register_bytes)),
      registers_(allocate(std::max<size_t>(64, warps_ * bytes_)), std::free) {
  for (size_t w = 0; w < warps_; ++w) {
    fill_constants(job, w);
    for (const SpecialSlot& s : program_.specials) fill_special(job, s, w);
  }
}

void RegisterFile::fill_constants(const Job& job, size_t warp) {
  for (const ConstantSlot& c : program_.constants) {
    uint64_t value = c.bits;
    if (c.variable >= 0) {
      const auto& used = program_.variables;
      auto it = std::lower_bound(used.begin(), used.end(), c.variable);
      value += job.variable_base[size_t(it - used.begin())];
    }
    fill_register(of(warp), c.offset, c.size, value);
  }
}

// Fills a special register that is the same for every CTA of the launch.
void RegisterFile::fill_special(const Job& job, const SpecialSlot& s, size_t warp) {
  auto same = [&](uint64_t v) { fill_register(of(warp), s.offset, 4, v); };
  if (between(s.which, Special::ntid_x, Special::ntid_z))
    return same(uint64_t(job.config.block[axis_of(s.which, Special::ntid_x)]));
  if (between(s.which, Special::nctaid_x, Special::nctaid_z))
    return same(uint64_t(job.config.grid[axis_of(s.which, Special::nctaid_x)]));
  if (between(s.which, Special::nclusterid_x, Special::nclusterid_z)) {
    const size_t axis = axis_of(s.which, Special::nclusterid_x);
    return same(uint64_t(job.config.grid[axis] / job.config.cluster[axis]));
  }
  if (between(s.which, Special::cluster_nctaid_x, Special::cluster_nctaid_z))
    return same(uint64_t(job.config.cluster[axis_of(s.which, Special::cluster_nctaid_x)]));
  if (differs_by_cta(s.which)) return;  // begin()
  switch (s.which) {
    case Special::warpid:
      return same(warp);
    case Special::nwarpid:
      return same(warps_);
    case Special::dynamic_smem_size:
      return same(uint64_t(job.config.shared_bytes));
    case Special::total_smem_size:
      return same(uint64_t(job.shared_bytes));
    case Special::workspace_high:
      return same(job.workspace >> 32);
    case Special::workspace_low:
      return same(job.workspace & 0xffffffff);
    case Special::cluster_nctarank:
      return same(uint64_t(job.cluster_size()));
    case Special::zero:
      return same(0);
    case Special::one:
      return same(1);
    default:
      break;
  }
  uint32_t* out = reinterpret_cast<uint32_t*>(of(warp) + s.offset);
  for (int lane = 0; lane < 32; ++lane) out[lane] = lane_value(job, s.which, warp, lane);
}

uint64_t RegisterFile::value_of(Special which, const std::array<int64_t, 3>& at) const {
  const auto& c = job_.config.cluster;
  if (which == Special::cluster_ctarank) return uint64_t(job_.rank_of(at));
  if (between(which, Special::ctaid_x, Special::ctaid_z))
    return uint64_t(at[axis_of(which, Special::ctaid_x)]);
  const bool within = between(which, Special::cluster_ctaid_x, Special::cluster_ctaid_z);
  const size_t axis = axis_of(which, within ? Special::cluster_ctaid_x : Special::clusterid_x);
  return uint64_t(within ? at[axis] % c[axis] : at[axis] / c[axis]);
}

void RegisterFile::begin(const std::array<int64_t, 3>& at) {
  for (const SpecialSlot& s : program_.specials) {
    if (!differs_by_cta(s.which)) continue;
    const uint64_t value = value_of(s.which, at);
    for (size_t w = 0; w < warps_; ++w) fill_register(of(w), s.offset, 4, value);
  }
  for (const SlotRange& s : program_.zeroed)
    for (size_t w = 0; w < warps_; ++w) std::memset(of(w) + s.offset, 0, size_t(s.bytes));
}

void fill_register(std::byte* registers, int32_t offset, int size, uint64_t value) {
  std::byte* r = registers + offset;
  if (size == 0) {
    std::memcpy(r, &value, 4);
    return;
  }
  if (size == 4) {
    std::fill_n(reinterpret_cast<uint32_t*>(r), 32, uint32_t(value));
    return;
  }
  for (int lane = 0; lane < 32; ++lane) std::memcpy(r + lane * size, &value, size_t(size));
}

}  // namespace cutegen::ptx
