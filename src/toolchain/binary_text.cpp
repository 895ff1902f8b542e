// SPDX-License-Identifier: Apache-2.0
// Reads the output of ptxas -v and of nvdisasm -b.
#include "toolchain/binary_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace cutegen::toolchain {
namespace {

constexpr size_t kMostEntries = 4096, kMostNameBytes = 1024, kMostClasses = 256;
constexpr size_t kMostDigits = 15, kMostOpcodeBytes = 64;

template <class F>
void for_each_line(std::string_view text, F f) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    f(text.substr(at, end - at));
    at = end + 1;
  }
}

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// The number right before `what`: 31 in "Used 31 registers" for " registers".
std::optional<int64_t> number_before(std::string_view line, std::string_view what) {
  size_t end = line.find(what);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && digit(line[begin - 1])) --begin;
  if (begin == end || end - begin > kMostDigits) return std::nullopt;
  int64_t value = 0;
  for (char c : line.substr(begin, end - begin)) value = value * 10 + (c - '0');
  return value;
}

// The text between `before` and `after`; empty if one is missing.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  size_t begin = line.find(before);
  if (begin == std::string_view::npos) return {};
  begin += before.size();
  size_t end = after.empty() ? line.size() : line.find(after, begin);
  if (end == std::string_view::npos || end - begin > kMostNameBytes) return {};
  return line.substr(begin, end - begin);
}

int small(int64_t value) {
  return int(std::min<int64_t>(value, 65536));
}

void read_usage(std::string_view line, KernelAudit& k) {
  k.registers = small(number_before(line, " registers").value_or(0));
  k.barriers = small(number_before(line, " barriers").value_or(0));
  k.static_shared_bytes = number_before(line, " bytes smem").value_or(0);
  k.stack_bytes = number_before(line, " bytes cumulative stack size").value_or(k.stack_bytes);
}

void read_frame(std::string_view line, bool of_entry, KernelAudit& k) {
  if (of_entry) k.stack_bytes = std::max(k.stack_bytes, *number_before(line, " bytes stack frame"));
  k.spill_store_bytes += number_before(line, " bytes spill stores").value_or(0);
  k.spill_load_bytes += number_before(line, " bytes spill loads").value_or(0);
}

struct Line {
  size_t offset = 0;
  std::string_view instruction;  // "BSSY B0, x"
};

std::optional<size_t> hex_number(std::string_view text) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads {0x40, "BSSY B0, x"} from "   /*0040*/   @!P0 BSSY B0, x ;". Empty if the line is not
// an instruction.
std::optional<Line> read_line(std::string_view line) {
  line = trim(line);
  if (!line.starts_with("/*")) return std::nullopt;
  size_t end = line.find("*/");
  if (end == std::string_view::npos) return std::nullopt;
  auto offset = hex_number(line.substr(2, end - 2));
  line = trim(line.substr(end + 2));
  if (line.starts_with('{')) line = trim(line.substr(1));
  if (line.starts_with('@')) {
    size_t space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    line = trim(line.substr(space));
  }
  line = line.substr(0, line.find(';'));
  if (!offset || line.empty()) return std::nullopt;
  return Line{.offset = *offset, .instruction = line};
}

bool opcode_byte(char c) {
  return (c >= 'A' && c <= 'Z') || digit(c) || c == '.' || c == '_';
}

bool is_register(std::string_view operand) {
  if (operand.starts_with('U')) operand.remove_prefix(1);
  return operand.size() > 1 && operand[0] == 'R' && digit(operand[1]);
}

void count(std::string_view instruction, CodeAudit& c) {
  size_t end = 0;
  while (end < instruction.size() && opcode_byte(instruction[end])) ++end;
  if (end == 0 || end > kMostOpcodeBytes) return;
  std::string opcode(instruction.substr(0, end));
  std::string_view operands = trim(instruction.substr(end));
  std::string_view root = std::string_view(opcode).substr(0, opcode.find('.'));
  if (root == "NOP") return;
  ++c.instructions;
  c.local_loads += root == "LDL";
  c.local_stores += root == "STL";
  c.clock_reads += operands.find("SR_CLOCK") != std::string_view::npos ||
                   operands.find("SR_GLOBALTIMER") != std::string_view::npos;
  c.calls += root == "CALL";
  c.indirect += root.starts_with("BRX") || root.starts_with("JMX") ||
                (root == "CALL" && is_register(operands));
  if (is_mma(opcode) && (c.mma.size() < kMostClasses || c.mma.contains(opcode))) ++c.mma[opcode];
}

}  // namespace

std::vector<KernelAudit> read_ptxas_log(std::string_view log) {
  std::vector<KernelAudit> out;
  bool of_entry = false;
  for_each_line(log, [&](std::string_view line) {
    std::string_view entry = between(line, "Compiling entry function '", "'");
    if (!entry.empty() && out.size() < kMostEntries) {
      out.emplace_back();
      out.back().kernel = std::string(entry);
      return;
    }
    if (out.empty()) return;
    std::string_view function = between(line, "Function properties for ", "");
    if (!function.empty()) {
      of_entry = function == out.back().kernel;
    } else if (number_before(line, " bytes stack frame")) {
      read_frame(line, of_entry, out.back());
    } else if (line.find(": Used ") != std::string_view::npos) {
      read_usage(line, out.back());
    }
  });
  return out;
}

std::vector<CodeAudit> read_sass(std::string_view text, const std::vector<size_t>& ends) {
  std::vector<CodeAudit> out(ends.size());
  for_each_line(text, [&](std::string_view row) {
    auto line = read_line(row);
    if (!line) return;
    auto piece = std::upper_bound(ends.begin(), ends.end(), line->offset);
    if (piece != ends.end()) count(line->instruction, out[size_t(piece - ends.begin())]);
  });
  return out;
}

}  // namespace cutegen::toolchain
