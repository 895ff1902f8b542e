// SPDX-License-Identifier: Apache-2.0
// For tests: empty comparison kernels for the fake CUDA driver, which finds kernels by name but
// never runs them.
//
// Contract: the PTX has the entries `fill` and `judge`.
//
// Example: gpu_judge->load(testing_world::kEmptyJudge);
#pragma once

namespace cutegen::eval::testing_world {

inline constexpr const char* kEmptyJudge = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fill() { ret; }
.visible .entry judge() { ret; }
)";

}  // namespace cutegen::eval::testing_world
