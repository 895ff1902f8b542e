// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/timed_buffers.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kAlign = 256;
constexpr int64_t kProbeBytes = 4096;
constexpr int kProbes = 24;  // probes per copy of an output
constexpr int kMostCopies = 16;
constexpr int64_t kMostProbed = int64_t{64} << 20;  // bytes of all probes together

// Eight random bytes that are NaN in every float width.
std::vector<std::byte> unwritten_pattern() {
  std::vector<std::byte> out(8);
  random_bytes(out);
  for (size_t i = 0; i < 8; i += 2) {
    out[i] |= std::byte{1};
    out[i + 1] |= std::byte{0x7f};
    out[i] |= std::byte{0xf0};
  }
  return out;
}

std::vector<std::byte> pattern_of(const InputSet& set, const std::string& name) {
  for (const torch::TensorSlot& slot : set.inputs)
    if (slot.name == name) {
      auto bytes = set.bytes_of(slot);
      return {bytes.begin(), bytes.end()};
    }
  return {};
}

std::string copy_name(const std::string& name, int copy) {
  return copy == 0 ? name : name + "#" + std::to_string(copy);
}

}  // namespace

Result<int64_t> bytes_of(const TensorInfo& info, const ShapeCase& shape) {
  auto at = shape.tensors.find(info.name);
  if (at == shape.tensors.end()) return world_error("the official shape lacks '" + info.name + "'");
  CG_TRY(int64_t count, element_count(at->second));
  return count * int64_t(size_of(info.dtype));
}

TimedBuffers::TimedBuffers() : random_(std::random_device()()), used_(kAlign) {}

int64_t TimedBuffers::place(int64_t bytes) {
  int64_t at = used_;
  used_ += (bytes + kAlign - 1) / kAlign * kAlign;
  return at;
}

Result<void> TimedBuffers::add_buffer(const std::string& name, int64_t bytes, bool read_only,
                                      bool output, std::vector<std::byte> pattern) {
  int64_t& sum = output ? outputs_ : fixed_;
  if (__builtin_add_overflow(sum, bytes, &sum) || total() < 0)
    return world_error("the size of the official shape overflows");
  if (pattern.empty()) pattern.resize(8);
  RunBuffer b{.name = name,
              .bytes = bytes,
              .offset = place(int64_t(pattern.size())),
              .read_only = read_only};
  b.content = output ? device::BufferContent::output : device::BufferContent::scratch;
  b.pattern_bytes = int64_t(pattern.size());
  stock_.push_back({.name = name, .bytes = std::move(pattern), .at = b.offset, .copied = output});
  buffers_.push_back(std::move(b));
  return {};
}

Result<void> TimedBuffers::add_written(const Task& task, const PreparedShape& official,
                                       const std::function<std::string(std::string)>& name) {
  for (const TensorInfo* out : task.with_role(TensorRole::output)) {
    CG_TRY(int64_t bytes, bytes_of(*out, *official.shape));
    CG_CHECK(add_buffer(name(out->name), bytes, false, true, unwritten_pattern()));
  }
  for (const ScratchBuffer& s : official.plan.scratch)
    CG_CHECK(add_buffer(name(s.name), s.bytes, false, false,
                        s.zero ? std::vector<std::byte>() : unwritten_pattern()));
  return {};
}

Result<void> TimedBuffers::add_scratch(const PreparedShape& official) {
  for (const ScratchBuffer& s : official.plan.scratch)
    CG_CHECK(add_buffer(s.name, s.bytes, false, false,
                        s.zero ? std::vector<std::byte>() : unwritten_pattern()));
  return {};
}

bool TimedBuffers::holds(const std::string& name) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [&](const RunBuffer& b) { return b.name == name; });
}

Result<void> TimedBuffers::add(const Task& task, const PreparedShape& official,
                               const InputSet& set) {
  for (const TensorInfo& info : task.tensors) {
    if (info.role == TensorRole::output) continue;
    CG_TRY(int64_t bytes, bytes_of(info, *official.shape));
    CG_CHECK(add_buffer(info.name, bytes, !info.mutated, info.mutated, pattern_of(set, info.name)));
    buffers_.back().content = device::BufferContent::data;
  }
  return add_written(task, official, [](std::string name) { return name; });
}

Result<void> TimedBuffers::add_other(const Task& task, const PreparedShape& official,
                                     const InputSet* set) {
  for (const TensorInfo& info : task.tensors) {
    if (!info.mutated || !set) continue;
    CG_TRY(int64_t bytes, bytes_of(info, *official.shape));
    CG_CHECK(add_buffer(other_name(info.name), bytes, false, false, pattern_of(*set, info.name)));
    buffers_.back().content = device::BufferContent::data;
  }
  return add_written(task, official, [](const std::string& name) { return other_name(name); });
}

bool TimedBuffers::fit(int64_t memory, int wanted) {
  if (total() > memory) return false;
  const int64_t more = outputs_ > 0 ? (memory - fixed_) / outputs_ : 1;
  copies_ = int(std::clamp<int64_t>(more, 1, std::clamp(wanted, 1, kMostCopies)));
  return true;
}

Result<void> TimedBuffers::put(RunRequest& request) {
  probes_at_ = used_;
  CG_TRY(memory_, make_memfd("official", size_t(used_ + kMostProbed)));
  CG_TRY(mapping_, Mapping::map(memory_.get(), size_t(used_ + kMostProbed), true));
  for (const Stock& s : stock_) std::memcpy(mapping_.data() + s.at, s.bytes.data(), s.bytes.size());
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copies = stock_[i].copied ? copies_ : 1;
  request.memory = memory_.get();
  request.buffers = buffers_;
  return {};
}

std::vector<Probe> TimedBuffers::draw_probes(const Task& task, int runs) {
  std::vector<Probe> out;
  int64_t at = probes_at_;
  for (const TensorInfo* info : task.with_role(TensorRole::output)) {
    auto buffer = std::find_if(buffers_.begin(), buffers_.end(),
                               [&](const RunBuffer& b) { return b.name == info->name; });
    if (buffer == buffers_.end()) continue;
    const int64_t size = std::min(buffer->bytes, kProbeBytes);
    const int64_t last = (buffer->bytes - size) / 8;
    const int places = buffer->bytes <= size ? 1 : kProbes;
    for (int copy = 0; copy < std::min(runs, copies_) && size > 0; ++copy)
      for (int i = 0; i < places && at + size <= probes_at_ + kMostProbed; ++i) {
        int64_t offset = 8 * std::uniform_int_distribution<int64_t>(0, last)(random_);
        if (i == 0) offset = 0;  // always probe both ends
        if (i == 1) offset = 8 * last;
        out.push_back(
            {.buffer = copy_name(info->name, copy), .offset = offset, .bytes = size, .at = at});
        at += (size + kAlign - 1) / kAlign * kAlign;
      }
  }
  return out;
}

int64_t TimedBuffers::unwritten(const std::vector<Probe>& probes, const TensorInfo& out,
                                int64_t& looked_at) const {
  auto stock = std::find_if(stock_.begin(), stock_.end(),
                            [&](const Stock& s) { return s.name == out.name; });
  const size_t size = size_of(out.dtype);
  int64_t left = 0;
  for (const Probe& p : probes) {
    if (p.buffer.substr(0, p.buffer.rfind('#')) != out.name) continue;
    int64_t here = 0;
    for (int64_t i = 0; i + int64_t(size) <= p.bytes; i += int64_t(size), ++looked_at)
      here += std::memcmp(mapping_.data() + p.at + i, stock->bytes.data() + i % 8, size) == 0;
    // A single byte may equal the pattern by chance, so bytes count only if the whole probe does.
    if (size > 1 || here == p.bytes) left += here;
  }
  return left;
}

}  // namespace cutegen::eval
