// SPDX-License-Identifier: Apache-2.0
#include "torch/tuned.h"

#include <string>

namespace cutegen::torch {
namespace {

constexpr int kDepth = 4;
constexpr size_t kMostName = 8192, kMostBytes = size_t{8} << 20;
constexpr size_t kEach = 24;     // bytes of a number with its punctuation
constexpr size_t kNames = 4096;  // per object, because finding a name is a linear search

}  // namespace

void TunedTimes::merge(Json& into, const Json& told, int depth) {
  if (!told.is_object()) return;
  for (const auto& [name, below] : told.items()) {
    const bool leaf = depth + 1 == kDepth;
    if (leaf ? !below.is_number() || !(below.get<double>() > 0) : !below.is_object()) continue;
    auto at = into.find(name);
    if (at == into.end()) {
      const size_t bytes = name.size() + kEach;
      if (name.size() > kMostName || bytes_ + bytes > kMostBytes || into.size() >= kNames) continue;
      bytes_ += bytes;
      into[name] = leaf ? below : Json::object();
      at = into.find(name);
    }
    if (!leaf) merge(*at, below, depth + 1);
  }
}

void TunedTimes::add(const Json& told) {
  std::lock_guard hold(lock_);
  merge(known_, told, 0);
}

Json TunedTimes::all() const {
  std::lock_guard hold(lock_);
  return known_;
}

}  // namespace cutegen::torch
