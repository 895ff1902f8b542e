// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/gpu_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/hash.h"
#include "base/text.h"

namespace cutegen::eval {

const std::map<std::string, std::string>& judge_kernels();

namespace {

constexpr const char* kSource = "src/eval/sets/kernels/judge.cu";
constexpr int64_t kBlockAlign = 256;
constexpr int64_t kThreads = 256, kMostBlocks = 2048;
constexpr size_t kRuleAt = 0, kTallyAt = 256, kWordsBytes = 512;

int64_t blocks_for(int64_t count) {
  return std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks);
}

unsigned char random_byte() {
  std::byte b{};
  random_bytes(std::span(&b, 1));
  return uint8_t(b);
}

GpuJudgement judgement_of(const JudgeTally& t, const GpuExpected& e) {
  GpuJudgement out;
  out.counts.elements = e.elements;
  out.counts.wrong = int64_t(t.wrong);
  out.counts.nan = int64_t(t.nan);
  out.counts.zero = int64_t(t.zero);
  out.counts.unwritten = int64_t(t.unwritten);
  out.counts.worst_ratio = std::bit_cast<double>(t.worst);
  out.not_close = int64_t(t.not_close);
  out.whole = AggregateError(int64_t(t.finite), t.squares, t.signed_sum);
  out.counts.rms = out.whole.rms(), out.counts.bias = out.whole.bias();
  out.counts.limits = e.limits;
  if (t.wrong == 0) return out;
  out.first = int64_t(t.first), out.last = int64_t(t.last);
  return out;
}

}  // namespace

JudgeRule judge_rule(DType dtype, ToleranceRule rule, double close, bool nan_is_undefined,
                     const Poison& poison) {
  JudgeRule out{};
  if (is_floating(dtype)) rule = for_dtype(rule, dtype);
  out.factor = rule.factor;
  out.close = close;
  out.rtol = rule.rtol, out.atol = rule.atol;
  std::memcpy(&out.poison, poison.data(), sizeof out.poison);
  out.dtype = int(dtype);
  out.nan_is_undefined = nan_is_undefined ? 1 : 0;
  if (!is_floating(dtype)) return out;
  out.eps = std::max(rule.eps, half_ulp(dtype));
  out.least = flush_error(dtype);
  out.largest = largest_finite(dtype);
  // Bisects for the smallest double that overflows in the dtype. The bits of doubles have the same
  // order as their values.
  auto low = std::bit_cast<uint64_t>(out.largest);
  auto high = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
  while (low + 1 < high) {
    const uint64_t middle = low + (high - low) / 2;
    (std::isfinite(round_to(dtype, std::bit_cast<double>(middle))) ? low : high) = middle;
  }
  out.overflow = std::bit_cast<double>(high);
  out.overflows_to_nan = std::isnan(round_to(dtype, out.overflow)) ? 1 : 0;
  return out;
}

GpuBuffer::GpuBuffer(std::shared_ptr<GpuSide> side, std::string name, device::cuda::Block block,
                     int64_t offset, int64_t bytes)
    : side_(std::move(side)),
      name_(std::move(name)),
      block_(block),
      offset_(offset),
      bytes_(bytes) {}

GpuBuffer& GpuBuffer::operator=(GpuBuffer&& other) noexcept {
  std::swap(side_, other.side_);
  std::swap(name_, other.name_);
  std::swap(block_, other.block_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(guard_, other.guard_);
  return *this;
}

GpuBuffer::~GpuBuffer() {
  if (!side_) return;
  std::lock_guard one_at_a_time(side_->lock);
  if (side_->session->enter()) side_->session->memory().give_back(block_);
}

Result<int> GpuBuffer::descriptor() {
  if (!descriptor_) {
    std::lock_guard one_at_a_time(side_->lock);
    CG_CHECK(side_->session->enter());
    CG_TRY(descriptor_, side_->session->memory().share(block_));
  }
  return descriptor_.get();
}

Result<SharedBuffer> GpuBuffer::share(bool read_only) {
  CG_TRY(int fd, descriptor());
  return SharedBuffer{.name = name_,
                      .bytes = bytes_,
                      .descriptor = fd,
                      .mapped_bytes = int64_t(block_.mapped_bytes),
                      .offset = offset_,
                      .read_only = read_only};
}

GpuJudge::GpuJudge(std::unique_ptr<device::cuda::Session> session)
    : side_(std::make_shared<GpuSide>()) {
  side_->session = std::move(session);
}

Result<std::unique_ptr<GpuJudge>> GpuJudge::open(const DeviceName& device) {
  CG_TRY(auto session, device::cuda::Session::open(device));
  std::unique_ptr<GpuJudge> judge(new GpuJudge(std::move(session)));
  CG_TRY(judge->words_, judge->take("words", kWordsBytes, false));
  return judge;
}

Result<void> GpuJudge::prepare(const Context& ctx, toolchain::Toolchain& toolchain) {
  if (loaded_) return {};
  const std::string arch = side_->session->gpu().facts.arch;
  CG_TRY(toolchain::CompileResult compiled,
         toolchain.compile(
             ctx, {.name = "judge.cu", .source = judge_kernels().at(kSource), .arch = arch}));
  if (!compiled.ok)
    return world_error("the comparison kernel does not compile: " + compiled.digest);
  return load(compiled.ptx);
}

Result<void> GpuJudge::load(const std::string& ptx) {
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  CG_CHECK(side_->session->load(ptx));
  loaded_ = true;
  return {};
}

Result<GpuBuffer> GpuJudge::take(const std::string& name, int64_t bytes, bool at_the_end) {
  if (bytes < 0) return world_error("a buffer has a negative size");
  device::cuda::Block block;
  {
    std::lock_guard one_at_a_time(side_->lock);
    CG_CHECK(side_->session->enter());
    CG_TRY(block, side_->session->memory().take(size_t(bytes)));
  }
  const int64_t last =
      int64_t(block.mapped_bytes) - (bytes + kBlockAlign - 1) / kBlockAlign * kBlockAlign;
  return GpuBuffer(side_, name, block, at_the_end ? last : 0, bytes);
}

Result<void> GpuJudge::fill_guards(GpuBuffer& b) {
  const auto before = size_t(b.offset_), bytes = size_t(b.bytes_);
  device::cuda::Session& session = *side_->session;
  CG_CHECK(session.set(b.block_.mapped, b.guard_, before));
  return session.set(b.at() + bytes, b.guard_, b.block_.mapped_bytes - before - bytes);
}

Result<void> GpuJudge::set_guards(const Context& ctx, GpuBuffer& buffer, unsigned char value) {
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  buffer.guard_ = value;
  CG_CHECK(fill_guards(buffer));
  return side_->session->wait(ctx);
}

Result<void> GpuJudge::poison(const Context& ctx, GpuBuffer& buffer, const Poison& bits) {
  std::lock_guard one_at_a_time(side_->lock);
  device::cuda::Session& session = *side_->session;
  CG_CHECK(session.enter());
  device::cuda::Address at = buffer.at();
  uint64_t value = 0, words = (uint64_t(buffer.bytes()) + 7) / 8;
  std::memcpy(&value, bits.data(), sizeof value);
  if (words)
    CG_CHECK(session.launch("fill", blocks_for(int64_t(words)), kThreads, {&at, &words, &value}));
  buffer.guard_ = random_byte();
  CG_CHECK(fill_guards(buffer));
  return session.wait(ctx);
}

Result<void> GpuJudge::copy(const Context& ctx, GpuBuffer& to, const GpuBuffer& from) {
  if (to.bytes() != from.bytes())
    return world_error("the buffer '" + from.name() + "' has another size in this set");
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  CG_CHECK(side_->session->copy(to.at(), from.at(), size_t(from.bytes())));
  return side_->session->wait(ctx);
}

Result<std::string> GpuJudge::damage(const GpuBuffer& b) {
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  const auto before = size_t(b.offset_);
  const device::cuda::Address end = b.at() + size_t(b.bytes_);
  const size_t behind = b.block_.mapped + b.block_.mapped_bytes - end;
  std::vector<std::byte> now(std::max(before, behind));
  for (auto [from, bytes, side] :
       {std::tuple(b.block_.mapped, before, "before"), std::tuple(end, behind, "behind")}) {
    std::span<std::byte> part(now.data(), bytes);
    CG_CHECK(side_->session->read(part, from));
    if (std::any_of(part.begin(), part.end(),
                    [&](std::byte c) { return c != std::byte{b.guard_}; }))
      return fmt::format("memory {} '{}' was written", side, sanitize(b.name_, 80));
  }
  return std::string();
}

Result<JudgeTally> GpuJudge::run(const Context& ctx, const GpuExpected& e,
                                 device::cuda::Address out, const Poison& poison, int64_t from,
                                 int64_t count, device::cuda::Address mask) {
  std::lock_guard one_at_a_time(side_->lock);
  device::cuda::Session& session = *side_->session;
  CG_CHECK(session.enter());
  const JudgeRule rule = judge_rule(e.spec.dtype, e.rule, e.close, e.nan_is_undefined, poison);
  JudgeTally tally;
  device::cuda::Address rule_at = words_.at() + kRuleAt, tally_at = words_.at() + kTallyAt;
  CG_CHECK(session.write(rule_at, std::as_bytes(std::span(&rule, 1))));
  CG_CHECK(session.write(tally_at, std::as_bytes(std::span(&tally, 1))));
  device::cuda::Address truth = e.truth, native = e.native, margin = e.margin;
  CG_CHECK(
      session.launch("judge", blocks_for(count), kThreads,
                     {&out, &truth, &native, &margin, &mask, &tally_at, &rule_at, &from, &count}));
  CG_CHECK(session.wait(ctx));
  CG_CHECK(session.read(std::as_writable_bytes(std::span(&tally, 1)), tally_at));
  return tally;
}

Result<GpuJudgement> GpuJudge::compare(const Context& ctx, const GpuExpected& e,
                                       const GpuBuffer& output, const Poison& poison) {
  if (!loaded_) return world_error("the comparison kernel is not loaded");
  if (output.bytes() != e.elements * int64_t(size_of(e.spec.dtype)))
    return world_error("the output '" + e.spec.name + "' has another size than its truth");
  JudgeTally tally;
  if (e.elements) {
    CG_TRY(tally, run(ctx, e, output.at(), poison, 0, e.elements, 0));
  }
  GpuJudgement out = judgement_of(tally, e);
  if (out.counts.wrong == 0) return out;
  if (e.elements > kMostMarks) out.marked_from = std::min(out.first, e.elements - kMostMarks);
  const int64_t count = std::min(e.elements, kMostMarks);
  CG_TRY(GpuBuffer mask, take("marks", count, false));
  CG_CHECK(run(ctx, e, output.at(), poison, out.marked_from, count, mask.at()));
  out.counts.is_wrong.resize(size_t(count));
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  CG_CHECK(side_->session->read(std::as_writable_bytes(std::span(out.counts.is_wrong)), mask.at()));
  return out;
}

Result<AggregateLimits> GpuJudge::limits_of(const Context& ctx, const GpuExpected& e) {
  if (!is_floating(e.spec.dtype) || e.elements == 0) return AggregateLimits{};
  const ToleranceRule rule = for_dtype(e.rule, e.spec.dtype);
  CG_TRY(const JudgeTally t, run(ctx, e, e.native, Poison{}, 0, e.elements, 0));
  HonestErrors honest;
  honest.native = AggregateError(int64_t(t.finite), t.squares, t.signed_sum);
  // The margin combines sensitivity and native error, which together are at most one unit.
  honest.floor_rms = std::max(rule.sensitivity, rule.floor_eps / rule.eps);
  honest.floor_bias = kTruncation / rule.eps;  // an element's unit is at least eps * |t|
  return aggregate_limits(rule, honest, independent_errors(e.spec.shape));
}

Result<int64_t> GpuJudge::free_bytes() {
  std::lock_guard one_at_a_time(side_->lock);
  CG_CHECK(side_->session->enter());
  return side_->session->free_bytes();
}

int64_t GpuJudge::total_bytes() const {
  return side_->session->gpu().identity.memory_bytes;
}

const std::string& GpuJudge::uuid() const {
  return side_->session->gpu().identity.uuid;
}

void GpuJudge::trim() {
  std::lock_guard one_at_a_time(side_->lock);
  if (side_->session->enter()) side_->session->memory().drop_kept();
}

}  // namespace cutegen::eval
