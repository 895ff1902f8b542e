// SPDX-License-Identifier: Apache-2.0
// NVRTC, the run-time compiler, has no C++ standard library. Therefore, this header makes the names
// of libcu++ available in namespace std.
#pragma once
namespace cuda {
namespace std {}
}  // namespace cuda
namespace std {
using namespace cuda::std;
}
