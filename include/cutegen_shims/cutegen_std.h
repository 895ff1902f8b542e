// SPDX-License-Identifier: Apache-2.0
// The run-time compiler has no C++ library of its own, so std takes its names from libcu++.
#pragma once
namespace cuda {
namespace std {}
}  // namespace cuda
namespace std {
using namespace cuda::std;
}
