// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/sampled_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/units.h"
#include "eval/diagnosis/feedback.h"
#include "eval/rungs/correctness.h"
#include "eval/rungs/output_flow.h"
#include "tensor/half.h"
#include "tensor/written_errors.h"

namespace cutegen::eval {
namespace {

constexpr double kMostUncovered = 0.05;  // share of instructions that no compared run executed
// Arithmetic per FLOP of the task, relative to compared runs.
constexpr double kLeastArithmetic = 0.125;
constexpr double kLeastStored = 0.9;  // of the outputs' bytes
constexpr double kAllStored = 0.995;  // of an output's bytes, if all blocks store equally much
// A module changes a whole mutated tensor if it changes this share of the elements.
constexpr double kChangesWhole = 0.999;
constexpr double kLeastChanged = 0.95;  // of the stored elements of such a tensor
constexpr int64_t kEnough = 256;        // fewest correct elements of a comparison that counts

struct Compared {
  int64_t written = 0, wrong = 0;
  std::optional<Mismatch> first;
  std::optional<Mismatch> whole;  // each element passes, but the output as a whole does not
};

// Fills a tile of the excerpt with the written elements and the truth of unwritten ones. Counts the
// written elements.
class Tiles {
 public:
  Tiles(const ExcerptMemory::Output& output, const Poison& poison, bool unfinished)
      : o_(output), unfinished_(unfinished), element_(size_of(output.place.dtype)) {
    std::memcpy(&word_, poison.data(), sizeof word_);
    truth_.resize(o_.expected->truth.size() * element_);
    from_double(o_.place.dtype, o_.expected->truth, truth_);
    find_touched();
  }
  int64_t take(const Shape& origin, std::vector<std::byte>& block, WrittenErrors& errors) {
    int64_t written = 0;
    const bool floating = is_floating(o_.place.dtype);
    block = truth_;
    o_.place.each_run(origin, [&](int64_t in_excerpt, int64_t in_held, int64_t count) {
      if (!touched(in_held, count)) return;
      for (int64_t i = 0; i < count; ++i) {
        const size_t from = size_t(in_held + i) * element_, to = size_t(in_excerpt + i) * element_;
        if (!is_written(from, size_t(in_excerpt + i))) continue;
        std::memcpy(block.data() + to, o_.bytes.data() + from, element_);
        if (floating)
          errors.add(size_t(in_excerpt + i), load_double(o_.place.dtype, o_.bytes.data() + from));
        ++written;
      }
    });
    return written;
  }

 private:
  static constexpr size_t kPage = 4096;
  void find_touched() {
    touched_.resize(o_.bytes.size() / kPage + 1, o_.initial.empty() ? 0 : 1);
    if (!o_.initial.empty()) return;
    for (size_t at = 0; at < o_.bytes.size(); at += 8) {
      uint64_t word = word_;
      std::memcpy(&word, o_.bytes.data() + at, std::min<size_t>(8, o_.bytes.size() - at));
      const size_t left = o_.bytes.size() - at;
      const uint64_t known = left < 8 ? (uint64_t{1} << 8 * left) - 1 : ~uint64_t{0};
      if ((word ^ word_) & known) touched_[at / kPage] = 1;
    }
  }
  bool touched(int64_t first, int64_t count) const {
    const size_t end = (size_t(first + count) * element_ - 1) / kPage;
    for (size_t p = size_t(first) * element_ / kPage; p <= end; ++p)
      if (touched_[p]) return true;
    return false;
  }
  bool is_written(size_t at, size_t of_truth) const {
    const std::byte* before = o_.initial.empty()
                                  ? reinterpret_cast<const std::byte*>(&word_) + at % 8
                                  : o_.initial.data() + of_truth * element_;
    if (std::memcmp(o_.bytes.data() + at, before, element_) == 0) return false;
    if (!unfinished_ || !is_floating(o_.place.dtype)) return true;
    // A NaN may come from scratch that skipped blocks did not write.
    return !std::isnan(load_double(o_.place.dtype, o_.bytes.data() + at)) ||
           std::isnan(o_.expected->truth[of_truth]) || std::isnan(o_.expected->native[of_truth]);
  }

  const ExcerptMemory::Output& o_;
  bool unfinished_;
  size_t element_;
  uint64_t word_ = 0;
  std::vector<std::byte> truth_;
  std::vector<uint8_t> touched_;
};

Compared compare(const ExcerptMemory::Output& o, const ExcerptMemory& memory,
                 const std::string& shape, bool unfinished) {
  Compared out;
  Tiles tiles(o, memory.poison(), unfinished);
  WrittenErrors errors(*o.expected);
  std::vector<std::byte> block;
  o.place.each_tile([&](const Shape& origin) {
    const int64_t written = tiles.take(origin, block, errors);
    if (written == 0) return;
    out.written += written;
    const Judgement j = judge(*o.expected, block);
    out.wrong += j.wrong;
    if (j.wrong == 0 || out.first) return;
    Mismatch m = describe_mismatch(j, o.expected->spec, shape, memory.family());
    for (auto& at : m.first)
      for (size_t d = 0; d < at.size(); ++d) at[d] += origin[d];
    // Tiles share memory, so the place of the element is unknown.
    if (o.place.mapped_again()) m.first.clear();
    out.first = std::move(m);
  });
  if (out.first) out.first->elements = out.written, out.first->wrong = out.wrong;
  const Judgement whole = errors.judgement();
  if (out.wrong == 0 && !whole.passes())
    out.whole = describe_mismatch(whole, o.expected->spec, shape, memory.family());
  return out;
}

// Whether the tensor is a mutated tensor, and the module changes all its elements.
bool changes_whole(const ExcerptMemory::Output& o) {
  if (o.initial.empty() || o.expected->truth.empty()) return false;
  std::vector<std::byte> after(o.initial.size());
  from_double(o.place.dtype, o.expected->truth, after);
  const size_t element = size_of(o.place.dtype), count = after.size() / element;
  size_t changed = 0;
  for (size_t i = 0; i < count; ++i)
    changed +=
        std::memcmp(after.data() + i * element, o.initial.data() + i * element, element) != 0;
  return double(changed) >= kChangesWhole * double(count);
}

// Fails a program whose sampled blocks store old values in elements that the module changes. The
// comparison of values skips elements that have their old values. `changed`: the number of elements
// that have changed.
std::optional<RungEnd> stores_old_values(const ExcerptMemory::Output& o,
                                         const device::RunReport& report, int64_t changed,
                                         const std::string& shape) {
  const std::string& name = o.expected->spec.name;
  double stored = 0;
  for (const device::LaunchTrace& t : report.traces)
    if (auto at = t.stored_once.find(name); at != t.stored_once.end())
      stored = std::max(stored, at->second / double(size_of(o.place.dtype)));
  if (stored < kEnough || double(changed) >= kLeastChanged * stored || !changes_whole(o))
    return std::nullopt;
  return rung_failed(
      fmt::format(
          "at {} the blocks that ran change {} of the {:.0f} elements of {} that they write", shape,
          changed, stored, name),
      "The module changes all elements. Does a condition keep the old values?");
}

class Checking {
 public:
  explicit Checking(const CheckedRun& run) : run_(run) {}

  SampledCheck check() {
    if (run_.compared_whole) return std::move(out_);
    out_.blocks_missed = blocks_missed(run_.report);
    if (auto end = stores_too_little()) {
      out_.by_sample = true;
      return ended(std::move(*end));
    }
    if (auto end = leaves_parts_out()) return ended(std::move(*end));
    if (auto end = stores_too_little_of_one()) {
      out_.by_sample = true;
      return ended(std::move(*end));
    }
    compare_values();
    if (!out_.end.passed || out_.not_compared.empty()) return std::move(out_);
    return hold_against_compared();
  }

 private:
  std::string shape() const { return name_of(run_.official); }

  SampledCheck ended(RungEnd end) {
    out_.end = std::move(end);
    return std::move(out_);
  }

  // The sample of blocks is random, so its stores, scaled to all blocks, must cover the outputs.
  std::optional<RungEnd> stores_too_little() const {
    double stored = 0, error = 0, wanted = 0;
    for (const auto& step : run_.steps)
      if (const auto* fill = std::get_if<Fill>(&step)) {
        const TensorInfo* info = run_.task.find(fill->buffer);
        if (info && info->role == TensorRole::output) return std::nullopt;
      }
    for (const device::LaunchTrace& t : run_.report.traces) {
      if (t.atomics) return std::nullopt;
      error = std::max(error, t.sample_error);
    }
    for (const TensorInfo* info : run_.task.with_role(TensorRole::output)) {
      auto count = element_count(run_.official.tensors.at(info->name));
      wanted += count ? double(*count) * double(size_of(info->dtype)) : 0;
      for (const device::LaunchTrace& t : run_.report.traces)
        if (auto at = t.stored_sectors.find(info->name); at != t.stored_sectors.end())
          stored += 32 * at->second;
    }
    if (stored * (1 + error) >= kLeastStored * wanted) return std::nullopt;
    return rung_failed(
        fmt::format("at {} the blocks write {} of {} of outputs: the program omits work", shape(),
                    human(Bytes{int64_t(stored)}), human(Bytes{int64_t(wanted)})),
        "A sample of the blocks ran; the first figure is an estimate for all of them.");
  }

  // The outputs, and each mutated tensor whose elements the module all changes.
  std::vector<const TensorInfo*> written_whole() const {
    std::vector<const TensorInfo*> out = run_.task.with_role(TensorRole::output);
    if (!run_.memory.has_values()) return out;
    for (const ExcerptMemory::Output& o : run_.memory.outputs())
      if (changes_whole(o)) out.push_back(run_.task.find(o.expected->spec.name));
    return out;
  }

  double bytes_of(const TensorInfo& info) const {
    auto count = element_count(run_.official.tensors.at(info.name));
    return count ? double(*count) * double(size_of(info.dtype)) : 0;
  }

  // If the blocks of the sample store equally much, the estimate is nearly exact.
  std::optional<RungEnd> stores_too_little_of_one() const {
    for (const device::LaunchTrace& t : run_.report.traces)
      if (t.atomics) return std::nullopt;
    const std::vector<const TensorInfo*> results = written_whole();
    double most = 0;
    for (const TensorInfo* info : results) most += bytes_of(*info);
    for (const TensorInfo* info : results) {
      double stored = 0, error = 0;
      for (const device::LaunchTrace& t : run_.report.traces)
        if (auto at = t.stored_bytes.find(info->name); at != t.stored_bytes.end()) {
          stored += at->second;
          error = std::max(error, t.kinds_known && t.kinds_missed == 0 ? t.stored_error : 1);
        }
      bool filled = false;
      for (const auto& step : run_.steps)
        if (const auto* fill = std::get_if<Fill>(&step)) filled |= fill->buffer == info->name;
      // The error refers to all stores, so it says little about a small output.
      const double wanted = bytes_of(*info);
      const double least = std::max(kAllStored - 8 * error, kLeastStored / (1 + 2 * error));
      if (filled || wanted < most / 2 || stored >= least * wanted) continue;
      return rung_failed(
          fmt::format("at {} the blocks write {} of the {} of {}", shape(),
                      human(Bytes{int64_t(stored)}), human(Bytes{int64_t(wanted)}), info->name),
          "A sample of the blocks ran; the first figure is an estimate for all of them.");
    }
    return std::nullopt;
  }

  // Blocks outside the sample may write right values to places that other blocks write, too. The
  // simulator knows the addresses of many stores without running the blocks.
  std::optional<RungEnd> leaves_parts_out() const {
    for (const TensorInfo* info : written_whole()) {
      const device::LaunchTrace* only = nullptr;
      int writers = 0;
      for (const auto& step : run_.steps)
        if (const auto* fill = std::get_if<Fill>(&step)) writers += fill->buffer == info->name;
      for (const device::LaunchTrace& t : run_.report.traces)
        if (t.stored_sectors.contains(info->name)) ++writers, only = &t;
      if (writers != 1 || !only || !only->unreached.contains(info->name)) continue;
      const double share = only->unreached.at(info->name);
      if (share == 0) continue;
      auto count = element_count(run_.official.tensors.at(info->name));
      const double first = only->unreached_from.at(info->name) * (count ? double(*count) : 0);
      const bool unknown = only->unreached_from.at(info->name) == 1;
      return rung_failed(
          fmt::format("at {} no block of {} writes {:.3g}% of {}{}", shape(), only->kernel,
                      100 * share, info->name,
                      unknown ? "" : fmt::format(", from about element {:.0f} on", first)),
          "The simulator computed the addresses of the stores for blocks and threads of the whole "
          "grid. Does an index overflow, perhaps a 32-bit one, or does a condition skip stores?");
    }
    return std::nullopt;
  }

  void compare_values() {
    if (!run_.memory.has_values()) {
      out_.not_compared = run_.memory.why_not();
      return;
    }
    std::vector<Mismatch> mismatches;
    for (const ExcerptMemory::Output& o : run_.memory.outputs()) {
      const Flow flow = flow_to(o.expected->spec.name, run_.task, run_.steps, run_.report,
                                [&](const std::string& s) { return run_.memory.aliased(s); });
      if (!flow.why_not.empty()) {
        out_.not_compared = flow.why_not;
        continue;
      }
      const Compared found = compare(o, run_.memory, run_.official.name, !flow.complete);
      if (auto end = stores_old_values(o, run_.report, found.written, shape());
          end && flow.complete) {
        out_.end = std::move(*end);
        return;
      }
      if (found.wrong > 0 && flow.complete) mismatches.push_back(*found.first);
      if (found.whole && flow.complete) mismatches.push_back(*found.whole), out_.by_sample = true;
      if ((found.wrong > 0 || found.whole) && !flow.complete)
        out_.not_compared = "the last launch combines results of blocks outside the sample";
      else if (found.written - found.wrong < kEnough && !flow.complete)
        out_.not_compared =
            "every block reads results of earlier launches that are outside the sample";
      else
        compared_.insert(flow.launches.begin(), flow.launches.end()),
            out_.elements += found.written;
    }
    if (!mismatches.empty()) out_.end = end_of_mismatches(std::move(mismatches));
  }

  SampledCheck hold_against_compared() {
    // Blocks that read scratch of skipped blocks read NaN there. They may then execute instructions
    // that no compared run executed, so use a run with ordinary numbers in scratch.
    const device::RunReport* const ordinary = run_.with_ordinary_scratch();
    const device::RunReport& report = ordinary ? *ordinary : run_.report;
    if (auto gap = run_.coverage.gap(report, run_.sources, compared_)) {
      const std::string text = fmt::format(
          "at {} {:.3g}% of the executed instructions occur in no compared run: {} line {}",
          shape(), 100 * gap->share, gap->kernel, gap->line);
      if (gap->share > kMostUncovered)
        return ended(rung_ended(Status::unsupported, text,
                                "Outputs there were not compared: " + out_.not_compared +
                                    ".\n"
                                    "Use code that smaller shapes reach, too."));
      out_.marks.push_back(text);
    }
    const auto least = run_.coverage.least_arithmetic();
    if (!least || run_.official.flops.value <= 0) return std::move(out_);
    const double share = arithmetic_of(report) / run_.official.flops.value;
    if (share >= kLeastArithmetic * *least) return std::move(out_);
    return ended(rung_ended(Status::unsupported,
                            fmt::format("at {} the program executes {:.2g} of the task's FLOPs, at "
                                        "test shapes at least {:.2g}",
                                        shape(), share, *least),
                            "Outputs there were not compared: " + out_.not_compared + "."));
  }

  const CheckedRun& run_;
  SampledCheck out_;
  std::set<size_t> compared_;  // launches whose results were compared
};

}  // namespace

SampledCheck check_sampled_run(const CheckedRun& run) {
  return Checking(run).check();
}

std::string blocks_missed(const device::RunReport& report) {
  std::string out;
  for (const device::LaunchTrace& t : report.traces) {
    if (t.ctas_run >= t.ctas_total || (t.kinds_known && t.kinds_missed == 0)) continue;
    if (!out.empty()) out += "; ";
    out += t.kinds_known
               ? fmt::format("results of {} of {} kinds of blocks of {}: no such block ran",
                             t.kinds_missed, t.kinds, t.kernel)
               : fmt::format(
                     "perhaps results of some blocks of {}, which has too many blocks, or too "
                     "long loops, to look at each block",
                     t.kernel);
  }
  return out;
}

double most_of_a_block(const ShapeCase& official, const Coverage& coverage, int64_t blocks) {
  constexpr double kLeast = 1e6, kSlack = 32;
  return kLeast + kSlack * std::max(4.0, coverage.most_instructions()) * implied_work(official) /
                      double(std::max<int64_t>(1, blocks));
}

}  // namespace cutegen::eval
