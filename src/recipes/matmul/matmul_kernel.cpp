// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "base/text.h"
#include "recipes/matmul/matmul_finish.h"
#include "recipes/matmul/matmul_maps.h"
#include "recipes/matmul/matmul_pairs.h"
#include "recipes/matmul/matmul_stream.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

// How the CTAs that multiply a tile share the depth.
enum class Shares {
  all,      // one CTA takes all
  even,     // kSplit CTAs share every tile
  cluster,  // the kSplit CTAs of a cluster share every tile
  tail      // `pieces` CTAs share each tile of the last round
};

Shares shares_of(const Contraction& c, const Json& params) {
  if (sums_in_cluster(c, params)) return Shares::cluster;
  if (params.at("split") > 1) return Shares::even;
  return params.value("tail", 1) > 1 ? Shares::tail : Shares::all;
}

// Writes which tiles along k this CTA takes.
std::string steps(const Contraction& c, Shares shares) {
  std::string text =
      "const int tiles_k = ceil_div(k_size, kTileK);\n"
      "const int first = 0;\n"
      "int last = tiles_k;\n";
  if (shares == Shares::tail)
    text =
        "const int tiles_k = ceil_div(k_size, kTileK);\n"
        "const int share = part ? ceil_div(tiles_k, pieces) : tiles_k;\n"
        "const int first = part ? (id - whole) % pieces * share : 0;\n"
        "int last = cute::min(first + share, tiles_k);\n";
  if (shares == Shares::even || shares == Shares::cluster)
    text =
        "const int tiles_k = ceil_div(k_size, kTileK), share = ceil_div(tiles_k, kSplit);\n"
        "const int first = blockIdx.y * share;\n"
        "int last = cute::min(first + share, tiles_k);\n";
  if (c.zero_outside) {
    const Mask& mask = *c.zero_outside;
    text += fmt::format(
        "// A tile outside the triangle is zero, whatever the product.\n"
        "if ({}) last = first;\n",
        mask.upper
            ? fmt::format("(tile.n + 1) * kTileN - 1 - tile.m * kTileM < {}", mask.diagonal)
            : fmt::format("tile.n * kTileN - ((tile.m + 1) * kTileM - 1) > {}", mask.diagonal));
  }
  return text;
}

std::string sizes(const Numbers& numbers, Shares shares) {
  std::string text = "int m_size, int n_size, int k_size, int batches";
  if (shares == Shares::tail) text += ", int whole, int pieces";
  for (const auto& [name, expression] : numbers) text += ", int64_t " + name;
  return text;
}

std::string gemm_type(const Contraction& c, const Json& params, const Label& label) {
  const MatmulEngine engine = engine_of(c, params);
  auto flag = [](bool b) { return b ? "true" : "false"; };
  const std::string factors = type_of(c.a.operand) + ", " + type_of(c.b.operand),
                    order = fmt::format("{}, {}, {}, {}", label("VECTOR_A"), label("VECTOR_B"),
                                        flag(along_depth(c.a)), flag(along_depth(c.b)));
  if (engine == MatmulEngine::stream) return stream_type(c, params, label);
  if (engine == MatmulEngine::wgmma_pairs) return pairs_type(c);
  if (engine == MatmulEngine::wgmma_fp32)
    return fmt::format(
        "cutegen::WgmmaFp32Gemm<{}, kTileM, kTileN, kTileK, kStages,\n"
        "                                    {}{}>",
        factors, order,
        c.groups() > 1        ? fmt::format(", {}, {}", products_of(c), c.groups())
        : products_of(c) == 1 ? ", 1"
                              : "");
  if (engine == MatmulEngine::wgmma)
    return fmt::format(
        "cutegen::WgmmaGemm<{}, {}, kTileM, kTileN, kStages,\n"
        "                                {}, {}, kCluster{}>",
        element_type(c, params), factors, order, label("USE_TMA"),
        ping_pong(params) ? fmt::format(", {}, true", c.groups())
        : c.groups() == 1 ? ""
                          : fmt::format(", {}", c.groups()));
  const bool cores = engine == MatmulEngine::mma;
  return fmt::format(
      "cutegen::{}<{}{}, kTileM, kTileN, kTileK, kThreads, kStages,\n"
      "                      {}>",
      cores ? "MmaGemm" : "SimtGemm", cores ? element_type(c, params) + ", " : "", factors, order);
}

// The placeholders of kernels/matmul/tiled.cu that depend on the engine.
void tiled_text(const Contraction& c, MatmulEngine engine, std::map<std::string, std::string>& t) {
  if (engine == MatmulEngine::stream) return stream_text(c, t);
  t["engine"] = engine == MatmulEngine::simt ? "simt" : "mma";
  t["resident"] =
      "// CTAs that an SM should hold: 128 registers for each thread, 256 if a thread has over 64 "
      "results.\n"
      "constexpr int kResident = (kTileM * kTileN > 64 * kThreads ? 256 : 512) / kThreads;";
  t["align"] = "";
  t["run"] = "  gemm.run(rows, columns, tile, first, last, storage);";
}

// Opens the loop of a persistent CTA over its tiles `at`.
std::string items_text(Shares shares) {
  if (shares != Shares::tail)
    return "for (int id = blockIdx.x; id < tiles * batches; id += gridDim.x) {\n"
           "  const int at = id;\n"
           "  const int batch = at / tiles;\n";
  return "for (int id = blockIdx.x; id < items; id += gridDim.x) {\n"
         "  const bool part = id >= whole;\n"
         "  const int at = part ? whole + (id - whole) / pieces : id;\n"
         "  const int batch = at / tiles;\n";
}

// What comes before the loops over tiles.
std::string prologue_text(Shares shares) {
  if (shares != Shares::tail) return "";
  return "  asm volatile(\"griddepcontrol.launch_dependents;\");  // the second kernel waits by "
         "itself\n"
         "  // Items from `whole` on are parts of a tile: the last round has few tiles, so "
         "`pieces` CTAs\n"
         "  // share the depth of each.\n"
         "  const int items = whole + (tiles * batches - whole) * pieces;\n";
}

// Stores a part of a tile for the second kernel.
std::string part_text(Shares shares) {
  if (shares != Shares::tail) return "";
  return "      if (part) {\n"
         "        Tensor parts = make_tensor(\n"
         "            make_gmem_ptr(partial + int64_t(id - whole) * (kTileM * kTileN)),\n"
         "            make_layout(make_shape(Int<kVector>{}, Int<kTileM>{}, Int<kTileN>{}),\n"
         "                        make_stride(Int<1>{}, Int<kTileN>{}, Int<1>{})));\n"
         "        gemm.each<kVector>(tile, [&](float const (&product)[kVector], int m, int n) {\n"
         "          cutegen::store(product, parts(_, m - tile.m * kTileM, n - tile.n * kTileN));\n"
         "        });\n"
         "        continue;\n"
         "      }\n";
}

// The tensors that a persistent kernel multiplies, and its other text that depends on the engine.
struct PersistentText {
  std::string tensors;  // declares `rows` and `columns`
  std::string by_maps;  // the call that loads by tensor maps
};

// The placeholders of kernels/matmul/persistent.cu that depend on the size of an element: 16-bit
// elements may be loaded by tensor maps, floats are split by the producers.
void halves_text(const Contraction& c, const Json& params, const Label& label,
                 const PersistentText& text, std::map<std::string, std::string>& t) {
  t["engine"] = "wgmma";
  t["plan"] =
      "// The plan sets USE_TMA: 1 if tensor maps can describe both operands. It sets VECTOR_*: "
      "smaller if a\n// size is not a multiple of the vector.";
  t["cluster"] = fmt::format("constexpr int kCluster = {};  // CTAs that share tiles of {}\n",
                             params.at("cluster").dump(), t.at("b"));
  t["constants"] = map_constants(c, params) + "\n";
  t["map_params"] = map_parameters(c) + ",\n       ";
  t["tiles"] = "ceil_div(tiles_m, kCluster) * kCluster * tiles_n";
  t["load"] = fmt::format(
      "#if {}\n      {};\n#else\n{}\n      gemm.load(rows, columns, tile, first, last, storage);\n"
      "#endif",
      label("USE_TMA"), text.by_maps, text.tensors);
  t["loaded"] = t["repair"] = "";
  t["end"] = "  gemm.end();\n";
}

void floats_text(const PersistentText& text, std::map<std::string, std::string>& t) {
  t["engine"] = "wgmma_fp32";
  t["plan"] = "// The plan sets VECTOR_*: 1 if a size is not a multiple of the vector.";
  t["cluster"] = t["constants"] = t["map_params"] = t["end"] = "";
  t["tiles"] = "tiles_m * tiles_n";
  t["load"] = text.tensors + "\n      gemm.load(rows, columns, tile, first, last, storage);";
  t["loaded"] = "    gemm.end_loading(storage);\n";
  t["repair"] = text.tensors + "\n      gemm.repair(rows, columns, tile, first, last);\n";
}

// How many neighbouring results a thread stores together.
int64_t out_vector(const Contraction& c, const Json& params) {
  const auto vector = params.at("vector").get<int64_t>();
  switch (engine_of(c, params)) {
    case MatmulEngine::simt:
      return std::min<int64_t>(4, vector);
    case MatmulEngine::stream:
      return vector;
    case MatmulEngine::wgmma:
      return vector == 8 ? 8 : 2;
    case MatmulEngine::wgmma_pairs:
      break;
    case MatmulEngine::wgmma_fp32:
      if (turned(c)) return 1;
      break;
    case MatmulEngine::mma:
      break;
  }
  return std::min<int64_t>(2, vector);
}

// The width of vectors along an axis whose size decides whether they are aligned.
std::string multiple_rule(const std::string& extent, int64_t width) {
  return width == 1 ? "1" : fmt::format("({0}) % {1} == 0 ? {1} : 1", extent, width);
}

// Vectors run along the contiguous axis, if there is one. All other strides are multiples of its
// size, so the size alone decides whether vectors are aligned.
std::string vector_rule(const Contraction& c, const Json& params, const Factor& factor, int row) {
  const auto vector = params.at("vector").get<int64_t>();
  bool depth = along_depth(factor);
  if (vector == 1 || (!depth && factor.row.move != Move::next)) return "1";
  std::string extent = c.extent(depth ? c.k : row);
  if (engine_of(c, params) == MatmulEngine::stream)
    return depth ? multiple_rule(extent, &factor == &c.b ? stream_segment(c) : 8) : "1";
  if (engine_of(c, params) == MatmulEngine::wgmma && vector == 8)
    return fmt::format("({0}) % 8 == 0 ? 8 : ({0}) % 2 == 0 ? 2 : 1", extent);
  return multiple_rule(extent, vector);
}

std::string output_rule(const Contraction& c, const Json& params) {
  if (params.at("vector") == 1 || c.loops_n.empty()) return "1";
  const int64_t vector = out_vector(c, params);
  const std::string& columns = c.loops_n.back().extent;
  if (!c.joined() && vector == 8 && engine_of(c, params) == MatmulEngine::wgmma)
    return fmt::format("({0}) % 8 == 0 ? 8 : ({0}) % 4 == 0 ? 4 : {1}", columns,
                       multiple_rule(columns, 2));
  if (!c.joined()) return multiple_rule(columns, vector);
  std::string rule;  // of the part with the smallest vector
  for (const Contraction* part : parts_of(c)) {
    const std::string own =
        width_text(part->finish, part->loops_n.back().extent, out_vector(c, params));
    rule = rule.empty() ? own : fmt::format("min({}, {})", rule, own);
  }
  return rule;
}

// The same for the second factors of joined products. Along their rows, each run of columns must
// begin and end at a multiple of the vector.
std::string joined_vector_rule(const Contraction& c, const Json& params) {
  if (along_depth(c.b) || c.b.row.move != Move::next) return vector_rule(c, params, c.b, c.n);
  const auto width = params.at("vector").get<int64_t>();
  std::string remainders;
  std::vector<std::string> sizes;
  for (const Contraction* part : parts_of(c)) sizes.push_back(part->columns->extent);
  for (const JoinedFactor& of : factors_of(c)) sizes.insert(sizes.end(), {of.start, of.columns});
  for (size_t i = 0; i < sizes.size(); ++i)
    if (std::find(sizes.begin(), sizes.begin() + long(i), sizes[i]) == sizes.begin() + long(i) &&
        sizes[i] != "0")
      remainders += fmt::format("{}({}) % {}", remainders.empty() ? "" : " + ", sizes[i], width);
  return width == 1 ? "1" : fmt::format("{} == 0 ? {} : 1", remainders, width);
}

// Writes the expression that chooses a joined product's text by its number.
std::string choose(const std::vector<std::string>& texts) {
  const bool same =
      std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) == texts.end();
  if (same) return texts.front();
  std::string text;
  for (size_t i = 0; i + 1 < texts.size(); ++i)
    text += fmt::format("which == {} ? {} : ", i, texts[i]);
  return text + texts.back();
}

bool apart(const Contraction& c) {
  return !c.parts.empty();
}

// The kernel's parameters for the number of columns of each joined product.
std::vector<std::string> part_sizes(const Contraction& c) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i <= c.parts.size(); ++i) sizes.push_back(fmt::format("part{}_size", i));
  return sizes;
}

// The text that differs if a kernel computes joined products: tiles and second factors.
class JoinedText {
 public:
  JoinedText(const Contraction& c, std::deque<MatmulFinish>& finishes, Numbers& numbers)
      : c_(c), finishes_(finishes), numbers_(numbers) {}

  // The tile of this CTA, and the joined product that it belongs to.
  std::string tile_text(const std::string& tile) const {
    if (!apart(c_)) return "const auto tile = " + tile;
    return fmt::format(
        "auto tile = {}\n"
        "const int which = cutegen::part_of(tile, part_tiles);  // of the joined products\n"
        "const int n_size = {};",
        tile, choose(sizes()));
  }

  // The number of tiles along n.
  std::string tiles_text() const {
    const std::string width = c_.groups() == 1 ? "kTileN" : fmt::format("kTileN / {}", c_.groups());
    if (!apart(c_)) return fmt::format("tiles_n = ceil_div(n_size, {});", width);
    std::vector<std::string> tiles, all;
    for (const std::string& size : sizes()) {
      all.push_back(fmt::format("part_tiles[{}]", tiles.size()));
      tiles.push_back(fmt::format("ceil_div({}, {})", size, width));
    }
    return fmt::format("part_tiles[{}] = {{{}}};\n  const int tiles_n = {};", tiles.size(),
                       join(tiles, ", "), join(all, " + "));
  }

  // The second factor as a tensor (row, depth), or one for each product in a tile.
  std::string columns_text() {
    const auto factors = factors_of(c_);
    std::vector<std::string> columns;
    for (size_t g = 0; g < size_t(c_.groups()); ++g) {
      std::vector<std::string> from, row, depth;
      for (size_t p = 0; p < finishes_.size(); ++p) {
        const JoinedFactor& of = factors[p * size_t(c_.groups()) + g];
        Layouts layouts = finishes_[p].layouts(numbers_);
        const std::string name = g == 0 ? "b" : fmt::format("b{}", g);
        row.push_back(once(layouts, of.factor->row, name + "_row"));
        depth.push_back(once(layouts, of.factor->depth, name + "_depth"));
        std::string text = name_of(c_, *of.factor) + layouts.batch_offset(*of.factor, name);
        if (of.start != "0")
          text += fmt::format(" + {} * int64_t({})", start_of(layouts, of, name), row.back());
        from.push_back(text);
      }
      columns.push_back(fmt::format("{}, {}, {}", choose(from), choose(row), choose(depth)));
    }
    if (!c_.joined()) {
      const size_t comma = columns[0].rfind(", ", columns[0].rfind(", ") - 1);
      return fmt::format(
          "Tensor columns = make_tensor(make_gmem_ptr({}),\n"
          "                             make_layout(make_shape(n_size, k_size), "
          "make_stride({})));",
          columns[0].substr(0, comma), columns[0].substr(comma + 2));
    }
    std::string text = fmt::format(
        "auto columns_of = [&]({} const* from, auto row, auto depth) {{\n"
        "  return make_tensor(make_gmem_ptr(from),\n"
        "                     make_layout(make_shape(n_size, k_size), "
        "make_stride(row, depth)));\n}};\n",
        type_of(c_.b.operand));
    if (columns.size() == 1)
      return text + fmt::format("Tensor columns = columns_of({});", columns[0]);
    text += fmt::format(
        "const auto first_columns = columns_of({});\n"
        "const decltype(columns_of({})) columns[{}] = {{first_columns",
        columns[0], columns[0], columns.size());
    for (size_t g = 1; g < columns.size(); ++g) text += ", columns_of(" + columns[g] + ")";
    return text + "};";
  }

  // How a persistent kernel loads by tensor maps.
  std::string load_text() {
    if (!c_.joined())
      return fmt::format("gemm.load(map_a, map_b, {}, {}, tile, first, last, storage)",
                         map_batch(c_, c_.a), map_batch(c_, c_.b));
    const auto factors = factors_of(c_);
    std::vector<std::string> maps, batches, starts;
    for (size_t g = 0; g < size_t(c_.groups()); ++g) {
      std::vector<std::string> map, batch, start;
      for (size_t p = 0; p < finishes_.size(); ++p) {
        const JoinedFactor& of = factors[p * size_t(c_.groups()) + g];
        map.push_back("&" + of.map);
        batch.push_back(map_batch(c_, *of.factor));
        Layouts layouts = finishes_[p].layouts(numbers_);
        const std::string at = start_of(layouts, of, fmt::format("b{}", g));
        start.push_back(at == "0" ? at : fmt::format("int({})", at));
      }
      maps.push_back(choose(map));
      batches.push_back(choose(batch));
      starts.push_back(choose(start));
    }
    return fmt::format(
        "gemm.load(map_a, cutegen::ColumnMaps<{}>{{{{{}}}, {{{}}}, {{{}}}}}, {}, tile, first, "
        "last, "
        "storage)",
        c_.groups(), join(maps, ", "), join(batches, ", "), join(starts, ", "),
        map_batch(c_, c_.a));
  }

 private:
  std::vector<std::string> sizes() const { return part_sizes(c_); }

  // An argument of the kernel, shared by the products that have the same stride.
  std::string once(Layouts& layouts, const Stride& s, const std::string& wanted) {
    if (s.move != Move::stride) return layouts.stride_text(s, wanted);
    auto [known, fresh] = known_.try_emplace(s.expression);
    if (fresh) known->second = layouts.stride_text(s, wanted);
    return known->second;
  }

  std::string start_of(Layouts& layouts, const JoinedFactor& of, const std::string& name) {
    if (of.start == "0") return "0";
    return once(layouts, {.move = Move::stride, .expression = of.start}, name + "_start");
  }

  const Contraction& c_;
  std::deque<MatmulFinish>& finishes_;
  Numbers& numbers_;
  std::map<std::string, std::string> known_;  // arguments for the second factors, by expression
};

// Declares each tensor of `operands` once as a kernel parameter, then the outputs of `finishes`.
std::vector<std::string> declare(const Contraction& c, const std::vector<const Operand*>& operands,
                                 const std::deque<MatmulFinish>& finishes,
                                 std::vector<std::string>& tensors) {
  std::vector<std::string> list;
  auto add = [&](const Operand& operand, const std::string& name, const char* constness) {
    if (operand.counts) return;
    if (std::find(tensors.begin(), tensors.end(), name) != tensors.end()) return;
    tensors.push_back(name);
    list.push_back(fmt::format("{}{}* __restrict__ {}", type_of(operand), constness, name));
  };
  for (const Operand* operand : operands)
    add(*operand, c.finish.names.at(operand->tensor), " const");
  for (const MatmulFinish& finish : finishes)
    for (const FactorAccess& a : finish.outputs()) add(*a.operand, a.name, "");
  return list;
}

class MatmulWriter {
 public:
  MatmulWriter(const Task& task, const Contraction& c, const Json& params, const Label& label)
      : task_(task), c_(c), params_(params), label_(label), shares_(shares_of(c, params)) {
    for (const Contraction* part : parts_of(c)) finishes_.emplace_back(*part, finishes_.size());
  }

  MatmulKernel write() {
    MatmulKernel k;
    auto t = product_text(k);
    if (shares_ == Shares::even || shares_ == Shares::tail) {
      std::string combine = combine_text(k);
      t["combine"] = combine.substr(combine.find("\n\n"));  // without the template's heading
    }
    k.source = fill(persistent(engine_of(c_, params_)) ? "kernels/matmul/persistent.cu"
                                                       : "kernels/matmul/tiled.cu",
                    t);
    while (k.source.size() > 1 && k.source[k.source.size() - 2] == '\n') k.source.pop_back();
    k.vector_a = vector_rule(c_, params_, c_.a, c_.m);
    k.vector_b =
        c_.joined() ? joined_vector_rule(c_, params_) : vector_rule(c_, params_, c_.b, c_.n);
    k.vector_out = output_rule(c_, params_);
    return k;
  }

 private:
  int64_t number(const char* name) const { return params_.at(name).get<int64_t>(); }
  // The work after the product, or after each of the joined products.
  std::string results_text(MatmulKernel& k) {
    const MatmulEngine engine = engine_of(c_, params_);
    const bool ahead = engine == MatmulEngine::wgmma || engine == MatmulEngine::wgmma_pairs;
    if (shares_ == Shares::cluster)
      return finishes_.front().results(k.numbers, ahead, false, "each_of_cluster<kVector, kSplit>");
    const bool packs = engine == MatmulEngine::wgmma;
    if (!apart(c_)) return finishes_.front().results(k.numbers, ahead, packs);
    std::string text;
    for (size_t p = 0; p < finishes_.size(); ++p)
      text += fmt::format("{}if (which == {}) {{\n{}\n}}", p == 0 ? "" : " else ", p,
                          indent(finishes_[p].results(k.numbers, ahead, packs), 2));
    return text;
  }

  std::string compute_text() {
    std::vector<std::string> functions;
    functions.reserve(finishes_.size());
    for (MatmulFinish& finish : finishes_) functions.push_back(finish.compute());
    return join(functions, "\n\n");
  }

  std::string size_parameters(const Numbers& numbers) const {
    std::string text = sizes(numbers, shares_);
    if (apart(c_)) {
      std::string columns;
      for (const std::string& size : part_sizes(c_))
        columns += fmt::format("{}int {}", columns.empty() ? "" : ", ", size);
      text = replace_all(text, "int n_size", columns);
    }
    for (const Contraction* part : parts_of(c_)) text += size_declarations(part->finish);
    return text;
  }

  // Fills the placeholders that depend on the engine.
  void engine_text(MatmulEngine engine, JoinedText& joined, std::map<std::string, std::string>& t) {
    if (!persistent(engine)) {
      tiled_text(c_, engine, t);
      t["tile"] = indent(joined.tile_text("cutegen::tile_index(blockIdx.x, tiles_m, tiles_n);"), 2);
      t["steps"] = indent(steps(c_, shares_), 2);
      return;
    }
    const bool halves = engine == MatmulEngine::wgmma, pairs = engine == MatmulEngine::wgmma_pairs;
    const std::string tile = joined.tile_text(
        halves || pairs ? "cutegen::cluster_tile<kCluster>(at % tiles, tiles_m, tiles_n);"
                        : "cutegen::tile_index(at % tiles, tiles_m, tiles_n);");
    t["items"] = indent(items_text(shares_) + indent(tile + "\n" + steps(c_, shares_), 2), 4);
    t["prologue"] = prologue_text(shares_);
    t["gate"] = gate_text(params_, pairs);
    t["part"] = part_text(shares_);
    t["turn"] = ping_pong(params_) ? "      if (gemm.skips(first, last)) continue;\n" : "";
    if (pairs) return pairs_text(c_, params_, t);
    const PersistentText text{
        .tensors = fmt::format(
            "      Tensor rows = make_tensor(make_gmem_ptr({}{}),\n"
            "                                make_layout(make_shape(m_size, k_size), {}));\n{}",
            t.at("a"), t.at("a_batch"), t.at("a_stride"), t.at("columns")),
        .by_maps = halves ? joined.load_text() : ""};
    if (halves)
      halves_text(c_, params_, label_, text, t);
    else
      floats_text(text, t);
  }

  std::map<std::string, std::string> product_text(MatmulKernel& k) {
    const bool split = shares_ == Shares::even;
    Layouts layouts = finishes_.front().layouts(k.numbers);
    const MatmulEngine engine = engine_of(c_, params_);
    std::map<std::string, std::string> t;
    t["title"] = title(task_, c_.finish);
    t["name"] = label_("matmul");
    t["vector_out"] = label_("VECTOR_OUT");
    for (const char* name : {"tile_m", "tile_n", "tile_k", "threads", "stages"})
      t[name] = params_.at(name).dump();
    t["gemm"] = gemm_type(c_, params_, label_);
    t["compute"] = (split || shares_ == Shares::cluster
                        ? fmt::format("constexpr int kSplit = {};\n\n", number("split"))
                        : "") +
                   compute_text();
    t["a"] = name_of(c_, c_.a);
    t["b"] = name_of(c_, c_.b);
    const bool pairs = engine == MatmulEngine::wgmma_pairs;  // then another kernel reads a and b
    if (!pairs) {
      std::string a_row = layouts.stride_text(c_.a.row, "a_row"),
                  a_depth = layouts.stride_text(c_.a.depth, "a_depth");
      t["a_stride"] = fmt::format("make_stride({}, {})", a_row, a_depth);
    }
    const int deeper = persistent(engine) ? 4 : 0;
    JoinedText joined(c_, finishes_, k.numbers);
    if (!pairs) t["columns"] = indent(joined.columns_text(), 2 + deeper);
    if (!pairs) t["a_batch"] = layouts.batch_offset(c_.a, "a");
    t["tiles_n"] = joined.tiles_text();
    engine_text(engine, joined, t);
    std::vector<const Operand*> operands;
    if (!pairs) {
      operands.push_back(&c_.a.operand);
      for (const JoinedFactor& of : factors_of(c_)) operands.push_back(&of.factor->operand);
    }
    const std::vector<Operand> grids = stream_operands(c_);
    for (const Operand& grid : grids) operands.push_back(&grid);
    for (const MatmulFinish& finish : finishes_)
      for (const FactorAccess& a : finish.inputs())
        if (!split) operands.push_back(a.operand);
    auto declarations =
        declare(c_, operands, split ? std::deque<MatmulFinish>() : finishes_, k.tensors);
    if (split) {
      k.tensors.push_back(label_("partial"));
      declarations.push_back("float* __restrict__ partial");
      t["results"] = indent(
          "Tensor parts = make_tensor(\n"
          "    make_gmem_ptr(partial + (int64_t(blockIdx.y) * batches + batch) * m_size * "
          "n_size),\n"
          "    make_layout(make_shape(Int<kVector>{}, m_size, n_size),\n"
          "                make_stride(Int<1>{}, int64_t(n_size), Int<1>{})));\n" +
              each_text(kEach, 1, "", "cutegen::store(product, parts(_, m, n));\n"),
          2 + deeper);
    } else {
      t["results"] = indent(results_text(k), 2 + deeper);
    }
    if (params_.contains("control")) {
      k.tensors.push_back(params_.at("control"));
      declarations.push_back("unsigned const* __restrict__ control");
    }
    if (shares_ == Shares::tail) {
      k.tensors.push_back(label_("partial"));
      declarations.push_back("float* __restrict__ partial");
    }
    t["params"] = join(declarations, ", ");
    t["sizes"] = size_parameters(k.numbers);
    t["combine"] = "";
    return t;
  }

  std::string combine_text(MatmulKernel& k) {
    MatmulFinish& finish = finishes_.front();
    std::map<std::string, std::string> t;
    std::vector<const Operand*> operands;
    operands.reserve(finish.inputs().size());
    for (const FactorAccess& a : finish.inputs()) operands.push_back(a.operand);
    auto declarations = declare(c_, operands, finishes_, k.tensors_combine);
    k.tensors_combine.insert(k.tensors_combine.begin(), label_("partial"));
    declarations.insert(declarations.begin(), "float const* __restrict__ partial");
    t["tensors"] =
        indent(finish.layouts(k.numbers_combine).tensors(finish.inputs(), finish.outputs()), 2);
    t["finish"] = indent(finish.work(), 2);
    t["name"] = label_("combine");
    t["params"] = join(declarations, ", ");
    t["sizes"] = size_parameters(k.numbers_combine);
    return fill(
        shares_ == Shares::tail ? "kernels/matmul/combine_tail.cu" : "kernels/matmul/combine.cu",
        t);
  }

  const Task& task_;
  const Contraction& c_;
  const Json& params_;
  const Label& label_;
  Shares shares_;
  std::deque<MatmulFinish> finishes_;         // of the joined products, or of the only one
  std::map<std::string, std::string> known_;  // arguments for the second factors, by expression
};

}  // namespace

MatmulEngine engine_of(const Contraction& c, const Json& params) {
  auto on = [&](const char* name) { return params.contains(name) && params.at(name) == 1; };
  if (on("stream")) return MatmulEngine::stream;
  if (by_halves(params)) return MatmulEngine::wgmma_pairs;
  if (on("wgmma")) return multiplies_elements(c) ? MatmulEngine::wgmma : MatmulEngine::wgmma_fp32;
  return on("tensor_cores") ? MatmulEngine::mma : MatmulEngine::simt;
}

bool persistent(MatmulEngine engine) {
  return engine == MatmulEngine::wgmma || engine == MatmulEngine::wgmma_fp32 ||
         engine == MatmulEngine::wgmma_pairs;
}

bool sums_in_cluster(const Contraction& c, const Json& params) {
  const Json& split = params.at("split");
  return c.hopper && engine_of(c, params) == MatmulEngine::stream && split > 1 && split <= 8;
}

bool ping_pong(const Json& params) {
  return params.contains("ping_pong") && params.at("ping_pong") == 1;
}

int products_of(const Contraction& c) {
  return c.math_mode == MathMode::fp32 ? 3 : 1;
}

std::vector<const Contraction*> parts_of(const Contraction& c) {
  std::vector<const Contraction*> parts{&c};
  for (const Contraction& part : c.parts) parts.push_back(&part);
  return parts;
}

std::string name_of(const Contraction& c, const Factor& factor) {
  for (const Contraction* part : parts_of(c))
    if (auto name = part->loads.names.find(factor.operand.tensor); name != part->loads.names.end())
      return name->second;
  return factor.operand.tensor;
}

bool turned(const Contraction& c) {
  return along_depth(c.a) && !along_depth(c.b) && c.groups() == 1;
}

std::string element_type(const Contraction& c, const Json& params) {
  const MatmulEngine engine = engine_of(c, params);
  if (engine == MatmulEngine::simt || engine == MatmulEngine::wgmma_fp32) return "float";
  switch (c.math_mode) {
    case MathMode::fp16:
      return "half_t";
    case MathMode::bf16:
      return "bfloat16_t";
    default:
      return "tfloat32_t";
  }
}

int64_t bytes_of_element(const Contraction& c) {
  return c.math_mode == MathMode::fp16 || c.math_mode == MathMode::bf16 ? 2 : 4;
}

bool multiplies_elements(const Contraction& c) {
  return bytes_of_element(c) == 2 || (c.rounded && products_of(c) == 1);
}

MatmulKernel matmul_kernel(const Task& task, const Contraction& c, const Json& params,
                           const Label& label) {
  return MatmulWriter(task, c, params, label).write();
}

}  // namespace cutegen::recipes
