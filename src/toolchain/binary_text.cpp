// SPDX-License-Identifier: Apache-2.0
// Reads the output of ptxas -v and of nvdisasm -b.
#include "toolchain/binary_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
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

// The kind of mark of an opcode's root ("LDG"), or null.
const char* mark_of(std::string_view root) {
  static const std::map<std::string_view, const char*> kMarks{
      {"LD", code_mark::load},          {"LDG", code_mark::load},
      {"ST", code_mark::store},         {"STG", code_mark::store},
      {"LDS", code_mark::load_shared},  {"STS", code_mark::store_shared},
      {"LDSM", code_mark::matrix_load}, {"ATOM", code_mark::atomic},
      {"ATOMG", code_mark::atomic},     {"ATOMS", code_mark::atomic},
      {"RED", code_mark::atomic},       {"REDG", code_mark::atomic},
      {"LDGSTS", code_mark::copy},      {"SHFL", code_mark::shuffle},
      {"BAR", code_mark::barrier}};
  auto it = kMarks.find(root);
  return it == kMarks.end() ? nullptr : it->second;
}

// The instructions of one kernel that decide the shape of its code.
struct CodeLine {
  size_t offset = 0, target = SIZE_MAX;  // target: of a branch or a call
  const char* mark = nullptr;
  bool call = false;
};

// The address at the end of "0x1c0" or "`(.L_x), 0x1c0".
std::optional<size_t> address_in(std::string_view operands) {
  const size_t at = operands.rfind("0x");
  if (at == std::string_view::npos) return std::nullopt;
  size_t end = at + 2;
  while (end < operands.size() && std::isxdigit(uint8_t(operands[end]))) ++end;
  return end - at > 2 + kMostDigits ? std::nullopt
                                    : hex_number(operands.substr(at + 2, end - at - 2));
}

std::optional<CodeLine> code_line(const Line& line) {
  std::string_view opcode = line.instruction.substr(0, line.instruction.find(' '));
  const std::string_view root = opcode.substr(0, opcode.find('.'));
  if (root == "NOP") return std::nullopt;
  CodeLine out{.offset = line.offset, .mark = mark_of(root)};
  if (!out.mark && is_mma(std::string(opcode))) out.mark = code_mark::product;
  out.call = root == "CALL";
  if (root == "BRA" || out.call) out.target = address_in(line.instruction).value_or(SIZE_MAX);
  return out;
}

// Divides the code into innermost loops and the rest. Code that is called lies at the end: the slow
// paths of divisions, which rarely run.
std::optional<CodeShape> shape_of(const std::vector<CodeLine>& code) {
  size_t slow = SIZE_MAX;
  std::map<size_t, size_t> ends;  // of loops, by their first address
  for (const CodeLine& line : code) {
    if (line.call) slow = std::min(slow, line.target);
    if (line.call || line.target >= line.offset) continue;
    size_t& end = ends[line.target];
    end = std::max(end, line.offset);
  }
  std::vector<std::pair<size_t, size_t>> loops;
  for (auto loop = ends.begin(); loop != ends.end(); ++loop) {
    auto next = std::next(loop);
    if (loop->first < slow && (next == ends.end() || next->first > loop->second))
      loops.emplace_back(*loop);
  }
  if (loops.size() > kMostCodeLoops) return std::nullopt;
  CodeShape out;
  out.loops.resize(loops.size());
  for (const CodeLine& line : code) {
    if (line.offset >= slow) continue;
    if (line.target == line.offset) continue;  // the padding after the last instruction
    auto loop = std::find_if(loops.begin(), loops.end(), [&](const auto& l) {
      return l.first <= line.offset && line.offset <= l.second;
    });
    CodePart& part = loop == loops.end() ? out.outside : out.loops[size_t(loop - loops.begin())];
    part.instructions += 1;
    if (line.mark) ++part.marks[line.mark];
  }
  return out;
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
  std::vector<std::vector<CodeLine>> code(ends.size());
  for_each_line(text, [&](std::string_view row) {
    auto line = read_line(row);
    if (!line) return;
    auto piece = std::upper_bound(ends.begin(), ends.end(), line->offset);
    if (piece == ends.end()) return;
    count(line->instruction, out[size_t(piece - ends.begin())]);
    if (auto one = code_line(*line)) code[size_t(piece - ends.begin())].push_back(*one);
  });
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i].instructions > 0) out[i].shape = shape_of(code[i]);
  return out;
}

}  // namespace cutegen::toolchain
