// SPDX-License-Identifier: Apache-2.0
// GpuJudge: the evaluator's own context on a GPU. It owns and shares memory, and compares outputs
// with their truth on the GPU.
//
// Contract: loads only cutegen's own kernels (src/eval/sets/kernels), never a candidate's.
// compare() counts exactly what judge() of src/tensor/compare.h counts for the same values. It
// marks each wrong element; in an output of more than kMostMarks elements, only those near the
// first wrong one. A GpuBuffer's destructor frees its memory. Several threads may use the object.
//
// Example: CG_TRY(auto judge, GpuJudge::open("cuda:0")); CG_CHECK(judge->prepare(ctx, toolchain));
//   CG_TRY(GpuBuffer y, judge->take("y", bytes, at_the_end));
//   CG_CHECK(judge->poison(ctx, y, bits));
#pragma once

#include <memory>
#include <mutex>

#include "device/cuda/session.h"
#include "eval/runner/runner.h"
#include "eval/sets/judge_rule.h"
#include "tensor/compare.h"
#include "toolchain/toolchain.h"

namespace cutegen::eval {

struct GpuSide {
  std::mutex lock;
  std::unique_ptr<device::cuda::Session> session;
};

// A buffer of shareable GPU memory. The buffer lies at one end of a larger block, with guards on
// both sides.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  GpuBuffer(std::shared_ptr<GpuSide> side, std::string name, device::cuda::Block block,
            int64_t offset, int64_t bytes);
  ~GpuBuffer();
  GpuBuffer(GpuBuffer&& other) noexcept { *this = std::move(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept;

  const std::string& name() const { return name_; }
  device::cuda::Address at() const { return block_.mapped + size_t(offset_); }
  int64_t bytes() const { return bytes_; }
  int64_t offset() const { return offset_; }
  const device::cuda::Block& block() const { return block_; }
  // Shares the buffer with a runner, which maps it by its name.
  Result<SharedBuffer> share(bool read_only);
  Result<int> descriptor();

 private:
  friend class GpuJudge;
  std::shared_ptr<GpuSide> side_;
  std::string name_;
  device::cuda::Block block_;
  int64_t offset_ = 0, bytes_ = 0;
  UniqueFd descriptor_;
  unsigned char guard_ = 0;
};

// The expected values of an output, in GPU memory.
struct GpuExpected {
  OutputSpec spec;
  int64_t elements = 0;
  // truth: f64. native: the output's dtype. margin: f64, for floats only.
  device::cuda::Address truth = 0, native = 0, margin = 0;
  ToleranceRule rule;
  double close = 0;  // tolerance of the rule of public benchmarks
  bool nan_is_undefined = false;
  AggregateLimits limits = {};  // limits of the output as a whole; see GpuJudge::limits_of
};

struct GpuJudgement {
  Judgement counts;       // is_wrong begins at element `marked_from`; empty if no element is wrong
  int64_t not_close = 0;  // wrong elements by the rule of public benchmarks
  AggregateError whole;   // error of the whole output
  int64_t first = 0, last = 0;  // the first and the last wrong element
  int64_t marked_from = 0;
};

class GpuJudge {
 public:
  static constexpr int64_t kMostMarks = int64_t{1} << 24;

  static Result<std::unique_ptr<GpuJudge>> open(const DeviceName& device);
  // Compiles and loads the kernels at the first call.
  Result<void> prepare(const Context& ctx, toolchain::Toolchain& toolchain);
  Result<void> load(const std::string& ptx);

  Result<GpuBuffer> take(const std::string& name, int64_t bytes, bool at_the_end);
  // Fills the buffer with copies of the eight bytes, and its guards with a random byte.
  Result<void> poison(const Context& ctx, GpuBuffer& buffer, const Poison& bits);
  // Copies the bytes of `from` to a buffer of the same size.
  Result<void> copy(const Context& ctx, GpuBuffer& to, const GpuBuffer& from);
  Result<void> set_guards(const Context& ctx, GpuBuffer& buffer, unsigned char value);
  // Returns "memory behind 'y' was written", or an empty text.
  Result<std::string> damage(const GpuBuffer& buffer);
  Result<GpuJudgement> compare(const Context& ctx, const GpuExpected& expected,
                               const GpuBuffer& output, const Poison& poison);
  // Judges the native result, to set the limits for the output as a whole. The official shape has
  // no sequential sum, so ToleranceRule::growth models its error.
  Result<AggregateLimits> limits_of(const Context& ctx, const GpuExpected& expected);
  Result<int64_t> free_bytes();
  int64_t total_bytes() const;
  const std::string& uuid() const;
  // Frees the memory that it keeps for later buffers.
  void trim();

 private:
  explicit GpuJudge(std::unique_ptr<device::cuda::Session> session);
  // Judges `count` elements from `from` on. Marks the wrong ones in `mask`, unless it is 0.
  Result<JudgeTally> run(const Context& ctx, const GpuExpected& expected,
                         device::cuda::Address output, const Poison& poison, int64_t from,
                         int64_t count, device::cuda::Address mask);
  Result<void> fill_guards(GpuBuffer& buffer);

  std::shared_ptr<GpuSide> side_;
  GpuBuffer words_;  // the arguments and counters of a launch
  bool loaded_ = false;
};

}  // namespace cutegen::eval
