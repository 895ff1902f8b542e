// SPDX-License-Identifier: Apache-2.0
#include "torch/protocol.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <random>
#include <set>

#include "base/fields.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/kernel_side.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSource = size_t{4} << 20;
constexpr size_t kMostSide = size_t{1} << 20;
constexpr const char* kRemedy = "a task is a Python file with Model, get_inputs, get_init_inputs";

Result<std::string> read_text(const fs::path& path, size_t limit) {
  auto text = read_file(path, limit);
  if (!text) {
    Error e = text.error();
    e.kind = ErrorKind::user;  // the user gave this path
    if (e.where.empty()) e.where = path.string();
    if (e.remedy.empty()) e.remedy = kRemedy;
    return fail(std::move(e));
  }
  if (!is_utf8_text(*text)) return user_error("the file is not UTF-8 text", path.string(), kRemedy);
  return text;
}

void slot_form(Fields& v, TensorSlot& s) {
  v("name", s.name);
  v("part", s.part);
  v.by_name("dtype", s.dtype, dtype_from_name);
  v("shape", s.shape);
  v("offset", s.offset, field::at_least(0));
  v("bytes", s.bytes, field::at_least(0));
}

void set_form(Fields& v, TensorSet& s) {
  v.document("set#", ErrorKind::world);
  v("bytes", s.bytes, field::at_least(1));
  v.as("slots", s.slots, slot_form);
  v("notes", s.notes);
  v("as_made", s.as_made, field::may_lack);
}

// A slot must be a tensor of the task with its dtype and shape, inside the memory.
Result<void> check_slot(const TensorSlot& slot, const Task& task, const ShapeCase& shape,
                        size_t bytes) {
  const TensorInfo* tensor = task.find(slot.name);
  auto expected = shape.tensors.find(slot.name);
  if (!tensor || expected == shape.tensors.end())
    return world_error("the task has no tensor '" + slot.name + "'");
  const bool f64 =
      slot.part == part::truth || slot.part == part::sensitivity || slot.part == part::sequential;
  const bool initial = slot.part == part::value && tensor->role != TensorRole::output;
  if (!initial && !((f64 || slot.part == part::native) && is_result(*tensor)))
    return world_error("'" + slot.name + "' has no part '" + slot.part + "'");
  if (slot.shape != expected->second)
    return world_error(fmt::format("'{}' has shape {}; {} was described", slot.name,
                                   to_string(slot.shape), to_string(expected->second)));
  if (slot.dtype != (f64 ? DType::f64 : tensor->dtype))
    return world_error(
        fmt::format("'{}' ({}) came as {}", slot.name, slot.part, to_string(slot.dtype)));
  CG_TRY(int64_t count, element_count(slot.shape));
  if (slot.offset % 256 != 0 || slot.bytes != size_t(count) * size_of(slot.dtype) ||
      slot.offset > bytes || slot.bytes > bytes - slot.offset)
    return world_error("'" + slot.name + "' does not lie inside its memory");
  return {};
}

// A shape must have exactly the task's tensors, each of the same rank.
Result<void> check_tensors(const Task& task, const ShapeCase& shape) {
  for (const TensorInfo& t : task.tensors) {
    auto at = shape.tensors.find(t.name);
    if (at == shape.tensors.end() || at->second.size() != t.shape.size())
      return world_error("shape '" + shape.name + "' has another '" + t.name + "'");
  }
  if (shape.tensors.size() != task.tensors.size())
    return world_error("shape '" + shape.name + "' has more tensors than the task");
  return {};
}

// Each tensor must have all its parts, each part once.
Result<void> check_complete(const Task& task, const TensorSet& set) {
  std::set<std::pair<std::string, std::string>> have;
  for (const TensorSlot& s : set.slots)
    if (!have.emplace(s.name, s.part).second)
      return world_error("'" + s.name + "' came twice as " + s.part);
  for (const TensorInfo& t : task.tensors) {
    const bool initial = t.role != TensorRole::output, result = is_result(t);
    if ((initial && !have.contains({t.name, part::value})) ||
        (result &&
         !(have.contains({t.name, part::native}) && have.contains({t.name, part::truth}))))
      return world_error("the set has no '" + t.name + "'");
  }
  return {};
}

// Checks one axis, and shortens the tensors of `shape` along it.
Result<void> apply_axis(const ExcerptAxis& axis, const Task& task, ShapeCase& shape) {
  if (axis.count < 1 || axis.count > axis.of)
    return world_error("an axis of an excerpt has an impossible size");
  for (const auto& [name, dim] : axis.dims) {
    auto at = shape.tensors.find(name);
    if (at == shape.tensors.end() || dim < 0 || dim >= int64_t(at->second.size()) ||
        at->second[size_t(dim)] != axis.of)
      return world_error("an axis of an excerpt is not an axis of '" + sanitize(name, 60) + "'");
    at->second[size_t(dim)] = axis.count;
  }
  for (const TensorInfo* out : results_of(task))
    if (!axis.dims.contains(out->name))
      return world_error("an axis of an excerpt is not an axis of '" + out->name + "'");
  return {};
}

}  // namespace

void fields(Fields& v, ExcerptAxis& a) {
  v.ignore_unknown();
  v("of", a.of);
  v("count", a.count);
  v("dims", a.dims);
}

void fields(Fields& v, BaselineOpened& b) {
  v.ignore_unknown();
  v("why", b.why, field::may_lack + field::shown(400));
  v("far", b.far, field::may_lack);
}

void fields(Fields& v, BaselineWanted& b) {
  v("kind", b.kind);
  v("target", b.target);
}

void fields(Fields& v, GpuTensor& t) {
  v("name", t.tensor.name);
  v("part", t.tensor.part);
  v.by_name("dtype", t.tensor.dtype, dtype_from_name);
  v("shape", t.tensor.shape);
  v("offset", t.tensor.offset);
  v("memory", t.memory);
}

Result<TaskFiles> read_task_files(const fs::path& file) {
  TaskFiles out;
  if (is_kernel_file(file)) {
    CG_TRY(KernelSide kernel, read_kernel_side(file));
    CG_TRY(out.source, read_text(kernel.reference, kMostSource));
    out.file = kernel.reference.string(), out.side_file = kernel.file.string();
    out.side = std::move(kernel.text);
    return out;
  }
  out.file = file.string();
  CG_TRY(out.source, read_text(file, kMostSource));
  fs::path side = file;
  side.replace_extension(".toml");
  std::error_code error;
  if (side != file && fs::exists(side, error)) {
    out.side_file = side.string();
    CG_TRY(out.side, read_text(side, kMostSide));
  }
  return out;
}

bool imports_neighbour(const std::string& source, const fs::path& folder) {
  std::error_code error;
  for (const std::string& raw : split(source, '\n')) {
    std::string_view line = trim(raw);
    size_t skip = line.starts_with("import ") ? 7 : line.starts_with("from ") ? 5 : 0;
    if (skip == 0) continue;
    line.remove_prefix(skip);
    std::string name(
        trim(line.substr(0, line.find_first_of(" .,;#", line.find_first_not_of(' ')))));
    if (name.empty()) continue;
    if (fs::exists(folder / (name + ".py"), error) || fs::is_directory(folder / name, error))
      return true;
  }
  return false;
}

Json describe_request(const TaskFiles& files, const DescribeOptions& options) {
  Json request{{"schema", kTorchSchema},
               {"type", "describe"},
               {"file", files.file},
               {"source", files.source},
               {"side_file", files.side_file},
               {"side", files.side},
               {"shrink", options.shrink},
               {"small_elements", options.small_elements},
               {"user_shapes", write_json(options.user_shapes)}};
  if (!options.asked.empty()) request["asked"] = to_json(options.asked);
  return request;
}

Json shapes_request(const Task& task, const std::vector<ShapeConstants>& wanted) {
  return {{"schema", kTorchSchema},      {"type", "shapes"},   {"file", task.file},
          {"source", task.source},       {"task_id", task.id}, {"train_mode", task.train_mode},
          {"shapes", write_json(wanted)}};
}

Result<DescribedShapes> shapes_from_json(const Json& reply, const Task& task,
                                         const std::vector<ShapeConstants>& wanted) {
  ObjectReader r(reply, "shapes#");
  DescribedShapes out;
  CG_TRY(Json sizes, r.object("sizes"));
  CG_TRY(out.sizes, read_json<ShapeConstants>(sizes, r.place("sizes")));
  CG_TRY(Json shapes, r.array("shapes"));
  CG_CHECK(r.finish());
  if (shapes.size() != wanted.size())
    return world_error("the torch worker describes other shapes than requested");
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].is_null()) {
      out.shapes.emplace_back();
      continue;
    }
    CG_TRY(ShapeCase shape, read_json<ShapeCase>(shapes[i], fmt::format("shapes#/{}", i)));
    CG_CHECK(check_tensors(task, shape));
    shape.kind = ShapeKind::derived;
    out.shapes.emplace_back(std::move(shape));
  }
  return out;
}

Json set_request(const Task& task, const ShapeCase& shape, const std::string& family,
                 uint64_t seed) {
  Json outputs = Json::array(), dtypes = Json::array();
  Json mutated = Json::array(), modes = Json::array();
  for (const TensorInfo* t : results_of(task)) {
    outputs.push_back(t->name);
    dtypes.push_back(to_string(t->dtype));
    modes.push_back(to_string(accuracy_of(task, *t)));
    if (t->mutated) mutated.push_back(t->name);
  }
  Json request{{"schema", kTorchSchema},
               {"type", "make_set"},
               {"file", task.file},
               {"source", task.source},
               {"shape", shape.name},
               {"constants", write_json(shape.constants)},
               {"train_mode", task.train_mode},
               {"math_mode", to_string(task.math_mode)},
               {"math_mode_asked", task.math_mode_asked},
               {"modes", modes},
               {"tf32_convolutions", task.tf32_convolutions},
               {"family", family},
               {"seed", seed},
               {"outputs", outputs},
               {"dtypes", dtypes}};
  if (!mutated.empty()) request["mutated"] = std::move(mutated);
  if (!task.returns.empty()) request["returns"] = task.returns;
  if (!shape.values.empty()) request["values"] = write_json(shape.values);
  return request;
}

Json plan_excerpt_request(const Task& task, const ShapeCase& shape) {
  Json out = set_request(task, shape, "signed", 1);
  out["type"] = "plan_excerpt";
  return out;
}

Result<Excerpt> excerpt_from_json(const Json& reply, const Task& task, const ShapeCase& shape) {
  ObjectReader r(reply, "excerpt#");
  Excerpt out;
  out.shape = shape;
  CG_TRY(Json constants, r.object("constants"));
  CG_TRY(out.shape.constants, read_json<ShapeConstants>(constants, r.place("constants")));
  CG_TRY(Json axes, r.array("axes"));
  CG_TRY(out.axes, read_json<std::vector<ExcerptAxis>>(axes, r.place("axes")));
  for (const ExcerptAxis& axis : out.axes) CG_CHECK(apply_axis(axis, task, out.shape));
  CG_TRY(Json cuts, r.array("cuts"));
  for (const Json& cut : cuts) {
    if (!cut.is_array() || cut.size() != 3 || !cut[0].is_string() || !cut[1].is_number_integer() ||
        !cut[2].is_number_integer())
      return world_error("the torch worker did not cut any tensor");
    out.cuts.push_back({.tensor = cut[0].get<std::string>(),
                        .dim = cut[1].get<int>(),
                        .count = cut[2].get<int64_t>()});
  }
  CG_TRY(double flops, r.number("flops"));
  out.shape.flops = Flops{flops};
  return out;
}

Json excerpt_request(const Task& task, const Excerpt& excerpt, const std::string& family,
                     uint64_t seed) {
  Json out = set_request(task, excerpt.shape, family, seed);
  out["type"] = "make_excerpt";
  out["axes"] = write_json(excerpt.axes), out["cuts"] = Json::array();
  for (const Cut& cut : excerpt.cuts) out["cuts"].push_back({cut.tensor, cut.dim, cut.count});
  return out;
}

Json fill_request(const Task& task, const ShapeCase& shape, const std::string& family,
                  uint64_t seed, const std::vector<GpuTensor>& slots) {
  Json out = set_request(task, shape, family, seed);
  out["type"] = "fill";
  out["slots"] = write_json(slots);
  return out;
}

Json run_baseline_request(const Task& task, BaselineKind kind,
                          const std::vector<GpuTensor>& slots) {
  Json outputs = Json::array();
  for (const TensorInfo* out : results_of(task)) outputs.push_back(out->name);
  return {{"schema", kTorchSchema},
          {"type", "run_baseline"},
          {"kind", to_string(kind)},
          {"outputs", std::move(outputs)},
          {"slots", write_json(slots)}};
}

Json baselines_request(const Task& task, const ShapeCase& shape, const std::string& device,
                       const std::vector<BaselineWanted>& wanted) {
  Json request{{"schema", kTorchSchema},
               {"type", "open_baselines"},
               {"file", task.file},
               {"source", task.source},
               {"constants", write_json(shape.constants)},
               {"train_mode", task.train_mode},
               {"device", device},
               {"seed", std::random_device()()},
               {"kinds", write_json(wanted)}};
  for (const TensorInfo* t : results_of(task))
    if (t->mutated) request["mutated"].push_back(t->name);
  if (!task.returns.empty()) request["returns"] = task.returns;
  return request;
}

Result<std::vector<BaselineOpened>> baselines_from_json(const Json& reply, size_t count) {
  ObjectReader r(reply, "open_baselines#");
  CG_TRY(Json opened, r.array("opened"));
  if (opened.size() != count)
    return world_error("the torch worker answers for other baselines than requested");
  return read_json<std::vector<BaselineOpened>>(opened, r.place("opened"));
}

Result<std::vector<double>> samples_from_json(const Json& reply, int count) {
  ObjectReader r(reply, "time_baseline#");
  CG_TRY(Json samples, r.array("samples_ns"));
  std::vector<double> out;
  for (const Json& ns : samples) {
    if (!ns.is_number() || !(ns.get<double>() > 0))
      return world_error("the torch worker reports a run that took no time");
    out.push_back(ns.get<double>());
  }
  if (int(out.size()) != count)
    return world_error("the torch worker reports other runs than requested");
  return out;
}

std::string task_id(const Task& task, const TaskFiles& files) {
  Hasher h;
  h.field(kTorchSchema).field(task.name).field(files.source).field(files.side);
  h.field(mode_text(task)).field(task.train_mode ? "train" : "eval");
  for (auto [key, bound] : {std::pair{"rtol", task.rtol}, std::pair{"atol", task.atol}})
    if (bound) h.field(key).field(fmt::format("{}", *bound));
  for (const ShapeCase& s : task.shapes) {
    h.field(s.name);
    for (const auto& [name, value] : s.constants) h.field(name).field(std::to_string(value));
  }
  return h.hex();
}

Result<TensorSet> set_from_json(const Json& reply, const Task& task, const ShapeCase& shape) {
  CG_TRY(TensorSet set, read_json_as<TensorSet>(reply, set_form));
  set.shape = shape.name;
  for (const TensorSlot& slot : set.slots) CG_CHECK(check_slot(slot, task, shape, set.bytes));
  CG_CHECK(check_complete(task, set));
  return set;
}

Result<void> check_memory(const TensorSet& set) {
  struct stat info{};
  if (::fstat(set.memory.get(), &info) != 0) return errno_error("fstat of a set's memory");
  if (!S_ISREG(info.st_mode) || uint64_t(info.st_size) < set.bytes)
    return world_error("the memory of a set is smaller than it says");
  return {};
}

}  // namespace cutegen::torch
