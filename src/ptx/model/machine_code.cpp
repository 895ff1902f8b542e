// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/machine_code.h"

#include <algorithm>
#include <numeric>

#include "ptx/model/pipes.h"

namespace cutegen::ptx {
namespace {

const char* mark_of(const Inst& in) {
  const bool global = in.space == Space::global || in.space == Space::generic;
  switch (in.op) {
    case Op::load:
      return global                      ? code_mark::load
             : in.space == Space::shared ? code_mark::load_shared
                                         : nullptr;
    case Op::store:
      return global                      ? code_mark::store
             : in.space == Space::shared ? code_mark::store_shared
                                         : nullptr;
    case Op::load_matrix:
      return code_mark::matrix_load;
    case Op::atomic:
      return code_mark::atomic;
    case Op::async_copy:
      return code_mark::copy;
    case Op::shuffle:
      return code_mark::shuffle;
    case Op::barrier:
      return code_mark::barrier;
    default:
      return nullptr;
  }
}

// For each instruction, the number of its innermost loop, or -1. A loop begins at the target of a
// backward branch and ends at the last such branch.
std::vector<int> loops_of(const Program& program, int& count) {
  std::map<int32_t, int32_t> ends;  // by the loop's first instruction
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Inst& in = program.code[i];
    if (in.op != Op::branch || in.target < 0 || in.target > int32_t(i)) continue;
    int32_t& end = ends.emplace(in.target, int32_t(i)).first->second;
    end = std::max(end, int32_t(i));
  }
  std::vector<int> out(program.code.size(), -1);
  count = 0;
  for (auto loop = ends.begin(); loop != ends.end(); ++loop) {
    auto next = std::next(loop);
    if (next != ends.end() && next->first <= loop->second) continue;  // contains another loop
    std::fill(out.begin() + loop->first, out.begin() + loop->second + 1, count++);
  }
  return out;
}

struct ProgramParts {
  std::vector<int> loop_of;  // by instruction
  CodeShape shape;
};

ProgramParts parts_of(const Program& program) {
  ProgramParts out;
  int count = 0;
  out.loop_of = loops_of(program, count);
  out.shape.loops.resize(size_t(count));
  for (size_t i = 0; i < program.code.size(); ++i) {
    const int loop = out.loop_of[i];
    CodePart& part = loop < 0 ? out.shape.outside : out.shape.loops[size_t(loop)];
    const Usage use = usage_of(program.lines[i].text);
    part.instructions += use.issue;
    if (use.pipe == Pipe::tensor) ++part.marks[code_mark::product];
    if (const char* mark = mark_of(program.code[i])) ++part.marks[mark];
  }
  return out;
}

// The largest number of equal groups into which the marks divide; 0: no marks.
int64_t units_of(const CodePart& part) {
  int64_t out = 0;
  for (const auto& [kind, n] : part.marks) out = std::gcd(out, n);
  return out;
}

std::map<std::string, int64_t> proportions(const CodePart& part) {
  std::map<std::string, int64_t> out = part.marks;
  const int64_t units = units_of(part);
  for (auto& [kind, n] : out) n /= units;
  return out;
}

struct Sum {
  double instructions = 0, units = 0;
  void add(const CodePart& part) {
    instructions += part.instructions, units += double(units_of(part));
  }
};

double factor(const Sum& machine, const Sum& ptx) {
  if (machine.units <= 0 || ptx.instructions <= 0) return 1;
  return std::clamp(machine.instructions / machine.units / (ptx.instructions / ptx.units),
                    kLeastFactor, kMostFactor);
}

}  // namespace

CodeShape shape_of(const Program& program) {
  return parts_of(program).shape;
}

std::vector<double> machine_factors(const Program& program, const CodeShape& machine) {
  std::vector<double> out(program.code.size(), 1);
  if (!machine.known()) return out;
  const ProgramParts parts = parts_of(program);
  std::map<std::map<std::string, int64_t>, std::pair<Sum, Sum>> loops;  // machine code, PTX
  for (const CodePart& part : machine.loops)
    if (!part.marks.empty()) loops[proportions(part)].first.add(part);
  for (const CodePart& part : parts.shape.loops)
    if (!part.marks.empty()) loops[proportions(part)].second.add(part);
  std::vector<double> by_loop;
  for (const CodePart& part : parts.shape.loops) {
    const auto it = part.marks.empty() ? loops.end() : loops.find(proportions(part));
    by_loop.push_back(it == loops.end() ? 1 : factor(it->second.first, it->second.second));
  }
  double outside = 1;
  const CodePart& rest = parts.shape.outside;
  if (!rest.marks.empty() && !machine.outside.marks.empty() &&
      proportions(rest) == proportions(machine.outside)) {
    Sum of_machine, of_ptx;
    of_machine.add(machine.outside), of_ptx.add(rest);
    outside = factor(of_machine, of_ptx);
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = parts.loop_of[i] < 0 ? outside : by_loop[size_t(parts.loop_of[i])];
  return out;
}

}  // namespace cutegen::ptx
