// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/pointwise.h"
#include "recipes/text/nest_tensors.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kWarpRow = 1024;  // elements that a warp takes
constexpr int64_t kOfThread = 8;    // elements of a long row that a thread should have
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kEach = 8;  // elements of a thread that merges runs

// Plans the kernels: the first sorts tiles, each merge doubles the sorted runs, the last writes the
// results. Each merge reads what the one before it wrote, so the number of merges decides which
// scratch holds the sorted keys.
void plan_merges(const Fused& fused, int64_t threads, const Label& label, const Json& args,
                 ProgramPart& part) {
  const Choice& choice = *fused.choice;
  const std::string length = label("r0"), rows = label("rows"), name = label("sort");
  const int64_t tile = choice.capacity();
  const std::array<std::string, 2> keys{label("keys"), label("merged")};
  for (const std::string& own : keys)
    part.scratch.push_back(
        {{"name", own}, {"dtype", "i64"}, {"shape", {rows, length, choice.integers ? 2 : 1}}});
  const auto tensors = parameters(fused).size();
  const auto with = [&](const std::string& sorted, const std::vector<std::string>& last) {
    Json list = args;
    list.insert(list.begin() + long(tensors), Json{{"tensor", sorted}});
    for (const std::string& word : last) list.push_back({{"i64", word}});
    return list;
  };
  const auto step = [&](const std::string& id, const std::string& kernel, const std::string& when,
                        const std::string& blocks, Json list) {
    part.steps.push_back({{"id", id},
                          {"kernel", kernel},
                          {"when", when},
                          {"grid", {fmt::format("{}*{}", rows, blocks), 1, 1}},
                          {"block", {threads, 1, 1}},
                          {"args", std::move(list)}});
  };
  const std::string tiles = fmt::format("ceil_div({},{})", length, tile);
  step(name + "_tiles", name + "_tiles", rows + " > 0", tiles, with(keys[0], {tiles}));
  const std::string merging = fmt::format("ceil_div({},{})", length, threads * kEach);
  size_t merges = 0;
  for (int64_t run = tile; run < kLongest; run *= 2, ++merges)
    step(fmt::format("{}_merge{}", name, merges), name + "_merge",
         fmt::format("{} > {} ? {} : 0", length, run, rows), merging,
         Json::array({Json{{"tensor", keys[merges % 2]}}, Json{{"tensor", keys[(merges + 1) % 2]}},
                      Json{{"i64", length}}, Json{{"i64", run}}, Json{{"i64", merging}}}));
  const std::string writing = fmt::format("ceil_div({},{})", choice.extent, threads);
  for (size_t done = 0; done <= merges; ++done) {
    const int64_t most = tile << done, least = done == 0 ? 0 : most / 2;
    step(fmt::format("{}_write{}", name, done), name,
         fmt::format("{0} > {1} ? ({0} <= {2} ? {3} : 0) : 0", length, least, most, rows), writing,
         with(keys[done % 2], {length, writing}));
  }
}

// The kernel's text and arguments.
class OrderKernel {
 public:
  OrderKernel(const Task& task, const Fused& fused, const Json& params, const Label& label)
      : fused_(fused),
        params_(params),
        label_(label),
        nest_(make_nest(fused)),
        code_(fused),
        tensors_(fused, nest_, code_),
        chosen_(code_.word("chosen")) {
    add_inputs();
    add_outputs();
    source_ = fill(template_of(), fields(task));
  }
  ProgramPart part() const;

 private:
  const Choice& choice() const { return *fused_.choice; }
  bool selects() const { return choice().selects(); }
  // Whether several CTAs sort a row.
  bool merges() const { return !selects() && choice().long_row; }
  // Whether all threads of a CTA share a row.
  bool whole_cta() const { return int_param(params_, "width") == int_param(params_, "threads"); }
  const char* template_of() const {
    if (merges()) return "kernels/order/long.cu";
    if (!selects()) return "kernels/order/sort.cu";
    return whole_cta() ? "kernels/order/threshold.cu" : "kernels/order/select.cu";
  }
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  void add_inputs();
  void add_outputs();
  std::string statements(Level level) const;
  std::map<std::string, std::string> fields(const Task& task) const;
  std::string name() const { return label_(selects() ? "select" : "sort"); }

  const Fused& fused_;
  const Json& params_;
  const Label& label_;
  Nest nest_;
  Code code_;
  NestTensors tensors_;
  std::string chosen_;                // argument: elements chosen from a row
  std::map<int, std::string> names_;  // of the tensors that leaves read
  std::vector<StrideArgument> steps_;
  std::string views_, members_, loads_, stores_, source_;
};

void OrderKernel::add_inputs() {
  for (int inst : code_.needed({choice().inst}, [](const Inst&) { return true; })) {
    const Inst& i = at(inst);
    if (i.kind != InstKind::leaf) continue;
    const Operand& operand = fused_.inputs[size_t(i.operand)];
    const std::string name = code_.word("g_" + fused_.names.at(operand.tensor));
    names_[inst] = name;
    views_ += fmt::format("Tensor {} = {};\n", name, tensors_.view(operand));
    if (i.level != Level::element) continue;
    views_ += tensors_.indices(operand);
    members_ += fmt::format("{} {}[kVector];\n", value_type(i), name.substr(2));
    loads_ += tensors_.load(operand, name, "j", "e." + name.substr(2));
  }
}

// Each thread writes single results: the first output holds values, the last one positions.
void OrderKernel::add_outputs() {
  for (size_t i = 0; i < fused_.outputs.size(); ++i) {
    const Operand& operand = fused_.outputs[i].operand;
    const std::string& tensor = fused_.names.at(operand.tensor);
    const std::string step = code_.word(tensor + "_step"), to = code_.word("to_" + tensor);
    steps_.emplace_back(step, stride_text(fused_, operand, operand.shape.size() - 1));
    std::string element;
    views_ +=
        fmt::format("{}* const {} = {};\n", type_of(operand), to, tensors_.base(operand, &element));
    const bool places = is_integer(operand.dtype);
    const bool position = choice().positions_only || (places && i > 0);
    stores_ +=
        fmt::format("{}[i * {}] = cutegen::from_float<{}>({});\n", to, step, type_of(operand),
                    position ? "first.position()" : "cutegen::value_of<kLargest>(first)");
  }
}

// Writes the instructions that the sorted element needs: once a row, or for element v of a vector.
std::string OrderKernel::statements(Level level) const {
  std::string text;
  for (int inst : code_.needed({choice().inst}, [](const Inst&) { return true; })) {
    const Inst& i = at(inst);
    if (i.level != level || i.kind == InstKind::constant) continue;
    if (i.kind == InstKind::leaf)
      text += level == Level::row
                  ? fmt::format("const {0} {1} = cutegen::convert<{0}>({2}(0, 0));\n",
                                value_type(i), code_.id(inst), names_.at(inst))
                  : fmt::format("const {} {} = e.{}[v];\n", value_type(i), code_.id(inst),
                                names_.at(inst).substr(2));
    else
      text += code_.statement(inst);
  }
  return text;
}

std::map<std::string, std::string> OrderKernel::fields(const Task& task) const {
  std::vector<std::string> declarations, sizes;
  for (const Parameter& p : parameters(fused_)) declarations.push_back(p.declaration);
  for (size_t i = 0; i < nest_.kept.size(); ++i) sizes.push_back(fmt::format("int64_t k{}", i));
  sizes.emplace_back("int64_t r0");
  for (const auto& [word, expression] : tensors_.strides()) sizes.push_back("int64_t " + word);
  for (const auto& [word, expression] : steps_) sizes.push_back("int64_t " + word);
  std::map<std::string, std::string> t{
      {"title", title(task, fused_)},
      {"name", name()},
      {"macro", label_("VECTOR")},
      {"threads", params_.at("threads").dump()},
      {"width", params_.at("width").dump()},
      {"capacity", std::to_string(choice().capacity())},
      {"key", choice().integers ? "cutegen::WideKey" : "cutegen::Key"},
      {"each", std::to_string(kEach)},
      {"largest", choice().largest ? "true" : "false"},
      {"params", join(declarations, ", ")},
      {"along", shape_text(nest_.reduced, 'r', true)},
      {"across", shape_text(nest_.kept, 'k', false)},
      {"elements", indent(members_, 2)},
      {"tensors", indent(views_, 2)},
      {"loads", indent(loads_, 4)},
      {"rows", indent(statements(Level::row), 2)},
      {"value", code_.use(choice().inst)}};
  t["sizes"] = join(sizes, ", ") + ", int64_t " + chosen_ + size_declarations(fused_);
  t["count"] = chosen_;
  t["values"] = indent(statements(Level::element), selects() ? 8 : 6);
  if (choice().integers && !at(choice().inst).integer) t["value"] = "int64_t(" + t["value"] + ")";
  t["stores"] = indent(stores_, selects() ? 6 : 4);
  return t;
}

ProgramPart OrderKernel::part() const {
  ProgramPart part;
  part.file = label_("kernel") + ".cu";
  part.source = source_;
  Json args = Json::array();
  for (const Parameter& p : parameters(fused_)) args.push_back({{"tensor", p.name}});
  std::string rows;
  for (size_t i = 0; i < nest_.kept.size(); ++i) {
    const std::string size = label_(fmt::format("k{}", i));
    part.symbols[size] = nest_.kept[i].extent;
    rows += (i ? "*" : "") + size;
    args.push_back({{"i64", size}});
  }
  const std::string length = label_("r0");
  part.symbols[length] = nest_.reduced[0].extent;
  part.symbols[label_("rows")] = rows;
  args.push_back({{"i64", length}});
  for (const auto& [word, expression] : tensors_.strides()) args.push_back({{"i64", expression}});
  for (const auto& [word, expression] : steps_) args.push_back({{"i64", expression}});
  args.push_back({{"i64", choice().extent}});
  add_sizes(args, fused_);
  part.symbols[label_("vector")] = width_text(fused_, length, int_param(params_, "vector"));
  part.defines[label_("VECTOR")] = label_("vector");
  for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
  part.requirements.push_back(fmt::format("{} <= {}", length,
                                          selects()  ? int64_t{2'000'000'000}
                                          : merges() ? kLongest
                                                     : choice().capacity()));
  if (choice().count > 0)
    part.requirements.push_back(fmt::format("{} >= {}", length, choice().extent));
  if (merges()) {
    plan_merges(fused_, int_param(params_, "threads"), label_, args, part);
    return part;
  }
  const int64_t threads = int_param(params_, "threads"),
                at_once = selects() ? threads / int_param(params_, "width") : 1;
  part.steps.push_back({{"id", name()},
                        {"kernel", name()},
                        {"when", label_("rows") + " > 0"},
                        {"grid", {fmt::format("ceil_div({},{})", label_("rows"), at_once), 1, 1}},
                        {"block", {threads, 1, 1}},
                        {"args", std::move(args)}});
  return part;
}

// Threads for a row: a warp for a short row, otherwise enough that each has few elements.
int64_t width_of(const Nest& nest) {
  if (nest.length() <= kWarpRow) return 32;
  int64_t width = 128;
  while (width < kMostThreads && width * kOfThread < nest.length()) width *= 2;
  return width;
}

}  // namespace

Json order_safe(const Fused& fused) {
  const Nest nest = make_nest(fused);
  const int64_t vector = vector_widths(fused, nest.inner()).front();
  if (!fused.choice->selects()) {
    int64_t threads = 128;
    while (threads < kMostThreads && threads * 4 < nest.length()) threads *= 2;
    return {{"vector", vector}, {"threads", threads}, {"width", threads}};
  }
  const int64_t width = width_of(nest);
  return {{"vector", vector}, {"threads", std::max<int64_t>(128, width)}, {"width", width}};
}

std::vector<RecipeParameter> order_parameters(const Fused& fused) {
  return {{.name = "vector",
           .meaning = "neighbouring elements that a thread reads in one access",
           .legal = vector_widths(fused, make_nest(fused).inner())},
          {.name = "threads", .meaning = "threads of a CTA", .legal = {256, 128, 512, 1024}},
          {.name = "width",
           .meaning = "threads that share a row: a warp, or all of the CTA",
           .legal = {32, 256, 128, 512, 1024}}};
}

bool order_legal(const Fused& fused, const Json& params) {
  const int64_t threads = int_param(params, "threads"), width = int_param(params, "width");
  const Choice& choice = *fused.choice;
  if (choice.selects() && choice.count > kMostSelected)  // selecting one by one takes too long
    return width == threads && threads >= choice.count;
  return width == threads || (width == 32 && choice.selects());
}

ProgramPart order_part(const Task& task, const Fused& fused, const Json& params,
                       const Label& label) {
  return OrderKernel(task, fused, params, label).part();
}

}  // namespace cutegen::recipes
