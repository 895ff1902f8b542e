// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/excerpt_memory.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "tensor/half.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kPage = 4096;
constexpr size_t kOrdinaryBytes = 2 * 65537;  // period of ordinary numbers; 65537 is a prime number
constexpr int64_t kMostHeld = int64_t{768} << 20;     // for all tensors and scratch
constexpr int64_t kMostScratch = int64_t{128} << 20;  // for one scratch buffer
// Buffers without values are held in memory up to this size.
constexpr int64_t kSmall = int64_t{16} << 20;
constexpr int64_t kNoiseBytes = 1031 * kPage;  // period of random values; not a power of two
constexpr size_t kRingBytes = size_t{32} << 20;

int64_t size_in_bytes(const TensorInfo& info, const Shape& shape) {
  auto count = element_count(shape);
  return count ? *count * int64_t(size_of(info.dtype)) : 0;
}

// Fills memory with random numbers that are ordinary in each dtype: 0.5 to 2 as float32 and
// bfloat16, 1.75 to 2 as float16. Equal numbers would give equal sums, which may cancel together.
void fill_ordinary(std::byte* to, int64_t bytes) {
  static const auto numbers = [] {
    constexpr unsigned kNoNanOfEightBits = 0x70;
    std::vector<std::byte> made(kOrdinaryBytes, std::byte{0x3f});
    std::mt19937 random(1);
    for (size_t i = 0; i < made.size(); i += 2) made[i] = std::byte(random() % kNoNanOfEightBits);
    return made;
  }();
  for (int64_t at = 0; at < bytes; at += int64_t(kOrdinaryBytes))
    std::memcpy(to + at, numbers.data(), std::min(size_t(bytes - at), kOrdinaryBytes));
}

void repeat(const Poison& pattern, std::byte* to, int64_t bytes) {
  std::array<std::byte, kPage> page{};
  for (size_t i = 0; i < page.size(); ++i) page[i] = pattern[i % pattern.size()];
  for (int64_t done = 0; done < bytes; done += kPage)
    std::memcpy(to + done, page.data(), size_t(std::min(kPage, bytes - done)));
}

}  // namespace

int64_t ExcerptMemory::take(int64_t bytes) {
  const int64_t at = total_;
  total_ += (bytes + kPage - 1) / kPage * kPage + kPage;
  return at;
}

Result<ExcerptMemory> ExcerptMemory::make(const Task& task, const PreparedShape& official,
                                          const Excerpts::Drawn& drawn) {
  ExcerptMemory m;
  m.why_not_ = drawn.why_not;
  m.poison_ = draw_poison(PoisonKind::nan);
  if (drawn.set) {
    m.set_ = drawn.set;
    if (auto placed = m.place_values(task, *official.shape); !placed) {
      if (placed.error().kind != ErrorKind::unsupported) return fail(placed.error());
      m = ExcerptMemory();
      m.why_not_ = "its tensors do not fit: " + placed.error().message;
    }
  }
  if (!m.set_) CG_CHECK(m.place_addresses(task, *official.shape));
  m.place_scratch(official);
  CG_CHECK(m.make_memory());
  return m;
}

Result<void> ExcerptMemory::place_values(const Task& task, const ShapeCase& official) {
  for (const TensorInfo& info : task.tensors) {
    const bool output = info.role == TensorRole::output;
    const Repeated::Hold hold = info.mutated ? Repeated::Hold::all
                                : output     ? Repeated::Hold::more
                                             : Repeated::Hold::little;
    Shape cut;
    if (output) {
      for (const Expected& e : set_->outputs)
        if (e.spec.name == info.name) cut = e.spec.shape;
    } else {
      for (const torch::TensorSlot& slot : set_->inputs)
        if (slot.name == info.name) cut = slot.shape;
    }
    const Shape& full = official.tensors.at(info.name);
    if (cut.size() != full.size()) return world_error("an excerpt has another rank");
    CG_TRY(Repeated r, Repeated::place(info.dtype, full, cut, hold));
    Place place{.name = info.name, .repeated = r, .offset = take(r.held_bytes)};
    if (total_ > kMostHeld) return unsupported_error("it would need more than 768 MiB");
    RunBuffer b{
        .name = info.name, .bytes = r.bytes, .offset = place.offset, .read_only = !is_result(info)};
    if (output) b.content = device::BufferContent::output;
    if (r.mapped_again()) b.period_bytes = r.held_bytes;
    buffers_.push_back(std::move(b));
    if (output) poisoned_.emplace_back(place.offset, r.held_bytes);
    (output ? outputs_ : info.mutated ? mutated_ : inputs_).push_back(std::move(place));
  }
  return {};
}

Result<void> ExcerptMemory::place_addresses(const Task& task, const ShapeCase& official) {
  for (const TensorInfo& info : task.tensors) {
    auto at = official.tensors.find(info.name);
    if (at == official.tensors.end())
      return world_error("the official shape lacks '" + info.name + "'");
    const int64_t bytes = size_in_bytes(info, at->second);
    const bool output = info.role == TensorRole::output, written = is_result(info);
    RunBuffer b{.name = info.name, .bytes = bytes, .offset = -1, .read_only = !written};
    if (bytes <= kSmall) {
      b.offset = take(bytes);
      if (!output) noise_.push_back({info.dtype, {b.offset, bytes}});
    } else if (!written && (is_floating(info.dtype) || info.dtype == DType::boolean)) {
      b.offset = take(kNoiseBytes), b.period_bytes = kNoiseBytes;
      noise_.push_back({info.dtype, {b.offset, kNoiseBytes}});
    }
    buffers_.push_back(std::move(b));
  }
  return {};
}

void ExcerptMemory::place_scratch(const PreparedShape& official) {
  for (const ScratchBuffer& s : official.plan.scratch) {
    RunBuffer b{.name = s.name, .bytes = s.bytes, .offset = -1, .read_only = false};
    if (s.bytes > kMostScratch || total_ + s.bytes > kMostHeld) {
      aliased_.insert(s.name);
    } else {
      b.offset = take(s.bytes);
      if (!s.zero) poisoned_scratch_.emplace_back(b.offset, s.bytes);
    }
    buffers_.push_back(std::move(b));
  }
}

Result<void> ExcerptMemory::make_memory() {
  CG_TRY(memory_, make_memfd("official", size_t(std::max(total_, kPage))));
  CG_TRY(ring_, make_memfd("ring", kRingBytes));
  CG_TRY(mapping_, Mapping::map(memory_.get(), size_t(std::max(total_, kPage)), true));
  for (const Place& p : inputs_) fill(p);
  restore();
  for (const auto& [offset, bytes] : poisoned_) repeat(poison_, mapping_.data() + offset, bytes);
  for (const auto& [offset, bytes] : poisoned_scratch_)
    set_ ? repeat(poison_, mapping_.data() + offset, bytes)
         : fill_ordinary(mapping_.data() + offset, bytes);
  write_noise();
  return {};
}

void ExcerptMemory::fill(const Place& p) {
  for (const torch::TensorSlot& slot : set_->inputs)
    if (slot.name == p.name)
      p.repeated.fill(set_->bytes_of(slot),
                      {mapping_.data() + p.offset, size_t(p.repeated.held_bytes)});
}

void ExcerptMemory::restore() {
  for (const Place& p : mutated_) fill(p);
}

bool ExcerptMemory::make_scratch_ordinary() {
  if (!set_) return false;
  for (const auto& [offset, bytes] : poisoned_scratch_)
    fill_ordinary(mapping_.data() + offset, bytes);
  return !poisoned_scratch_.empty();
}

void ExcerptMemory::write_noise() {
  std::mt19937_64 random{std::random_device{}()};
  for (const auto& [dtype, where] : noise_) {
    const size_t element = size_of(dtype);
    std::byte* to = mapping_.data() + where.first;
    if (!is_floating(dtype) && dtype != DType::boolean) continue;  // zero is a valid index
    for (size_t i = 0; i < size_t(where.second) / element; ++i) {
      const uint64_t bits = random();
      const double value =
          dtype == DType::boolean ? double(bits >> 63) : double(int64_t(bits)) / double(INT64_MAX);
      store_double(dtype, value, to + i * element);
    }
  }
}

void ExcerptMemory::put(RunRequest& request) const {
  request.buffers = buffers_;
  request.memory = memory_.get();
  request.ring = ring_.get();
}

std::vector<ExcerptMemory::Output> ExcerptMemory::outputs() const {
  std::vector<Output> out;
  for (const std::vector<Place>* places : {&outputs_, &mutated_})
    for (const Place& p : *places)
      for (const Expected& e : set_->outputs) {
        if (e.spec.name != p.name) continue;
        const torch::TensorSlot* initial = set_->initial(p.name);
        out.push_back(
            {.expected = &e,
             .place = p.repeated,
             .bytes = {mapping_.data() + p.offset, size_t(p.repeated.held_bytes)},
             .initial = initial ? set_->bytes_of(*initial) : std::span<const std::byte>()});
      }
  return out;
}

}  // namespace cutegen::eval
