// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/gpu_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "core/weighted.h"
#include "eval/sets/input_set.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kAlign = 256;
constexpr int64_t kPage = int64_t{2} << 20;   // of GPU memory; every tensor takes whole pages
constexpr int64_t kSpare = int64_t{1} << 30;  // GPU memory for everything else
constexpr int64_t kMostTensors = 256;         // each needs a descriptor
constexpr unsigned char kOutside = 0xff;      // beside the inputs; NaN in every float width

Result<const Shape*> shape_of(const TensorInfo& info, const ShapeCase& shape) {
  auto at = shape.tensors.find(info.name);
  if (at == shape.tensors.end())
    return world_error("shape '" + shape.name + "' lacks the tensor '" + info.name + "'");
  return &at->second;
}

// Places the references' tensors one after another in one block of memory.
class Layout {
 public:
  int64_t place(int64_t bytes) {
    const int64_t at = used_;
    used_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  }
  int64_t used() const { return used_; }

 private:
  int64_t used_ = 0;
};

class Maker {
 public:
  Maker(const Context& ctx, GpuJudge& judge, const Task& task, const ShapeCase& shape)
      : ctx_(ctx), judge_(judge), task_(task), shape_(shape) {}

  Result<void> lay_out(GpuSet& set) {
    for (const TensorInfo& info : task_.tensors) {
      CG_TRY(const Shape* dims, shape_of(info, shape_));
      CG_TRY(int64_t count, element_count(*dims));
      if (info.role != TensorRole::output) CG_CHECK(add_input(set, info, *dims, count));
    }
    for (const TensorInfo* info : results_of(task_)) {
      CG_TRY(const Shape* dims, shape_of(*info, shape_));
      CG_TRY(int64_t count, element_count(*dims));
      add_output(set, *info, *dims, count);
    }
    return add_references(set);
  }

  std::vector<torch::GpuMemory> memory;
  std::vector<torch::GpuTensor> slots;

 private:
  void add_slot(const TensorInfo& info, const char* part, DType dtype, const Shape& dims,
                int64_t offset, size_t in) {
    torch::GpuTensor slot;
    slot.tensor = {.name = info.name,
                   .part = part,
                   .dtype = dtype,
                   .shape = dims,
                   .offset = size_t(offset),
                   .bytes = 0};
    slot.memory = in;
    slots.push_back(std::move(slot));
  }

  Result<void> add_input(GpuSet& set, const TensorInfo& info, const Shape& dims, int64_t count) {
    const int64_t bytes = count * int64_t(size_of(info.dtype));
    CG_TRY(GpuBuffer buffer, judge_.take(info.name, bytes, at_the_end_));
    at_the_end_ = !at_the_end_;
    CG_CHECK(judge_.set_guards(ctx_, buffer, kOutside));
    CG_TRY(SharedBuffer shared, buffer.share(true));
    add_slot(info, torch::part::value, info.dtype, dims, buffer.offset(), memory.size());
    memory.push_back({.descriptor = shared.descriptor, .bytes = size_t(shared.mapped_bytes)});
    set.bytes += shared.mapped_bytes;
    set.inputs.push_back(std::move(shared));
    set.memory.push_back(std::move(buffer));
    return {};
  }

  // Stores offsets; add_references() adds the address of their memory.
  void add_output(GpuSet& set, const TensorInfo& info, const Shape& dims, int64_t count) {
    GpuExpected e;
    e.spec = {.name = info.name, .dtype = info.dtype, .shape = dims};
    e.elements = count;
    e.rule = tolerance_rule(task_, shape_, info);
    e.close = compat_tolerance(task_.math_mode);
    e.nan_is_undefined = leaves_out_elements(set.family);
    e.native = uint64_t(references_.place(count * int64_t(size_of(info.dtype))));
    e.truth = uint64_t(references_.place(8 * count));
    e.margin = uint64_t(references_.place(8 * count));
    set.outputs.push_back(std::move(e));
  }

  Result<void> add_references(GpuSet& set) {
    CG_TRY(GpuBuffer buffer, judge_.take("references", references_.used(), false));
    CG_TRY(int descriptor, buffer.descriptor());
    for (GpuExpected& e : set.outputs) {
      const TensorInfo& info = *task_.find(e.spec.name);
      auto put = [&](const char* part, DType dtype, device::cuda::Address& at) {
        add_slot(info, part, dtype, e.spec.shape, int64_t(at), memory.size());
        at += buffer.at();
      };
      put(torch::part::native, info.dtype, e.native);
      put(torch::part::truth, DType::f64, e.truth);
      put("margin", DType::f64, e.margin);
    }
    memory.push_back({.descriptor = descriptor, .bytes = buffer.block().mapped_bytes});
    set.bytes += int64_t(buffer.block().mapped_bytes);
    set.memory.push_back(std::move(buffer));
    return {};
  }

  const Context& ctx_;
  GpuJudge& judge_;
  const Task& task_;
  const ShapeCase& shape_;
  Layout references_;
  bool at_the_end_ = false;
};

}  // namespace

const GpuBuffer* GpuSet::initial(const std::string& name) const {
  const bool given =
      std::any_of(inputs.begin(), inputs.end(), [&](auto& b) { return b.name == name; });
  for (const GpuBuffer& b : memory)
    if (given && b.name() == name) return &b;
  return nullptr;
}

Result<GpuSetNeeds> gpu_set_needs(const Task& task, const ShapeCase& shape) {
  GpuSetNeeds out;
  for (const TensorInfo& info : task.tensors) {
    CG_TRY(const Shape* dims, shape_of(info, shape));
    CG_TRY(int64_t count, element_count(*dims));
    const bool result = is_result(info), floats = is_floating(info.dtype);
    int64_t each = int64_t(size_of(info.dtype));
    if (info.mutated) each *= 2;  // initial values and native result
    if (result) each += floats ? 16 : 8;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, each, &bytes) || bytes > INT64_MAX / 1024)
      return unsupported_error("the size of the official shape overflows");
    out.set_bytes += (bytes + kPage - 1) / kPage * kPage;
    out.work_bytes += count * (result ? 24 : 16);
    ++out.tensors;
  }
  return out;
}

Result<GpuSetPtr> make_gpu_set(const Context& ctx, GpuJudge& judge, torch::TorchWorker& worker,
                               const Task& task, const ShapeCase& shape, const std::string& family,
                               uint64_t seed) {
  CG_TRY(GpuSetNeeds needs, gpu_set_needs(task, shape));
  if (needs.tensors > kMostTensors)
    return unsupported_error(
        fmt::format("it has {} tensors, of at most {}", needs.tensors, kMostTensors));
  CG_TRY(int64_t free, judge.free_bytes());
  if (needs.set_bytes + needs.work_bytes > free - kSpare) {
    judge.trim();
    CG_TRY(free, judge.free_bytes());
  }
  if (needs.set_bytes > free - kSpare) {
    const int64_t total = judge.total_bytes();
    const char* others = needs.set_bytes > total - kSpare ? "" : "end other programs on it, or ";
    return unsupported_error(
        fmt::format("inputs and truth take {}, and {} of the GPU's {} are free; {}{}",
                    human(Bytes{needs.set_bytes}), human(Bytes{free}), human(Bytes{total}), others,
                    advice_to_shrink(task, shape)));
  }
  auto set = std::make_shared<GpuSet>();
  set->task_id = task.id;
  set->shape = shape.name;
  set->family = family;
  set->model_seed = torch::model_seed_of(seed, family, shape.name);
  Maker maker(ctx, judge, task, shape);
  CG_CHECK(maker.lay_out(*set));
  CG_TRY(set->notes, worker.fill(ctx, task, shape, family, seed, maker.memory, maker.slots));
  for (GpuExpected& e : set->outputs) {
    CG_TRY(e.limits, judge.limits_of(ctx, e));
  }
  return GpuSetPtr(std::move(set));
}

}  // namespace cutegen::eval
