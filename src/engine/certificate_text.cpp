// SPDX-License-Identifier: Apache-2.0
#include "engine/certificate_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "engine/row_text.h"

namespace cutegen {
namespace {

std::string times_cell(const CertifiedMode& m) {
  return fmt::format("{} [{},{}]", human_ns(m.time_ns), human_ns(m.low_ns), human_ns(m.high_ns));
}

const PairedRatio* find(const CertifiedMode& mode, const std::string& name) {
  for (const PairedRatio& p : mode.against)
    if (p.against == name) return &p;
  return nullptr;
}

// All that any mode has, as the first mode that has them orders them: the fastest first.
std::vector<std::string> names_of(const Certificate& c) {
  std::vector<std::string> out;
  for (const CertifiedMode& mode : c.modes) {
    std::vector<PairedRatio> sorted = mode.against;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](auto& a, auto& b) { return a.other_ns < b.other_ns; });
    for (const PairedRatio& p : sorted)
      if (std::find(out.begin(), out.end(), p.against) == out.end()) out.push_back(p.against);
  }
  return out;
}

}  // namespace

std::string interval_text(double ratio, double low, double high) {
  return fmt::format("{:.3f}x [{:.3f},{:.3f}]", ratio, low, high);
}

CertificateTable certificate_table(const Certificate& c) {
  CertificateTable out;
  std::vector<std::string> own{"this program"}, floor{"floor " + human_ns(c.floor_ns)};
  for (const CertifiedMode& m : c.modes) {
    out.modes.push_back(one_line(m.mode, 20));
    own.push_back(times_cell(m));
    floor.push_back(c.floor_ns > 0 ? fmt::format("{:.2f}x above", m.time_ns / c.floor_ns) : "-");
  }
  out.rows.push_back(std::move(own));
  for (const std::string& name : names_of(c)) {
    std::vector<std::string> row{"over " + one_line(name, 40)};
    for (const CertifiedMode& m : c.modes) {
      const PairedRatio* p = find(m, name);
      row.push_back(p ? interval_text(p->speedup, p->low, p->high) : "-");
    }
    out.rows.push_back(std::move(row));
  }
  out.rows.push_back(std::move(floor));
  return out;
}

std::string certificate_head(const Certificate& c) {
  return fmt::format("{} (driver {}), {}, {} fresh processes, {}", one_line(c.gpu, 60),
                     one_line(c.driver, 40), one_line(c.torch, 60), c.processes,
                     human_ns(static_cast<double>(c.elapsed.count())));
}

std::string call_note(const CertificateTable& table) {
  const bool there = std::find(table.modes.begin(), table.modes.end(), "call") != table.modes.end();
  return there ? "call: this program is called from C++, a baseline from Python; an export's "
                 "operator adds PyTorch's own call (its bench.py has that)"
               : "";
}

std::string certificate_text(const Certificate& c) {
  const CertificateTable table = certificate_table(c);
  size_t name = 12;
  for (const auto& row : table.rows) name = std::max(name, row.front().size());
  std::string out = fmt::format("  {:<{}}", "shape " + one_line(c.shape, 30), name);
  for (const std::string& mode : table.modes) out += fmt::format("  {:<25}", mode);
  out = out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  for (const auto& row : table.rows) {
    std::string text = fmt::format("  {:<{}}", row.front(), name);
    for (size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:<25}", row[i]);
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  out += fmt::format("  bound by {}; cold, the processes' ratios are up to {:.2f}% apart\n",
                     one_line(c.bound_by, 40), 100 * c.apart);
  if (const std::string note = call_note(table); !note.empty()) out += "  " + note + "\n";
  for (const std::string& m : c.missing) out += "  missing: " + one_line(m, 400) + "\n";
  return out;
}

}  // namespace cutegen
