// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/extents.h"
#include "recipes/matmul/matmul_kernel.h"
#include "recipes/matmul/matmul_maps.h"
#include "recipes/matmul/matmul_pairs.h"
#include "recipes/matmul/matmul_stream.h"
#include "recipes/matmul/matmul_tiling.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostShared =
    int64_t{99} * 1024;  // bytes that every GPU since sm_80 grants on request
constexpr int64_t kMostSharedHopper = int64_t{227} * 1024;
// On an H200, products of 8 and 16 rows are up to 17% faster if they stream their 16-bit weights.
// With 64 rows, wgmma takes 50 us and streaming 70 us (8192 x 8192).
constexpr int64_t kMostStreamed = 16;

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

int64_t wgmma_fp32_shared(const Contraction& c, const Json& params) {
  const bool turn = turned(c);
  const Factor& plain = turn ? c.b : c.a;
  const int64_t rows = int_param(params, turn ? "tile_n" : "tile_m"),
                columns = int_param(params, turn ? "tile_m" : "tile_n");
  const int64_t lines = plain.depth.move == Move::next ? rows * 36 : 32 * (rows + 8);
  // The parts of the split tile, the plain tile, two barriers; the sum is rounded up.
  const int64_t stage = (products_of(c) == 3 ? 2 : 1) * columns * 32 * 4 + lines * 4 + 16;
  return ceil_div(int_param(params, "stages") * stage, 1024) * 1024;
}

// Bytes of shared memory: lines of 128 bytes of both tiles, two barriers of each stage, and two
// further barriers.
int64_t wgmma_shared(const Json& params) {
  const int64_t stage = (int_param(params, "tile_m") + int_param(params, "tile_n")) * 128 + 16;
  return ceil_div(int_param(params, "stages") * stage + 16, 1024) * 1024;
}

bool wgmma_fp32_legal(const Contraction& c, const Json& params) {
  const auto fits = [](int64_t size) { return size == 64 || size == 128; };
  const int64_t tile_n = int_param(params, "tile_n");
  return wgmma_applies(c) && fits(int_param(params, "tile_m")) &&
         (fits(tile_n) || (tile_n == 96 && c.groups() == 3)) && holds_groups(c, tile_n) &&
         int_param(params, "stages") >= 3 && wgmma_fp32_shared(c, params) <= kMostSharedHopper;
}

// Warpgroups that multiply.
int64_t wgmma_consumers(const Json& params) {
  if (ping_pong(params)) return 2;
  return int_param(params, "tile_m") == 192 ? 3 : int_param(params, "tile_m") >= 128 ? 2 : 1;
}

// Warpgroups that share a tile.
int64_t wgmma_sharing(const Json& params) {
  return ping_pong(params) ? 1 : wgmma_consumers(params);
}

// CTAs that an SM holds if it loads by tensor maps.
int64_t wgmma_resident(const Json& params) {
  const int64_t results =
      int_param(params, "tile_m") * int_param(params, "tile_n") / wgmma_consumers(params);
  return results <= 8192 && wgmma_consumers(params) < 3 && !ping_pong(params) &&
                 wgmma_shared(params) + 1024 <= kMostSharedHopper / 2
             ? 2
             : 1;
}

// Returns whether several CTAs share the depth of each tile of the last round.
bool shares_last_round(const Json& params) {
  return params.contains("tail") && int_param(params, "tail") > 1;
}

// A consumer thread holds at most 128 results. Without TMA, two stages would deadlock.
bool wgmma_legal(const Contraction& c, const Json& params) {
  const int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n");
  if (!wgmma_applies(c) || m % 64 || int_param(params, "stages") < 3 ||
      m * n > (m == 192 ? 64 * 192 : 128 * 128) * wgmma_sharing(params))
    return false;
  if (ping_pong(params) && m > 128) return false;
  if (!holds_groups(c, n) || (c.groups() > 1 && int_param(params, "cluster") == 2)) return false;
  // Each CTA of a cluster loads whole blocks. CTAs that skip tiles cannot share loads.
  if (int_param(params, "cluster") == 2 && (n < 128 || c.zero_outside)) return false;
  if (shares_last_round(params) &&
      (int_param(params, "cluster") > 1 || int_param(params, "split") > 1))
    return false;
  return wgmma_shared(params) <= kMostSharedHopper;
}

// Sets the parameters that follow from the engine.
Json with_wgmma_shape(const Contraction& c, Json params) {
  if (by_halves(params)) {
    params.update({{"threads", 384}, {"tile_k", 64}});
  } else if (engine_of(c, params) == MatmulEngine::wgmma_fp32) {
    params["threads"] = 256 + 2 * int_param(params, turned(c) ? "tile_n" : "tile_m");
    params["tile_k"] = 32;
  } else {
    // Two warpgroups that take turns split the rows of a tile into two tiles.
    if (ping_pong(params)) params["tile_m"] = int_param(params, "tile_m") / 2;
    params["threads"] = 128 * wgmma_consumers(params);  // of the consumers
    params["tile_k"] = 128 / bytes_of_element(c);
  }
  return params;
}

int64_t shared_bytes(const Contraction& c, const Json& params) {
  const MatmulEngine engine = engine_of(c, params);
  if (engine == MatmulEngine::wgmma_fp32) return wgmma_fp32_shared(c, params);
  if (engine == MatmulEngine::wgmma) return wgmma_shared(params);
  if (engine == MatmulEngine::wgmma_pairs) return pairs_shared(c, params);
  if (engine == MatmulEngine::stream) return stream_shared(c, params);
  if (engine == MatmulEngine::mma)
    return (int_param(params, "tile_m") + int_param(params, "tile_n")) *
           int_param(params, "tile_k") * bytes_of_element(c) * int_param(params, "stages");
  auto line = [&](const char* rows, const Factor& of) {
    // A tile that the load transposes is padded.
    return int_param(params, rows) + (of.depth.move == Move::next ? 4 : 0);
  };
  return (line("tile_m", c.a) + line("tile_n", c.b)) * int_param(params, "tile_k") * 4 *
         int_param(params, "stages");
}

// The sizes that the kernel takes.
std::vector<std::string> sizes_of(const Contraction& c) {
  std::vector<std::string> sizes{"m_size", "n_size"};
  for (size_t i = 0; i < c.parts.size(); ++i) sizes.push_back(fmt::format("part{}_size", i + 1));
  sizes.insert(sizes.end(), {"k_size", "batches"});
  return sizes;
}

Json plan_steps(const Contraction& c, const MatmulKernel& k, const Json& params,
                const Label& label) {
  auto arguments = [&](const std::vector<std::string>& tensors, const auto& numbers) {
    Json args = Json::array();
    for (const std::string& tensor : tensors) args.push_back({{"tensor", tensor}});
    for (const std::string& size : sizes_of(c)) args.push_back({{"i32", label(size)}});
    if (shares_last_round(params))
      for (const char* size : {"whole", "pieces"}) args.push_back({{"i32", label(size)}});
    for (const auto& [name, expression] : numbers) args.push_back({{"i64", expression}});
    for (const Contraction* own : parts_of(c)) add_sizes(args, own->finish);
    return args;
  };
  const std::string when = label("elements") + " > 0";
  Json product{{"id", label("matmul")},
               {"kernel", label("matmul")},
               {"when", when},
               {"grid", {label("tiles"), params.at("split"), label("batches")}},
               {"block", {params.at("threads"), 1, 1}},
               {"args", arguments(k.tensors, k.numbers)},
               {"shared_bytes", shared_bytes(c, params)}};
  if (persistent(engine_of(c, params))) product["grid"] = {label("tiles"), params.at("split"), 1};
  if (sums_in_cluster(c, params)) product["cluster"] = {1, params.at("split"), 1};
  if (by_halves(params)) {
    add_map_arguments(c, label, product);
    product["cluster"] = {int_param(params, "cluster"), 1, 1};
  }
  if (engine_of(c, params) == MatmulEngine::wgmma) {
    add_map_arguments(c, label, product);
    product["cluster"] = {int_param(params, "cluster"), 1, 1};
    // A producer is a whole warpgroup if it gives registers away or copies by address.
    const int64_t consumers = int_param(params, "threads");
    const bool gives = consumers > 256 || ping_pong(params) ||
                       int_param(params, "tile_m") * int_param(params, "tile_n") > 64 * consumers;
    product["block"] = {
        fmt::format("{} + ({} == 1 ? {} : 128)", consumers, label("tma"), gives ? 128 : 32), 1, 1};
  }
  Json steps = Json::array({product});
  if (shares_last_round(params))
    steps.push_back({{"id", label("combine")},
                     {"kernel", label("combine")},
                     {"when", label("parts") + " > 0"},
                     {"grid",
                      {fmt::format("{}/{}*{}/{}/256", label("parts"), label("pieces"),
                                   int_param(params, "tile_m") * int_param(params, "tile_n"),
                                   label("vector_out")),
                       1, 1}},
                     {"block", {256, 1, 1}},
                     {"pdl", true},
                     {"args", arguments(k.tensors_combine, k.numbers_combine)}});
  if (int_param(params, "split") > 1 && !sums_in_cluster(c, params))
    steps.push_back(
        {{"id", label("combine")},
         {"kernel", label("combine")},
         {"when", when},
         {"grid",
          {fmt::format("ceil_div({}/{},256)", label("elements"), label("vector_out")), 1, 1}},
         {"block", {256, 1, 1}},
         {"args", arguments(k.tensors_combine, k.numbers_combine)}});
  return steps;
}

// CTAs along x. A persistent kernel has at most as many CTAs as the GPU holds, which take the tiles
// of all batches. Its clusters are full, even at an edge. Other kernels have one CTA for each tile
// of a batch.
std::string ctas_text(const Contraction& c, const Json& params, MatmulEngine engine,
                      const Label& label) {
  auto across = [&](const std::string& size, int64_t tile) {
    return fmt::format("ceil_div({},{})", label(size), tile);
  };
  const int64_t width = int_param(params, "tile_n") / c.groups();
  const std::string m = across("m_size", int_param(params, "tile_m"));
  std::string n = across("n_size", width);
  for (size_t i = 0; i < c.parts.size(); ++i)
    n += "+" + across(fmt::format("part{}_size", i + 1), width);
  if (!c.parts.empty()) n = "(" + n + ")";
  if (!persistent(engine)) return m + "*" + n;
  const bool halves = engine == MatmulEngine::wgmma;
  const int64_t cluster = halves || by_halves(params) ? int_param(params, "cluster") : 1,
                resident = halves ? wgmma_resident(params) : 1,
                most = kSms * resident / int_param(params, "split") / cluster;
  const std::string all = fmt::format("ceil_div({},{})*{}*{}", m, cluster, n, label("batches"));
  // Tiles outside the triangle take no time, so the GPU should choose each CTA's next tile.
  if (!halves && !by_halves(params) && c.zero_outside) return all;
  return fmt::format("{}*min({},{})", cluster, all, std::max<int64_t>(1, most));
}

// Requires that the axes of factors and results have the sizes that the program assumes, and that
// 32 bits number the columns of all second factors of joined products.
void add_size_requirements(const Contraction& c, ProgramPart& part) {
  const auto add = [&](const std::string& requirement) {
    Json& list = part.requirements;
    if (std::find(list.begin(), list.end(), Json(requirement)) == list.end())
      list.push_back(requirement);
  };
  if (c.joined())
    for (const JoinedFactor& of : factors_of(c)) add(of.columns + " <= 2000000000");
  for (const Contraction* own : parts_of(c)) {
    for (const std::string& demand : own->loads.demands) add(demand);
    for (const std::string& demand : fixed_sizes(own->finish)) add(demand);
  }
}

void add_symbols(const Contraction& c, const MatmulKernel& k, const std::string& ctas,
                 const Label& label, ProgramPart& part) {
  std::string batches = "1";
  for (int axis : c.batch_axes)
    batches = batches == "1" ? c.extent(axis) : fmt::format("{}*{}", batches, c.extent(axis));
  std::string columns = label("n_size");
  for (size_t i = 0; i < c.parts.size(); ++i)
    columns += "+" + label(fmt::format("part{}_size", i + 1));
  if (!c.parts.empty()) columns = "(" + columns + ")";
  const std::string elements = fmt::format("{}*{}*{}", label("m_size"), columns, label("batches"));
  part.symbols = {{label("m_size"), c.extent(c.m)}, {label("n_size"), c.extent(c.n)}};
  for (size_t i = 0; i < c.parts.size(); ++i)
    part.symbols[label(fmt::format("part{}_size", i + 1))] = c.parts[i].extent(c.parts[i].n);
  part.symbols.update({{label("k_size"), c.extent(c.k)},
                       {label("batches"), batches},
                       {label("elements"), elements},
                       {label("tiles"), ctas},
                       {label("vector_a"), k.vector_a},
                       {label("vector_b"), k.vector_b},
                       {label("vector_out"), k.vector_out}});
  part.defines = {{label("VECTOR_A"), label("vector_a")},
                  {label("VECTOR_B"), label("vector_b")},
                  {label("VECTOR_OUT"), label("vector_out")}};
  part.requirements.push_back(label("batches") + " <= 65535");
  for (const char* size : {"m_size", "n_size", "k_size"})
    part.requirements.push_back(label(size) + " <= 2000000000");
  add_size_requirements(c, part);
  for (const std::string& requirement : stream_requirements(c))
    part.requirements.push_back(requirement);
}

// One CTA computes each tile of the full rounds. In the last round, `pieces` CTAs share the depth
// of each tile, with a depth of at least 256 each, if there are enough CTAs. A product without a
// full round has `pieces` 1, so that small test shapes reach the code of whole tiles.
void add_last_round(const Json& params, const Label& label, ProgramPart& part) {
  const int64_t ctas = kSms * wgmma_resident(params), most = int_param(params, "tail");
  const std::string all = fmt::format("ceil_div({},{})*ceil_div({},{})*{}", label("m_size"),
                                      int_param(params, "tile_m"), label("n_size"),
                                      int_param(params, "tile_n"), label("batches"));
  part.symbols[label("all_tiles")] = all;
  part.symbols[label("rest")] = fmt::format("{} % {}", label("all_tiles"), ctas);
  part.symbols[label("pieces")] =
      fmt::format("{0} < {1} ? 1 : max(min(min({1}/max({2},1),{3}/256),{4}),1)", label("all_tiles"),
                  ctas, label("rest"), label("k_size"), most);
  part.symbols[label("parts")] =
      fmt::format("{0} == 1 ? 0 : {1}*{0}", label("pieces"), label("rest"));
  part.symbols[label("whole")] =
      fmt::format("{0} == 1 ? {1} : {1}-{2}", label("pieces"), label("all_tiles"), label("rest"));
  part.symbols.erase(label("tiles"));  // a symbol may only use earlier ones
  part.symbols[label("tiles")] = fmt::format("min({}+{},{})", label("whole"), label("parts"), ctas);
  part.scratch.push_back({{"name", label("partial")},
                          {"dtype", "f32"},
                          {"shape",
                           {fmt::format("max({},1)", label("parts")), int_param(params, "tile_m"),
                            int_param(params, "tile_n")}}});
}

std::vector<int64_t> splits_worth_trying(const Contraction& c) {
  const int64_t wanted = best_tiling(c).split;
  std::vector<int64_t> splits;
  for (int64_t split : {1, 2, 4, 8, 16, 32, 64, 128})
    if (c.joined() && split > 1)
      continue;  // one kernel writes all results
    else if (split == wanted || (may_split(c, split) && tiles(c, 128, 128) * split <= 8 * kSms))
      splits.push_back(split);
  std::stable_sort(splits.begin(), splits.end(), [&](int64_t a, int64_t b) {
    auto far = [&](int64_t s) { return std::max(s, wanted) / std::min(s, wanted); };
    return far(a) < far(b);
  });
  return splits;
}

RecipeParameter halves_parameter(const Contraction& c) {
  const bool first = pairs_apply(c) && pairs_pay(c);
  return {
      .name = "by_halves",
      .meaning = c.math_mode == MathMode::tf32
                     ? "1: round both factors to half precision first, which is as accurate as tf32"
                     : "1: split both factors into pairs of half-precision values first",
      .legal = {first ? 1 : 0, first ? 0 : 1}};
}

}  // namespace

std::vector<RecipeParameter> matmul_parameters(const Contraction& c) {
  if (c.b.packed) return stream_parameters(c);
  std::vector<int64_t> vectors{4, 1};
  if (size_of(c.a.operand.dtype) == 2 && size_of(c.b.operand.dtype) == 2)
    vectors.insert(vectors.begin(), 8);  // 16 bytes
  const bool cores = c.math_mode != MathMode::fp32, hopper = wgmma_applies(c),
             halves = multiplies_elements(c);
  using Values = std::vector<int64_t>;
  RecipeParameter tile_m{.name = "tile_m",
                         .meaning = "rows of the result that a CTA computes",
                         .legal = hopper && halves ? Values{256, 192, 128, 64}
                                  : cores          ? Values{128, 64}
                                                   : Values{256, 128, 64}},
      tile_n{.name = "tile_n",
             .meaning = "columns of the result that a CTA computes",
             .legal = halves && hopper  ? Values{256, 192, 128, 160, 64, 32}
                      : c.groups() == 3 ? Values{96, 128, 64}
                                        : Values{128, 64, 32}};
  RecipeParameter vector{.name = "vector",
                         .meaning = "neighbouring elements that a thread moves in one access",
                         .legal = vectors},
      stages{.name = "stages",
             .meaning = "pipeline stages: tiles along the depth in shared memory at once",
             .legal = !cores   ? Values{3, 2, 4, 1}
                      : hopper ? Values{4, 6, 3, 8, 12, 2, 1}
                               : Values{3, 4, 2, 1}},
      tile_k{.name = "tile_k",
             .meaning = "depth of the tiles in shared memory",
             .legal = cores ? Values{32, 64, 16, 8} : Values{16, 32, 8, 64}},
      threads{.name = "threads",
              .meaning = "threads of a CTA",
              .legal = cores ? Values{128, 256} : Values{256, 128}},
      split{.name = "split",
            .meaning = "CTAs that share the depth of one tile",
            .legal = splits_worth_trying(c)},
      cores_on{.name = "tensor_cores",
               .meaning = "1: multiply on the tensor cores, in the task's math mode",
               .legal = {1, 0}};
  const RecipeParameter wgmma{
      .name = "wgmma",
      .meaning = cores ? "1: multiply by wgmma on Hopper's tensor cores, in the task's math mode"
                       : "1: multiply on Hopper's tensor cores with float32 accuracy",
      .legal = {1, 0}};
  const RecipeParameter cluster{
      .name = "cluster", .meaning = "2: pairs of CTAs share their tiles of B", .legal = {1, 2}},
      tail{.name = "tail",
           .meaning = "most CTAs that share a tile of the last round; 1: none",
           .legal = c.joined() ? Values{1} : Values{1, 8, 4}},
      turns{.name = "ping_pong",
            .meaning = "1: two warpgroups take tiles in turn; one writes while one multiplies",
            .legal = {0, 1}};
  // The parameters that change the time most come first.
  const RecipeParameter halves_on = halves_parameter(c);
  if (cores && hopper && pairs_apply(c)) {
    tile_m.legal.push_back(256);
    tile_n.legal.insert(tile_n.legal.begin(), {256, 192});
    stages.legal.push_back(5);
    return {wgmma,  halves_on, tile_m,   tile_n, cluster, split,
            stages, vector,    cores_on, tile_k, threads};
  }
  if (cores && hopper && !halves)
    return {wgmma, tile_m, tile_n, split, stages, vector, cores_on, tile_k, threads};
  if (cores && hopper) {
    if (streams(c)) {  // tiles that only streaming kernels have
      tile_m.legal.insert(tile_m.legal.end(), {8, 16, 32});
      tile_n.legal.push_back(16);
    }
    std::vector<RecipeParameter> all{wgmma,  tile_m, tile_n, turns,    tail,   cluster,
                                     stages, split,  vector, cores_on, tile_k, threads};
    if (streams(c))
      all.insert(all.begin() + 1, {.name = "stream",
                                   .meaning = "1: read the second factor into registers",
                                   .legal = {1, 0}});
    return all;
  }
  if (hopper && pairs_apply(c)) {
    tile_n.legal.insert(tile_n.legal.begin() + 1, 192);
    return {wgmma, halves_on, tile_m, tile_n, cluster, split, stages, tile_k, threads, vector};
  }
  if (hopper) return {wgmma, tile_m, tile_n, split, stages, tile_k, threads, vector};
  if (!cores) return {tile_m, threads, tile_k, split, stages, tile_n, vector};
  return {cores_on, vector, tile_m, tile_n, stages, tile_k, threads, split};
}

// A kernel falls back from vectors to single elements by itself. Except in fp32, the tiles also
// suit the tensor cores, which are tried next.
Json matmul_safe(const Contraction& c) {
  if (c.b.packed) return stream_safe(c);
  const Tiling best = best_tiling(c);
  // The parameter counts the rows of both warpgroups.
  const int64_t rows = best.ping_pong ? 2 * best.tile_m : best.tile_m;
  Json params{{"vector", 4},        {"tile_m", rows},          {"tile_n", best.tile_n},
              {"tile_k", 16},       {"threads", best.threads}, {"stages", 3},
              {"split", best.split}};
  if (c.math_mode != MathMode::fp32)
    params.update({{"tensor_cores", 0}, {"threads", 256}, {"tile_k", 32}, {"stages", 1}});
  if (best.engine == MatmulEngine::wgmma) {
    params.update(
        {{"wgmma", 1},
         {"cluster", 1},
         {"ping_pong", best.ping_pong ? 1 : 0},
         {"tail", 1},
         {"stages", best.stages},
         {"vector", size_of(c.a.operand.dtype) == 2 && size_of(c.b.operand.dtype) == 2 ? 8 : 4}});
    if (streams(c)) params["stream"] = 0;
    if (streams(c) && c.size(c.m) <= kMostStreamed) {
      const Json few = stream_safe(c);
      for (const char* name : {"tile_m", "tile_n", "split", "stream"}) params[name] = few.at(name);
    }
  } else if (wgmma_applies(c)) {
    const bool on = best.engine == MatmulEngine::wgmma_fp32;
    params["wgmma"] = on ? 1 : 0;
    if (on) params.update({{"threads", 256}, {"stages", products_of(c) == 3 ? 4 : 6}});
  }
  if (best.engine != MatmulEngine::wgmma && c.math_mode != MathMode::fp32) {
    params["tile_m"] = std::min<int64_t>(best.tile_m, 128);
  }
  if (pairs_apply(c)) choose_pairs(c, params);
  return params;
}

bool matmul_legal(const Contraction& c, const Json& params) {
  const MatmulEngine engine = engine_of(c, params);
  if (c.joined() && (int_param(params, "split") > 1 || shares_last_round(params))) return false;
  if (c.groups() > 1 && !persistent(engine)) return false;
  if (engine == MatmulEngine::stream) return stream_legal(c, params);
  if (engine == MatmulEngine::wgmma_pairs) return pairs_legal(c, params);
  if (pairs_apply(c) && int_param(params, "cluster") != 1) return false;
  if (int_param(params, "tile_m") < 64 || int_param(params, "tile_n") < 32) return false;
  if (engine == MatmulEngine::wgmma_fp32) return wgmma_fp32_legal(c, params);
  if (engine == MatmulEngine::wgmma) return wgmma_legal(c, with_wgmma_shape(c, params));
  int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n"),
          k = int_param(params, "tile_k"), threads = int_param(params, "threads"),
          stages = int_param(params, "stages");
  if (m * k % (threads * int_param(params, "vector")) ||
      n * k % (threads * int_param(params, "vector")))
    return false;
  return engine == MatmulEngine::mma ? cores_legal(m, n, k, threads, stages, bytes_of_element(c))
                                     : simt_legal(m, n, k, threads, stages);
}

namespace {

// The part of one kernel of a product, and of the kernel that adds the parts of a split.
ProgramPart product_part(const Task& task, const Contraction& c, const Json& params,
                         const Label& label) {
  const MatmulEngine engine = engine_of(c, params);
  const Json chosen = persistent(engine)               ? with_wgmma_shape(c, params)
                      : engine == MatmulEngine::stream ? with_stream_shape(c, params)
                                                       : params;
  const MatmulKernel kernel = matmul_kernel(task, c, chosen, label);
  ProgramPart part;
  part.file = label("kernel") + ".cu";
  part.source = kernel.source;
  const bool in_cluster = sums_in_cluster(c, chosen);
  part.hopper = persistent(engine) || in_cluster;
  add_symbols(c, kernel, ctas_text(c, chosen, engine, label), label, part);
  if (engine == MatmulEngine::wgmma) add_maps(c, label, part);
  if (engine == MatmulEngine::wgmma && shares_last_round(chosen))
    add_last_round(chosen, label, part);
  if (int_param(chosen, "split") > 1 && !in_cluster)
    part.scratch.push_back({{"name", label("partial")},
                            {"dtype", "f32"},
                            {"shape", {chosen.at("split"), label("elements")}}});
  if (engine == MatmulEngine::wgmma_pairs) add_pairs(c, label, part);
  part.steps = plan_steps(c, kernel, chosen, label);
  return part;
}

}  // namespace

ProgramPart matmul_part(const Task& task, const Contraction& c, const Json& params,
                        const Label& label) {
  if (!by_halves(params)) return product_part(task, c, params, label);
  const Label own = pairs_label(label);
  Json with_control = params;
  with_control["control"] = own("control");
  ProgramPart part = product_part(task, c, without_pairs(c, params, label), label);
  part.earlier = {split_part(task, c, own), product_part(task, c, with_control, own)};
  return part;
}

}  // namespace cutegen::recipes
