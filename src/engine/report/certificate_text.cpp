// SPDX-License-Identifier: Apache-2.0
#include "engine/report/certificate_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "base/words.h"

namespace cutegen::engine {
namespace {

std::string times_cell(const CertifiedMode& m) {
  return fmt::format("{} [{},{}]", human_ns(m.time_ns), human_ns(m.low_ns), human_ns(m.high_ns));
}

const PairedRatio* find(const CertifiedMode& mode, const std::string& name) {
  for (const PairedRatio& p : mode.against)
    if (p.against == name) return &p;
  return nullptr;
}

// Lists the first mode's baselines, the fastest first, then those that only later modes have.
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

// Adds a last column that says how accurate each baseline is.
void add_accuracy(const Certificate& c, CertificateTable& table) {
  table.modes.emplace_back("accuracy");
  const std::vector<std::string> names = names_of(c);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const bool baseline = i > 0 && i <= names.size();
    const BaselineAccuracy* known = baseline ? accuracy_of(c, names[i - 1]) : nullptr;
    table.rows[i].push_back(known ? one_line(accuracy_text(*known), 80) : baseline ? "-" : "");
  }
}

std::string table_text(const CertificateTable& table) {
  size_t name = std::max<size_t>(12, table.title.size());
  for (const auto& row : table.rows) name = std::max(name, row.front().size());
  std::string out = fmt::format("  {:<{}}", table.title, name);
  for (const std::string& mode : table.modes) out += fmt::format("  {:<25}", mode);
  out = out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  for (const auto& row : table.rows) {
    std::string text = fmt::format("  {:<{}}", row.front(), name);
    for (size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:<25}", row[i]);
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace

std::string interval_text(double ratio, double low, double high) {
  return fmt::format("{:.3f}x [{:.3f},{:.3f}]", ratio, low, high);
}

CertificateTable certificate_table(const Certificate& c) {
  CertificateTable out;
  out.title = c.shapes.empty() ? "shape " + one_line(c.shape, 30)
                               : fmt::format("weighted mean of {} shapes", c.shapes.size());
  std::vector<std::string> own{"this program"}, floor{"floor " + human_ns(c.floor_ns)};
  for (const CertifiedMode& m : c.modes) {
    out.modes.push_back(to_string(m.mode));
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
  if (!c.baselines.empty()) add_accuracy(c, out);
  return out;
}

std::vector<CertificateTable> shape_tables(const Certificate& c) {
  std::vector<CertificateTable> out;
  for (const CertifiedShape& s : c.shapes) {
    Certificate one;
    one.shape = s.shape, one.floor_ns = s.floor_ns, one.modes = s.modes;
    out.push_back(certificate_table(one));
    out.back().title += fmt::format(", weight {:g}", s.weight);
  }
  return out;
}

std::string certificate_head(const Certificate& c) {
  std::string out = fmt::format("{} (driver {}), {}{}, {} fresh processes, {}", one_line(c.gpu, 60),
                                one_line(c.driver, 40), one_line(c.torch, 60),
                                c.cudnn.empty() ? "" : ", cuDNN " + one_line(c.cudnn, 20),
                                c.processes, human_ns(double(c.elapsed.count())));
  if (!c.sm_clock_hz) return out;
  out += fmt::format("; SM clock {:.0f} MHz", *c.sm_clock_hz / 1e6);
  if (c.sm_clock_least_hz) out += fmt::format(" ({:.0f} at least)", *c.sm_clock_least_hz / 1e6);
  if (c.memory_clock_hz) out += fmt::format(", memory {:.0f} MHz", *c.memory_clock_hz / 1e6);
  return out;
}

std::string call_note(const CertificateTable& table) {
  const bool there = std::find(table.modes.begin(), table.modes.end(), "call") != table.modes.end();
  return there ? "call: C++ calls this program, Python calls a baseline; an exported operator adds "
                 "the cost of PyTorch's call (see its bench.py)"
               : "";
}

std::vector<std::string> accuracy_notes(const Certificate& c) {
  std::vector<std::string> out;
  for (const CertifiedBaseline& b : c.baselines) {
    if (b.accuracy.passes.value_or(false) || b.accuracy.why.empty()) continue;
    out.push_back(fmt::format("{} {}: {}", one_line(b.kind, 40),
                              b.accuracy.passes ? "fails this task's tolerance"
                                                : "is not known to be within this task's tolerance",
                              one_line(b.accuracy.why, 300)));
  }
  return out;
}

std::string certificate_text(const Certificate& c) {
  std::string out = table_text(certificate_table(c));
  for (const CertificateTable& table : shape_tables(c)) out += table_text(table);
  out += fmt::format(
      "  bound by {}; with a cold L2 the ratios of the processes differ by up to {:.2f}%\n",
      one_line(c.bound_by, 40), 100 * c.apart);
  if (const std::string note = call_note(certificate_table(c)); !note.empty())
    out += "  " + note + "\n";
  for (const std::string& note : accuracy_notes(c)) out += "  " + note + "\n";
  for (const std::string& m : c.missing) out += "  missing: " + one_line(m, 400) + "\n";
  return out;
}

}  // namespace cutegen::engine
