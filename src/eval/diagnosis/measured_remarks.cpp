// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/measured_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cutegen::eval {
namespace {

constexpr double kStall = 25;  // a stall with this percentage of a warp's time gets a remark
constexpr double kLowOccupancy = 0.4, kLostOccupancy = 0.7;

struct Stall {
  const char* name;
  const char* words;
  const char* helps;
};
constexpr Stall kStalls[] = {
    {.name = "long_scoreboard",
     .words = "data of global or local memory",
     .helps = "issue several loads before the first use, or use wider loads, asynchronous copies "
              "or more warps"},
    {.name = "short_scoreboard",
     .words = "shared memory or the special-function units",
     .helps = "use fewer bank conflicts, wider shared loads or fewer special functions"},
    {.name = "barrier",
     .words = "other warps at a barrier",
     .helps = "use fewer barriers, smaller blocks, or equal work between barriers"},
    {.name = "mio_throttle",
     .words = "the queue of shared memory and special functions",
     .helps = "use fewer and wider shared accesses, or shuffles instead"},
    {.name = "lg_throttle",
     .words = "the queue of global and local memory",
     .helps = "use fewer and wider global accesses"},
    {.name = "math_pipe_throttle",
     .words = "a busy pipe",
     .helps = "use other pipes, tensor cores, or less arithmetic"},
    {.name = "wait",
     .words = "the fixed latency of the instruction before",
     .helps = "give a thread more independent work, or use more warps"},
    {.name = "imc_miss",
     .words = "constants that are not in their cache",
     .helps = "use fewer different constants and arguments"},
    {.name = "no_instruction",
     .words = "instructions that are not in their cache",
     .helps = "make the loop body smaller, or unroll less"},
    {.name = "gmma",
     .words = "matrix instructions of its warpgroup",
     .helps = "issue more of them before the wait, or use larger tiles or two warpgroups that "
              "alternate"},
    {.name = "membar",
     .words = "a memory barrier",
     .helps = "use fewer fences, or a smaller scope"},
    {.name = "branch_resolving",
     .words = "a branch",
     .helps = "use fewer branches in the inner loop"},
    {.name = "drain", .words = "stores to end", .helps = "use wider stores, aligned to 32 bytes"},
    {.name = "tex_throttle", .words = "the texture queue", .helps = "plain loads"},
    {.name = "dispatch_stall",
     .words = "the dispatcher",
     .helps = "use another mix of instructions"},
    {.name = "sleeping", .words = "nanosleep", .helps = "shorter sleeps"},
};

class MeasuredRemarks {
 public:
  explicit MeasuredRemarks(const KernelProfile& kernel) : k_(kernel) {}

  std::vector<ProfileRemark> make() {
    stalls();
    occupancy();
    coalescing("load", "global_load");
    coalescing("store", "global_store");
    conflicts();
    local_memory();
    lanes();
    grid();
    return std::move(out_);
  }

 private:
  double at(const std::string& name, double missing = 0) const {
    auto it = k_.counters.find(name);
    return it == k_.counters.end() ? missing : it->second;
  }
  void add(const char* kind, std::string message) {
    out_.push_back(
        {.kind = kind, .line = 0, .message = std::move(message), .origin = Origin::measured});
  }

  void stalls() {
    std::vector<std::pair<double, const Stall*>> found;
    for (const Stall& stall : kStalls)
      if (const double pct = at(std::string("stall_pct.") + stall.name); pct >= kStall)
        found.emplace_back(pct, &stall);
    std::sort(found.rbegin(), found.rend());
    for (const auto& [pct, stall] : found)
      add("stalls", fmt::format("a warp waits for {} {:.0f}% of its time ({}): {}", stall->words,
                                pct, stall->name, stall->helps));
  }

  void occupancy() {
    const double fits = at("occupancy"), achieved = at("occupancy_achieved");
    const std::string resource = to_string(k_.limited_by);
    const std::string by = resource.empty() ? "" : ", limited by " + resource;
    if (fits > 0 && fits < kLowOccupancy && k_.diagnosis.bound != Bound::compute)
      add("occupancy", fmt::format("{:.0f}% of the SM's warps fit{}: use smaller blocks, smaller "
                                   "tiles or fewer registers",
                                   100 * fits, by));
    else if (fits > 0 && achieved > 0 && achieved < kLostOccupancy * fits)
      add("occupancy", fmt::format("{:.0f}% of the SM's warps were active although {:.0f}% fit: "
                                   "the grid is small, or CTAs take unequal time",
                                   100 * achieved, 100 * fits));
  }

  void coalescing(const char* what, const std::string& prefix) {
    const double requests = at(prefix + "_requests"), sectors = at(prefix + "_sectors");
    if (requests <= 0 || sectors <= 16.5 * requests) return;  // 16 bytes per lane need 16 sectors
    add("uncoalesced", fmt::format("{}s touch {:.1f} sectors per request; full lines need at most "
                                   "16: let neighbouring threads access neighbouring addresses",
                                   what, sectors / requests));
  }

  void conflicts() {
    const double wavefronts = at("shared_wavefronts"), lost = at("shared_conflicts");
    if (wavefronts <= 0 || lost < 0.2 * wavefronts) return;
    add("bank_conflicts", fmt::format("{:.0f}% of the wavefronts of shared memory are bank "
                                      "conflicts: pad rows by one element, or swizzle the layout",
                                      100 * lost / wavefronts));
  }

  void local_memory() {
    const double local = at("local_sectors"),
                 global = at("global_load_sectors") + at("global_store_sectors");
    if (local <= 0 || local < 0.02 * (local + global)) return;
    add("local_memory", fmt::format("{:.3g} sectors of local memory, {:.0f}% of all: registers "
                                    "spill, or the code indexes arrays by a variable",
                                    local, 100 * local / (local + global)));
  }

  void lanes() {
    const double active = at("active_lanes", 32);
    if (active <= 0 || active >= 24) return;
    add("divergence", fmt::format("{:.1f} of 32 lanes are active on average: let whole warps take "
                                  "a branch together, or give idle lanes work",
                                  active));
  }

  void grid() {
    const double waves = at("waves", -1);
    if (waves < 0) return;
    const double last = waves - std::floor(waves);
    if (waves < 1)
      add("grid",
          fmt::format("the grid fills {:.2f} of a wave: more CTAs would use the idle SMs", waves));
    else if (waves <= 5 && last > 0 && last < 0.5)
      add("tail", fmt::format("{:.2f} waves of CTAs: the last one is {:.0f}% full; choose tiles so "
                              "that the grid is near a whole number of waves",
                              waves, 100 * last));
  }

  const KernelProfile& k_;
  std::vector<ProfileRemark> out_;
};

}  // namespace

void remark_on_measured(KernelProfile& kernel) {
  auto remarks = MeasuredRemarks(kernel).make();
  kernel.remarks.insert(kernel.remarks.begin(), remarks.begin(), remarks.end());
}

}  // namespace cutegen::eval
