// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/units.h"

namespace cutegen::cli {
namespace {

constexpr size_t kLines = 12;

using CounterMap = std::map<std::string, double>;

double at(const CounterMap& counters, const std::string& name) {
  auto it = counters.find(name);
  return it == counters.end() ? 0 : it->second;
}

std::string percent(double share) {
  return share > 0 ? fmt::format("{:.0f}%", 100 * share) : "-";
}

// Lists the terms of the time model, relative to the largest, in descending order.
std::string terms_text(const CounterMap& counters) {
  const std::string prefix = "modelled_ns.";
  std::vector<std::pair<double, std::string>> terms;
  for (const auto& [name, ns] : counters)
    if (name.starts_with(prefix) && ns > 0)
      terms.emplace_back(ns, sanitize(name.substr(prefix.size()), 40));
  std::sort(terms.rbegin(), terms.rend());
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(terms.size(), 8); ++i)
    out += fmt::format("{}{} {}", i ? ", " : "", terms[i].second, human_ns(terms[i].first));
  return out;
}

std::string figure_text(const Figure& f) {
  if (f.unit == "%") return fmt::format("{} {:.0f}%", sanitize(f.name, 40), f.value);
  if (f.unit == "of 1") return fmt::format("{} {:.0f}%", sanitize(f.name, 40), 100 * f.value);
  return fmt::format("{} {:.4g}", sanitize(f.name, 40), f.value);
}

std::string diagnosis_text(const Diagnosis& d) {
  if (d.bound == Bound::unknown) return {};
  std::string out = "  diagnosis  " + sanitize(d.summary, 300) + "\n  evidence   ";
  for (size_t i = 0; i < d.evidence.size(); ++i)
    out += (i ? ", " : "") + figure_text(d.evidence[i]);
  return out + fmt::format(" ({})\n", to_string(d.origin));
}

std::string occupancy_text(const KernelProfile& k) {
  const CounterMap& c = k.counters;
  if (at(c, "resident_ctas") > 0)
    return fmt::format(
        "  occupancy  {} of the SM's warps, limited by {}: {:.0f} CTAs per SM, {:.0f} registers "
        "per thread, {:.0f} wave{}, the last {} full\n",
        percent(at(c, "occupancy")), to_string(k.limited_by), at(c, "resident_ctas"),
        at(c, "registers"), at(c, "waves"), at(c, "waves") == 1 ? "" : "s",
        percent(at(c, "last_wave")));
  if (at(c, "occupancy") <= 0) return {};
  return fmt::format(
      "  occupancy  {} of the SM's warps fit, limited by {}; {} were active; {:.0f} registers per "
      "thread, {:.2f} waves\n",
      percent(at(c, "occupancy")), to_string(k.limited_by), percent(at(c, "occupancy_achieved")),
      at(c, "registers"), at(c, "waves"));
}

std::string head_text(const KernelProfile& k) {
  const CounterMap& c = k.counters;
  std::string out = fmt::format("profile of {} ({}): {}", sanitize(k.kernel, 80),
                                to_string(k.origin), human_ns(k.time_ns));
  if (!k.bound_by.empty()) out += ", bound by " + sanitize(k.bound_by, 40);
  if (at(c, "bound_by_lead") > 1) out += fmt::format(" ({:.1f}x the next)", at(c, "bound_by_lead"));
  out += "\n" + diagnosis_text(k.diagnosis);
  const std::string terms = terms_text(k.modelled.empty() ? c : k.modelled);
  if (!terms.empty())
    out += fmt::format("  alone      {}{}\n", terms, k.modelled.empty() ? "" : " (modelled)");
  out += occupancy_text(k);
  if (k.sampled_share < 1)
    out += fmt::format("  sample     {:.3g}% of the CTAs ran; counters +-{:.1f}%\n",
                       100 * k.sampled_share, 100 * k.sample_error);
  return out;
}

// Shows the efficiency of a line: sectors and wavefronts per request, and active lanes.
std::string line_figures(const CounterMap& c) {
  std::string out;
  auto rate = [&](const char* name, double part, double whole) {
    if (whole > 0) out += fmt::format("{}{} {:.1f}", out.empty() ? "" : ", ", name, part / whole);
  };
  rate("load sectors", at(c, "global_load_sectors"), at(c, "global_load_requests"));
  rate("store sectors", at(c, "global_store_sectors"), at(c, "global_store_requests"));
  rate("wavefronts", at(c, "shared_wavefronts"), at(c, "shared_requests"));
  rate("local sectors", at(c, "local_sectors"), at(c, "local_requests"));
  rate("lanes", at(c, "thread_instructions"), at(c, "warp_instructions"));
  return out;
}

std::string lines_text(const KernelProfile& k) {
  if (k.lines.empty()) return {};
  std::string out = fmt::format("  {:>5} {:>6} {:>7} {:>7}  {:<44} {}\n", "line", "issue", "memory",
                                "shared", "a request / a warp instruction", "source");
  for (size_t i = 0; i < std::min(k.lines.size(), kLines); ++i) {
    const LineProfile& l = k.lines[i];
    out += fmt::format(
        "  {:>5} {:>6} {:>7} {:>7}  {:<44} {}\n", l.line ? std::to_string(l.line) : "?",
        percent(at(l.counters, "issue_share")), percent(at(l.counters, "memory_share")),
        percent(at(l.counters, "shared_share")), line_figures(l.counters), sanitize(l.text, 80));
  }
  return out;
}

std::string remarks_text(const KernelProfile& k) {
  std::string out;
  for (const ProfileRemark& r : k.remarks)
    out +=
        fmt::format("  {:<10} {}\n",
                    r.line ? fmt::format("line {}:", r.line) : "kernel:", sanitize(r.message, 400));
  return out.empty() ? "  nothing stands out\n" : out;
}

// Prints a hardware counter beside the simulator's counter of the same name, if both exist.
std::string counters_text(const KernelProfile& k) {
  std::string out = fmt::format("  counters of the whole grid ({}{}):\n", to_string(k.origin),
                                k.modelled.empty() ? "" : ", modelled beside");
  for (const auto& [name, value] : k.counters) {
    out += fmt::format("    {:<28} {:<14.6g}", sanitize(name, 64), value);
    auto other = k.modelled.find(name);
    out += other == k.modelled.end() ? "" : fmt::format(" {:.6g}", other->second);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

}  // namespace

std::string profile_text(const Profile& profile) {
  std::string out;
  if (profile.source.kind == CounterSource::Kind::simulator)
    out += "profile from the simulator\n";
  else if (profile.source.kind != CounterSource::Kind::unknown)
    out += "profile from " + sanitize(profile.source.text(), 80) + "\n";
  if (!profile.note.empty()) out += "  " + sanitize(profile.note, 1500) + "\n";
  for (const KernelProfile& k : profile.kernels)
    out += head_text(k) + lines_text(k) + remarks_text(k) + counters_text(k);
  return out;
}

}  // namespace cutegen::cli
