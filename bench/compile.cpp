// SPDX-License-Identifier: Apache-2.0
// Measures the time from source to PTX for a light CuTe kernel, through each path. Prints one line
// of JSON.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "toolchain/toolchain.h"

namespace {

using namespace cutegen;
namespace fs = std::filesystem;

constexpr const char* kCute = R"(#include <cute/tensor_impl.hpp>
using namespace cute;
extern "C" __global__ void relu(const float* x, float* y, int n) {
  auto gx = make_tensor(make_gmem_ptr(reinterpret_cast<const float4*>(x)), make_shape(n / 4));
  auto gy = make_tensor(make_gmem_ptr(reinterpret_cast<float4*>(y)), make_shape(n / 4));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  float4 v = gx(i);
  gy(i) = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
}
)";
constexpr const char* kCuda = R"(extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0);
}
)";

double ms(Nanoseconds t) {
  return std::chrono::duration<double, std::milli>(t).count();
}

Result<double> once(toolchain::Toolchain& toolchain, const std::string& source, bool cached) {
  CG_TRY(auto r, toolchain.compile(Context(), {"kernel.cu", source, {}, "sm_90a"}));
  if (!r.ok) return world_error(r.digest);
  if (r.cached != cached) return world_error("the cache behaved otherwise than expected");
  return ms(r.elapsed);
}

// The median time of `runs` compiles of sources that differ in a comment. They pause in between,
// because a search judges a candidate before it compiles the next.
Result<double> median(toolchain::Toolchain& toolchain, const std::string& source, int runs,
                      bool cached, std::chrono::milliseconds pause = {}) {
  static int next = 0;
  int base = cached ? 0 : next;
  if (!cached) next += runs;
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    std::this_thread::sleep_for(pause);
    CG_TRY(double t,
           once(toolchain, source + "// " + std::to_string(cached ? 0 : base + i) + "\n", cached));
    times.push_back(t);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Result<double> warm_up(toolchain::Toolchain& toolchain) {
  auto start = Clock::now();
  CG_CHECK(toolchain.warm_up(Context(), "sm_90a"));
  return ms(Clock::now() - start);
}

// The wall time of `count` candidates, each compiled from its own thread.
double together(toolchain::Toolchain& toolchain, int count) {
  auto start = Clock::now();
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(
        [&, i] { (void)once(toolchain, kCute + ("// together " + std::to_string(i)), false); });
  threads.clear();
  return ms(Clock::now() - start);
}

Result<Json> measure() {
  CG_TRY(toolchain::ToolPaths paths, toolchain::find_tools());
  paths.cache_dir = fs::temp_directory_path() / ("cutegen_bench_" + random_id());
  Json out{{"bench", "compile"}, {"arch", "sm_90a"}};
  CG_TRY(auto forked, toolchain::Toolchain::open({.paths = paths}));
  out["compiler"] = forked->version();
  CG_TRY(out["warm_up_ms"], warm_up(*forked));
  CG_TRY(out["cute_back_to_back_ms"], median(*forked, kCute, 9, false));
  CG_TRY(out["cute_ms"], median(*forked, kCute, 9, false, std::chrono::milliseconds(500)));
  CG_TRY(out["cute_cache_hit_ms"], median(*forked, kCute, 99, true));
  CG_TRY(out["cuda_first_ms"], once(*forked, std::string(kCuda) + "// first\n", false));
  CG_TRY(out["cuda_ms"], median(*forked, kCuda, 9, false));
  out["eight_at_once_ms"] = together(*forked, 8);
  CG_TRY(auto fresh, toolchain::Toolchain::open({.paths = paths}));
  CG_TRY(out["cute_cache_hit_new_process_ms"], once(*fresh, std::string(kCute) + "// 0\n", true));
  CG_TRY(auto plain,
         toolchain::Toolchain::open({.paths = paths, .use_cache = false, .allow_fork = false}));
  CG_TRY(out["cute_plain_ms"], median(*plain, kCute, 3, false));
  CG_TRY(auto cold, toolchain::Toolchain::open({.paths = paths, .use_cache = false}));
  CG_TRY(out["cute_cold_ms"], once(*cold, kCute, false));
  fs::remove_all(paths.cache_dir);
  return out;
}

}  // namespace

int main() {
  auto result = measure();
  if (!result) {
    fmt::print(stderr, "compile_bench: {}\n", result.error().text());
    return exit_code(result.error());
  }
  fmt::print("{}\n", dump_json(*result));
  return kExitOk;
}
