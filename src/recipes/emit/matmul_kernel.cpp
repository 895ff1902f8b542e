// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/matmul_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "recipes/emit/matmul_maps.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

// An operand of the operators after the product, as a kernel reads or writes it.
struct FactorAccess {
  const Operand* operand;
  int inst;
  std::string name, tensor, registers;
};

// Arguments of a kernel: a name and its plan expression.
using Numbers = std::vector<std::pair<std::string, std::string>>;

std::string innermost(const std::string& stride) {
  const std::string maker = "make_stride(";
  if (stride.rfind(maker, 0) != 0) return stride;
  return stride.substr(maker.size(), stride.find(", ") - maker.size());
}

// The layouts of one kernel's operands. A size or stride that is not static becomes an argument.
class Layouts {
 public:
  Layouts(const Contraction& c, Code& code, Numbers& numbers)
      : c_(c), code_(code), numbers_(numbers) {}

  // Writes a stride: static if it is 0 or 1, else a new argument of the kernel.
  std::string stride_text(const Stride& s, const std::string& wanted) {
    if (s.move == Move::none) return "Int<0>{}";
    if (s.move == Move::next) return "Int<1>{}";
    numbers_.emplace_back(code_.word(wanted), s.expression);
    return numbers_.back().first;
  }

  // Writes " + offset" for the batch of this CTA.
  std::string batch_offset(const Factor& factor, const std::string& prefix) {
    std::vector<std::string> sizes, strides;
    for (size_t i = c_.batch_axes.size(); i-- > 0;) {
      std::string stride = stride_text(factor.batch[i], fmt::format("{}_batch{}", prefix, i));
      bool moves = factor.batch[i].move != Move::none;
      if (c_.batch_axes.size() == 1)
        return moves ? fmt::format(" + batch * int64_t({})", stride) : "";
      sizes.push_back(size(fmt::format("batch_size{}", i), c_.extent(c_.batch_axes[i])));
      strides.push_back(stride);
    }
    if (sizes.empty()) return "";
    return fmt::format(" + make_layout(make_shape({}), make_stride({}))(batch)", join(sizes, ", "),
                       join(strides, ", "));
  }

  // Declares the operands of `finish` as tensors (element of the vector, m, n, batch).
  std::string tensors(const std::vector<FactorAccess>& inputs,
                      const std::vector<FactorAccess>& outputs) {
    std::string text;
    for (const auto* list : {&inputs, &outputs})
      for (const FactorAccess& a : *list) text += tensor(a);
    return text;
  }

 private:
  std::string tensor(const FactorAccess& a) {
    auto m = mode(a, c_.loops_m, "m", "m_size"), n = mode(a, c_.loops_n, "n", "n_size"),
         batch = mode(a, c_.loops_batch, "b", "batches");
    std::string step = c_.loops_n.empty() ? "Int<0>{}" : innermost(n.second);
    return fmt::format(
        "Tensor {} = make_tensor(make_gmem_ptr({}),\n"
        "    make_layout(make_shape(Int<kVector>{{}}, {}, {}, {}),\n"
        "                make_stride({}, {}, {}, {})));\n",
        a.tensor, a.name, m.first, n.first, batch.first, step, m.second, n.second, batch.second);
  }

  std::string size(const std::string& name, const std::string& extent) {
    auto same = [&](const auto& number) { return number.first == name; };
    if (std::none_of(numbers_.begin(), numbers_.end(), same)) numbers_.emplace_back(name, extent);
    return fmt::format("int({})", name);
  }

  // Returns shape and stride of one mode of an operand of `finish`, innermost loop first.
  std::pair<std::string, std::string> mode(const FactorAccess& a, const std::vector<Loop>& loops,
                                           const std::string& letter, const std::string& whole) {
    std::vector<std::string> sizes, strides;
    for (size_t i = loops.size(); i-- > 0;) {
      strides.push_back(stride_text(stride(c_.finish, *a.operand, loops[i]),
                                    fmt::format("{}_{}{}", a.name, letter, i)));
      if (loops.size() == 1) return {whole, strides[0]};
      sizes.push_back(size(fmt::format("{}_size{}", letter, i), loops[i].extent));
    }
    if (sizes.empty()) return {whole, "Int<0>{}"};
    return {tuple_of("make_shape", sizes), tuple_of("make_stride", strides)};
  }

  const Contraction& c_;
  Code& code_;
  Numbers& numbers_;
};

// What share of the depth the CTAs that multiply a tile take.
enum class Shares {
  all,   // one CTA takes all
  even,  // kSplit CTAs share every tile
  tail   // `pieces` CTAs share each tile of the last round
};

Shares shares_of(const Json& params) {
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
  if (shares == Shares::even)
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
  if (engine == MatmulEngine::wgmma_fp32)
    return fmt::format(
        "cutegen::WgmmaFp32Gemm<{}, kTileM, kTileN, kTileK, kStages,\n"
        "                                    {}{}>",
        factors, order, products_of(c) == 1 ? ", 1" : "");
  if (engine == MatmulEngine::wgmma)
    return fmt::format(
        "cutegen::WgmmaGemm<{}, {}, kTileM, kTileN, kStages,\n"
        "                                {}, {}, kCluster>",
        element_type(c, params), factors, order, label("USE_TMA"));
  const bool cores = engine == MatmulEngine::mma;
  return fmt::format(
      "cutegen::{}<{}{}, kTileM, kTileN, kTileK, kThreads, kStages,\n"
      "                      {}>",
      cores ? "MmaGemm" : "SimtGemm", cores ? element_type(c, params) + ", " : "", factors, order);
}

// The placeholders of kernels/matmul/tiled.cu that depend on the engine.
void tiled_text(MatmulEngine engine, std::map<std::string, std::string>& t) {
  t["engine"] = engine == MatmulEngine::simt  ? "simt"
                : engine == MatmulEngine::mma ? "mma"
                                              : "wgmma_fp32";
  if (engine == MatmulEngine::wgmma_fp32) {
    t["resident"] = "constexpr int kResident = 1;  // CTAs that an SM holds";
    t["align"] = "__align__(1024) ";
    t["run"] =
        "  if (!gemm.run(rows, columns, tile, first, last, storage)) return;  // a producer is "
        "done\n"
        "  gemm.repair(rows, columns, tile, first, last);";
    return;
  }
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
    return "  for (int id = blockIdx.x; id < tiles * batches; id += gridDim.x) {\n"
           "    const int at = id;";
  return "  asm volatile(\"griddepcontrol.launch_dependents;\");  // the second kernel waits by "
         "itself\n"
         "  // Items from `whole` on are parts of a tile: the last round has few tiles, so "
         "`pieces` CTAs\n"
         "  // share the depth of each.\n"
         "  const int items = whole + (tiles * batches - whole) * pieces;\n"
         "  for (int id = blockIdx.x; id < items; id += gridDim.x) {\n"
         "    const bool part = id >= whole;\n"
         "    const int at = part ? whole + (id - whole) / pieces : id;";
}

// Stores a part of a tile for the second kernel.
std::string part_text(Shares shares) {
  if (shares != Shares::tail) return "";
  return "    if (part) {\n"
         "      Tensor parts = make_tensor(\n"
         "          make_gmem_ptr(partial + int64_t(id - whole) * (kTileM * kTileN)),\n"
         "          make_layout(make_shape(Int<kVector>{}, Int<kTileM>{}, Int<kTileN>{}),\n"
         "                      make_stride(Int<1>{}, Int<kTileN>{}, Int<1>{})));\n"
         "      gemm.each<kVector>(tile, [&](float const (&product)[kVector], int m, int n) {\n"
         "        cutegen::store(product, parts(_, m - tile.m * kTileM, n - tile.n * kTileN));\n"
         "      });\n"
         "      continue;\n"
         "    }\n";
}

// The placeholders of kernels/matmul/persistent.cu that only this template has.
void persistent_text(const Contraction& c, const Json& params, const Label& label,
                     std::map<std::string, std::string>& t) {
  t["items"] = items_text(shares_of(params));
  t["part"] = part_text(shares_of(params));
  t["use_tma"] = label("USE_TMA");
  t["cluster"] = params.at("cluster").dump();
  t["constants"] = map_constants(c, params);
  t["map_batch_a"] = map_batch(c, c.a);
  t["map_batch_b"] = map_batch(c, c.b);
}

// How many neighbouring results a thread stores together.
int64_t out_vector(const Contraction& c, const Json& params) {
  const auto vector = params.at("vector").get<int64_t>();
  switch (engine_of(c, params)) {
    case MatmulEngine::simt:
      return std::min<int64_t>(4, vector);
    case MatmulEngine::wgmma:
      return vector == 8 ? 8 : 2;
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
  if (engine_of(c, params) == MatmulEngine::wgmma && vector == 8)
    return fmt::format("({0}) % 8 == 0 ? 8 : ({0}) % 2 == 0 ? 2 : 1", extent);
  return multiple_rule(extent, vector);
}

std::string output_rule(const Contraction& c, const Json& params) {
  if (params.at("vector") == 1 || c.loops_n.empty()) return "1";
  return multiple_rule(c.loops_n.back().extent, out_vector(c, params));
}

class MatmulWriter {
 public:
  MatmulWriter(const Task& task, const Contraction& c, const Json& params, const Label& label)
      : task_(task),
        c_(c),
        params_(params),
        label_(label),
        shares_(shares_of(params)),
        code_(c.finish) {
    std::vector<int> results;
    results.reserve(c.finish.outputs.size());
    for (const FusedOutput& output : c.finish.outputs) results.push_back(output.inst);
    for (int inst : code_.needed(results, [](const Inst&) { return true; })) {
      const Inst& i = c.finish.insts[size_t(inst)];
      if (i.kind == InstKind::leaf && inst != c.product && !c.masks.count(inst))
        inputs_.push_back(access(c.finish.inputs[size_t(i.operand)], inst));
    }
    for (const FusedOutput& output : c.finish.outputs)
      outputs_.push_back(access(output.operand, output.inst));
  }

  MatmulKernel write() {
    MatmulKernel k;
    auto t = product_text(k);
    if (shares_ != Shares::all) {
      std::string combine = combine_text(k);
      t["combine"] = combine.substr(combine.find("\n\n"));  // without the template's heading
    }
    k.source = fill(engine_of(c_, params_) == MatmulEngine::wgmma ? "kernels/matmul/persistent.cu"
                                                                  : "kernels/matmul/tiled.cu",
                    t);
    while (k.source.size() > 1 && k.source[k.source.size() - 2] == '\n') k.source.pop_back();
    k.vector_a = vector_rule(c_, params_, c_.a, c_.m);
    k.vector_b = vector_rule(c_, params_, c_.b, c_.n);
    k.vector_out = output_rule(c_, params_);
    return k;
  }

 private:
  int64_t number(const char* name) const { return params_.at(name).get<int64_t>(); }

  FactorAccess access(const Operand& operand, int inst) {
    const std::string& name = c_.finish.names.at(operand.tensor);
    return {.operand = &operand,
            .inst = inst,
            .name = name,
            .tensor = code_.word("g_" + name),
            .registers = code_.word("r_" + name)};
  }

  const std::string& name_of(const Factor& factor) const {
    return c_.loads.names.at(factor.operand.tensor);
  }

  // Writes the device function for one element: from the product and other values to the results.
  std::string compute() {
    std::vector<std::string> params{"float " + code_.id(c_.product)};
    for (const auto& [inst, mask] : c_.masks) params.push_back("bool " + code_.id(inst));
    for (const FactorAccess& a : inputs_) params.push_back("float " + code_.id(a.inst));
    for (const auto& [word, expression] : c_.finish.sizes) params.push_back("int64_t " + word);
    std::vector<int> results;
    std::string body, ends;
    for (const FactorAccess& a : outputs_) {
      results.push_back(a.inst);
      std::string result = code_.word("result_" + a.name);
      params.push_back("float& " + result);
      ends += fmt::format("  {} = {};\n", result, code_.use(a.inst));
    }
    for (int inst :
         code_.needed(results, [](const Inst& i) { return i.kind == InstKind::pointwise; }))
      body += "  " + code_.statement(inst);
    return fmt::format(
        "// Computes what follows the product for one element, in float32.\n"
        "__device__ __forceinline__ void compute({}) {{\n{}{}}}",
        join(params, ", "), body, ends);
  }

  // Writes loads, arithmetic and stores for the kVector results at (m, n, batch).
  std::string finish() {
    std::string text, stores;
    std::vector<std::string> values{"product[v]"};
    for (const auto& [inst, mask] : c_.masks)
      values.push_back(fmt::format("n + v - m {} {}", mask.upper ? ">=" : "<=", mask.diagonal));
    for (const FactorAccess& a : inputs_) {
      text += fmt::format("float {}[kVector];\ncutegen::load({}(_, m, n, batch), {});\n",
                          a.registers, a.tensor, a.registers);
      values.push_back(a.registers + "[v]");
    }
    for (const auto& [word, expression] : c_.finish.sizes) values.push_back(word);
    for (const FactorAccess& a : outputs_) {
      text += fmt::format("float {}[kVector];\n", a.registers);
      values.push_back(a.registers + "[v]");
      stores += fmt::format("cutegen::store({}, {}(_, m, n, batch));\n", a.registers, a.tensor);
    }
    return text + "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v)\n  compute(" +
           join(values, ", ") + ");\n" + stores;
  }

  // Declares each tensor of `operands` once as a kernel parameter, inputs before outputs.
  std::vector<std::string> declare(const std::vector<const Operand*>& operands, bool to_outputs,
                                   std::vector<std::string>& tensors) const {
    std::vector<std::string> list;
    auto add = [&](const Operand& operand, const char* constness) {
      const std::string& name = c_.finish.names.at(operand.tensor);
      if (std::find(tensors.begin(), tensors.end(), name) != tensors.end()) return;
      tensors.push_back(name);
      list.push_back(fmt::format("{}{}* __restrict__ {}", type_of(operand), constness, name));
    };
    for (const Operand* operand : operands) add(*operand, " const");
    if (to_outputs)
      for (const FactorAccess& a : outputs_) add(*a.operand, "");
    return list;
  }

  std::map<std::string, std::string> product_text(MatmulKernel& k) {
    const bool split = shares_ == Shares::even;
    Layouts layouts(c_, code_, k.numbers);
    const MatmulEngine engine = engine_of(c_, params_);
    std::map<std::string, std::string> t;
    t["title"] = title(task_, c_.finish);
    t["name"] = label_("matmul");
    t["vector_out"] = label_("VECTOR_OUT");
    if (engine == MatmulEngine::wgmma)
      persistent_text(c_, params_, label_, t);
    else
      tiled_text(engine, t);
    for (const char* name : {"tile_m", "tile_n", "tile_k", "threads", "stages"})
      t[name] = params_.at(name).dump();
    t["gemm"] = gemm_type(c_, params_, label_);
    t["compute"] =
        (split ? fmt::format("constexpr int kSplit = {};\n\n", number("split")) : "") + compute();
    t["a"] = name_of(c_.a);
    t["b"] = name_of(c_.b);
    std::string a_row = layouts.stride_text(c_.a.row, "a_row"),
                a_depth = layouts.stride_text(c_.a.depth, "a_depth");
    std::string b_row = layouts.stride_text(c_.b.row, "b_row"),
                b_depth = layouts.stride_text(c_.b.depth, "b_depth");
    t["a_stride"] = fmt::format("make_stride({}, {})", a_row, a_depth);
    t["b_stride"] = fmt::format("make_stride({}, {})", b_row, b_depth);
    t["a_batch"] = layouts.batch_offset(c_.a, "a");
    t["b_batch"] = layouts.batch_offset(c_.b, "b");
    const int deeper = engine == MatmulEngine::wgmma ? 2 : 0;
    t["steps"] = indent(steps(c_, shares_), 2 + deeper);
    std::vector<const Operand*> operands{&c_.a.operand, &c_.b.operand};
    if (!split)
      for (const FactorAccess& a : inputs_) operands.push_back(a.operand);
    auto declarations = declare(operands, !split, k.tensors);
    if (split) {
      k.tensors.push_back(label_("partial"));
      declarations.push_back("float* __restrict__ partial");
      t["tensors"] = indent(
          "Tensor parts = make_tensor(\n"
          "    make_gmem_ptr(partial + (int64_t(blockIdx.y) * batches + batch) * m_size * "
          "n_size),\n"
          "    make_layout(make_shape(Int<kVector>{}, m_size, n_size),\n"
          "                make_stride(Int<1>{}, int64_t(n_size), Int<1>{})));",
          2 + deeper);
      t["finish"] = indent("cutegen::store(product, parts(_, m, n));\n", 4 + deeper);
    } else {
      t["tensors"] = indent(layouts.tensors(inputs_, outputs_), 2 + deeper);
      t["finish"] = indent(finish(), 4 + deeper);
    }
    if (shares_ == Shares::tail) {
      k.tensors.push_back(label_("partial"));
      declarations.push_back("float* __restrict__ partial");
    }
    t["params"] = join(declarations, ", ");
    t["sizes"] = sizes(k.numbers, shares_) + size_declarations(c_.finish);
    t["combine"] = "";
    return t;
  }

  std::string combine_text(MatmulKernel& k) {
    Layouts layouts(c_, code_, k.numbers_combine);
    std::map<std::string, std::string> t;
    std::vector<const Operand*> operands;
    operands.reserve(inputs_.size());
    for (const FactorAccess& a : inputs_) operands.push_back(a.operand);
    auto declarations = declare(operands, true, k.tensors_combine);
    k.tensors_combine.insert(k.tensors_combine.begin(), label_("partial"));
    declarations.insert(declarations.begin(), "float const* __restrict__ partial");
    t["tensors"] = indent(layouts.tensors(inputs_, outputs_), 2);
    t["finish"] = indent(finish(), 2);
    t["name"] = label_("combine");
    t["params"] = join(declarations, ", ");
    t["sizes"] = sizes(k.numbers_combine, shares_) + size_declarations(c_.finish);
    return fill(
        shares_ == Shares::tail ? "kernels/matmul/combine_tail.cu" : "kernels/matmul/combine.cu",
        t);
  }

  const Task& task_;
  const Contraction& c_;
  const Json& params_;
  const Label& label_;
  Shares shares_;
  Code code_;
  std::vector<FactorAccess> inputs_, outputs_;
};

}  // namespace

MatmulEngine engine_of(const Contraction& c, const Json& params) {
  auto on = [&](const char* name) { return params.contains(name) && params.at(name) == 1; };
  if (on("wgmma")) return bytes_of_element(c) == 4 ? MatmulEngine::wgmma_fp32 : MatmulEngine::wgmma;
  return on("tensor_cores") ? MatmulEngine::mma : MatmulEngine::simt;
}

int products_of(const Contraction& c) {
  return c.math_mode == MathMode::fp32 ? 3 : 1;
}

bool turned(const Contraction& c) {
  return along_depth(c.a) && !along_depth(c.b);
}

std::string element_type(const Contraction& c, const Json& params) {
  const MatmulEngine engine = engine_of(c, params);
  if (engine != MatmulEngine::mma && engine != MatmulEngine::wgmma) return "float";
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

MatmulKernel matmul_kernel(const Task& task, const Contraction& c, const Json& params,
                           const Label& label) {
  return MatmulWriter(task, c, params, label).write();
}

}  // namespace cutegen::recipes
