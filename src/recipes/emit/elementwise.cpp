// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "recipes/emit/tile_order.h"
#include "recipes/fuse/extents.h"
#include "recipes/nest/nest.h"
#include "recipes/nest/register_blocks.h"
#include "recipes/text/kernel_text.h"
#include "recipes/text/shared_values.h"

namespace cutegen::recipes {
namespace {

// How a kernel accesses an operand in the flat or strided index space.
struct Access {
  const Operand* operand;
  std::string name;    // identifier of the tensor
  std::string tensor;  // CuTe tensor in the kernel: "g_x"
  std::string registers;
  std::string start = {};       // argument: where a slice begins
  std::string places = {};      // places that index tensors name: an array for each item
  std::string take = {};        // functions that find these places
  bool place_each = false;      // each element of a vector has its own place
  int64_t turns = 1, turn = 0;  // it is list `turn` of `turns` interleaved lists
  bool follows = false;         // the access of another list of the tensor includes it
  bool single = false;          // the same element everywhere
  bool shared = false;          // the same vector for all items
  bool of_row = false;          // an output without the innermost axis
  std::string held = {};        // elements of all items, not yet converted: an array
  int inst = -1;                // leaf, or the output's instruction
  const char* type = "float";

  std::string first() const { return fmt::format("{}[{}]", name, start.empty() ? "0" : start); }
  std::string from() const { return start.empty() ? name : name + " + " + start; }
};

constexpr int64_t kShortPositions = 1'000'000'000;  // take 32 bits, which is faster
constexpr const char* kInnerBlocks = "8";           // blocks of a tile along the innermost loop

struct Kernel {
  const Fused& fused;
  const Label& label;
  Nest nest;
  Code code;
  std::vector<Access> inputs, outputs;
  std::map<int, Access> indices;  // tensors through which inputs are read, by operand
  std::vector<std::pair<std::string, std::string>> strides;  // argument, expression
  Overlap overlap;
  SharedValues shared;   // by all elements of a vector
  int64_t items = 1;     // vectors that a thread loads together
  int items_along = -1;  // the loop that the items of a thread follow; -1: neighbouring vectors
  int turned = -1;       // the loop along which a tile of vectors is tall; -1: no tiles
  std::optional<Block> block;                    // if set, a thread's vector is this block
  std::map<std::string, std::string> arguments;  // by tensor and expression

  // Returns the kernel's argument for an expression. Operands that read the same tensor share their
  // arguments, so that the compiler finds the common parts of their addresses.
  std::string argument(const Operand& operand, const std::string& word, std::string expression) {
    std::string& known = arguments[operand.tensor + " " + expression];
    if (known.empty()) {
      known = code.word(word);
      strides.emplace_back(known, std::move(expression));
    }
    return known;
  }

  Kernel(const Fused& f, const Label& l, const Json& params, const Overlap& o)
      : fused(f), label(l), nest(make_nest(f)), code(f), overlap(o) {
    items = params.at("items").get<int64_t>();
    if (params.value("block", 0) != 0) block = block_of(f, nest);
    if (params.value("shared", 0) != 0 && !block) items_along = shared_loop(f, nest);
    if (params.value("tiled", 0) != 0 && items_along < 0) turned = turned_loop(f, nest);
    if (block) turned = block->dense ? -1 : block->loop;
    std::vector<int> results;
    results.reserve(f.outputs.size());
    for (const FusedOutput& output : f.outputs) results.push_back(output.inst);
    auto used = code.needed(results, [](const Inst&) { return true; });
    for (int inst : used) {
      const Inst& i = f.insts[size_t(inst)];
      if (i.kind == InstKind::leaf) inputs.push_back(access(f.inputs[size_t(i.operand)], inst));
    }
    for (const FusedOutput& output : f.outputs) {
      outputs.push_back(access(output.operand, output.inst));
      outputs.back().of_row = nest.kept.size() > 1 && nest.kept.back().size > 1 &&
                              !output.operand.gathered() && !moves_in_vector(output.operand);
    }
    take_turns(inputs, false);
    take_turns(outputs, true);
    find_shared(results);
    for (auto* list : {&inputs, &outputs})
      for (Access& a : *list) find(a);
  }

  Access access(const Operand& operand, int inst) {
    const char* type = inst < 0 ? "int64_t" : value_type(fused.insts[size_t(inst)]);
    Access a{.operand = &operand,
             .name = fused.names.at(operand.tensor),
             .tensor = "",
             .registers = "",
             .single = true,
             .inst = inst,
             .type = type};
    a.tensor = code.word("g_" + a.name);
    a.registers = code.word("r_" + a.name);
    for (const Loop& loop : nest.kept) a.single &= stride(fused, operand, loop).move == Move::none;
    a.shared = !a.single && items_along >= 0 && !moves(operand, size_t(items_along));
    // Conversions between the loads, and loads that the compiler moves behind stores, would reduce
    // how many loads are in flight.
    if (items > 1 && inst >= 0 && !block && !a.single && !a.shared && !operand.counts &&
        !operand.gathered())
      a.held = code.word("held_" + a.name);
    return a;
  }

  std::vector<const Access*> element_outputs() const {
    std::vector<const Access*> list;
    for (const Access& output : outputs)
      if (!output.of_row) list.push_back(&output);
    return list;
  }

  bool moves(const Operand& operand, size_t loop) const {
    return stride(fused, operand, nest.kept[loop]).move != Move::none;
  }
  bool moves_in_vector(const Operand& operand) const {
    return moves(operand, nest.kept.size() - 1) || (block && moves(operand, size_t(block->loop)));
  }
  // A vector of the operand: of item `i`, or the same for all items.
  std::string vector_at(const Access& a) const {
    return a.tensor + (items_along < 0 ? "(_, j)" : a.shared ? "(_, 0, j)" : "(_, i, j)");
  }

  // Finds interleaved lists in a tensor, because one access can move the elements of all of them.
  void take_turns(std::vector<Access>& list, bool all) {
    for (Access& first : list) {
      const int64_t step = turns_in(nest, *first.operand);
      if (step == 1 || first.operand->starts.back().at != 0 || first.turns > 1) continue;
      std::vector<Access*> lists;
      for (Access& other : list)
        if (turns_together(*first.operand, *other.operand)) lists.push_back(&other);
      // If the kernel accesses the first and the last list, the axis consists of whole turns at
      // every size.
      const bool last = std::any_of(lists.begin(), lists.end(), [&](const Access* other) {
        return other->operand->starts.back().at == step - 1;
      });
      if (!last || (all && int64_t(lists.size()) != step)) continue;
      for (Access* other : lists) {
        other->turns = step;
        other->turn = other->operand->starts.back().at;
        other->registers = first.registers;
        other->follows = other != &first;
        other->held.clear();
      }
    }
  }

  // Whether all elements of a vector read the same element of the operand.
  bool same_in_vector(const Access& a) const {
    return a.single || (!a.operand->counts && !a.operand->gathered() && a.turns == 1 &&
                        !moves_in_vector(*a.operand));
  }

  // Finds the values that depend only on operands without the innermost axis. Without this, the
  // kernel would compute them for each element of a vector.
  void find_shared(const std::vector<int>& results) {
    std::set<int> same;
    bool any = false;
    for (const Access& a : inputs)
      if (same_in_vector(a)) same.insert(a.inst), any |= !a.single;
    if (any) shared = find_shared_values(fused, code, results, same);
  }

  // Declares where the operand's slice begins, and reads the places that index tensors name.
  void find(Access& a) {
    if (a.follows) return;
    if (const std::string from = start_text(fused, *a.operand); from != "0") {
      a.start = code.word(a.name + "_start");
      strides.emplace_back(a.start, from);
    }
    for (size_t axis = 0; axis < a.operand->starts.size(); ++axis)
      if (a.operand->starts[axis].index >= 0) take(a, axis);
  }

  // Reads the place along an axis of the operand from an index tensor.
  void take(Access& a, size_t axis) {
    const Start& start = a.operand->starts[axis];
    const Operand& index = fused.inputs[size_t(start.index)];
    if (a.places.empty()) a.places = code.word("to_" + a.name);
    a.place_each |= stride(fused, index, nest.kept.back()).move != Move::none;
    if (!indices.count(start.index)) {
      Access at = access(index, -1);
      at.tensor = code.word("at_" + at.name);
      find(at);
      indices.emplace(start.index, std::move(at));
    }
    const Operand& o = *a.operand;
    const std::string size = argument(o, fmt::format("{}_size{}", a.name, axis),
                                      size_text(fused, o, axis)),
                      step = axis + 1 == o.starts.size()
                                 ? "1"
                                 : argument(o, fmt::format("{}_step{}", a.name, axis),
                                            stride_text(fused, o, axis));
    std::string first;
    if (!start.shift.empty()) {
      const std::string word = code.word(a.name + "_first");
      strides.emplace_back(word, shift_text(fused, start));
      first = fmt::format(", {}, {}", word, start.reversed ? -1 : 1);
    }
    a.take += fmt::format(",\n    cutegen::take<{}>({}(_, j), {}, {}{})", start.rule(),
                          indices.at(start.index).tensor, size, step, first);
    a.single = false;
  }
};

// The registers of an access, as an array for each item or each vector.
std::string array_of(const Access& a) {
  return a.turns > 1 ? fmt::format("[{}][kVector]", a.turns) : "[kVector]";
}

// Returns the inputs that the function for one element reads. With `once`, returns the inputs that
// the function for a vector's shared values reads.
std::vector<const Access*> inputs_of(const Kernel& k, bool once) {
  std::vector<int> results;
  for (const Access& output : k.outputs)
    if (once || !output.of_row) results.push_back(output.inst);
  const std::set<int> read = inputs_of_results(k.fused, k.code, k.shared, results, once);
  std::vector<const Access*> list;
  for (const Access& input : k.inputs)
    if (read.count(input.inst) > 0) list.push_back(&input);
  return list;
}

// Writes the device function for the values that all elements of a vector share.
std::string shared_function(const Kernel& k) {
  std::vector<std::string> params;
  for (const Access* input : inputs_of(k, true))
    params.push_back(fmt::format("{} {}", input->type, k.code.id(input->inst)));
  return shared_function("compute_shared", k.fused, k.code, k.shared, params);
}

// Declares the shared values of a vector and calls their function. `at` gives the text of an input.
std::string shared_call(const Kernel& k, const std::function<std::string(const Access&)>& at) {
  std::vector<std::string> values;
  for (const Access* input : inputs_of(k, true)) values.push_back(at(*input));
  return shared_call("compute_shared", k.fused, k.code, k.shared, values);
}

// Writes the device function for one element. It returns one result or writes several by reference.
std::string compute_function(Kernel& k) {
  std::vector<std::string> params;
  params.reserve(k.inputs.size() + k.outputs.size() + k.fused.sizes.size());
  for (const Access* input : inputs_of(k, false))
    params.push_back(fmt::format("{} {}", input->type, k.code.id(input->inst)));
  for (int inst : k.shared.read)
    params.push_back(fmt::format("{} {}", kept_type(k.fused.insts[size_t(inst)]), k.code.id(inst)));
  for (const auto& [word, expression] : k.fused.sizes) params.push_back("int64_t " + word);
  const std::vector<const Access*> outputs = k.element_outputs();
  std::vector<int> results;
  results.reserve(outputs.size());
  for (const Access* output : outputs) results.push_back(output->inst);
  bool one = results.size() == 1;
  std::vector<std::string> words;
  if (!one)
    for (const Access* output : outputs) {
      words.push_back(k.code.word("result_" + output->name));
      params.push_back(fmt::format("{}& {}", output->type, words.back()));
    }
  std::string body;
  for (int inst :
       k.code.needed(results, [](const Inst& i) { return i.kind == InstKind::pointwise; }))
    if (k.shared.once.count(inst) == 0) body += "  " + k.code.statement(inst);
  if (one) body += fmt::format("  return {};\n", k.code.use(results[0]));
  for (size_t i = 0; i < words.size(); ++i)
    body += fmt::format("  {} = {};\n", words[i], k.code.use(results[i]));
  return fmt::format("__device__ __forceinline__ {} compute({}) {{\n{}}}",
                     one ? outputs[0]->type : "void", join(params, ", "), body);
}

// Writes the call of the function for one element. `at` gives the argument for an input or, with
// the second argument `true`, for an output.
std::string call(const Kernel& k, const std::function<std::string(const Access&, bool)>& at) {
  std::vector<std::string> values;
  values.reserve(k.inputs.size() + k.outputs.size() + k.fused.sizes.size());
  for (const Access* input : inputs_of(k, false)) values.push_back(at(*input, false));
  for (int inst : k.shared.read) values.push_back(k.code.id(inst));
  for (const auto& [word, expression] : k.fused.sizes) values.push_back(word);
  const std::vector<const Access*> outputs = k.element_outputs();
  bool one = outputs.size() == 1;
  if (!one)
    for (const Access* output : outputs) values.push_back(at(*output, true));
  std::string text = fmt::format("compute({});", join(values, ", "));
  return one ? at(*outputs[0], true) + " = " + text : text;
}

std::string register_name(const Access& a, bool output) {
  if (a.single && !output) return a.registers;
  const std::string list = a.turns > 1 ? fmt::format("[{}]", a.turn) : "";
  return a.registers + (output || a.shared || !a.held.empty() ? "" : "[i]") + list + "[v]";
}

// Writes the code for the last elements, too few for a vector. The first CTA computes them.
std::string tail(const Kernel& k) {
  std::string results, stores;
  for (const Access& output : k.outputs) {
    results += fmt::format("    {} {};\n", output.type, output.registers);
    stores += fmt::format("    {}[rest] = cutegen::from_float<{}>({});\n", output.name,
                          type_of(*output.operand), output.registers);
  }
  std::string text = call(k, [](const Access& a, bool output) {
    if (output || a.single) return a.registers;
    return fmt::format("cutegen::convert<{}>({}[rest])", a.type, a.name);
  });
  return fmt::format(
      "  // The last n % kVector elements.\n"
      "  const int64_t rest = vectors * kVector + threadIdx.x;\n"
      "  if (blockIdx.x == 0 && rest < n) {{\n{}    {}\n{}  }}",
      results, text, stores);
}

// Stops the kernel if an index is outside its axis. Then loads the elements that the indices name.
std::string taken_loads(const std::string& outside, const std::string& loads) {
  std::string text = fmt::format("  if ({}) __trap();\n", outside);
  if (loads.empty()) return text;
  return text + fmt::format(
                    "  CUTE_UNROLL\n  for (int i = 0; i < kItems; ++i) {{\n"
                    "    const Index j = first + i * kThreads;\n    if (j < vectors) {{\n{}\n"
                    "    }}\n  }}\n",
                    indent(loads, 6));
}

// Whether the kernel writes a tensor that it reads.
bool overwrites(const Fused& fused) {
  return std::any_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
    return in_place(fused, output.operand.tensor);
  });
}

// Writes the loads of an item. If the loads of several items go `together`, a thread beyond the end
// reads the last vector: with a branch for each item, the conversion of an item would delay the
// next load.
std::string step_of_loads(const std::string& type, const std::string& number, bool together,
                          const std::string& loads) {
  if (!together)
    return fmt::format("const {} j = {};\nif (j < vectors) {{\n{}\n}}", type, number,
                       indent(loads, 2));
  return fmt::format("const {0} number = {1}, j = number < vectors ? number : vectors - 1;\n{2}",
                     type, number, loads);
}

// The device function that loads or stores a vector of the operand.
std::string mover(const Kernel& k, const Access& a, const char* move) {
  return std::string(move) + (k.block ? "_block" : a.turns > 1 ? "_turns" : "");
}

// Fills the fields that both kernel templates share.
std::map<std::string, std::string> common(const Task& task, Kernel& k, const Json& params,
                                          int depth) {
  std::map<std::string, std::string> t;
  t["title"] = title(task, k.fused);
  t["name"] = k.label("elementwise");
  t["threads"] = params.at("threads").dump();
  t["items"] = k.items_along < 0 ? params.at("items").dump() : k.label("ITEMS");
  std::vector<std::string> declarations;
  for (const Parameter& p : parameters(k.fused)) declarations.push_back(p.declaration);
  t["params"] = join(declarations, ", ");
  std::string registers, finds, shared, loads, taken, results, stores;
  const std::string outside = k.code.word("outside");
  const auto find = [&](const Access& a) {
    registers += fmt::format("int64_t {}[kItems][{}];\n", a.places, a.place_each ? "kVector" : "1");
    finds += fmt::format("{} |= cutegen::find_places({}[i]{});\n", outside, a.places, a.take);
  };
  for (const Access& a : k.inputs) {
    if (a.single || a.follows) continue;
    if (!a.held.empty() && a.turns == 1) {
      registers +=
          fmt::format("cutegen::Held<{}, kVector> {}[kItems];\n", type_of(*a.operand), a.held);
      loads += fmt::format("cutegen::hold({}, {}[i]);\n", k.vector_at(a), a.held);
      results += fmt::format("{} {}[kVector];\ncutegen::held({}, {}[i], {});\n", a.type,
                             a.registers, k.vector_at(a), a.held, a.registers);
      continue;
    }
    registers +=
        fmt::format("{} {}{}{};\n", a.type, a.registers, a.shared ? "" : "[kItems]", array_of(a));
    if (a.places.empty()) {
      (a.shared ? shared : loads) +=
          fmt::format("cutegen::{}({}, {}{});\n", mover(k, a, "load"), k.vector_at(a), a.registers,
                      a.shared ? "" : "[i]");
      continue;
    }
    find(a);
    taken +=
        fmt::format("cutegen::load_at({}(_, j), {}[i], {}[i]);\n", a.tensor, a.places, a.registers);
  }
  for (const Access& a : k.outputs) {
    if (a.follows) continue;
    if (a.of_row) {
      stores += fmt::format(
          "if (get<0>(idx2crd(j, shape)) == 0) {}(_, j)(0) = "
          "cutegen::from_float<{}>({});\n",
          a.tensor, type_of(*a.operand), k.code.id(a.inst));
      continue;
    }
    results += fmt::format("{} {}{};\n", a.type, a.registers, array_of(a));
    if (a.places.empty()) {
      stores +=
          fmt::format("cutegen::{}({}, {});\n", mover(k, a, "store"), a.registers, k.vector_at(a));
      continue;
    }
    find(a);
    stores += fmt::format("cutegen::{}({}, {}(_, j), {}[i]);\n", store_of(a.operand->mode),
                          a.registers, a.tensor, a.places);
  }
  if (!finds.empty()) registers += fmt::format("bool {} = false;\n", outside);
  t["taken"] = finds.empty() ? "" : taken_loads(outside, taken);
  loads = finds + loads;
  t["shared"] = shared.empty() ? ""
                               : fmt::format(
                                     "  if (first < vectors) {{\n    const Index j = first;\n"
                                     "{}\n  }}\n",
                                     indent(shared, 4));
  const bool near = k.items_along < 0;
  t["tile"] = near ? "(kThreads * kItems)" : "kThreads";
  t["number"] = near ? "first + i * kThreads" : "first";
  t["registers"] = indent(registers, depth);
  const bool together = near && params.at("items") != 1 && !overwrites(k.fused);
  t["loads"] = indent(step_of_loads(depth == 4 ? "int64_t" : "Index", t["number"], together, loads),
                      depth + 2);
  results += shared_call(k, [](const Access& a) {
    if (a.single) return a.registers;
    return a.registers + (a.shared || !a.held.empty() ? "[0]" : "[i][0]");
  });
  t["results"] = indent(results, depth + 4);
  t["stores"] = indent(stores, depth + 4);
  t["call"] = call(k, register_name);
  t["compute"] = shared_function(k) + compute_function(k);
  t["begin"] = k.overlap.next ? "  cutegen::allow_next_step();\n" : "";
  t["end"] = k.overlap.previous ? "  cutegen::await_previous_step();\n" : "";
  t["includes"] = k.overlap.next || k.overlap.previous ? "#include <cutegen/steps.cuh>\n" : "";
  if (std::any_of(k.outputs.begin(), k.outputs.end(),
                  [](const Access& a) { return a.operand->mode != WriteMode::store; }))
    t["includes"] += "#include <cutegen/scatter.cuh>\n";
  if (k.block) t["includes"] += "#include <cutegen/vec_block.cuh>\n";
  return t;
}

std::string single_values(const Kernel& k) {
  std::string text;
  for (const Access& a : k.inputs)
    if (a.single)
      text += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", a.type, a.registers,
                          a.first());
  return text;
}

std::string flat_source(const Task& task, Kernel& k, const Json& params) {
  auto t = common(task, k, params, 4);
  t["vector"] = params.at("vector").dump();
  std::string tensors;
  for (const auto* list : {&k.inputs, &k.outputs})
    for (const Access& a : *list)
      if (!a.single || list == &k.outputs)
        tensors +=
            fmt::format("Tensor {} = make_tensor(make_gmem_ptr({}), flat);\n", a.tensor, a.name);
  t["tensors"] = indent(tensors + single_values(k), 2);
  t["tail"] = params.at("vector").get<int64_t>() > 1 ? tail(k) : "";
  t["sizes"] = "int64_t n" + size_declarations(k.fused);
  return fill("kernels/elementwise/flat.cu", t);
}

// Declares an operand's tensor with its strides: of a block's elements, then of the loops.
std::string blocked_tensor(Kernel& k, const Access& a) {
  const bool contiguous = k.block->dense && contiguous_block(k.fused, k.nest, *k.block, *a.operand);
  std::string across, down;
  std::vector<std::string> outer;
  for (size_t i = k.nest.kept.size(); i-- > 0;) {
    const Stride s = stride(k.fused, *a.operand, k.nest.kept[i]);
    const bool first = i + 1 == k.nest.kept.size(), second = int(i) == k.block->loop;
    std::string text = s.move == Move::none ? "Int<0>{}" : "Int<1>{}";
    if (s.move == Move::stride)
      text = k.argument(*a.operand, fmt::format("{}_s{}", a.name, i), s.expression);
    if (first) across = text;
    if (second)
      down = contiguous ? fmt::format("cutegen::known_stride<kDense, kAcross>({})", text) : text;
    if ((first || second) && s.move != Move::none)
      text = fmt::format("{} * Int<{}>{{}}", text, first ? "kAcross" : "kDown");
    outer.push_back(text);
  }
  return fmt::format(
      "Tensor {} = make_tensor(make_gmem_ptr({}),\n"
      "    make_layout(make_shape(block, shape),\n"
      "        make_stride(make_stride({}, {}), {})));\n",
      a.tensor, a.from(), across, down, tuple_of("make_stride", outer));
}

// Declares an operand's tensor with its strides: of a vector's elements, then of the loops.
std::string strided_tensor(Kernel& k, const Access& a) {
  if (k.block) return blocked_tensor(k, a);
  std::string inner, item = "Int<0>{}";
  std::vector<std::string> outer;
  for (size_t i = k.nest.kept.size(); i-- > 0;) {
    bool last = i + 1 == k.nest.kept.size();
    Stride s = stride(k.fused, *a.operand, k.nest.kept[i]);
    if (last && a.turns > 1) {  // the elements of all lists, one after another
      inner = "Int<1>{}";
      outer.push_back(fmt::format("Int<kVector * {}>{{}}", a.turns));
      continue;
    }
    std::string text = s.move == Move::none ? "Int<0>{}" : "Int<1>{}";
    if (s.move == Move::stride) {
      text = k.argument(*a.operand, fmt::format("{}_s{}", a.name, i), s.expression);
    }
    if (last) inner = text;
    const bool items = int(i) == k.items_along && s.move != Move::none;
    if (items) item = text;
    if (items)
      outer.push_back(s.move == Move::next ? "Int<kItems>{}" : text + " * kItems");
    else if (!last || s.move == Move::none)
      outer.push_back(text);
    else
      outer.push_back(s.move == Move::next ? "Int<kVector>{}" : text + " * kVector");
  }
  const bool near = k.items_along < 0;
  const std::string tensor =
      a.operand->counts
          ? fmt::format("cutegen::positions{}(0", k.nest.rows() <= kShortPositions ? "<int>" : "")
          : fmt::format("make_tensor(make_gmem_ptr({})", a.from());
  return fmt::format(
      "Tensor {} = {},\n"
      "    make_layout(make_shape(Int<kVector{}>{{}}, {}shape), make_stride({}, {}{})));\n",
      a.tensor, tensor, a.turns > 1 ? fmt::format(" * {}", a.turns) : "",
      near ? "" : "Int<kItems>{}, ", inner, near ? "" : item + ", ",
      tuple_of("make_stride", outer));
}

// Arguments by which the kernel finds coordinates: one for each axis but the outermost, innermost
// first. Empty if CuTe divides instead.
std::vector<std::string> inverses_of(const Kernel& k, bool wide) {
  std::vector<std::string> list;
  if (wide || k.items_along >= 0) return list;
  for (size_t i = k.nest.kept.size() - 1; i > 0; --i) list.push_back(fmt::format("inverse{}", i));
  return list;
}

// Declares the size of a thread's vector or block.
std::string vector_text(const Kernel& k) {
  if (!k.block)
    return fmt::format(
        "// The plan sets {0}: 1 if the innermost axis is not a multiple of the vector.\n"
        "constexpr int kVector = {0};\n",
        k.label("VECTOR"));
  std::string text = fmt::format(
      "// A thread computes a block: kAcross elements along the innermost axis, and kDown along "
      "the\n"
      "// axis along which an operand is contiguous. The plan sets both.\n"
      "constexpr int kAcross = {}, kDown = {}, kVector = kAcross * kDown;\n",
      k.label("ACROSS"), k.label("DOWN"));
  if (k.block->dense)
    text += fmt::format("constexpr bool kDense = {};  // the block has the whole innermost axis\n",
                        k.label("DENSE"));
  return text;
}

// Divides the size of loop `i` by the elements of a vector or block along it.
std::string in_vectors(const Kernel& k, size_t i) {
  const bool first = i + 1 == k.nest.kept.size();
  if (k.block) return first ? " / kAcross" : int(i) == k.block->loop ? " / kDown" : "";
  return first ? " / kVector" : int(i) == k.items_along ? " / kItems" : "";
}

std::string strided_source(const Task& task, Kernel& k, const Json& params, bool wide) {
  auto t = common(task, k, params, 2);
  t["index"] = wide ? "int64_t" : "int";
  t["vector"] = vector_text(k);
  std::string tensors = k.block ? "auto block = make_shape(Int<kAcross>{}, Int<kDown>{});\n" : "";
  for (const auto& [operand, index] : k.indices) tensors += strided_tensor(k, index);
  for (const auto* list : {&k.inputs, &k.outputs})
    for (const Access& a : *list)
      if (!a.follows && (!a.single || list == &k.outputs)) tensors += strided_tensor(k, a);
  t["tensors"] = indent(tensors + single_values(k), 2);
  std::vector<std::string> shape, sizes;
  for (size_t i = k.nest.kept.size(); i-- > 0;)
    shape.push_back(fmt::format("Index(n{}){}", i, in_vectors(k, i)));
  for (size_t i = 0; i < k.nest.kept.size(); ++i) sizes.push_back(fmt::format("int64_t n{}", i));
  for (const auto& [name, expression] : k.strides) sizes.push_back("int64_t " + name);
  t["shape"] = tuple_of("make_shape", shape);
  const std::vector<std::string> inverses = inverses_of(k, wide);
  for (const std::string& inverse : inverses) sizes.push_back("int64_t " + inverse);
  const bool tiled = k.turned >= 0 && !inverses.empty();
  t["vectors"] = tiled ? "" : "  const Index vectors = size(shape);\n";
  t["live"] = tiled ? "j < vectors && inside(j)" : "j < vectors";
  if (tiled)
    t["tensors"] += tile_order_text(k.nest, k.turned,
                                    k.block ? kInnerBlocks : inner_vectors("kVector"), inverses);
  else if (!inverses.empty())
    t["tensors"] += fmt::format(
        "\n  // The coordinates of a vector, by multiplications instead of divisions.\n"
        "  auto place = [&](Index at) {{ return cutegen::coordinates(at, shape, {}); }};",
        join(inverses, ", "));
  t["sizes"] = join(sizes, ", ") + size_declarations(k.fused);
  const std::string text = fill("kernels/elementwise/strided.cu", t);
  if (inverses.empty()) return text;
  return replace_all(replace_all(text, "(_, j)", "(_, place(j))"), "idx2crd(j, shape)", "place(j)");
}

Json tensor_arguments(const Fused& fused) {
  Json args = Json::array();
  for (const Parameter& p : parameters(fused)) args.push_back({{"tensor", p.name}});
  return args;
}

Json launch(const Kernel& k, const std::string& grid, int64_t threads, Json args) {
  return {{"id", k.label("elementwise")},  {"kernel", k.label("elementwise")},
          {"when", k.label("n") + " > 0"}, {"grid", {grid, 1, 1}},
          {"block", {threads, 1, 1}},      {"args", std::move(args)}};
}

void plan_flat(const Kernel& k, const Json& params, ProgramPart& part) {
  auto threads = params.at("threads").get<int64_t>(), vector = params.at("vector").get<int64_t>(),
       items = params.at("items").get<int64_t>(), waves = params.at("waves").get<int64_t>();
  std::string n = k.label("n"), tiles = k.label("tiles");
  part.symbols[n] = k.nest.kept[0].extent;
  part.symbols[tiles] = fmt::format("max(1,ceil_div({}/{},{}))", n, vector, threads * items);
  Json args = tensor_arguments(k.fused);
  args.push_back({{"i64", n}});
  add_sizes(args, k.fused);
  std::string grid = waves == 0 ? tiles : fmt::format("min({},gpu.sms*{})", tiles, waves);
  part.steps.push_back(launch(k, grid, threads, std::move(args)));
}

// The sizes of a thread's vector or block along the loops, as the plan's symbols.
struct Widths {
  std::string inner, other;  // `other`: along the block's loop
};

// The sizes of the axes whose coordinates the kernel finds, as plan expressions.
std::vector<std::string> order_extents(const Kernel& k, const Widths& widths) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < k.nest.kept.size(); ++i) sizes.push_back(k.label(fmt::format("n{}", i)));
  if (k.block) sizes[size_t(k.block->loop)] += "/" + widths.other;
  sizes.back() += "/" + widths.inner;
  if (k.turned < 0) return sizes;
  return tile_extents(sizes, k.turned, k.block ? kInnerBlocks : inner_vectors(widths.inner));
}

// Adds the plan's symbols and defines for the size of a thread's vector or block.
Widths add_widths(const Kernel& k, int64_t vector, ProgramPart& part) {
  const std::string last = k.label(fmt::format("n{}", k.nest.kept.size() - 1));
  const std::string width = k.label("vector");
  if (!k.block) {
    part.symbols[width] = width_text(k.fused, last, vector);
    part.defines[k.label("VECTOR")] = width;
    return {.inner = width, .other = ""};
  }
  const std::string across = k.label("across"), down = k.label("down"),
                    outer = k.label(fmt::format("n{}", k.block->loop));
  part.symbols[across] = across_text(*k.block, last);
  part.symbols[down] = down_text(*k.block, last, outer);
  part.symbols[width] = fmt::format("{}*{}", across, down);
  part.defines[k.label("ACROSS")] = across;
  part.defines[k.label("DOWN")] = down;
  if (k.block->dense) {
    part.symbols[k.label("dense")] = fmt::format("{} <= {} ? 1 : 0", last, kLongestDense);
    part.defines[k.label("DENSE")] = k.label("dense");
  }
  return {.inner = across, .other = down};
}

void plan_strided(const Kernel& k, const Json& params, bool wide, ProgramPart& part) {
  auto threads = params.at("threads").get<int64_t>(), vector = params.at("vector").get<int64_t>(),
       items = params.at("items").get<int64_t>();
  std::string product;
  Json args = tensor_arguments(k.fused);
  for (size_t i = 0; i < k.nest.kept.size(); ++i) {
    std::string size = k.label(fmt::format("n{}", i));
    part.symbols[size] = k.nest.kept[i].extent;
    product += (i ? "*" : "") + size;
    args.push_back({{"i64", size}});
  }
  const std::string n = k.label("n"), width = k.label("vector");
  part.symbols[n] = product;
  const Widths widths = add_widths(k, vector, part);
  for (const auto& [name, expression] : k.strides) args.push_back({{"i64", expression}});
  const std::vector<std::string> extents = order_extents(k, widths);
  for (size_t i = k.nest.kept.size() - 1, left = inverses_of(k, wide).size(); left > 0; --i, --left)
    args.push_back({{"i64", fmt::format("4294967295/max(1,{})", extents[i])}});
  add_sizes(args, k.fused);
  std::string vectors = fmt::format("{}/{}", n, width);
  if (!wide && k.turned >= 0) {
    vectors = k.label("vectors");
    part.symbols[vectors] = fmt::format("{}*{}", join(extents, "*"), kTileVectors);
    part.requirements.push_back(vectors + " <= 2000000000");
  }
  const bool counts = std::any_of(k.fused.inputs.begin(), k.fused.inputs.end(),
                                  [](const Operand& operand) { return operand.counts; });
  if (!wide)
    part.requirements.push_back(
        fmt::format("{} <= {}", n,
                    counts && k.nest.rows() <= kShortPositions ? kShortPositions : 2'000'000'000));
  std::string grid = fmt::format("ceil_div({},{})", vectors, threads * items);
  if (k.items_along >= 0) {
    const std::string along = k.label(fmt::format("n{}", k.items_along)), of = k.label("items");
    part.symbols[of] = fmt::format("{} % {} == 0 ? {} : 1", along, items, items);
    part.defines[k.label("ITEMS")] = of;
    grid = fmt::format("ceil_div({}/({}*{}),{})", n, width, of, threads);
  }
  part.steps.push_back(launch(k, grid, threads, std::move(args)));
}

}  // namespace

ProgramPart elementwise_part(const Task& task, const Fused& fused, const Json& params,
                             const Label& label, const Overlap& overlap) {
  Kernel kernel(fused, label, params, overlap);
  ProgramPart part;
  part.hopper = overlap.next || overlap.previous;
  part.file = label("kernel") + ".cu";
  if (is_flat(fused)) {
    part.source = flat_source(task, kernel, params);
    plan_flat(kernel, params, part);
  } else {
    bool wide = kernel.nest.rows() > 2'000'000'000;
    part.source = strided_source(task, kernel, params, wide);
    plan_strided(kernel, params, wide, part);
  }
  if (overlap.previous) part.steps.front()["pdl"] = true;
  for (const std::string& demand : fixed_sizes(fused)) part.requirements.push_back(demand);
  return part;
}

}  // namespace cutegen::recipes
