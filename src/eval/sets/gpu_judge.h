// SPDX-License-Identifier: Apache-2.0
// GpuJudge: the evaluator's own context on a GPU. It allocates memory that a runner can map, and
// compares outputs with their truth (the result in float64) on the GPU.
//
// Contract: GpuJudge loads only cutegen's own kernels (src/eval/sets/kernels), never a candidate's.
// For the same values, compare() returns the same counts as judge() of src/tensor/compare.h.
// compare() marks wrong elements in a range of at most kMostMarks elements, which contains the
// first wrong element. A GpuBuffer's destructor frees its memory. GpuJudge is thread-safe.
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

// A buffer in GPU memory that a runner can map. The buffer is at one end of a larger block, and the
// rest of the block has guard bytes.
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
  // Returns the data with which a runner maps the buffer under the buffer's name.
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

// The expected values of an output, in GPU memory, with the rule for comparing an output with them.
struct GpuExpected {
  OutputSpec spec;
  int64_t elements = 0;
  // Arrays: truth (f64), native (PyTorch's result in the output's dtype) and, only for floating
  // point, margin (f64).
  device::cuda::Address truth = 0, native = 0, margin = 0;
  ToleranceRule rule;
  double close = 0;  // tolerance of public benchmarks, larger than in `rule`
  bool nan_is_undefined = false;
  AggregateLimits limits = {};  // limits for the output as a whole, from limits_of()
};

struct GpuJudgement {
  Judgement counts;             // is_wrong[i] is for element marked_from + i; empty: none is wrong
  int64_t not_close = 0;        // wrong elements by the tolerance of public benchmarks
  AggregateError whole;         // the error of the output as a whole
  int64_t first = 0, last = 0;  // indices of the first and last wrong elements
  int64_t marked_from = 0;
};

class GpuJudge {
 public:
  static constexpr int64_t kMostMarks = int64_t{1} << 24;

  static Result<std::unique_ptr<GpuJudge>> open(const DeviceName& device);
  // Compiles and loads the comparison kernels at the first call.
  Result<void> prepare(const Context& ctx, toolchain::Toolchain& toolchain);
  Result<void> load(const std::string& ptx);

  Result<GpuBuffer> take(const std::string& name, int64_t bytes, bool at_the_end);
  // Fills the buffer with repetitions of `bits`, and the guards with a random byte.
  Result<void> poison(const Context& ctx, GpuBuffer& buffer, const Poison& bits);
  // Copies `from` to a buffer of the same size.
  Result<void> copy(const Context& ctx, GpuBuffer& to, const GpuBuffer& from);
  Result<void> set_guards(const Context& ctx, GpuBuffer& buffer, unsigned char value);
  // Checks the guards, and returns "memory behind 'y' was written" or an empty text.
  Result<std::string> damage(const GpuBuffer& buffer);
  Result<GpuJudgement> compare(const Context& ctx, const GpuExpected& expected,
                               const GpuBuffer& output, const Poison& poison);
  // Computes the limits for the output as a whole from the errors of PyTorch's result. The limits
  // also depend on the error of a sequential summation, which ToleranceRule::growth estimates at
  // the official shape (the sizes in the task file).
  Result<AggregateLimits> limits_of(const Context& ctx, const GpuExpected& expected);
  Result<int64_t> free_bytes();
  int64_t total_bytes() const;
  const std::string& uuid() const;
  // Frees the memory that the judge keeps for later buffers.
  void trim();

 private:
  explicit GpuJudge(std::unique_ptr<device::cuda::Session> session);
  // Compares `count` elements from index `from` on. If `mask` is not 0, marks wrong elements in
  // `mask`.
  Result<JudgeTally> run(const Context& ctx, const GpuExpected& expected,
                         device::cuda::Address output, const Poison& poison, int64_t from,
                         int64_t count, device::cuda::Address mask);
  Result<void> fill_guards(GpuBuffer& buffer);

  std::shared_ptr<GpuSide> side_;
  GpuBuffer words_;  // arguments and counters of a comparison kernel's launch
  bool loaded_ = false;
};

}  // namespace cutegen::eval
