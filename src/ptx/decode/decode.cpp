// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ptx/decode/decoder.h"
#include "ptx/text/merged_products.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostRegisterBytes = int64_t{8} << 20;  // per warp: 65,536 registers

Modifiers split_opcode(std::string_view opcode) {
  Modifiers m;
  while (true) {
    size_t dot = opcode.find('.');
    m.parts.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return m;
    opcode.remove_prefix(dot + 1);
  }
}

Family* family_of(std::string_view base) {
  static const std::unordered_map<std::string_view, Family*> families{
      {"mov", decode_move},
      {"cvt", decode_convert},
      {"cvta", decode_convert_address},
      {"isspacep", decode_in_space},
      {"createpolicy", decode_policy},
      {"setp", decode_compare},
      {"set", decode_set},
      {"ld", decode_memory},
      {"ldu", decode_memory},
      {"st", decode_memory},
      {"atom", decode_atomic},
      {"red", decode_atomic},
      {"mma", decode_multiply},
      {"ldmatrix", decode_matrix_rows},
      {"stmatrix", decode_matrix_rows},
      {"movmatrix", decode_move_matrix},
      {"cp", decode_async},
      {"wgmma", decode_wgmma},
      {"shfl", decode_shuffle},
      {"vote", decode_vote},
      {"activemask", decode_collective},
      {"redux", decode_collective},
      {"match", decode_collective},
      {"elect", decode_collective},
      {"bar", decode_barrier},
      {"barrier", decode_barrier},
      {"bra", decode_control},
      {"brx", decode_control},
      {"ret", decode_control},
      {"exit", decode_control},
      {"trap", decode_control},
      {"brkpt", decode_control},
      {"membar", decode_control},
      {"fence", decode_fence},
      {"mbarrier", decode_mbarrier},
      {"nanosleep", decode_control},
      {"griddepcontrol", decode_control},
      {"prefetch", decode_control},
      {"prefetchu", decode_control},
      {"discard", decode_control},
      {"applypriority", decode_control},
      {"mapa", decode_map},
      {"getctarank", decode_map},
      {"setmaxnreg", decode_registers}};
  auto it = families.find(base);
  return it == families.end() ? decode_arithmetic : it->second;
}

}  // namespace

bool Modifiers::has(std::string_view s) const {
  return std::find(parts.begin() + 1, parts.end(), s) != parts.end();
}

// Places the parameters of the entry.
Result<void> Decoder::layout_parameters() {
  Program& p = ops_.code.program;
  for (const Variable& v : ops_.frame.f->params) {
    ParamSlot slot{.name = v.name,
                   .offset = align_up(p.param_bytes, v.align),
                   .size = v.bytes(),
                   .align = v.align};
    p.param_bytes = slot.offset + slot.size;
    p.params.push_back(slot);
  }
  if (p.param_bytes > 32764) return ops_.code.wrong("the parameters take more than 32,764 bytes");
  return {};
}

// Places static shared variables, local variables, and the .param variables that pass arguments.
Result<void> Decoder::layout() {
  Frame& frame = ops_.frame;
  for (const Variable& v : frame.f->variables) {
    if (v.space == Space::shared) {
      CG_CHECK(ops_.shared_place(v));
    } else if (v.space == Space::local || v.space == Space::param) {
      CG_TRY(frame.places[&v], ops_.local_place(v.bytes(), v.align));
    }
  }
  return {};
}

Result<void> Decoder::function_body() {
  Frame& frame = ops_.frame;
  CG_CHECK(layout());
  const auto merged = merged_products(*frame.f);
  for (size_t i = 0; i < frame.f->statements.size(); ++i) {
    frame.first.push_back(int32_t(ops_.code.program.code.size()));
    const auto other = merged.find(i);
    if (other == merged.end()) {
      CG_CHECK(statement(frame.f->statements[i]));
    } else if (other->second) {
      CG_CHECK(statement(*other->second));
    }
  }
  frame.first.push_back(int32_t(ops_.code.program.code.size()));
  return resolve_targets();
}

Result<Program> Decoder::run() {
  const Function& f = *ops_.frame.f;
  Program& p = ops_.code.program;
  p.name = std::string(f.name);
  std::copy(std::begin(f.max_block), std::end(f.max_block), std::begin(p.max_block));
  p.required_block = f.required_block;
  std::copy(std::begin(f.cluster), std::end(f.cluster), std::begin(p.cluster));
  p.most_registers = f.most_registers, p.least_ctas = f.least_ctas;
  Statement head;
  head.line = f.line;
  ops_.code.begin(head, {});
  CG_CHECK(layout_parameters());
  CG_CHECK(function_body());
  Statement tail;  // the end of the function is a return
  tail.line = f.statements.empty() ? f.line : f.statements.back().line;
  tail.text = "ret";
  ops_.code.begin(tail, {});
  Inst end;
  end.op = Op::exit, end.kind = Kind::branch;
  ops_.code.emit(end, {}, {});
  p.dynamic_shared_at = p.static_shared == 0 ? 0 : align_up(p.static_shared, 1024);
  for (ConstantSlot& c : p.constants) {
    if (c.variable != -2) continue;
    c.bits += uint64_t(p.dynamic_shared_at);
    c.variable = -1;
  }
  p.local_bytes = align_up(p.local_bytes, 16);
  std::sort(p.variables.begin(), p.variables.end());
  p.variables.erase(std::unique(p.variables.begin(), p.variables.end()), p.variables.end());
  return ops_.code.finish();
}

Result<void> Decoder::statement(const Statement& s) {
  CodeBuilder& code = ops_.code;
  code.begin(s, {});
  if (!s.guard.empty()) {
    auto slot = ops_.find_register(s.guard);
    if (!slot || slot->size != 0)
      return code.wrong("guard " + sanitize(s.guard, 60) + " is not a predicate");
    code.begin(s, {.slot = slot->offset, .negated = s.guard_negated});
  }
  if (code.used() > kMostRegisterBytes)
    return unsupported_error("more registers than are simulated", fmt::format("ptx:{}", s.line));
  const Modifiers m = split_opcode(s.opcode);
  if (std::count(m.parts.begin(), m.parts.end(), "") > 0)
    return code.unsupported(sanitize(s.opcode, 80));
  if (m.base() == "call") return decode_call(*this, s);
  return family_of(m.base())(ops_, s, m);
}

// The first instruction after a label; -1: unknown.
int32_t Decoder::label(int scope, std::string_view name) const {
  const Frame& frame = ops_.frame;
  for (; scope >= 0; scope = frame.f->scopes[size_t(scope)].parent) {
    const auto& labels = frame.f->scopes[size_t(scope)].labels;
    if (auto it = labels.find(name); it != labels.end()) return frame.first[it->second];
  }
  return -1;
}

// Adds the table of a brx.idx; nullopt if a label is unknown.
std::optional<int32_t> Decoder::place_table(int scope, std::string_view name) {
  const Frame& frame = ops_.frame;
  const std::vector<std::string_view>* names = nullptr;
  for (int s = scope; s >= 0 && !names; s = frame.f->scopes[size_t(s)].parent) {
    const auto& lists = frame.f->scopes[size_t(s)].branch_targets;
    if (auto it = lists.find(name); it != lists.end()) names = &it->second;
  }
  if (!names) return std::nullopt;
  std::vector<int32_t> table;
  for (std::string_view target : *names) table.push_back(label(scope, target));
  if (std::count(table.begin(), table.end(), -1) > 0) return std::nullopt;
  auto& tables = ops_.code.program.tables;
  tables.push_back(std::move(table));
  return int32_t(tables.size() - 1);
}

Result<void> Decoder::resolve_targets() {
  Program& p = ops_.code.program;
  for (const auto& [at, where] : ops_.frame.branches) {
    const auto& [scope, name] = where;
    Inst& in = p.code[at];
    in.target = in.op == Op::branch ? label(scope, name) : place_table(scope, name).value_or(-1);
    if (in.target >= 0) continue;
    return user_error("unknown label " + sanitize(name, 60),
                      fmt::format("ptx:{}", p.lines[at].line), "define it in the same function");
  }
  return {};
}

Result<Program> decode(const ParsedModule& module, const Function& function) {
  return Decoder(module, function).run();
}

}  // namespace cutegen::ptx
