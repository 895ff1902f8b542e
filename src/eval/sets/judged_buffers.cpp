// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/judged_buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/diagnosis/feedback.h"
#include "eval/sets/family.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostFirst = 5;               // coordinates listed in a mismatch
constexpr unsigned char kBesideInputs = 0xff;  // NaN in every float width, beside the inputs

std::string initial_name(const std::string& name) {
  return "initial/" + name;
}

std::vector<int64_t> coordinates(int64_t index, const Shape& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

// Describes a wrong output if only a part of its elements was marked.
std::string far_pattern(const GpuJudgement& j, const Shape& shape) {
  const Judgement& c = j.counts;
  const char* kind = c.unwritten == c.wrong ? ", never written"
                     : c.nan == c.wrong     ? ", all NaN"
                     : c.zero == c.wrong    ? ", all zero"
                                            : "";
  if (c.wrong == c.elements) return fmt::format("every element{}", kind);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const bool whole = j.last - j.first + 1 == c.wrong, tail = j.last == c.elements - 1;
  if (whole && tail && columns > 1 && j.first % columns == 0)
    return fmt::format("rows from {} on{}", j.first / columns, kind);
  if (whole && tail) return fmt::format("the last {} elements{}", c.wrong, kind);
  if (whole) return fmt::format("elements {} to {}{}", j.first, j.last, kind);
  return fmt::format("scattered between element {} and {} of {}{}", j.first, j.last, c.elements,
                     kind);
}

Mismatch mismatch_of(const GpuJudgement& j, const OutputSpec& spec, const GpuSet& set) {
  const bool all = j.counts.wrong == 0 || int64_t(j.counts.is_wrong.size()) == j.counts.elements;
  if (all) return describe_mismatch(j.counts, spec, set.shape, set.family);
  Mismatch m;
  m.shape = set.shape, m.family = set.family, m.output = spec.name;
  m.elements = j.counts.elements, m.wrong = j.counts.wrong;
  m.nan = j.counts.nan, m.unwritten = j.counts.unwritten;
  m.worst_ratio = j.counts.worst_ratio;
  m.pattern = far_pattern(j, spec.shape);
  for (size_t i = 0; i < j.counts.is_wrong.size() && m.first.size() < kMostFirst; ++i)
    if (j.counts.is_wrong[i])
      m.first.push_back(coordinates(j.marked_from + int64_t(i), spec.shape));
  return m;
}

}  // namespace

bool differs_by_chance(const Judgement& j, const std::string& family) {
  constexpr int64_t kLeast = 10'000'000, kOneIn = 100'000'000;
  const bool finite = j.nan == 0 && j.unwritten == 0 && j.worst_ratio > 1;
  return family == family::extremes && finite && j.wrong > 0 && j.elements >= kLeast &&
         j.wrong <= 1 + j.elements / kOneIn && !j.rms_is_wrong() && !j.bias_is_wrong();
}

Result<void> JudgedBuffers::add(const Context& ctx, const std::string& name, int64_t bytes,
                                const Poison& poison, bool at_the_end, int copies,
                                std::vector<GpuBuffer>& to) {
  CG_TRY(GpuBuffer buffer, judge_->take(name, bytes, at_the_end));
  CG_CHECK(judge_->poison(ctx, buffer, poison));
  CG_TRY(SharedBuffer shared, buffer.share(false));
  shared.copies = copies;
  shared_.push_back(std::move(shared));
  to.push_back(std::move(buffer));
  return {};
}

Result<void> JudgedBuffers::add_result(const Context& ctx, const GpuExpected& e,
                                       const std::string& name, bool at_the_end, int copies,
                                       std::vector<GpuBuffer>& to) {
  const int64_t bytes = e.elements * int64_t(size_of(e.spec.dtype));
  CG_CHECK(add(ctx, name, bytes, poison_, at_the_end, copies, to));
  const GpuBuffer* initial = set_->initial(e.spec.name);
  if (!initial) return {};
  shared_.back().initial = initial_name(e.spec.name);
  return judge_->copy(ctx, to.back(), *initial);
}

Result<JudgedBuffers> JudgedBuffers::make(const Context& ctx, GpuJudge& judge, GpuSetPtr set,
                                          const std::vector<ScratchBuffer>& scratch,
                                          JudgedBufferOptions options) {
  JudgedBuffers run;
  run.judge_ = &judge;
  run.set_ = std::move(set);
  run.poison_ = draw_poison(options.poison);
  const auto& results = run.set_->outputs;
  if (options.own_inputs)
    CG_CHECK(run.copy_inputs(ctx));
  else
    run.shared_ = run.set_->inputs;
  for (SharedBuffer& input : run.shared_)
    if (std::any_of(results.begin(), results.end(),
                    [&](const GpuExpected& e) { return e.spec.name == input.name; }))
      input.name = initial_name(input.name);
  for (const ScratchBuffer& s : scratch)
    CG_CHECK(run.add(ctx, s.name, s.bytes, s.zero ? Poison{} : run.poison_, options.at_the_end, 1,
                     run.scratch_));
  for (int copy = 0; copy < options.copies; ++copy)
    for (const GpuExpected& e : results)
      CG_CHECK(run.add_result(ctx, e, copy ? fmt::format("{}#{}", e.spec.name, copy) : e.spec.name,
                              options.at_the_end, copy ? 1 : options.copies, run.outputs_));
  for (const GpuExpected& e : results)
    if (options.against && run.set_->initial(e.spec.name))
      CG_CHECK(
          run.add_result(ctx, e, "against/" + e.spec.name, options.at_the_end, 1, run.against_));
  return run;
}

// The first buffers of a set are its inputs.
Result<void> JudgedBuffers::copy_inputs(const Context& ctx) {
  const size_t count = set_->inputs.size();
  if (set_->memory.size() < count || (!inputs_.empty() && inputs_.size() != count))
    return world_error("a set of the official shape has other inputs than the one before");
  for (size_t i = 0; i < count; ++i) {
    const GpuBuffer& from = set_->memory[i];
    if (inputs_.size() == i) {
      CG_TRY(GpuBuffer own, judge_->take(from.name(), from.bytes(), i % 2 != 0));
      CG_CHECK(judge_->set_guards(ctx, own, kBesideInputs));
      CG_TRY(SharedBuffer shared, own.share(true));
      shared_.push_back(std::move(shared));
      inputs_.push_back(std::move(own));
    }
    CG_CHECK(judge_->copy(ctx, inputs_[i], from));
  }
  return {};
}

Result<void> JudgedBuffers::renew(const Context& ctx, GpuSetPtr set) {
  CG_ASSERT(!inputs_.empty());
  set_ = std::move(set);
  return copy_inputs(ctx);
}

Result<void> JudgedBuffers::poison_again(const Context& ctx) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    CG_CHECK(judge_->poison(ctx, outputs_[i], poison_));
    const GpuExpected& e = set_->outputs[i % set_->outputs.size()];
    if (const GpuBuffer* initial = set_->initial(e.spec.name))
      CG_CHECK(judge_->copy(ctx, outputs_[i], *initial));
  }
  return {};
}

Result<GpuFindings> JudgedBuffers::judge(const Context& ctx, int copy) const {
  const size_t count = set_->outputs.size(), from = size_t(copy) * count;
  CG_ASSERT(from + count <= outputs_.size());
  GpuFindings out;
  for (size_t i = 0; i < count; ++i) {
    const GpuExpected& e = set_->outputs[i];
    CG_TRY(GpuJudgement j, judge_->compare(ctx, e, outputs_[from + i], poison_));
    out.elements += j.counts.elements;
    out.not_close += j.not_close;
    out.worst_ratio = std::max(out.worst_ratio, j.counts.worst_ratio);
    if (differs_by_chance(j.counts, set_->family))
      out.by_chance += j.counts.wrong;
    else if (!j.counts.passes())
      out.mismatches.push_back(mismatch_of(j, e.spec, *set_));
  }
  return out;
}

Result<std::string> JudgedBuffers::damage() const {
  for (const auto* list : {&scratch_, &outputs_, &against_})
    for (const GpuBuffer& buffer : *list) {
      CG_TRY(std::string text, judge_->damage(buffer));
      if (!text.empty()) return text;
    }
  return std::string();
}

}  // namespace cutegen::eval
