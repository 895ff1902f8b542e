// SPDX-License-Identifier: Apache-2.0
// Compiles edited tensor-core kernels twice: from the beginning, and from the place where they
// differ from a parsed parent. Reports seconds, memory, and whether the PTX is the same, as one
// line of JSON per kernel and edit (docs/measurements/warm.md).
//   warm_bench [ROUNDS] [KERNEL]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "toolchain/scan.h"
#include "toolchain/strip.h"
#include "toolchain/warm_parent.h"

namespace {

using namespace cutegen;
using namespace cutegen::toolchain;

using Edit = std::pair<std::string, std::string>;
struct Kernel {
  std::string name, source;
  std::vector<std::pair<std::string, Edit>> edits;
};

constexpr const char* kArch = "sm_90a";
const CompileLimits kLimits{int64_t{8} << 30, std::chrono::seconds(600)};

double seconds(Nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

CompileRequest request_for(const std::string& source) {
  return {"kernel.cu", source, {}, kArch};
}

// The kernel of a page in docs/components.
std::string fenced(const std::string& page) {
  const std::string open = "```cuda\n";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

// A matrix product with the component of docs/components/gemm.md.
constexpr const char* kComponent = R"cuda(#include <cute/tensor.hpp>
#include <cutegen/gemm_mma.cuh>

using namespace cute;

constexpr int kTile = 128, kDepth = 32, kThreads = 128, kStages = 3;
using Gemm = cutegen::MmaGemm<half_t, half_t, half_t, kTile, kTile, kDepth, kThreads, kStages, 8, 8, true, true>;

extern "C" __global__ void __launch_bounds__(kThreads)
product(const half_t* a, const half_t* b, half_t* out, int m_size, int n_size, int k_size) {
  extern __shared__ __align__(16) char memory[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(memory);
  const auto tile = cutegen::tile_index(blockIdx.x, ceil_div(m_size, kTile), ceil_div(n_size, kTile));
  auto by_row = make_stride(k_size, _1{});
  Tensor rows = make_tensor(make_gmem_ptr(a), make_layout(make_shape(m_size, k_size), by_row));
  Tensor columns = make_tensor(make_gmem_ptr(b), make_layout(make_shape(n_size, k_size), by_row));
  Gemm gemm;
  gemm.run(rows, columns, tile, 0, ceil_div(k_size, kDepth), storage);
  gemm.each<2>(tile, [&](float const (&c)[2], int m, int n) {
    for (int i = 0; i < 2; ++i)
      if (m < m_size && n + i < n_size) out[size_t(m) * n_size + n + i] = half_t(c[i]);
  });
}
)cuda";

Result<std::vector<Kernel>> kernels() {
  const std::filesystem::path root = CUTEGEN_SOURCE_DIR;
  CG_TRY(std::string f16, read_file(root / "tests/golden/ptx/gemm_f16.cu"));
  CG_TRY(std::string page, read_file(root / "docs/components/tiled_mma.md"));
  std::string tf32 = replace_all(f16, "half_t", "tfloat32_t");
  tf32 = replace_all(tf32, "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN");
  tf32 = replace_all(tf32, "Tile<_32, _32, _16>", "Tile<_32, _32, _8>");
  tf32 = replace_all(tf32, "Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>",
                     "Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>");
  tf32 = replace_all(tf32, "kStages * 2;", "kStages * 4;");
  const std::vector<std::pair<std::string, Edit>> pipelined{
      {"epilogue",
       {"  cute::copy(acc, out);",
        "  for (int i = 0; i < size(acc); ++i)\n    acc(i) = "
        "acc(i) > 0.f ? acc(i) : 0.01f * acc(i);\n"
        "  cute::copy(acc, out);"}},
      {"main loop", {"cp_async_wait<kStages - 2>();", "cp_async_wait<0>();"}},
      {"set-up", {"  clear(acc);", "  fill(acc, 1.f);"}},
      {"stages", {"kStages = 3", "kStages = 4"}}};
  const std::vector<std::pair<std::string, Edit>> simple{
      {"epilogue", {"half_t(sums(i))", "half_t(sums(i) > 0.f ? sums(i) : 0.f)"}},
      {"main loop",
       {"    gemm(mma, part_a, part_b, sums);\n    __syncthreads();",
        "    __syncthreads();\n    gemm(mma, part_a, part_b, sums);"}},
      {"set-up", {"  clear(sums);", "  fill(sums, 1.f);"}},
      {"tile", {"kTile = 64", "kTile = 32"}}};
  const std::vector<std::pair<std::string, Edit>> component{
      {"epilogue", {"half_t(c[i])", "half_t(c[i] > 0.f ? c[i] : 0.f)"}},
      {"stages", {"kStages = 3", "kStages = 4"}}};
  return std::vector<Kernel>{{"f16 128x128x32, cp.async, ldmatrix", f16, pipelined},
                             {"tf32 128x128x32, cp.async, ldmatrix", tf32, pipelined},
                             {"f16 64x64x32, page tiled_mma", fenced(page), simple},
                             {"f16 128x128x32, cutegen::MmaGemm", kComponent, component}};
}

ServerSetup setup_with(const ToolPaths& paths) {
  ServerSetup out;
  out.paths = paths;
  out.options = {"--gpu-architecture=compute_90a", "--std=c++17", "-default-device", "-lineinfo",
                 "-DNDEBUG"};
  out.prefix = prefix_header(CuteUse::all);
  out.keep = true;
  return out;
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

struct Timed {
  std::vector<double> wall, processor;
  std::string ptx;
  void tell(Json& out, const std::string& name) const {
    out[name + "_s"] = median(wall);
    out[name + "_processor_s"] = median(processor);
    out[name + "_least_processor_s"] = *std::min_element(processor.begin(), processor.end());
  }
};

Result<void> cold(Toolchain& toolchain, const std::string& source, Timed& out) {
  CG_TRY(auto r, toolchain.compile(Context(), request_for(source)));
  if (!r.ok) return world_error(r.digest);
  out.wall.push_back(seconds(r.elapsed));
  out.processor.push_back(seconds(r.cold));
  out.ptx = r.ptx;
  return {};
}

Result<void> warm(WarmParent& parent, const WarmParent::Place& place, const std::string& text,
                  Timed& out) {
  auto start = Clock::now();
  CG_TRY(auto reply, parent.compile(Context(), place, text, kLimits));
  const wire::CompileReply& compiled = reply.compiled;
  if (!compiled.ok) return world_error("the child does not compile: " + reply.died + compiled.log);
  out.ptx = strip_ptx(compiled.ptx, "kernel.cu");
  out.wall.push_back(seconds(Clock::now() - start));
  out.processor.push_back(seconds(compiled.spent));
  return {};
}

Result<void> measure(Toolchain& toolchain, const ToolPaths& paths, const Kernel& kernel,
                     int rounds) {
  const std::string text = full_source(request_for(kernel.source));
  const auto cuts = find_cuts(text, text.size() - kernel.source.size() - 1);
  auto start = Clock::now();
  CG_TRY(auto parent, WarmParent::start(setup_with(paths), text, cuts, "kernel.cu", kLimits));
  while (parent->look() && !parent->complete())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (!parent->complete()) return world_error("the parent broke: " + parent->error_text());
  const double built = seconds(Clock::now() - start);
  const int64_t bytes = parent->memory();
  for (const auto& [name, edit] : kernel.edits) {
    const std::string child = replace_all(kernel.source, edit.first, edit.second);
    if (child == kernel.source) return world_error("the edit is of no effect: " + name);
    const std::string child_text = full_source(request_for(child));
    auto place = parent->best(child_text);
    Timed from_beginning, from_parent;
    for (int i = 0; i < rounds; ++i) {  // alternately, because the machine is shared
      CG_CHECK(cold(toolchain, child, from_beginning));
      if (place) CG_CHECK(warm(*parent, *place, child_text, from_parent));
    }
    Json out{{"kernel", kernel.name}, {"edit", name}, {"read_s", built}, {"memory_bytes", bytes}};
    from_beginning.tell(out, "cold");
    if (place) {
      out["spent_before_s"] = seconds(place->spent);
      from_parent.tell(out, "warm");
      out["same_ptx"] = from_parent.ptx == from_beginning.ptx;
    }
    double load = 0;
    out["load"] = ::getloadavg(&load, 1) == 1 ? load : -1;
    fmt::print("{}\n", dump_json(out));
    std::fflush(stdout);
  }
  return {};
}

Result<void> measure_all(int rounds, size_t only) {
  CG_TRY(ToolPaths paths, find_tools());
  CG_TRY(auto toolchain,
         Toolchain::open({.paths = paths, .compile_timeout = kLimits.timeout, .use_cache = false}));
  CG_CHECK(toolchain->compile(Context(), request_for("#include <cute/tensor.hpp>\n")));
  CG_TRY(auto all, kernels());
  for (size_t i = 0; i < all.size(); ++i)
    if (only == 0 || only == i + 1) CG_CHECK(measure(*toolchain, paths, all[i], rounds));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto done =
      measure_all(argc > 1 ? std::atoi(argv[1]) : 3, argc > 2 ? size_t(std::atoi(argv[2])) : 0);
  if (done) return kExitOk;
  fmt::print(stderr, "warm_bench: {}\n", done.error().text());
  return exit_code(done.error());
}
