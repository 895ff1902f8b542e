// SPDX-License-Identifier: Apache-2.0
// Cluster instructions: values of Inst::sub for Op::cluster_barrier and Op::cluster_map.
//
// Contract: see "barrier.cluster", "mapa" and "getctarank" in the PTX ISA.
//
// Example: in.op = Op::cluster_barrier, in.sub = kClusterWait;
#pragma once

#include <cstdint>

namespace cutegen::ptx {

inline constexpr uint8_t kClusterArrive = 0, kClusterWait = 1;  // cluster_barrier
inline constexpr uint8_t kClusterMap = 0, kClusterRank = 1;     // cluster_map

}  // namespace cutegen::ptx
