// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "recipes/matmul/matmul_finish.h"
#include "recipes/matmul/matmul_maps.h"
#include "recipes/matmul/matmul_tiling.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kPairsDepth = 64;                    // of a tile
constexpr int64_t kPairsShared = int64_t{227} * 1024;  // bytes that Hopper grants
constexpr double kBytes = 4e12;                        // bytes that an H200 moves in a second

bool varies_with_batch(const Factor& factor) {
  return factor.batch.size() == 1 && factor.batch[0].move != Move::none;
}

// The factor's batches, a plan expression.
std::string batches_of(const Factor& factor, const Label& label) {
  return varies_with_batch(factor) ? label("batches") : "1";
}

// The factor as a CuTe tensor with the axes (row, depth, batch).
std::string tensor_text(Layouts& layouts, const Factor& factor, const std::string& name,
                        const std::string& from, const std::string& rows) {
  const std::string row = layouts.stride_text(factor.row, from + "_row"),
                    depth = layouts.stride_text(factor.depth, from + "_depth");
  const std::string batch =
      varies_with_batch(factor)
          ? fmt::format("int64_t({})", layouts.stride_text(factor.batch[0], from + "_batch"))
          : "Int<0>{}";
  return fmt::format(
      "  Tensor {} = make_tensor(make_gmem_ptr({}),\n"
      "                          make_layout(make_shape({}, k_size, {}),\n"
      "                                      make_stride({}, {}, {})));\n",
      name, from, rows, varies_with_batch(factor) ? "batches" : "1", row, depth, batch);
}

// The half-precision parts of a value: a product in tf32 needs only the high one.
int64_t halves_of(const Contraction& c) {
  return c.math_mode == MathMode::tf32 ? 1 : 2;
}

std::string order_text(const Factor& factor, const std::string& vector) {
  return fmt::format("{}, {}", vector, along_depth(factor));
}

// cutegen::tma_spec: version, rank, box[5], mode[5], bits of an element, swizzle of 128 bytes.
std::string box_text(const Factor& factor, const char* name, int64_t rows) {
  return fmt::format(
      "extern \"C\" __device__ const unsigned {}[15] = {{1, 3, 64, {}, 1, 0, 0, 0, 1, 2, 0, 0, 16, "
      "3, 4}};\n",
      name, along_depth(factor) ? rows : kPairsDepth);
}

// Adds the buffer and the tensor map of one factor's pairs.
void add_factor(const Factor& factor, int64_t halves, const Label& label, const std::string& name,
                const std::string& rows, ProgramPart& part) {
  const std::string size = fmt::format("max({},1)", rows),
                    depth = fmt::format("max({},1)", label("k_size")),
                    along = along_depth(factor) ? depth : size,
                    across = along_depth(factor) ? size : depth, line = label("line_" + name),
                    matrices = fmt::format("{}*max({},1)", halves, batches_of(factor, label));
  part.symbols[line] = fmt::format("ceil_div({},8)*8", along);
  part.scratch.push_back(
      {{"name", label("pairs_" + name)}, {"dtype", "f16"}, {"shape", {matrices, across, line}}});
  part.tensor_maps[label("map_" + name)] = {
      {"tensor", label("pairs_" + name)},
      {"spec", "cg_map_" + name},
      {"dims", {along, across, matrices}},
      {"strides", {"1", line, fmt::format("{}*{}", line, across)}}};
}

// A tile of a product in tf32. A thread holds at most 128 results.
struct HalfTile {
  int64_t m, n, stages;
  double speed;
};
constexpr HalfTile kHalfTiles[] = {
    {.m = 128, .n = 256, .stages = 4, .speed = 1},
    {.m = 256, .n = 128, .stages = 4, .speed = 1.03},
    {.m = 128, .n = 192, .stages = 5, .speed = 0.97},
};

// Estimates the time of a product of high parts in seconds, as for 16-bit operands.
double half_seconds(const Contraction& c, const HalfTile& t) {
  constexpr double kRate = 3e12;  // multiplications of an SM
  const double rounds = double(ceil_div(tiles(c, t.m, t.n), kSms));
  return rounds * double(t.m * t.n) * double(c.size(c.k) + 200) / t.speed / kRate;
}

const HalfTile& best_half_tile(const Contraction& c) {
  return *std::min_element(std::begin(kHalfTiles), std::end(kHalfTiles),
                           [&](const HalfTile& a, const HalfTile& b) {
                             return half_seconds(c, a) < half_seconds(c, b);
                           });
}

// Estimates the time of the product of pairs in seconds. On an H200, 4096 x 4096 x 4096 products
// take 0.67 ms with tiles of 128 x 128, 0.71 ms with tiles of 128 x 192, which need six rounds
// instead of 5.3.
double pairs_seconds(const Contraction& c, int64_t tile_n) {
  constexpr double kRate = 230e12 / 2 / kSms;
  // A tile's prologue and epilogue, in steps along k. They take as long as in the slower product of
  // floats, which counts 100 steps.
  constexpr int64_t kStart = 200;
  const double depth = double(c.size(c.k) + kStart),
               rounds = double(ceil_div(tiles(c, 128, tile_n), kSms));
  return rounds * 128 * double(tile_n) * depth / kRate;
}

// Estimates the time of the other three launches. For pairs, two passes read the factors.
double split_seconds(const Contraction& c) {
  constexpr double kLaunch = 3e-6;
  const auto elements = [&](const Factor& factor, int axis) {
    return double(c.size(axis)) * double(c.size(c.k)) *
           double(varies_with_batch(factor) ? c.batches() : 1);
  };
  const double bytes = halves_of(c) == 1 ? 6 : 12;
  return (elements(c.a, c.m) + elements(c.b, c.n)) * bytes / kBytes + 3 * kLaunch;
}

int64_t tile_of_pairs(const Contraction& c) {
  return pairs_seconds(c, 192) <= pairs_seconds(c, 128) ? 192 : 128;
}

}  // namespace

bool pairs_apply(const Contraction& c) {
  const auto floats = [](const Factor& factor) {
    return factor.operand.dtype == DType::f32 && factor.row.move != Move::none &&
           factor.depth.move != Move::none;
  };
  return c.hopper && !c.rounded &&
         (c.math_mode == MathMode::fp32 || c.math_mode == MathMode::tf32) && !c.joined() &&
         !c.zero_outside && c.batch_axes.size() <= 1 && c.m >= 0 && c.n >= 0 && c.k >= 0 &&
         floats(c.a) && floats(c.b);
}

bool by_halves(const Json& params) {
  return params.value("by_halves", 0) == 1 && params.value("wgmma", 0) == 1;
}

int64_t pairs_shared(const Contraction& c, const Json& params) {
  // The parts of both tiles, with lines of 128 bytes, and a barrier for each part and one more. A
  // WgmmaGemm has two further barriers.
  const int64_t halves = halves_of(c),
                lines = int_param(params, "tile_m") + int_param(params, "tile_n");
  const int64_t stage = halves * lines * 128 + 8 * (halves + 1);
  return ceil_div(int_param(params, "stages") * stage + (halves == 1 ? 16 : 0), 1024) * 1024;
}

bool pairs_legal(const Contraction& c, const Json& params) {
  const int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n"),
                cluster = int_param(params, "cluster");
  if (halves_of(c) == 1) {
    const bool known = std::any_of(std::begin(kHalfTiles), std::end(kHalfTiles),
                                   [&](const HalfTile& t) { return t.m == m && t.n == n; });
    return pairs_apply(c) && known && int_param(params, "split") == 1 && cluster == 1 &&
           int_param(params, "stages") >= 2 && pairs_shared(c, params) <= kPairsShared;
  }
  return pairs_apply(c) && int_param(params, "split") == 1 && m == 128 && (n == 128 || n == 192) &&
         (cluster == 1 || cluster == 2) && int_param(params, "stages") >= 2 &&
         pairs_shared(c, params) <= kPairsShared;
}

bool pairs_pay(const Contraction& c) {
  // The results of seconds_of() are only good for comparisons: on an H200, products of floats take
  // twice as long. No product takes less time than the stores of its results.
  const double results = double(c.size(c.m) * c.size(c.n) * c.batches()) * 4 / kBytes;
  const double pairs = halves_of(c) == 1 ? half_seconds(c, best_half_tile(c))
                                         : pairs_seconds(c, tile_of_pairs(c)),
               split = split_seconds(c);
  return (std::max(pairs, results) + split) * 1.05 < std::max(2 * seconds_of(c), results);
}

void choose_pairs(const Contraction& c, Json& params) {
  params.update({{"by_halves", 0}, {"cluster", 1}});
  if (!pairs_pay(c)) return;
  if (halves_of(c) == 1) {
    const HalfTile& t = best_half_tile(c);
    params.update({{"by_halves", 1},
                   {"wgmma", 1},
                   {"tile_m", t.m},
                   {"tile_n", t.n},
                   {"stages", t.stages},
                   {"split", 1}});
    return;
  }
  const int64_t n = tile_of_pairs(c);
  const int64_t stages = n == 192 ? 2 : 3, cluster = c.size(c.m) > 128 ? 2 : 1;
  params.update({{"by_halves", 1},
                 {"wgmma", 1},
                 {"tile_m", 128},
                 {"tile_n", n},
                 {"stages", stages},
                 {"split", 1},
                 {"cluster", cluster}});
}

Label pairs_label(const Label& label) {
  return {label.number.empty() ? "halves" : label.number + "_halves"};
}

Json without_pairs(const Contraction& c, Json params, const Label& label) {
  const bool narrow = turned(c) ? c.size(c.m) <= 64 : c.size(c.n) <= 64;
  params.update({{"by_halves", 0},
                 {"tile_m", turned(c) && narrow ? 64 : 128},
                 {"tile_n", !turned(c) && narrow ? 64 : 128},
                 {"stages", 4},
                 {"control", pairs_label(label)("control")}});
  return params;
}

ProgramPart split_part(const Task& task, const Contraction& c, const Label& label) {
  ProgramPart part;
  part.file = label("split") + ".cu";
  part.hopper = true;
  Code code(c.finish);
  Numbers numbers;
  Layouts layouts(c, code, numbers);
  std::map<std::string, std::string> t;
  t["title"] = title(task, c.finish);
  t["a"] = name_of(c, c.a);
  t["b"] = name_of(c, c.b);
  t["range"] = label("range");
  t["split"] = label("split");
  t["tensors"] = tensor_text(layouts, c.a, "rows", "a", "m_size") +
                 tensor_text(layouts, c.b, "columns", "b", "n_size");
  t["sizes"] = "int m_size, int n_size, int k_size, int batches";
  for (const auto& [name, expression] : numbers) t["sizes"] += ", int64_t " + name;
  t["order_a"] = order_text(c.a, label("VECTOR_A"));
  t["order_b"] = order_text(c.b, label("VECTOR_B"));
  const bool one = halves_of(c) == 1;
  part.source = fill(one ? "kernels/matmul/halves.cu" : "kernels/matmul/pairs.cu", t);
  const auto step = [&](const std::string& name, const std::vector<std::string>& tensors) {
    Json args = Json::array();
    for (const std::string& tensor : tensors) args.push_back({{"tensor", tensor}});
    for (const char* size : {"m_size", "n_size", "k_size", "batches"})
      args.push_back({{"i32", label(size)}});
    for (const auto& [number, expression] : numbers) args.push_back({{"i64", expression}});
    part.steps.push_back({{"id", name},
                          {"kernel", name},
                          {"when", label("elements") + " > 0"},
                          {"grid", {label("split_ctas"), 1, 1}},
                          {"block", {256, 1, 1}},
                          {"args", args}});
  };
  if (one)
    part.steps.push_back({{"id", label("clear")},
                          {"fill", label("control")},
                          {"value", 0},
                          {"when", label("elements") + " > 0"}});
  else
    step(label("range"), {t.at("a"), t.at("b"), label("control")});
  step(label("split"),
       {t.at("a"), t.at("b"), label("pairs_a"), label("pairs_b"), label("control")});
  return part;
}

void add_pairs(const Contraction& c, const Label& label, ProgramPart& part) {
  // A warp of the split processes blocks of at least 16 x 64 elements; an SM holds two CTAs.
  part.symbols[label("split_ctas")] =
      fmt::format("min(ceil_div(({}+{})*max({},1)*{},16384),{})", label("m_size"), label("n_size"),
                  label("k_size"), label("batches"), 2 * kSms);
  part.scratch.push_back({{"name", label("control")},
                          {"dtype", "u32"},
                          {"shape", {fmt::format("3+2*{}", label("split_ctas"))}}});
  add_factor(c.a, halves_of(c), label, "a", label("m_size"), part);
  add_factor(c.b, halves_of(c), label, "b", label("n_size"), part);
}

std::string pairs_type(const Contraction& c) {
  const std::string order = fmt::format("{}, {}", along_depth(c.a), along_depth(c.b));
  if (halves_of(c) == 2)
    return "cutegen::WgmmaPairGemm<kTileM, kTileN, kStages, " + order + ", kCluster>";
  return "cutegen::WgmmaGemm<half_t, half_t, half_t, kTileM, kTileN, kStages, 1, 1, " + order +
         ",\n                                true, kCluster>";
}

void pairs_text(const Contraction& c, const Json& params, std::map<std::string, std::string>& t) {
  const auto batch = [](const Factor& factor) { return varies_with_batch(factor) ? "batch" : "0"; };
  const bool one = halves_of(c) == 1;
  t["engine"] = one ? "wgmma" : "wgmma_pairs";
  t["plan"] =
      halves_of(c) == 1
          ? "// Another kernel has rounded both operands to half precision."
          : "// Another kernel has split both operands into pairs of half-precision matrices.";
  t["cluster"] = fmt::format("constexpr int kCluster = {};  // CTAs that share tiles of {}\n",
                             params.at("cluster").dump(), t.at("b"));
  t["constants"] = "// What the plan's tensor maps load: boxes with lines of 128 bytes.\n" +
                   box_text(c.a, "cg_map_a", int_param(params, "tile_m")) +
                   box_text(c.b, "cg_map_b", int_param(params, "tile_n")) + "\n";
  t["map_params"] =
      "const __grid_constant__ TmaDescriptor map_a, const __grid_constant__ TmaDescriptor map_b,\n"
      "       ";
  t["tiles"] = "ceil_div(tiles_m, kCluster) * kCluster * tiles_n";
  t["load"] = fmt::format("      gemm.load(map_a, map_b, {}, {}, tile, first, last, storage);",
                          batch(c.a), batch(c.b));
  t["loaded"] = "";
  t["repair"] = one ? "" : "      gemm.scale(int(control[1]), int(control[2]));\n";
  t["end"] = "  gemm.end();\n";
}

std::string gate_text(const Json& params, bool pairs) {
  if (!params.contains("control")) return "";
  return pairs
             ? "  if (control[0] != 0) return;  // the next kernel computes the product\n"
             : "  if (control[0] == 0) return;  // the previous kernel has computed the product\n";
}

}  // namespace cutegen::recipes
