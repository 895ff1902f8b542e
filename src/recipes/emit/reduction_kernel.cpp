// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/reduction_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kNarrow = 2'000'000'000;  // elements of a row, or rows, that 32 bits count
constexpr int64_t kMostGroups = 12, kMostPlaces = 16;  // groups of copies; at most 16 in flight
constexpr int64_t kMostShared = int64_t{220} << 10;    // bytes of a CTA of sm_90

// Operands whose elements stay between passes, in places that hold a float each.
std::vector<size_t> room_for_values(const Fused& fused, const Nest& nest, bool resident) {
  std::vector<size_t> list;
  for (const Inst& i : fused.insts) {
    if (i.kind != InstKind::leaf || i.level != Level::element || i.integer) continue;
    const auto operand = size_t(i.operand);
    const Operand& o = fused.inputs[operand];
    const bool fits =
        resident ? stays(fused, nest, o) && o.dtype == DType::f32
                 : in_registers(fused, nest, o) && (nest.reduced_inside || !packed(fused, nest, o));
    if (fits && std::find(list.begin(), list.end(), operand) == list.end()) list.push_back(operand);
  }
  return list;
}

constexpr int64_t kMostEarly = 16;  // weights that a thread loads before the first pass

PassOptions options(const Task& task, const Fused& fused, const Nest& nest, const Json& params) {
  auto on = [&](const char* name) { return params.at(name).get<int64_t>() != 0; };
  const bool cached = params.at("cached") == 1, resident = params.at("cached") == 2;
  std::set<size_t> as_is;
  for (size_t i = 0; i < fused.inputs.size(); ++i)
    if (loads_packed(fused, nest, fused.inputs[i], params)) as_is.insert(i);
  return {
      .column = !nest.reduced_inside,
      .cached = cached,
      .online = on("online"),
      .split = params.at("parts").get<int64_t>() > 1,
      .resident = resident,
      .turns = turns_of(params) > 1,
      .clustered = !nest.reduced_inside && params.at("cluster").get<int64_t>() > 1,
      .unroll = params.at("unroll").get<int64_t>(),
      .packed = std::move(as_is),
      .accuracy = needed_accuracy(task, fused),
      .room = cached || resident ? room_for_values(fused, nest, resident) : std::vector<size_t>{}};
}

// Declares which steps a thread takes of a row that stays in shared memory.
std::string resident_range(int words, bool turns) {
  return fmt::format(
      "  __shared__ float {}[{}];\n"
      "  const Index first = part * kWidth + lane, apart = kCluster * kWidth;\n"
      "  const Index slots = first < steps ? (steps - first - 1) / apart + 1 : 0;\n"
      "  const Index {};",
      turns ? "in_clusters" : "in_cluster", turns ? 2 * words : words,
      turns ? "share = kShare, room = kPlaces * share"
            : "room = (steps + apart - 1) / apart, share = (room + kGroups - 1) / kGroups");
}

// Declares the slots of this thread in shared memory.
std::string declare_slots(const std::string& slots) {
  return "extern __shared__ __align__(16) unsigned char on_chip[];\n"
         "unsigned char* next = on_chip;\n" +
         slots;
}

std::string read_slots(const std::string& reads) {
  return "auto kept = [&](Index i, Index j) {\n"
         "  Elements e;\n" +
         indent(reads, 2) +
         "\n  return e;\n"
         "};\n";
}

// Copies this thread's share of the row into its slots of shared memory.
std::string copy_row(const std::string& fetches) {
  return "for (int group = 0; group < kGroups; ++group) {\n"
         "  for (Index i = group * share; i < (group + 1) * share && i < slots; ++i) {\n"
         "    const Index j = first + i * apart;\n" +
         indent(fetches, 4) +
         "\n  }\n"
         "  cutegen::end_group();\n"
         "}\n";
}

// Declares which steps a thread takes of a row that several CTAs of the grid share.
std::string split_range(bool row) {
  return fmt::format(
      "  // The CTAs of a row interleave their steps.\n"
      "  const Index first = Index(part) * {0} + {1}, apart = "
      "Index(parts) * {0};",
      row ? "kWidth" : "kRows", row ? "lane" : "team");
}

// Declares which steps a thread takes of columns that the CTAs of a cluster share.
std::string cluster_range(int words) {
  return fmt::format(
      "  __shared__ float in_cluster[{} * kColumns * kVector];\n"
      "  // The CTAs of a cluster interleave their steps.\n"
      "  const Index first = Index(part) * kRows + team, apart = Index(kCluster) * kRows;",
      2 * words);
}

}  // namespace

bool computes_before_reducing(const Fused& fused) {
  std::vector<int> later;
  for (const Inst& i : fused.insts)
    if (i.kind == InstKind::reduction && i.depth > 1) later.push_back(i.inputs[0]);
  for (const FusedOutput& output : fused.outputs)
    if (varies(fused, output.operand)) later.push_back(output.inst);
  std::vector<size_t> all(fused.inputs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return !kept_values(fused, later, all).empty();
}

namespace {

// Whether the operand differs between rows, or there is only one row.
bool differs_by_row(const Fused& fused, const Nest& nest, const Operand& operand) {
  return operand.gathered() ||
         std::any_of(nest.kept.begin(), nest.kept.end(),
                     [&](const Loop& loop) {
                       return loop.size > 1 && stride(fused, operand, loop).move != Move::none;
                     }) ||
         nest.rows() == 1;
}

}  // namespace

bool stays(const Fused& fused, const Nest& nest, const Operand& operand) {
  return !operand.counts && !operand.in_join && varies(fused, operand) &&
         !gathers_along(fused, operand) &&
         stride(fused, operand, nest.reduced.back()).move == Move::next &&
         differs_by_row(fused, nest, operand);
}

bool in_registers(const Fused& fused, const Nest& nest, const Operand& operand) {
  return !operand.counts && !operand.in_join &&
         (varies(fused, operand) || gathers_along(fused, operand)) &&
         !(nest.in_runs && one_a_run(fused, nest, operand)) && differs_by_row(fused, nest, operand);
}

bool packed(const Fused& fused, const Nest& nest, const Operand& operand) {
  const bool half = operand.dtype == DType::f16 || operand.dtype == DType::bf16;
  if (operand.counts || operand.in_join || operand.gathered()) return false;
  if (!nest.reduced_inside)
    return half && in_registers(fused, nest, operand) &&
           stride(fused, operand, nest.kept.back()).move == Move::next;
  return (half || operand.dtype == DType::boolean) && varies(fused, operand) &&
         !(nest.in_runs && recipes::one_a_run(fused, nest, operand)) &&
         stride(fused, operand, nest.reduced.back()).move == Move::next;
}

bool loads_packed(const Fused& fused, const Nest& nest, const Operand& operand,
                  const Json& params) {
  return params.at("cached") != 2 && packed(fused, nest, operand);
}

int64_t element_bytes(const Fused& fused, const Nest& nest) {
  int64_t bytes = 0;
  for (const Operand& operand : fused.inputs)
    if (stays(fused, nest, operand)) bytes += int64_t(size_of(operand.dtype));
  return bytes;
}

namespace {

// Elements of a row in one step.
int64_t elements_of_step(const Nest& nest, const Json& params) {
  const auto vector = params.at("vector").get<int64_t>();
  if (!nest.reduced_inside || nest.inner() % vector != 0) return 1;
  return nest.in_runs && nest.reduced.back().size < vector ? 1 : vector;
}

}  // namespace

int64_t steps_of_thread(const Nest& nest, const Json& params) {
  auto get = [&](const char* name) { return params.at(name).get<int64_t>(); };
  const int64_t per_step =
      nest.reduced_inside ? get("width") * get("cluster") * elements_of_step(nest, params)
                          : std::max<int64_t>(1, get("threads") / get("columns")) * get("cluster");
  return (nest.length() + per_step - 1) / per_step;
}

int64_t elements_of_thread(const Nest& nest, const Json& params) {
  return steps_of_thread(nest, params) * elements_of_step(nest, params);
}

bool width_follows(const Fused& fused, const Nest& nest, const Json& params) {
  return nest.reduced_inside && !fused.lengths.empty() && params.at("cached") == 1 &&
         params.at("width") == params.at("threads") && params.at("width").get<int64_t>() % 32 == 0;
}

int64_t width_at(const Nest& nest, const Json& params, int64_t length) {
  constexpr int64_t kLeast = 128;  // fewer threads leave too few warps on an SM
  if (length == nest.length()) return params.at("width");
  const int64_t warp = 32 * elements_of_thread(nest, params);
  return std::max((length + warp - 1) / warp * 32, kLeast);
}

int64_t turns_of(const Json& params) {
  return params.value("turns", int64_t{1});
}

std::optional<Ring> ring_of(const Fused& fused, const Nest& nest, const Json& params) {
  const int64_t slots = steps_of_thread(nest, params), bytes = params.at("width").get<int64_t>() *
                                                               params.at("vector").get<int64_t>() *
                                                               element_bytes(fused, nest);
  Ring best;
  int64_t ahead = -1;  // slots that hold elements of the next rows
  for (int64_t groups = std::min(slots, kMostGroups); groups > 0; --groups) {
    const int64_t share = (slots + groups - 1) / groups;
    const int64_t places = std::min(kMostShared / std::max<int64_t>(1, share * bytes), kMostPlaces);
    if (places < groups || (places - groups) * share <= ahead) continue;
    ahead = (places - groups) * share;
    best = {.groups = groups, .places = places};
  }
  return ahead < 0 ? std::nullopt : std::optional(best);
}

int64_t resident_bytes(const Fused& fused, const Nest& nest, const Json& params) {
  auto get = [&](const char* name) { return params.at(name).get<int64_t>(); };
  return steps_of_thread(nest, params) * get("width") * get("vector") * element_bytes(fused, nest);
}

ReductionKernel::ReductionKernel(const Task& task, const Fused& fused, const Json& params,
                                 const Label& label)
    : fused_(fused),
      params_(params),
      label_(label),
      nest_(make_nest(fused)),
      parts_(params.at("parts").get<int64_t>()),
      code_(fused),
      tensors_(fused, nest_, code_),
      passes_(fused, code_, options(task, fused, nest_, params)) {
  if (!row()) tensors_.defer_checks(code_.word("outside"));
  find_rows();
  auto text = common(task);
  if (!split()) {
    add_kernel(label_("reduction"), passes_.text(), 0, true);
  } else {
    for (int d = 1; d <= passes_.depth(); ++d)
      add_kernel(label_(fmt::format("pass{}", d)), passes_.partial(d), d, false);
    add_kernel(label_("finish"), passes_.finish(), passes_.depth(), true);
  }
  text["kernels"] = kernels_;
  source_ = fill(row() ? "kernels/reduction/row.cu" : "kernels/reduction/column.cu", text);
}

bool ReductionKernel::wide() const {
  return nest_.length() > kNarrow;
}

bool ReductionKernel::many_rows() const {
  return nest_.rows() > kNarrow;
}

// The shape of the rows, or of the vectors of columns.
std::string ReductionKernel::across() const {
  std::vector<std::string> list;
  for (size_t i = nest_.kept.size(); i-- > 0;)
    list.push_back(
        fmt::format("Row(k{}{})", i, !row() && i + 1 == nest_.kept.size() ? " / kVector" : ""));
  return tuple_of("make_shape", list);
}

// If rows have several coordinates, a kernel finds them by multiplications instead of divisions,
// which take many instructions of a thread that reads only a part of a short row.
void ReductionKernel::find_rows() {
  if (many_rows() || nest_.kept.size() < 2) return;
  std::vector<StrideArgument> inverses;
  std::vector<std::string> words;
  for (size_t i = nest_.kept.size() - 1; i > 0; --i) {
    const bool vectors = !row() && i + 1 == nest_.kept.size();
    words.push_back(code_.word(fmt::format("inverse{}", i)));
    inverses.emplace_back(words.back(),
                          fmt::format("4294967295/max(1,{}{})", label_(fmt::format("k{}", i)),
                                      vectors ? "/" + label_("vector") : ""));
  }
  const std::string place = code_.word("place");
  tensors_.place_rows(place, inverses);
  places_ =
      fmt::format("  auto {} = [&](Row at) {{ return cutegen::coordinates(at, across, {}); }};\n",
                  place, join(words, ", "));
}

// Declares the tensor of this thread's row or columns.
std::string ReductionKernel::tensor(const Operand& operand, const std::string& name) {
  return fmt::format("{} {} = {};\n", declared(operand), name, view(operand));
}

// The type with which a kernel declares the operand's view.
const char* ReductionKernel::declared(const Operand& operand) {
  return operand.is_joined() ? "auto" : "Tensor";
}

// Declares the tensor of an input. If a cluster takes several rows one after another, elements of
// the next row arrive while it computes a row.
std::string ReductionKernel::input(const Operand& operand, const std::string& name) {
  if (!turns() || !stays(fused_, nest_, operand)) return tensor(operand, name);
  const std::string& word = fused_.names.at(operand.tensor);
  const std::string of_row = code_.word("row_of_" + word), next = code_.word("next_" + word);
  rows_ += fmt::format("auto {} = [&](Row row) {{\n{}\n}};\n", of_row,
                       indent("return " + view(operand) + ";", 2));
  next_ += fmt::format("{} {} = {}(next_row);\n", declared(operand), next, of_row);
  fetches_ = replace_all(fetches_, "&" + name + "(", "&" + next + "(");
  return fmt::format("{} {} = {}(row);\n", declared(operand), name, of_row);
}

// Writes the tensor of a thread's row or columns: (element of the vector, step along the axis).
std::string ReductionKernel::view(const Operand& operand) {
  if (one_a_run(operand)) return view_of_runs(operand);
  if (!in_runs()) return tensors_.view(operand);
  const bool along = varies(fused_, operand);
  return tensors_.view(operand, along ? "Int<1>{}" : "Int<0>{}",
                       along ? "Int<kVector>{}" : "Int<0>{}");
}

// The same for an operand that has one element for each run of the row.
std::string ReductionKernel::view_of_runs(const Operand& operand) {
  const std::vector<Loop> outer(nest_.reduced.begin(), nest_.reduced.end() - 1);
  std::string element;
  const std::string strides = tensors_.strides_over(operand, outer, 'r', false, &element);
  return fmt::format("make_tensor(make_gmem_ptr({}),\n    make_layout({}, {}))",
                     tensors_.base(operand, &element), shape_text(outer, 'r', false), strides);
}

bool ReductionKernel::one_a_run(const Operand& operand) const {
  return in_runs() && recipes::one_a_run(fused_, nest_, operand);
}

bool ReductionKernel::has_runs() const {
  return std::any_of(fused_.inputs.begin(), fused_.inputs.end(),
                     [&](const Operand& operand) { return one_a_run(operand); });
}

// The shape of the steps along a row or a column.
std::string ReductionKernel::along() const {
  if (!in_runs()) return shape_text(nest_.reduced, 'r', row());
  std::vector<std::string> sizes;
  for (size_t i = nest_.reduced.size(); i-- > 0;) sizes.push_back(fmt::format("r{}", i));
  return fmt::format("Index({} / kVector)", join(sizes, " * "));
}

// The vectors of a row that a thread keeps, as an expression of kVector.
std::string ReductionKernel::items() const {
  const int64_t elements = elements_of_thread(nest_, params_);
  if (!row()) return std::to_string(elements);
  return elements % get("vector") == 0 ? fmt::format("{} / kVector", elements)
                                       : fmt::format("({} + kVector - 1) / kVector", elements);
}

// Whether a thread loads weights together with its elements, although only the last pass reads
// them. Then it does not wait for memory again after the sums. A few weights do not cost occupancy.
bool ReductionKernel::loads_early() const {
  if (!row() || get("cached") != 1) return false;
  int64_t weights = 0;
  for (int leaf : passes_.leaves(Level::element)) {
    const Operand& operand = fused_.inputs[size_t(fused_.insts[size_t(leaf)].operand)];
    if (one_a_run(operand)) return false;
    if (!in_registers(fused_, nest_, operand)) weights += elements_of_thread(nest_, params_);
  }
  return weights <= kMostEarly;
}

// Fills the fields that occur once in the file, and those that all kernels share.
std::map<std::string, std::string> ReductionKernel::common(const Task& task) {
  std::map<std::string, std::string> t;
  t["title"] = title(task, fused_);
  t["macro"] = label_("VECTOR");
  t["index"] = wide() ? "int64_t" : "int";
  t["row_index"] = many_rows() ? "int64_t" : "int";
  t["note"] =
      split()
          ? "// Several CTAs share a row: the kernel of each pass writes the accumulators of each "
            "CTA to scratch,\n// and the next kernel merges them.\n"
          : "";
  const bool follows = width_follows(fused_, nest_, params_);
  t["threads"] = follows ? label_("WIDTH") : params_.at("threads").dump();
  t[row() ? "width" : "columns"] =
      follows ? label_("WIDTH") : params_.at(row() ? "width" : "columns").dump();
  t["constants"] =
      get("cached") == 1
          ? fmt::format("constexpr int kItems = {};  // vectors kept in registers\n", items())
          : fmt::format("constexpr int kUnroll = {};\n", get("unroll"));
  const auto ring = turns() ? ring_of(fused_, nest_, params_) : std::nullopt;
  if (resident())
    t["constants"] += fmt::format(
        "constexpr int kCluster = {};  // CTAs that share a row\n"
        "constexpr int kGroups = {};   // of asynchronous copies of a row\n",
        get("cluster"), ring ? ring->groups : 4);
  if (ring)
    t["constants"] += fmt::format(
        "constexpr int kPlaces = {};  // of groups in shared memory\n"
        "constexpr int kShare = {};   // vectors of a group for each thread\n",
        ring->places, label_("SHARE"));
  if (clustered())
    t["constants"] +=
        fmt::format("constexpr int kCluster = {};  // CTAs that share columns\n", get("cluster"));
  const bool runs = has_runs(), joins = std::any_of(fused_.inputs.begin(), fused_.inputs.end(),
                                                    [](const Operand& o) { return o.in_join; });
  t["headers"] = std::string(resident() || clustered() ? "#include <cutegen/resident.cuh>\n" : "") +
                 (runs ? "#include <cutegen/runs.cuh>\n" : "") +
                 (joins ? "#include <cutegen/joined.cuh>\n" : "");
  if (runs) {
    t["constants"] +=
        fmt::format("constexpr bool kWholeRuns = {} != 0;  // no vector is in two runs\n",
                    label_("WHOLE_RUNS"));
    runs_ = code_.word("runs");
    inputs_ += fmt::format("const cutegen::Runs {}{{Index(r{})}};  // elements with one weight\n",
                           runs_, nest_.reduced.size() - 1);
  }
  std::string elements;
  const bool early = loads_early();
  for (int leaf : passes_.leaves(Level::element)) {
    const Inst& inst = fused_.insts[size_t(leaf)];
    const std::string& name = passes_.input_tensor(size_t(inst.operand));
    const Operand& operand = fused_.inputs[size_t(inst.operand)];
    const bool as_is = loads_packed(fused_, nest_, operand, params_);
    elements +=
        as_is ? fmt::format("cutegen::Pack<{}, kVector> {};\n", type_of(operand), name.substr(2))
              : fmt::format("{} {}[kVector];\n", value_type(inst), name.substr(2));
    if (const std::string kept = passes_.packed_values(size_t(inst.operand)); !kept.empty())
      elements += fmt::format("float {}[kVector];  // computed by the first pass\n", kept);
    inputs_ += tensors_.indices(operand);
    const std::string load =
        as_is ? fmt::format("cutegen::load_pack({}(_, j), e.{});\n", name, name.substr(2))
        : one_a_run(operand)
            ? fmt::format("cutegen::load_run<kWholeRuns>({}, {}, j * kVector, e.{});\n", name,
                          runs_, name.substr(2))
            : tensors_.load(operand, name, "j", "e." + name.substr(2));
    if (get("cached") == 1 && !in_registers(fused_, nest_, operand) && !early)
      passes_.load_late(size_t(inst.operand), load);
    else
      loads_ += load;
    if (!stays(fused_, nest_, operand)) {
      reads_ += load;
      continue;
    }
    const std::string& slot = passes_.slots(size_t(inst.operand));
    slots_ += fmt::format(
        "auto* const {0} = reinterpret_cast<cutegen::Pack<{1}, kVector>*>(next) + threadIdx.x;\n"
        "next += sizeof(*{0}) * kThreads * room;\n",
        slot, type_of(operand));
    fetches_ += fmt::format("cutegen::copy_async({} + i * kThreads, &{}(0, j));\n", slot, name);
    reads_ += fmt::format("cutegen::load_slot({}[i * kThreads], e.{});\n", slot, name.substr(2));
  }
  t["elements"] = indent(elements, 2);
  for (Level level : {Level::element, Level::row})
    for (int leaf : passes_.leaves(level)) {
      auto i = size_t(fused_.insts[size_t(leaf)].operand);
      inputs_ += input(fused_.inputs[i], passes_.input_tensor(i));
      if (row() || level == Level::element || !fused_.inputs[i].gathered()) continue;
      inputs_ += tensors_.indices(fused_.inputs[i]);
      passes_.load_by(
          leaf, tensors_.load(fused_.inputs[i], passes_.input_tensor(i), "0", passes_.id(leaf)));
    }
  for (size_t i = 0; i < fused_.outputs.size(); ++i)
    outputs_ += tensor(fused_.outputs[i].operand, passes_.output_tensor(i));
  return t;
}

// Adds one kernel to the file. It gets the accumulators of all passes up to `most_depth`.
void ReductionKernel::add_kernel(const std::string& name, const std::string& body, int most_depth,
                                 bool last) {
  Launch launch{.name = name, .parts = {}, .whole_grid = !last};
  std::vector<std::string> declarations, sizes;
  for (const Parameter& p : parameters(fused_)) declarations.push_back(p.declaration);
  for (const Parts& p : passes_.parts()) {
    if (p.depth > most_depth) continue;
    launch.parts.push_back(p);
    bool written = !last && p.depth == most_depth;
    declarations.push_back(
        fmt::format("cutegen::{}{}* __restrict__ {}", p.type, written ? "" : " const", p.name));
  }
  for (const FusedOutput& output : fused_.outputs)
    launch.whole_grid |= varies(fused_, output.operand);
  for (size_t i = 0; i < nest_.kept.size(); ++i) sizes.push_back(fmt::format("int64_t k{}", i));
  for (size_t i = 0; i < nest_.reduced.size(); ++i) sizes.push_back(fmt::format("int64_t r{}", i));
  for (const auto& [word, expression] : strides()) sizes.push_back("int64_t " + word);
  if (split()) sizes.emplace_back("int64_t parts");
  std::map<std::string, std::string> t;
  t["name"] = name;
  t["params"] = join(declarations, ", ");
  t["sizes"] = join(sizes, ", ") + size_declarations(fused_);
  t["along"] = along();
  t["across"] = across();
  t["places"] = places_;
  t["words"] = std::to_string(passes_.words());
  t["tensors"] = indent(inputs_ + (last ? outputs_ : ""), 2);
  // The CTAs of a row have neighbouring numbers and interleave their steps. CTAs that run at the
  // same time then read neighbouring lines, which DRAM delivers 10% faster than distant lines.
  const bool shared = split() && launch.whole_grid;
  const bool in_cluster = resident() || clustered();
  // A kernel that goes backwards begins with the rows that the kernel before it read last.
  const int pass = last ? passes_.depth() + 1 : most_depth;
  const std::string number =
      shared && passes_.goes_backwards(pass) ? "(gridDim.x - 1 - blockIdx.x)" : "blockIdx.x";
  t["block"] = shared ? number + " / parts" : in_cluster ? "blockIdx.x / kCluster" : "blockIdx.x";
  // Threads beyond the last row read the first row, but not if another CTA overwrites it.
  const bool overwrites = std::any_of(
      fused_.outputs.begin(), fused_.outputs.end(),
      [&](const FusedOutput& output) { return in_place(fused_, output.operand.tensor); });
  t["steps"] = overwrites ? "live ? Index(size(along)) : 0" : "size(along)";
  t["turn"] = shared       ? "  const int64_t part = " + number + " % parts;\n"
              : split()    ? "  const int64_t part = 0;\n"
              : in_cluster ? "  const int part = blockIdx.x % kCluster;\n"
                           : "";
  t["range"] = resident()    ? resident_range(passes_.all_words(), turns())
               : clustered() ? cluster_range(passes_.all_words())
               : split()     ? split_range(row())
                             : "";
  t["loads"] = indent(loads_, 4);
  const std::string keep =
      resident() ? declare_slots(slots_) + copy_row(fetches_) + read_slots(reads_) : "";
  const std::string leave = in_cluster ? "\ncutegen::leave_cluster<kCluster>();\n" : "";
  const std::string check = tensors_.checks_later() ? tensors_.check() : "";
  t["body"] = indent(keep + body + check + leave, 2);
  if (turns()) take_turns(t, body);
  if (!kernels_.empty()) kernels_ += "\n";
  std::string text = fill(!row()    ? "kernels/reduction/column_kernel.cu"
                          : turns() ? "kernels/reduction/turns_kernel.cu"
                                    : "kernels/reduction/row_kernel.cu",
                          t);
  kernels_ += text.substr(text.find('\n') + 1);  // without the licence line, which the file has
  launches_.push_back(std::move(launch));
}

// Replaces the fields of a kernel in which a cluster takes one row after another.
void ReductionKernel::take_turns(std::map<std::string, std::string>& t,
                                 const std::string& body) const {
  t["fetch"] = indent(declare_slots(slots_) + rows_ +
                          "// Starts to read group n of all rows of this cluster.\n"
                          "auto fetch = [&](int n) {\n"
                          "  const Index from = n % kGroups * share, place = n % kPlaces * share;\n"
                          "  const Row next_row = " +
                          t["block"] +
                          " + Row(n / kGroups) * clusters;\n"
                          "  if (from < slots && next_row < size(across)) {\n" +
                          indent(next_, 4) +
                          "\n"
                          "    for (Index k = 0; k < share && from + k < slots; ++k) {\n"
                          "      const Index i = place + k, j = first + (from + k) * apart;\n" +
                          indent(fetches_, 6) +
                          "\n    }\n  }\n  cutegen::end_group();\n};\n"
                          "for (int n = 0; n < kPlaces; ++n) fetch(n);\n",
                      2);
  t["all_words"] = std::to_string(passes_.all_words());
  t["tensors"] = indent(t["tensors"], 2);
  t["loads"] = indent(t["loads"], 2);
  t["body"] = indent(read_slots(reads_) + body, 4);
}

}  // namespace cutegen::recipes
