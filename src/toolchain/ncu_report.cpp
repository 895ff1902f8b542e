// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ncu_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace cutegen::toolchain {
namespace {

constexpr size_t kMostText = size_t{8} << 20, kMostReportLine = size_t{256} << 10,
                 kMostField = 4096;
constexpr size_t kMostFields = 1024, kMostKernels = 256, kMostErrors = 8, kMostRules = 32,
                 kMostUnit = 32;

// Takes the next line, without its end. A line that is too long counts as empty.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.size() > kMostReportLine ? std::string_view() : line;
}

// Splits a row of quoted fields; empty if the line is not such a row. A row of metrics may end in a
// comma instead of the rule columns.
std::optional<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> out;
  size_t at = 0;
  for (;;) {
    if (at >= line.size() || line[at] != '"' || out.size() >= kMostFields) return std::nullopt;
    std::string field;
    for (++at;; ++at) {
      if (at >= line.size() || field.size() > kMostField) return std::nullopt;
      if (line[at] != '"') {
        field += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        field += line[at++];
      } else {
        break;
      }
    }
    out.push_back(std::move(field));
    if (++at == line.size()) return out;
    if (line[at++] != ',') return std::nullopt;
    if (at == line.size()) return out;
  }
}

bool is_metric(const std::string& name) {
  return name.find("__") != std::string::npos && name.size() <= 200 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
             std::string::npos;
}

// Reads both forms of the table. Raw: one row per launch, metrics in columns, and a row of units.
// Details: one row per metric or rule, with its name.
class Table {
 public:
  explicit Table(NcuReport& report) : report_(report) {}

  // Takes one line. Returns false after an error.
  bool take(std::string_view line) {
    auto fields = fields_of(line);
    if (header_.empty()) {
      if (fields && fields->front() == "ID") begin(std::move(*fields));
      return true;
    }
    if (!fields) {
      if (!line.starts_with('"')) return true;  // a message between rows
      report_.problem = "a row of ncu's table cannot be read";
      return false;
    }
    const bool details = metric_ < header_.size();
    if (fields->size() != header_.size() && !(details && fields->size() == value_ + 1)) {
      report_.problem = fmt::format("a row of ncu's table has {} fields, its header {}",
                                    fields->size(), header_.size());
      return false;
    }
    if (details) return long_row(*fields);
    if (units_.empty()) {
      units_ = std::move(*fields);
      return true;
    }
    return wide_row(*fields);
  }

  bool found() const { return !header_.empty(); }

 private:
  void begin(std::vector<std::string> header) {
    header_ = std::move(header);
    auto find = [this](const char* name) {
      return size_t(std::find(header_.begin(), header_.end(), name) - header_.begin());
    };
    name_ = find("Kernel Name"), metric_ = find("Metric Name"), unit_ = find("Metric Unit");
    value_ = find("Metric Value"), rule_ = find("Rule Name"), words_ = find("Rule Description");
    if (value_ == header_.size() || unit_ > value_ || metric_ > value_ || name_ > value_)
      metric_ = header_.size();
  }

  // The kernel of this row. Begins a new kernel if `fresh` (a new ID).
  NcuKernel* kernel_of(const std::vector<std::string>& fields, bool fresh) {
    if (!fresh) return &report_.kernels.back();
    if (report_.kernels.size() >= kMostKernels) {
      report_.problem = fmt::format("ncu reports more than {} launches", kMostKernels);
      return nullptr;
    }
    report_.kernels.emplace_back();
    if (name_ < fields.size()) report_.kernels.back().name = sanitize(fields[name_], 400);
    return &report_.kernels.back();
  }

  static void put(NcuKernel& kernel, const std::string& metric, const std::string& unit,
                  const std::string& text) {
    NcuValue value;
    if (!is_metric(metric) || !read_ncu_number(text, value.value)) return;
    value.unit = sanitize(unit, kMostUnit);
    value.value *= ncu_unit_scale(value.unit);
    if (std::isfinite(value.value) && kernel.metrics.size() < kMostFields)
      kernel.metrics[metric] = std::move(value);
  }

  bool wide_row(const std::vector<std::string>& fields) {
    NcuKernel* kernel = kernel_of(fields, true);
    for (size_t i = 0; kernel && i < fields.size(); ++i)
      put(*kernel, header_[i], units_[i], fields[i]);
    return kernel != nullptr;
  }

  bool long_row(const std::vector<std::string>& fields) {
    NcuKernel* kernel = kernel_of(fields, report_.kernels.empty() || fields.front() != id_);
    if (!kernel) return false;
    id_ = fields.front();
    put(*kernel, fields[metric_], fields[unit_], fields[value_]);
    if (words_ < fields.size() && rule_ < fields.size() && !fields[rule_].empty() &&
        kernel->rules.size() < kMostRules)
      kernel->rules.push_back(
          {.name = sanitize(fields[rule_], 80), .text = sanitize(fields[words_], 600)});
    return true;
  }

  NcuReport& report_;
  std::vector<std::string> header_, units_;
  size_t name_ = 0, metric_ = 0, unit_ = 0, value_ = 0, rule_ = 0, words_ = 0;
  std::string id_;  // the current launch's ID
};

bool is_number(char c) {
  return c >= '0' && c <= '9';
}

double prefix_scale(char c) {
  switch (c) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    default:
      return 0;
  }
}

// 1000 for "usecond" and "us"; 0 if the unit is not a time.
double nanoseconds(std::string_view unit) {
  constexpr std::pair<const char*, double> kTimes[] = {
      {"ns", 1},   {"nsecond", 1},   {"us", 1e3}, {"usecond", 1e3},
      {"ms", 1e6}, {"msecond", 1e6}, {"s", 1e9},  {"second", 1e9}};
  for (const auto& [name, ns] : kTimes)
    if (unit == name) return ns;
  return 0;
}

// Bytes, cycles and hertz may come with a prefix such as kilo.
double scale_of(std::string& unit) {
  if (unit == "B") unit = "byte";
  if (unit.size() < 3) return 1;
  std::string rest = unit.substr(1);
  const double scale = prefix_scale(unit[0]);
  if (scale == 0 || (rest != "byte" && rest != "hz" && rest != "cycle" && rest != "Hz")) return 1;
  unit = std::move(rest);
  return scale;
}

}  // namespace

bool read_ncu_number(std::string_view text, double& out) {
  text = trim(text);
  if (text.empty() || text.size() > 64) return false;
  std::string plain;
  size_t since = 0;  // digits since the last comma
  bool grouped = false, fraction = false;
  for (char c : text) {
    if (c == ',') {
      const bool first = !grouped;
      if (fraction || since == 0 || (first ? since > 3 : since != 3)) return false;
      grouped = true, since = 0;
      continue;
    }
    if (!is_number(c)) {
      if (grouped && !fraction && since != 3) return false;
      fraction = true;
    }
    ++since;
    plain += c;
  }
  if (grouped && !fraction && since != 3) return false;
  auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), out);
  return error == std::errc() && end == plain.data() + plain.size() && std::isfinite(out);
}

double ncu_unit_scale(std::string& unit) {
  if (const double ns = nanoseconds(unit); ns > 0) {
    unit = "ns";
    return ns;
  }
  const size_t slash = unit.find('/');
  std::string part = unit.substr(0, slash);
  double scale = scale_of(part);
  if (part == "Hz") part = "hz";
  if (slash == std::string::npos) {
    unit = part;
    return scale;
  }
  std::string per = unit.substr(slash + 1);
  if (const double ns = nanoseconds(per); ns > 0) scale *= 1e9 / ns, per = "s";
  unit = part == "cycle" && per == "s" ? "hz" : part + "/" + per;
  return scale;
}

NcuReport read_ncu_report(std::string_view text) {
  NcuReport out;
  if (text.size() > kMostText) {
    text = text.substr(0, kMostText);
    out.problem = "ncu printed too much";
  }
  constexpr std::string_view kError = "==ERROR==";
  Table table(out);
  for (bool going = true; !text.empty();) {
    const std::string_view line = next_line(text);
    if (line.starts_with(kError) && out.errors.size() < kMostErrors)
      out.errors.push_back(sanitize(trim(line.substr(kError.size())), 400));
    else if (going && !line.empty())
      going = table.take(line);
  }
  if (!table.found() && out.problem.empty()) out.problem = "ncu printed no table";
  return out;
}

std::string read_ncu_version(std::string_view text) {
  constexpr std::string_view kWord = "Version ";
  const size_t at = text.substr(0, 4096).find(kWord);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + kWord.size(), 32);
  size_t end = 0;
  while (end < rest.size() && (is_number(rest[end]) || rest[end] == '.')) ++end;
  std::string version(rest.substr(0, end));
  while (version.ends_with('.')) version.pop_back();
  return version.find('.') == std::string::npos ? std::string() : version;
}

NcuRefusal read_ncu_refusal(std::string_view text, const NcuReport& report,
                            const std::vector<std::string>& asked) {
  using Kind = NcuRefusal::Kind;
  NcuRefusal out;
  text = text.substr(0, kMostText);
  auto says = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (says("ERR_NVGPUCTRPERM")) {
    out.kind = Kind::permission;
    out.problem =
        "the driver lets only the administrator read hardware counters (ERR_NVGPUCTRPERM)";
    out.remedy =
        "sudo sh -c 'echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > "
        "/etc/modprobe.d/nvidia-profiling.conf' and restart the machine; in a container: start it "
        "with --cap-add SYS_ADMIN";
    return out;
  }
  if (!report.kernels.empty()) return out;
  const std::string first = report.errors.empty() ? report.problem : report.errors.front();
  for (const std::string& error : report.errors)
    for (const std::string& metric : asked)
      if (error.find(metric) != std::string::npos) out.metrics.push_back(metric);
  out.kind = !out.metrics.empty()               ? Kind::metric
             : says("No kernels were profiled") ? Kind::no_kernel
                                                : Kind::other;
  out.problem = out.kind == Kind::no_kernel ? "ncu saw no kernel launch" : "ncu failed: " + first;
  out.remedy = "check that ncu works by itself: ncu --metrics sm__cycles_active.avg PROGRAM";
  return out;
}

}  // namespace cutegen::toolchain
