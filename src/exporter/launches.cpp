// SPDX-License-Identifier: Apache-2.0
// Writes launches.json: what generated code needs to know about a program, as numbers.
#include <fmt/format.h>

#include <cmath>

#include "base/hash.h"
#include "device/fill.h"
#include "device/map_fields.h"
#include "exporter/exporter.h"

namespace cutegen::exporter {
namespace {

constexpr int64_t kAlign = 256;  // alignment of each scratch buffer in bytes, as in the evaluator

Json named(const std::vector<ScalarInfo>& list) {
  Json out = Json::object();
  for (const ScalarInfo& s : list) out[s.name] = scalar_json(s.value);
  return out;
}

bool is_state(const TensorInfo& t) {
  return t.role == TensorRole::parameter || t.role == TensorRole::buffer;
}

// Writes the launches of one shape. Buffers are numbered: inputs, state, outputs, then scratch.
class ShapeWriter {
 public:
  ShapeWriter(const Task& task, const ExportShape& shape) : shape_(shape) {
    auto add = [&](auto wanted) {
      for (const TensorInfo& t : task.tensors)
        if (wanted(t)) tensors_.push_back(&t), names_.push_back(t.name);
    };
    add([](const TensorInfo& t) { return t.role == TensorRole::input; });
    add(is_state);
    add([](const TensorInfo& t) { return t.role == TensorRole::output; });
    for (const ScratchBuffer& s : shape.plan.scratch) names_.push_back(s.name);
  }

  Result<Json> json() {
    Json tensors = Json::object(), offsets = Json::array();
    for (const TensorInfo* t : tensors_) {
      CG_TRY(const Shape* shape, shape_of(t->name));
      tensors[t->name] = *shape;
    }
    int64_t total = 0;
    for (const ScratchBuffer& s : shape_.plan.scratch) {
      offsets.push_back(total);
      total += (s.bytes + kAlign - 1) / kAlign * kAlign;
    }
    CG_TRY(Json steps, this->steps());
    return Json{{"name", shape_.name},    {"tensors", tensors}, {"buffers", names_.size()},
                {"scratch_bytes", total}, {"scratch", offsets}, {"steps", steps}};
  }

 private:
  Result<const Shape*> shape_of(const std::string& name) const {
    auto at = shape_.shape.tensors.find(name);
    if (at == shape_.shape.tensors.end())
      return user_error("shape '" + shape_.name + "' has no tensor '" + name + "'");
    return &at->second;
  }

  Result<size_t> number(const std::string& buffer) const {
    auto at = std::find(names_.begin(), names_.end(), buffer);
    if (at == names_.end())
      return user_error("a step uses '" + buffer + "', which is not a buffer");
    return size_t(at - names_.begin());
  }

  Result<int64_t> bytes_of(size_t buffer) const {
    if (buffer >= tensors_.size()) return shape_.plan.scratch[buffer - tensors_.size()].bytes;
    CG_TRY(const Shape* shape, shape_of(names_[buffer]));
    CG_TRY(int64_t count, element_count(*shape));
    return count * int64_t(size_of(tensors_[buffer]->dtype));
  }

  Result<Json> steps() const {
    Json out = Json::array();
    for (const ScratchBuffer& s : shape_.plan.scratch)
      if (s.zero && s.bytes > 0) {
        CG_TRY(Json fill,
               this->fill({.step = "zero", .buffer = s.name, .value = 0, .dtype = DType::u8}));
        out.push_back(std::move(fill));
      }
    bool first = true;
    for (const auto* list : {&shape_.plan.prepare, &shape_.plan.steps})
      for (const auto& step : *list) {
        const auto* launch = std::get_if<Launch>(&step);
        CG_TRY(Json one, launch ? this->launch(*launch, first) : fill(std::get<Fill>(step)));
        if (!one.is_null()) out.push_back(std::move(one));
        first = false;
      }
    return out;
  }

  // Returns null if there is nothing to fill.
  Result<Json> fill(const Fill& f) const {
    CG_TRY(size_t buffer, number(f.buffer));
    CG_TRY(int64_t bytes, bytes_of(buffer));
    if (bytes == 0) return Json();
    std::byte pattern[8] = {};
    const std::span one(pattern, size_of(f.dtype));
    CG_CHECK(device::fill_bytes(one, f.dtype, f.value));
    return Json{{"fill", buffer}, {"bytes", bytes}, {"pattern", to_hex(one)}};
  }

  // The first step has no earlier step to overlap with, so it does not use PDL.
  Result<Json> launch(const Launch& l, bool first) const {
    Json args = Json::array();
    for (const LaunchArg& a : l.args) {
      CG_TRY(Json one, argument(a, "step " + l.step));
      args.push_back(std::move(one));
    }
    return Json{{"kernel", l.kernel},
                {"module", l.module},
                {"grid", l.grid},
                {"block", l.block},
                {"cluster", l.cluster},
                {"shared", l.shared_bytes},
                {"cooperative", l.cooperative},
                {"pdl", l.pdl && !first},
                {"args", args}};
  }

  Result<Json> argument(const LaunchArg& a, const std::string& where) const {
    if (a.buffer.empty()) return Json{{"value", to_hex(a.bytes)}};
    CG_TRY(size_t buffer, number(a.buffer));
    if (a.bytes.empty()) return Json{{"buffer", buffer}};
    CG_TRY(device::MapFields f, device::map_fields(a.bytes, where));
    return Json{{"buffer", buffer}, {"map", device::to_json(f)}};
  }

  const ExportShape& shape_;
  std::vector<const TensorInfo*> tensors_;
  std::vector<std::string> names_;
};

Json tensor_list(const Task& task, bool (*wanted)(const TensorInfo&)) {
  Json out = Json::array();
  for (const TensorInfo& t : task.tensors)
    if (wanted(t)) out.push_back(Json::array({t.name, torch_name(t.dtype)}));
  return out;
}

// Reads "sm_90a" as [9, 0].
Json capability(const std::string& arch) {
  int number = 0;
  for (char c : arch.substr(std::min<size_t>(3, arch.size())))
    if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
  return Json::array({number / 10, number % 10});
}

Json modules_json(const ExportSource& source) {
  Json out = Json::array();
  for (const ExportModule& m : source.modules) {
    Json files = Json::array();
    if (!m.cubin.empty()) files.push_back(m.name + ".cubin");
    files.push_back(m.name + ".ptx");
    out.push_back(std::move(files));
  }
  return out;
}

}  // namespace

Result<Json> launches_json(const ExportSource& source) {
  const Task& task = source.task;
  Json shapes = Json::array();
  for (const ExportShape& s : source.shapes) {
    CG_TRY(Json one, ShapeWriter(task, s).json());
    shapes.push_back(std::move(one));
  }
  auto input = [](const TensorInfo& t) { return t.role == TensorRole::input; };
  auto output = [](const TensorInfo& t) { return t.role == TensorRole::output; };
  const bool training = task.source.find("training") != std::string::npos;
  Json out{{"schema", "cutegen.launches.v1"},
           {"name", task.name},
           {"program_id", program_id(source.program)},
           {"gpu",
            {{"name", source.target.gpu},
             {"arch", source.arch},
             {"capability", capability(source.target.facts.arch)},
             {"sms", source.target.facts.sms}}},
           {"math_mode", to_string(task.math_mode)},
           {"train_mode", task.train_mode},
           {"mentions_training", training},
           {"inputs", tensor_list(task, input)},
           {"state", tensor_list(task, is_state)},
           {"outputs", tensor_list(task, output)},
           {"arguments", named(task.arguments)},
           {"attributes", named(task.attributes)},
           {"modules", modules_json(source)},
           {"shapes", shapes}};
  for (const TensorInfo* t : results_of(task))
    if (t->mutated) out["mutated"].push_back(t->name);
  if (!task.returns.empty()) out["returns"] = task.returns;
  if (task.tf32_convolutions) out["tf32_convolutions"] = true;
  std::string all = canonical_json(out);
  for (const ExportModule& m : source.modules) all += m.ptx + m.cubin;
  out["namespace"] =
      "exported_" + plain_name(task.name) + "_" + sha256(all + task.source).substr(0, 12);
  return out;
}

}  // namespace cutegen::exporter
