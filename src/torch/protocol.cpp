// SPDX-License-Identifier: Apache-2.0
#include "torch/protocol.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <random>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "base/utf8.h"

namespace cutegen {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSource = size_t{4} << 20;
constexpr size_t kMostSide = size_t{1} << 20;
constexpr const char* kRemedy = "a task is a Python file with Model, get_inputs, get_init_inputs";

Result<std::string> read_text(const fs::path& path, size_t limit) {
  auto text = read_file(path, limit);
  if (!text) {
    Error e = text.error();
    e.kind = ErrorKind::user;  // the path is what the user gave
    if (e.where.empty()) e.where = path.string();
    if (e.remedy.empty()) e.remedy = kRemedy;
    return fail(std::move(e));
  }
  if (!is_utf8_text(*text)) return user_error("the file is not UTF-8 text", path.string(), kRemedy);
  return text;
}

Result<DType> slot_dtype(const TensorSlot& slot, const TensorInfo& tensor,
                         const std::string& name) {
  CG_TRY(DType dtype, dtype_from_name(name));
  bool f64 = slot.part == "truth" || slot.part == "sensitivity";
  if (dtype != (f64 ? DType::f64 : tensor.dtype))
    return world_error(fmt::format("'{}' ({}) came as {}", slot.name, slot.part, name));
  return dtype;
}

Result<TensorSlot> slot_from(const Json& json, const std::string& where, const Task& task,
                             const ShapeCase& shape, size_t bytes) {
  ObjectReader r(json, where);
  TensorSlot slot;
  CG_TRY(slot.name, r.string("name"));
  CG_TRY(slot.part, r.string("part"));
  CG_TRY(std::string dtype, r.string("dtype"));
  CG_TRY(slot.shape, [&]() -> Result<Shape> {
    CG_TRY(Json dims, r.array("shape"));
    Shape out;
    for (const Json& d : dims) {
      if (!d.is_number_integer()) return user_error("expected an integer", where);
      out.push_back(d.get<int64_t>());
    }
    return out;
  }());
  CG_TRY(int64_t offset, r.integer("offset"));
  CG_TRY(int64_t size, r.integer("bytes"));
  CG_CHECK(r.finish());
  const TensorInfo* tensor = task.find(slot.name);
  auto expected = shape.tensors.find(slot.name);
  if (!tensor || expected == shape.tensors.end())
    return world_error("the task has no tensor '" + slot.name + "'");
  bool output = tensor->role == TensorRole::output;
  bool part = output ? slot.part == "native" || slot.part == "truth" || slot.part == "sensitivity"
                     : slot.part == "value";
  if (!part) return world_error("'" + slot.name + "' has no part '" + slot.part + "'");
  if (slot.shape != expected->second)
    return world_error(fmt::format("'{}' has shape {}; {} was described", slot.name,
                                   to_string(slot.shape), to_string(expected->second)));
  CG_TRY(slot.dtype, slot_dtype(slot, *tensor, dtype));
  CG_TRY(int64_t count, element_count(slot.shape));
  if (offset < 0 || size < 0 || offset % 256 != 0 ||
      static_cast<uint64_t>(size) != static_cast<uint64_t>(count) * size_of(slot.dtype) ||
      static_cast<uint64_t>(offset) + static_cast<uint64_t>(size) > bytes)
    return world_error("'" + slot.name + "' does not lie inside its memory");
  slot.offset = static_cast<size_t>(offset);
  slot.bytes = static_cast<size_t>(size);
  return slot;
}

// Each tensor has what it needs, once.
Result<void> check_complete(const Task& task, const TensorSet& set) {
  std::set<std::pair<std::string, std::string>> have;
  for (const TensorSlot& s : set.slots)
    if (!have.emplace(s.name, s.part).second)
      return world_error("'" + s.name + "' came twice as " + s.part);
  for (const TensorInfo& t : task.tensors) {
    bool output = t.role == TensorRole::output;
    if (!have.contains({t.name, output ? "native" : "value"}) ||
        (output && !have.contains({t.name, "truth"})))
      return world_error("the set has no '" + t.name + "'");
  }
  return {};
}

}  // namespace

Result<TaskFiles> read_task_files(const fs::path& file) {
  TaskFiles out;
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
  Json shapes = Json::array();
  for (const auto& shape : options.user_shapes) {
    Json constants = Json::object();
    for (const auto& [name, value] : shape) constants[name] = value;
    shapes.push_back(constants);
  }
  return {{"schema", kTorchSchema},       {"type", "describe"},
          {"file", files.file},           {"source", files.source},
          {"side_file", files.side_file}, {"side", files.side},
          {"shrink", options.shrink},     {"small_elements", options.small_elements},
          {"user_shapes", shapes}};
}

Json set_request(const Task& task, const ShapeCase& shape, const std::string& family,
                 uint64_t seed) {
  Json constants = Json::object(), outputs = Json::array(), dtypes = Json::array();
  for (const auto& [name, value] : shape.constants) constants[name] = value;
  for (const TensorInfo* t : task.with_role(TensorRole::output)) {
    outputs.push_back(t->name);
    dtypes.push_back(to_string(t->dtype));
  }
  return {{"schema", kTorchSchema},
          {"type", "make_set"},
          {"file", task.file},
          {"source", task.source},
          {"shape", shape.name},
          {"constants", constants},
          {"train_mode", task.train_mode},
          {"math_mode", to_string(task.math_mode)},
          {"family", family},
          {"seed", seed},
          {"outputs", outputs},
          {"dtypes", dtypes}};
}

Json fill_request(const Task& task, const ShapeCase& shape, const std::string& family,
                  uint64_t seed, const std::vector<GpuTensor>& slots) {
  Json out = set_request(task, shape, family, seed), list = Json::array();
  for (const GpuTensor& s : slots)
    list.push_back({{"name", s.tensor.name},
                    {"part", s.tensor.part},
                    {"dtype", to_string(s.tensor.dtype)},
                    {"shape", s.tensor.shape},
                    {"offset", s.tensor.offset},
                    {"memory", s.memory}});
  out["type"] = "fill";
  out["slots"] = std::move(list);
  return out;
}

Json baselines_request(const Task& task, const ShapeCase& shape, const std::string& device,
                       const std::vector<BaselineWanted>& wanted) {
  Json constants = Json::object(), kinds = Json::array();
  for (const auto& [name, value] : shape.constants) constants[name] = value;
  for (const BaselineWanted& w : wanted) kinds.push_back({{"kind", w.kind}, {"target", w.target}});
  return {
      {"schema", kTorchSchema}, {"type", "open_baselines"},       {"file", task.file},
      {"source", task.source},  {"constants", constants},         {"train_mode", task.train_mode},
      {"device", device},       {"seed", std::random_device()()}, {"kinds", kinds}};
}

Result<std::vector<BaselineOpened>> baselines_from_json(const Json& reply, size_t count) {
  ObjectReader r(reply, "open_baselines#");
  CG_TRY(Json opened, r.array("opened"));
  if (opened.size() != count) return world_error("the torch worker answers for other baselines");
  std::vector<BaselineOpened> out;
  for (const Json& one : opened) {
    ObjectReader o(one, r.place("opened"));
    BaselineOpened b;
    CG_TRY(std::string why, o.string_or("why", ""));
    b.why = sanitize(why, 400);
    CG_TRY(b.far, o.number_or("far", 0));
    out.push_back(std::move(b));
  }
  return out;
}

Result<std::vector<double>> samples_from_json(const Json& reply, int count) {
  ObjectReader r(reply, "time_baseline#");
  CG_TRY(Json samples, r.array("samples_ns"));
  std::vector<double> out;
  for (const Json& ns : samples) {
    if (!ns.is_number() || !(ns.get<double>() > 0))
      return world_error("the torch worker tells of a run that took no time");
    out.push_back(ns.get<double>());
  }
  if (static_cast<int>(out.size()) != count)
    return world_error("the torch worker tells of other runs than were asked for");
  return out;
}

std::string task_id(const Task& task, const TaskFiles& files) {
  Hasher h;
  h.field(kTorchSchema).field(task.name).field(files.source).field(files.side);
  h.field(to_string(task.math_mode)).field(task.train_mode ? "train" : "eval");
  for (const ShapeCase& s : task.shapes) {
    h.field(s.name);
    for (const auto& [name, value] : s.constants) h.field(name).field(std::to_string(value));
  }
  return h.hex();
}

Result<TensorSet> set_from_json(const Json& reply, const Task& task, const ShapeCase& shape) {
  ObjectReader r(reply, "set#");
  TensorSet set;
  set.shape = shape.name;
  CG_TRY(int64_t bytes, r.integer("bytes"));
  if (bytes <= 0) return world_error("the torch worker made a set of no bytes");
  set.bytes = static_cast<size_t>(bytes);
  CG_TRY(Json slots, r.array("slots"));
  for (size_t i = 0; i < slots.size(); ++i) {
    CG_TRY(TensorSlot slot,
           slot_from(slots[i], fmt::format("set#/slots/{}", i), task, shape, set.bytes));
    set.slots.push_back(std::move(slot));
  }
  CG_TRY(set.notes, r.strings("notes"));
  CG_CHECK(r.finish());
  CG_CHECK(check_complete(task, set));
  return set;
}

Result<void> check_memory(const TensorSet& set) {
  struct stat info{};
  if (::fstat(set.memory.get(), &info) != 0) return errno_error("fstat of a set's memory");
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) < set.bytes)
    return world_error("the memory of a set is smaller than it says");
  return {};
}

}  // namespace cutegen
