// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/emit/emit.h"
#include "recipes/emit/matmul_kernel.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kSms = 132;  // of the GPUs that tiles are chosen for
constexpr int64_t kMostShared =
    int64_t{99} * 1024;  // bytes that every GPU since sm_80 grants on request
constexpr int64_t kMostSharedHopper = int64_t{227} * 1024;
constexpr int64_t kMostParts = int64_t{1} << 28;  // elements of all parts of a split product

int64_t get(const Json& params, const char* name) {
  return params.at(name).get<int64_t>();
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t tiles(const Contraction& c, int64_t tile_m, int64_t tile_n) {
  return ceil_div(c.size(c.m), tile_m) * ceil_div(c.size(c.n), tile_n) * c.batches();
}

// Tiles of a product. `resident`: CTAs that an SM holds. `speed`: of the inner loop on an H200,
// relative to the largest tile's on the CUDA cores (docs/measurements/simt_products.md and
// wgmma_products.md). `start`: what prologue and epilogue of a CTA cost, in steps along k; they
// cost more if no other CTA on the SM hides them. It is a guess for the CUDA cores.
struct Tiling {
  int64_t tile_m, tile_n, threads, resident;
  double speed, start;
  MatmulEngine engine = MatmulEngine::simt;
  int64_t split = 1;
};

// Estimates the time of the product, in multiplications of the busiest SM. A split writes and reads
// its parts: 8 bytes an element, each byte in the time of seven multiplications.
double cost(const Contraction& c, const Tiling& t) {
  const int64_t ctas = tiles(c, t.tile_m, t.tile_n) * t.split;
  const int64_t rounds = ceil_div(ctas, kSms * t.resident) * t.resident;
  const double depth = static_cast<double>(ceil_div(c.size(c.k), t.split)) + t.start;
  const double elements = static_cast<double>(c.size(c.m) * c.size(c.n) * c.batches());
  return static_cast<double>(rounds * t.tile_m * t.tile_n) * depth / t.speed +
         (t.split > 1 ? static_cast<double>(t.split) * elements * 8 * 7 / kSms : 0);
}

bool may_split(const Contraction& c, int64_t split) {
  return split == 1 || (c.size(c.k) / split >= 256 &&
                        c.size(c.m) * c.size(c.n) * c.batches() * split <= kMostParts);
}

bool wgmma_applies(const Contraction& c) {
  return c.hopper && c.math_mode == MathMode::fp32;
}

Tiling best_tiling(const Contraction& c) {
  // If the loads transpose both operands, 256 threads are faster than 128 threads with twice the
  // results each; otherwise they are slower.
  const bool transposes = c.a.depth.move == Move::next && c.b.depth.move == Move::next;
  Tiling best{64, 64, 256, 2, 0.7, 64};
  std::vector<Tiling> all{best, {64, 64, 128, 4, 0.85, 64}};
  all.push_back(transposes ? Tiling{128, 128, 256, 2, 1.02, 64}
                           : Tiling{128, 128, 128, 2, 0.97, 64});
  // If the result is a triangle, larger tiles compute more zeros.
  if (!c.zero_outside) all.push_back({256, 128, 256, 1, 1, 128});
  if (wgmma_applies(c)) {
    const bool scalar = c.a.depth.move != Move::next && c.b.depth.move != Move::next;
    constexpr MatmulEngine wgmma = MatmulEngine::wgmma_fp32;
    all.push_back({128, 128, 512, 1, scalar ? 2.1 : 2.5, 100, wgmma});
    if (turned(c))
      all.push_back({64, 128, 512, 1, 1.9, 100, wgmma});
    else
      all.push_back({128, 64, 512, 1, 1.85, 100, wgmma});
    all.push_back({64, 64, 384, 1, 1.25, 60, wgmma});
  }
  for (Tiling t : all)
    for (t.split = 1; t.split <= 128 && may_split(c, t.split); t.split *= 2)
      if (cost(c, t) < cost(c, best)) best = t;
  return best;
}

// The threads form a grid, at most 16 across. Each computes blocks of 4 x 4 results.
bool simt_legal(int64_t m, int64_t n, int64_t k, int64_t threads, int64_t stages) {
  int64_t across = std::min<int64_t>(16, n / 4), down = threads / across;
  if (down % 8 || across % 4 || m % (4 * down) || n % (4 * across)) return false;
  if (m * n / threads > 128) return false;  // results that a thread holds in registers
  return (m + 4 + n + 4) * k * 4 * stages <= kMostShared;
}

// The warps form a grid, 2 down and the rest across. Each computes blocks of 16 x 16 results. A row
// of shared memory has 64 or 128 bytes.
bool cores_legal(int64_t m, int64_t n, int64_t k, int64_t threads, int64_t stages, int64_t bytes) {
  int64_t across = threads / 64, line = 128 / bytes;
  return across > 0 && m % line == 0 && n % line == 0 && n % (16 * across) == 0 &&
         m * n / threads <= 128 && (k * bytes == 64 || k * bytes == 128) &&
         (m + n) * k * bytes * stages <= kMostShared;
}

int64_t wgmma_shared(const Contraction& c, const Json& params) {
  const bool turn = turned(c);
  const Factor& plain = turn ? c.b : c.a;
  const int64_t rows = get(params, turn ? "tile_n" : "tile_m"),
                columns = get(params, turn ? "tile_m" : "tile_n");
  const int64_t lines = plain.depth.move == Move::next ? rows * 36 : 32 * (rows + 8);
  // The parts of the split tile, the plain tile, two barriers; the sum is rounded up.
  const int64_t stage = 2 * columns * 32 * 4 + lines * 4 + 2 * 8;
  return ceil_div(get(params, "stages") * stage, 1024) * 1024;
}

bool wgmma_legal(const Contraction& c, const Json& params) {
  auto fits = [&](const char* name) { return get(params, name) == 64 || get(params, name) == 128; };
  return wgmma_applies(c) && fits("tile_m") && fits("tile_n") && get(params, "stages") >= 3 &&
         wgmma_shared(c, params) <= kMostSharedHopper;
}

// The engine itself decides these two.
Json with_wgmma_shape(const Contraction& c, Json params) {
  params["threads"] = 256 + 2 * get(params, turned(c) ? "tile_n" : "tile_m");
  params["tile_k"] = 32;
  return params;
}

int64_t element_bytes(const Contraction& c) {
  return c.math_mode == MathMode::fp16 || c.math_mode == MathMode::bf16 ? 2 : 4;
}

int64_t shared_bytes(const Contraction& c, const Json& params) {
  if (engine_of(params) == MatmulEngine::wgmma_fp32) return wgmma_shared(c, params);
  if (engine_of(params) == MatmulEngine::mma)
    return (get(params, "tile_m") + get(params, "tile_n")) * get(params, "tile_k") *
           element_bytes(c) * get(params, "stages");
  auto line = [&](const char* rows, const Factor& of) {
    // A tile that the load transposes is padded.
    return get(params, rows) + (of.depth.move == Move::next ? 4 : 0);
  };
  return (line("tile_m", c.a) + line("tile_n", c.b)) * get(params, "tile_k") * 4 *
         get(params, "stages");
}

Json plan_steps(const Contraction& c, const MatmulKernel& k, const Json& params) {
  auto arguments = [&c](const std::vector<std::string>& tensors, const auto& numbers) {
    Json args = Json::array();
    for (const std::string& tensor : tensors) args.push_back({{"tensor", tensor}});
    for (const char* size : {"m_size", "n_size", "k_size", "batches"})
      args.push_back({{"i32", size}});
    for (const auto& [name, expression] : numbers) args.push_back({{"i64", expression}});
    add_sizes(args, c.finish);
    return args;
  };
  Json product{{"id", "matmul"},
               {"kernel", "matmul"},
               {"when", "elements > 0"},
               {"grid", {"tiles", params.at("split"), "batches"}},
               {"block", {params.at("threads"), 1, 1}},
               {"args", arguments(k.tensors, k.numbers)},
               {"shared_bytes", shared_bytes(c, params)}};
  Json steps = Json::array({product});
  if (get(params, "split") > 1)
    steps.push_back({{"id", "combine"},
                     {"kernel", "combine"},
                     {"when", "elements > 0"},
                     {"grid", {"ceil_div(elements/vector_out,256)", 1, 1}},
                     {"block", {256, 1, 1}},
                     {"args", arguments(k.tensors_combine, k.numbers_combine)}});
  return steps;
}

Json plan_of(const Contraction& c, const MatmulKernel& k, const Json& params) {
  const bool hopper = engine_of(params) == MatmulEngine::wgmma_fp32;
  Json plan{{"cutegen", 1},
            {"dialect", "cute"},
            {"arch", {hopper ? "sm_90a" : "sm_80+"}},
            {"sources", {"kernel.cu"}}};
  Json bind = bindings(c.loads.names);
  if (!bind.empty()) plan["bind"] = bind;
  std::string batches = "1";
  for (int axis : c.batch_axes)
    batches = batches == "1" ? c.extent(axis) : fmt::format("{}*{}", batches, c.extent(axis));
  plan["symbols"] = {{"m_size", c.extent(c.m)},
                     {"n_size", c.extent(c.n)},
                     {"k_size", c.extent(c.k)},
                     {"batches", batches},
                     {"elements", "m_size*n_size*batches"},
                     {"tiles", fmt::format("ceil_div(m_size,{})*ceil_div(n_size,{})",
                                           params.at("tile_m").dump(), params.at("tile_n").dump())},
                     {"vector_a", k.vector_a},
                     {"vector_b", k.vector_b},
                     {"vector_out", k.vector_out}};
  plan["defines"] = {
      {"VECTOR_A", "vector_a"}, {"VECTOR_B", "vector_b"}, {"VECTOR_OUT", "vector_out"}};
  plan["requires"] = {"batches <= 65535", "m_size <= 2000000000", "n_size <= 2000000000",
                      "k_size <= 2000000000"};
  int64_t split = get(params, "split");
  if (split > 1)
    plan["scratch"] =
        Json::array({{{"name", "partial"}, {"dtype", "f32"}, {"shape", {split, "elements"}}}});
  plan["steps"] = plan_steps(c, k, params);
  return plan;
}

}  // namespace

std::vector<RecipeParameter> matmul_parameters(const Contraction& c) {
  const int64_t wanted = best_tiling(c).split;
  std::vector<int64_t> splits;
  for (int64_t split : {1, 2, 4, 8, 16, 32, 64, 128})
    if (split == wanted || (may_split(c, split) && tiles(c, 128, 128) * split <= 8 * kSms))
      splits.push_back(split);
  std::stable_sort(splits.begin(), splits.end(), [&](int64_t a, int64_t b) {
    auto far = [&](int64_t s) { return std::max(s, wanted) / std::min(s, wanted); };
    return far(a) < far(b);
  });
  std::vector<int64_t> vectors{4, 1};
  if (size_of(c.a.operand.dtype) == 2 && size_of(c.b.operand.dtype) == 2)
    vectors.insert(vectors.begin(), 8);  // 16 bytes
  const bool cores = c.math_mode != MathMode::fp32;
  using Values = std::vector<int64_t>;
  const RecipeParameter vector{"vector", "neighbouring elements that a thread moves in one access",
                               vectors},
      tile_m{"tile_m", "rows of the result that a CTA computes",
             cores ? Values{128, 64} : Values{256, 128, 64}},
      tile_n{"tile_n", "columns of the result that a CTA computes", {128, 64, 32}},
      stages{"stages", "tiles of the depth in shared memory at once",
             cores ? Values{3, 4, 2, 1} : Values{3, 2, 4, 1}},
      tile_k{"tile_k", "depth of the tiles in shared memory",
             cores ? Values{32, 64, 16, 8} : Values{16, 32, 8, 64}},
      threads{"threads", "threads of a CTA", cores ? Values{128, 256} : Values{256, 128}},
      split{"split", "CTAs that share the depth of one tile", splits};
  const RecipeParameter wgmma{
      "wgmma", "1: multiply on Hopper's tensor cores with float32 accuracy", {1, 0}};
  // The parameters that change the time most come first.
  if (wgmma_applies(c)) return {wgmma, tile_m, tile_n, split, stages, tile_k, threads, vector};
  if (!cores) return {tile_m, threads, tile_k, split, stages, tile_n, vector};
  return {{"tensor_cores", "1: multiply on the tensor cores, in the task's math mode", {1, 0}},
          vector,
          tile_m,
          tile_n,
          stages,
          tile_k,
          threads,
          split};
}

// A kernel falls back from vectors to single elements by itself. Except in fp32, the tiles also
// suit the tensor cores, which are tried next.
Json matmul_safe(const Contraction& c) {
  const Tiling best = best_tiling(c);
  Json params{{"vector", 4},        {"tile_m", best.tile_m},   {"tile_n", best.tile_n},
              {"tile_k", 16},       {"threads", best.threads}, {"stages", 3},
              {"split", best.split}};
  if (wgmma_applies(c)) {
    const bool on = best.engine == MatmulEngine::wgmma_fp32;
    params["wgmma"] = on ? 1 : 0;
    if (on) params.update({{"threads", 256}, {"stages", 4}});  // so may SimtGemm
  }
  if (c.math_mode != MathMode::fp32)
    params.update({{"tensor_cores", 0},
                   {"tile_m", std::min<int64_t>(best.tile_m, 128)},
                   {"threads", 256},
                   {"tile_k", 32},
                   {"stages", 1}});
  return params;
}

bool matmul_legal(const Contraction& c, const Json& params) {
  const MatmulEngine engine = engine_of(params);
  if (engine == MatmulEngine::wgmma_fp32) return wgmma_legal(c, params);
  int64_t m = get(params, "tile_m"), n = get(params, "tile_n"), k = get(params, "tile_k"),
          threads = get(params, "threads"), stages = get(params, "stages");
  if (m * k % (threads * get(params, "vector")) || n * k % (threads * get(params, "vector")))
    return false;
  return engine == MatmulEngine::mma ? cores_legal(m, n, k, threads, stages, element_bytes(c))
                                     : simt_legal(m, n, k, threads, stages);
}

Result<KernelProgram> matmul_program(const Task& task, const Contraction& c, const Json& params) {
  const bool wgmma = engine_of(params) == MatmulEngine::wgmma_fp32;
  const Json chosen = wgmma ? with_wgmma_shape(c, params) : params;
  MatmulKernel kernel = matmul_kernel(task, c, chosen);
  KernelProgram program;
  program.sources["kernel.cu"] = kernel.source;
  CG_TRY(program.plan, plan_from_json(plan_of(c, kernel, chosen)));
  return program;
}

}  // namespace cutegen::recipes
