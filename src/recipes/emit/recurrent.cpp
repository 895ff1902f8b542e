// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/text.h"
#include "recipes/graph/pointwise.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

// KiB of shared memory of a CTA, on Hopper and on other GPUs.
constexpr int64_t kShared = 220, kLittleShared = 96;

struct Layer {
  int64_t states = 0, batch = 0, gates = 0, sides = 1, bytes = 0;  // bytes of a weight
};

DType dtype_of(const Fused& fused) {
  return fused.outputs.front().operand.dtype;
}

Layer layer_of(const Fused& fused) {
  const Recurrence& r = *fused.recurrence;
  const auto sides = int64_t(r.sides.size());
  return {.states = fused.axes[2].size / sides,
          .batch = fused.axes[r.batch_first ? 0 : 1].size,
          .gates = r.gates(),
          .sides = sides,
          .bytes = int64_t(size_of(dtype_of(fused)))};
}

// How the CTAs share the work. With `ctas` 0, the whole grid shares the states.
struct Split {
  int64_t ctas = 1, rows = 1, lanes = 8, threads = 256, shared = kShared;
  int64_t teams() const { return threads / lanes; }
  // Copies of the state: a cluster writes the next one while it reads this one.
  int64_t copies() const { return ctas == 0 ? 1 : 2; }
};

Split split_of(const Json& params) {
  return {.ctas = int_param(params, "ctas"),
          .rows = int_param(params, "rows"),
          .lanes = int_param(params, "lanes"),
          .threads = int_param(params, "threads"),
          .shared = int_param(params, "shared")};
}

int64_t pitch_of(int64_t states) {
  return ceil_div(states, 4) * 4;
}

bool state_fits(const Layer& layer, const Split& split) {
  return 4 * split.copies() * split.rows * pitch_of(layer.states) <= split.shared << 10;
}

// The cycles of a step on the busiest SM. The throughputs are Hopper's. The latencies of loads,
// of the cell and of a barrier are guesses.
double cycles_of(const Layer& layer, const Split& split) {
  constexpr double kL2 = 40, kOnChip = 128;                                 // bytes in a cycle
  constexpr double kPass = 400, kStep = 500, kCluster = 400, kGrid = 3000;  // latencies
  const int64_t own = ceil_div(layer.states, split.ctas == 0 ? kSms / layer.sides : split.ctas);
  const int64_t groups = ceil_div(layer.batch, split.rows);
  const int64_t pitch = pitch_of(layer.states), unit = layer.bytes * layer.gates * pitch;
  const int64_t room = (split.shared << 10) - 4 * split.copies() * split.rows * pitch;
  const int64_t kept = own * unit <= room ? own : room / unit / split.teams() * split.teams();
  const int64_t steps_of_lanes = split.lanes >= 32 ? 5 : split.lanes >= 16 ? 4 : 3;
  const double weights = double(own) * double(unit);
  const double elements = double(own * layer.gates * pitch);
  const double products =
      elements * double(split.rows) / 128 +
      (weights + 4 * elements * double(split.rows) / double(layer.gates)) / kOnChip;
  const double sums = double(own * layer.gates * split.rows * steps_of_lanes * split.lanes) / 32;
  const double far = double((own - kept) * unit) / kL2;
  const double passes = double(ceil_div(own, split.teams())) * kPass;
  const double work = products + sums + far + passes;
  if (split.ctas == 0)
    return kGrid + double(groups) * (work + kStep + 4 * double(split.rows * pitch) / kL2);
  const int64_t bytes = kept * unit + 4 * split.copies() * split.rows * pitch;
  const int64_t resident = std::clamp<int64_t>((kShared << 10) / std::max<int64_t>(1, bytes), 1, 4);
  const int64_t on_sm = ceil_div(groups * split.ctas * layer.sides, kSms);
  const double meet = split.ctas > 1 ? kCluster : 0;
  // CTAs that do not fit run after the others.
  return double(on_sm) * work + double(ceil_div(on_sm, resident)) * (kStep + meet);
}

Json json_of(const Split& split) {
  return {{"ctas", split.ctas},
          {"rows", split.rows},
          {"lanes", split.lanes},
          {"threads", split.threads},
          {"shared", split.shared}};
}

struct CellText {
  const char *title, *type;  // type: name of the cell's type in the device header
};

CellText text_of(CellKind kind) {
  switch (kind) {
    case CellKind::lstm:
      return {.title = "an LSTM", .type = "LstmCell"};
    case CellKind::gru:
      return {.title = "a GRU", .type = "GruCell"};
    case CellKind::tanh:
      return {.title = "a recurrent layer with tanh", .type = "TanhCell"};
    case CellKind::relu:
      break;
  }
  return {.title = "a recurrent layer with ReLU", .type = "ReluCell"};
}

// The sizes of the kernel, as symbols of the plan: each reads those before it.
void add_sizes(const Fused& fused, const Split& split, const Label& label, ProgramPart& part) {
  const Recurrence& r = *fused.recurrence;
  const std::string states = label("states"), pitch = label("pitch"), own = label("own"),
                    room = label("room"), unit = label("unit");
  part.symbols[label("length")] = r.steps;
  part.symbols[label("batch")] = r.batch;
  part.symbols[states] = r.states;
  part.symbols[pitch] = fmt::format("ceil_div({},4)*4", states);
  const int64_t ctas = split.ctas == 0 ? kSms / int64_t(r.sides.size()) : split.ctas;
  part.symbols[own] = fmt::format("ceil_div({},{})", states, ctas);
  part.symbols[unit] = fmt::format("{}*{}", layer_of(fused).bytes * r.gates(), pitch);
  part.symbols[room] =
      fmt::format("{}-{}*{}", split.shared << 10, 4 * split.copies() * split.rows, pitch);
  part.symbols[label("kept")] =
      fmt::format("{0}*{1} <= {2} ? {0} : {2}/max(1,{1})/{3}*{3}", own, unit, room, split.teams());
}

// The parameters of the kernel and its arguments in the plan.
struct Signature {
  std::vector<std::string> declarations;
  Json args = Json::array();
  std::string locals;  // pointers that are null in this layer, or that depend on the direction
  bool cells = false;  // has float32 cells of its own
};

Signature signature_of(const Fused& fused, const Label& label, ProgramPart& part) {
  static const std::array<const char*, 3> kResults{"sequence", "last", "last_cell"};
  const Recurrence& r = *fused.recurrence;
  const bool lstm = r.kind == CellKind::lstm, two = r.sides.size() == 2;
  Signature made;
  const auto add = [&](const std::string& type, const std::string& name,
                       const std::string& tensor) {
    made.declarations.push_back(fmt::format("{}* {}", type, name));
    made.args.push_back({{"tensor", tensor}});
  };
  const auto local = [&](const std::string& type, const std::string& name,
                         const std::string& value) {
    made.locals += fmt::format("  {}* const {} = {};\n", type, name, value);
  };
  // Tensors of both sides: blockIdx.y chooses.
  const auto of_sides = [&](const std::string& type, const std::string& name,
                            std::string Recurrence::Side::* operand) {
    if ((r.sides[0].*operand).empty()) return local(type, name, "nullptr");
    for (size_t i = 0; i < r.sides.size(); ++i)
      add(type, two ? fmt::format("{}_{}", name, i) : name, fused.names.at(r.sides[i].*operand));
    if (two) local(type, name, fmt::format("blockIdx.y == 0 ? {0}_0 : {0}_1", name));
  };
  of_sides("const float", "inputs", &Recurrence::Side::inputs);
  of_sides("const Element", "weight", &Recurrence::Side::weight);
  of_sides("const Element", "bias", &Recurrence::Side::bias);
  const auto of_all = [&](const std::string& name, const std::string& tensor) {
    if (tensor.empty()) return local("const Element", name, "nullptr");
    add("const Element", name, fused.names.at(tensor));
  };
  of_all("first", r.first);
  if (lstm) of_all("first_cell", r.first_cell);
  for (size_t i = 0; i < fused.outputs.size(); ++i)
    add("Element", kResults[i], fused.names.at(fused.outputs[i].operand.tensor));
  // A 16-bit LSTM keeps its cells in float32 between the steps.
  made.cells = lstm && dtype_of(fused) != DType::f32;
  if (!made.cells) return made;
  part.scratch.push_back(
      {{"name", label("cells")},
       {"dtype", "f32"},
       {"shape", {fmt::format("{}*({})*({})", r.sides.size(), r.batch, r.states)}}});
  add("float", "cells", label("cells"));
  return made;
}

// The values of the templates that follow from the layer.
std::map<std::string, std::string> texts_of(const Fused& fused, const Split& split, bool cells) {
  const Recurrence& r = *fused.recurrence;
  const bool whole = split.ctas == 0;
  std::map<std::string, std::string> texts{
      {"title", fmt::format("The steps of {}.", text_of(r.kind).title)},
      {"threads", std::to_string(split.threads)},
      {"ctas", std::to_string(split.ctas)},
      {"rows", std::to_string(split.rows)},
      {"lanes", std::to_string(split.lanes)},
      {"cell", text_of(r.kind).type},
      {"element", device_type(dtype_of(fused))},
      {"place", std::to_string(r.cell)},
      {"sides", std::to_string(r.sides.size())},
      {"at", r.batch_first ? "row * steps + time" : "time * batch + row"},
      {"at_before", r.batch_first ? "(row * steps + before)" : "(before * batch + row)"},
      {"load_cell", ""},
      {"store_cell", ""}};
  if (r.kind != CellKind::lstm) return texts;
  const std::string from = cells ? "cells" : "last_cell";
  const std::string load =
      "if (step > 0)\n"
      "  cell = " +
      from +
      "[end];\n"
      "else if (first_cell)\n"
      "  cell = cutegen::to_float(first_cell[((kPlace + side) * batch + row) * n + j]);";
  std::string store = from + "[end] = cell;";
  if (cells)
    store += "\nif (step + 1 == steps) last_cell[end] = cutegen::from_float<Element>(cell);";
  const int spaces = whole ? 10 : 8;
  texts["load_cell"] = indent(load, spaces) + "\n";
  texts["store_cell"] = indent(store, spaces) + "\n";
  return texts;
}

}  // namespace

std::vector<RecipeParameter> recurrent_parameters(bool hopper) {
  const std::vector<int64_t> ctas =
      hopper ? std::vector<int64_t>{8, 4, 2, 1, 0} : std::vector<int64_t>{1, 0};
  const std::vector<int64_t> shared = hopper ? std::vector<int64_t>{kShared, kLittleShared, 48}
                                             : std::vector<int64_t>{kLittleShared, 48};
  return {{.name = "ctas",
           .meaning = "CTAs of a cluster that share the states of a sequence; 0: the whole grid",
           .legal = ctas},
          {.name = "rows", .meaning = "sequences that CTAs take together", .legal = {1, 2, 4, 8}},
          {.name = "lanes", .meaning = "threads that share a state", .legal = {8, 16, 32}},
          {.name = "threads", .meaning = "threads of a CTA", .legal = {256, 512, 128}},
          {.name = "shared",
           .meaning = "KiB of shared memory of a CTA, mostly for weights",
           .legal = shared}};
}

Json recurrent_safe(const Fused& fused, bool hopper) {
  const Layer layer = layer_of(fused);
  Split best{.shared = hopper ? kShared : kLittleShared};
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t ctas : {1, 2, 4, 8, 0})
    for (const int64_t rows : {1, 2, 4, 8})
      for (const int64_t lanes : {8, 16, 32})
        for (const int64_t threads : {128, 256, 512}) {
          const Split split{.ctas = ctas,
                            .rows = rows,
                            .lanes = lanes,
                            .threads = threads,
                            .shared = best.shared};
          if ((ctas > 1 && !hopper) || !state_fits(layer, split)) continue;
          if (const double cycles = cycles_of(layer, split); cycles < least) {
            least = cycles;
            best = split;
          }
        }
  return json_of(best);
}

bool recurrent_legal(const Fused& fused, const Json& params, bool hopper) {
  const Split split = split_of(params);
  return (hopper || (split.ctas < 2 && split.shared <= kLittleShared)) &&
         split.rows <= split.lanes && state_fits(layer_of(fused), split);
}

ProgramPart recurrent_part(const Fused& fused, const Json& params, const Label& label) {
  const Split split = split_of(params);
  const bool whole = split.ctas == 0;
  ProgramPart part;
  part.file = label("kernel") + ".cu";
  part.hopper = split.ctas > 1;
  Signature signature = signature_of(fused, label, part);
  std::map<std::string, std::string> texts = texts_of(fused, split, signature.cells);
  texts["name"] = label("steps");
  texts["params"] = join(signature.declarations, ", ");
  texts["locals"] = signature.locals;
  part.source = fill(whole ? "kernels/recurrent/grid.cu" : "kernels/recurrent/cluster.cu", texts);
  add_sizes(fused, split, label, part);
  for (const char* word : {"length", "batch", "states", "own", "kept"})
    signature.args.push_back({{"i64", label(word)}});
  part.requirements.push_back(label("room") + " >= 0");
  const std::string shared = fmt::format("{}*{}+{}*{}", label("kept"), label("unit"),
                                         4 * split.copies() * split.rows, label("pitch"));
  Json step{{"id", label("steps")},
            {"kernel", label("steps")},
            {"when", fmt::format("{} > 0", label("batch"))},
            {"block", {split.threads, 1, 1}},
            {"shared_bytes", shared},
            {"args", std::move(signature.args)}};
  const std::string grid =
      whole ? fmt::format("ceil_div({},{})", label("states"), label("own"))
            : fmt::format("{}*ceil_div({},{})", split.ctas, label("batch"), split.rows);
  step["grid"] = {grid, fused.recurrence->sides.size(), 1};
  if (whole) step["cooperative"] = true;
  if (split.ctas > 1) step["cluster"] = {split.ctas, 1, 1};
  part.steps.push_back(std::move(step));
  return part;
}

}  // namespace cutegen::recipes
