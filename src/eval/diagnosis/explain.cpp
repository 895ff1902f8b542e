// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostLines = 24, kMostRemarks = 16;
constexpr double kHot = 0.05;  // a line with this share of a resource gets a remark

double at(const std::map<std::string, double>& counters, const std::string& name) {
  auto it = counters.find(name);
  return it == counters.end() ? 0 : it->second;
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double sectors_of(const std::map<std::string, double>& c) {
  return at(c, "global_load_sectors") + at(c, "global_store_sectors") +
         at(c, "global_atomic_sectors") + at(c, "local_sectors");
}

// A line's weight: its share of the resource that bounds the kernel, then its other shares.
double heat(const LineProfile& line, const std::string& bound_by) {
  const double issue = at(line.counters, "issue_share"), memory = at(line.counters, "memory_share"),
               shared = at(line.counters, "shared_share");
  const bool by_memory = bound_by == gpu_unit::dram || bound_by == gpu_unit::l2 ||
                         bound_by == gpu_unit::l1 || bound_by == gpu_unit::latency ||
                         bound_by == gpu_unit::launch;
  if (by_memory) return memory + 0.01 * issue;
  if (bound_by == gpu_unit::shared) return shared + 0.01 * issue;
  return issue + 0.01 * (memory + shared);
}

class Remarks {
 public:
  explicit Remarks(KernelProfile& kernel) : k_(kernel), c_(kernel.counters) {}

  void make() {
    for (const LineProfile& line : k_.lines) {
      coalescing(line, "load", "global_load");
      coalescing(line, "store", "global_store");
      bank_conflicts(line);
      divergence(line);
      local_memory(line);
    }
    occupancy();
    in_flight();
    special_functions();
    grid();
    if (k_.remarks.size() > kMostRemarks) k_.remarks.resize(kMostRemarks);
  }

 private:
  void add(const char* kind, int line, std::string message) {
    k_.remarks.push_back({.kind = kind, .line = line, .message = std::move(message)});
  }
  double term(const char* name) const { return at(c_, std::string("modelled_ns.") + name); }

  void coalescing(const LineProfile& line, const char* what, const std::string& prefix) {
    const double requests = at(line.counters, prefix + "_requests"),
                 sectors = at(line.counters, prefix + "_sectors"),
                 ideal = at(line.counters, prefix + "_bytes") / 32;
    if (requests <= 0 || ideal <= 0 || sectors < 1.5 * ideal) return;
    if (share(sectors, sectors_of(c_)) < kHot) return;
    add("uncoalesced", line.line,
        fmt::format(
            "{}s touch {:.1f} sectors per request; {:.1f} would suffice ({:.1f}x the bytes moved): "
            "let neighbouring threads access neighbouring addresses, and align rows to 32 bytes",
            what, sectors / requests, ideal / requests, sectors / ideal));
  }

  void bank_conflicts(const LineProfile& line) {
    const double requests = at(line.counters, "shared_requests"),
                 wavefronts = at(line.counters, "shared_wavefronts"),
                 conflicts = at(line.counters, "shared_conflicts");
    if (conflicts < 0.2 * wavefronts || at(line.counters, "shared_share") < kHot) return;
    add("bank_conflicts", line.line,
        fmt::format("shared memory takes {:.1f} wavefronts per request; {:.1f} would suffice: pad "
                    "rows by one element, or swizzle the layout",
                    wavefronts / requests, (wavefronts - conflicts) / requests));
  }

  void divergence(const LineProfile& line) {
    const double lanes =
        share(at(line.counters, "thread_instructions"), at(line.counters, "warp_instructions"));
    if (lanes >= 24 || at(line.counters, "issue_share") < kHot) return;
    add("divergence", line.line,
        fmt::format("{:.1f} of 32 lanes are active: let whole warps take a branch together, or "
                    "give idle lanes work",
                    lanes));
  }

  void local_memory(const LineProfile& line) {
    const double sectors = at(line.counters, "local_sectors");
    if (sectors <= 0 || share(sectors, sectors_of(c_)) < 0.01) return;
    add("local_memory", line.line,
        fmt::format("{:.3g} sectors of local memory: the code indexes an array by a value that the "
                    "compiler does not know; unroll the loop, or keep the array in shared memory",
                    sectors));
  }

  void occupancy() {
    const double occupancy = at(c_, "occupancy");
    const bool waits = k_.bound_by == gpu_unit::latency || k_.bound_by == gpu_unit::dram ||
                       k_.bound_by == gpu_unit::l2;
    if (occupancy <= 0 || occupancy >= 0.4 || !waits) return;
    std::string advice =
        k_.limited_by == CtaLimit::registers
            ? fmt::format("use fewer than {:.0f} registers per thread, or smaller blocks",
                          at(c_, "registers"))
        : k_.limited_by == CtaLimit::shared_memory ? "use smaller tiles or fewer stages"
        : k_.limited_by == CtaLimit::grid          ? "launch more CTAs: split the work further"
        : k_.limited_by == CtaLimit::blocks        ? "larger blocks"
                                                   : "use smaller blocks, so that more of them fit";
    add("occupancy", 0,
        fmt::format("{:.0f}% of the SM's warps are in use, limited by {}: {}", 100 * occupancy,
                    to_string(k_.limited_by), advice));
  }

  void in_flight() {
    const double have = at(c_, "bytes_in_flight"), need = at(c_, "bytes_to_saturate");
    const bool waits = k_.bound_by == gpu_unit::dram || k_.bound_by == gpu_unit::latency;
    if (have <= 0 || have >= need || !waits) return;
    add("bytes_in_flight", 0,
        fmt::format("{:.0f} KB are in flight from DRAM at a time, {:.0f} KB would keep it busy: "
                    "use wider loads, several loads before the first use, or more warps",
                    have / 1e3, need / 1e3));
  }

  void special_functions() {
    const double xu = term("xu"), largest = term(k_.bound_by.c_str());
    if (xu <= 0 || xu < 0.7 * largest) return;
    add("special_functions", 0,
        "the special-function units (16 lanes per SM) are close to their limit: use fewer "
        "divisions, exponentials and square roots, or polynomials on the FMA pipe");
  }

  void grid() {
    const double waves = at(c_, "waves"), last = at(c_, "last_wave");
    if (waves < 2 || waves > 5 || last > 0.5) return;
    add("tail", 0,
        fmt::format("{:.0f} waves of CTAs, the last one {:.0f}% full: choose tiles so that the "
                    "grid is near a whole number of waves",
                    waves, 100 * last));
  }

  KernelProfile& k_;
  const std::map<std::string, double>& c_;
};

}  // namespace

void explain(KernelProfile& kernel, const std::string& source) {
  const std::vector<std::string> text = split(source, '\n');
  const double issue = at(kernel.counters, "issue_slots"), sectors = sectors_of(kernel.counters),
               wavefronts = at(kernel.counters, "shared_wavefronts");
  for (LineProfile& line : kernel.lines) {
    line.counters["issue_share"] = share(at(line.counters, "issue_slots"), issue);
    line.counters["memory_share"] = share(sectors_of(line.counters), sectors);
    line.counters["shared_share"] = share(at(line.counters, "shared_wavefronts"), wavefronts);
    if (line.line > 0 && size_t(line.line) <= text.size())
      line.text = sanitize(trim(text[size_t(line.line) - 1]), 120);
  }
  std::stable_sort(kernel.lines.begin(), kernel.lines.end(), [&](auto& a, auto& b) {
    return heat(a, kernel.bound_by) > heat(b, kernel.bound_by);
  });
  if (kernel.lines.size() > kMostLines) kernel.lines.resize(kMostLines);
  Remarks(kernel).make();
}

}  // namespace cutegen::eval
