// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/faults.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

namespace cutegen::ptx {
namespace {

const char* space_name(Space space) {
  switch (space) {
    case Space::shared:
      return "shared memory";
    case Space::local:
      return "local memory";
    case Space::param:
      return "the parameters";
    default:
      return "global memory";
  }
}

// Finds what is wrong with one lane of an access.
class Judge {
 public:
  Judge(const CtaState& cta, const WarpAccess& a, Space space, uint64_t at)
      : cta_(cta), in_(a.in), space_(space), at_(at), bytes_(a.bytes()) {}
  std::optional<Finding> fault() const {
    if (at_ & (bytes_ - 1)) return misaligned();
    const bool global = space_ != Space::shared && space_ != Space::local && space_ != Space::param;
    return global ? in_global() : in_window();
  }
  // "read of 4 bytes"
  std::string what() const {
    const char* verb = in_.op == Op::load ? "read" : in_.op == Op::store ? "write" : "atomic";
    return fmt::format("{} of {} bytes", verb, bytes_);
  }

 private:
  Finding found(const char* kind, std::string buffer, const std::string& where) const {
    return {
        .kind = kind, .message = what() + " " + where, .address = at_, .buffer = std::move(buffer)};
  }
  Finding misaligned() const {
    const bool global = space_ == Space::global || space_ == Space::generic;
    const Buffer* b = global ? cta_.job.memory.find(at_) : nullptr;
    const std::string offset =
        b ? fmt::format("offset {} of {}, ", at_ - b->base, b->name) : std::string();
    return found(
        "misaligned", b ? b->name : "",
        fmt::format("at {}address {:#x}, which is not a multiple of {}", offset, at_, bytes_));
  }
  std::optional<Finding> in_window() const {
    const uint64_t size = space_ == Space::shared  ? cta_.shared.size()
                          : space_ == Space::local ? uint64_t(cta_.job.program.local_bytes)
                                                   : cta_.job.params.size();
    const bool inside = at_ + bytes_ <= size && at_ + bytes_ > at_;
    const bool allowed = (space_ != Space::param || in_.op == Op::load) &&
                         (space_ != Space::local || in_.op != Op::atomic);
    if (inside && allowed) return std::nullopt;
    return found(
        "out_of_bounds", space_name(space_),
        fmt::format("at offset {} of {}, which has {} bytes", at_, space_name(space_), size));
  }
  std::optional<Finding> in_global() const {
    const Buffer* b = cta_.job.memory.find(at_);
    if (b && at_ + bytes_ - b->base <= b->size) {
      if (in_.op == Op::load || b->access != Access::read_only) return std::nullopt;
      return found("read_only", b->name,
                   fmt::format("at offset {} of {}, which is read-only", at_ - b->base, b->name));
    }
    if (at_ < 4096) return found("null_pointer", "", fmt::format("at address {:#x}", at_));
    const Buffer* near = b ? b : cta_.job.memory.nearest(at_);
    if (!near) return found("out_of_bounds", "", "no buffer is bound");
    return found("out_of_bounds", near->name,
                 at_ < near->base ? fmt::format("{} bytes before {}", near->base - at_, near->name)
                                  : fmt::format("at offset {} of {}, which has {} bytes",
                                                at_ - near->base, near->name, near->size));
  }

  const CtaState& cta_;
  const Inst& in_;
  Space space_;
  uint64_t at_, bytes_;
};

}  // namespace

void report_fault(CtaState& cta, const WarpAccess& a, Space space) {
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto found = Judge(cta, a, space, a.at[lane]).fault();
    if (found) return cta.report(a.warp, lane, *found);
  }
  const int first = std::countr_zero(a.mask);
  const Judge judge(cta, a, space, a.at[first]);
  cta.report(a.warp, first, {.kind = "out_of_bounds", .message = judge.what()});
}

}  // namespace cutegen::ptx
