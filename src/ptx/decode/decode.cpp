// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ptx/decode/decoder.h"
#include "ptx/decode/patterns.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostRegisterBytes = int64_t{8} << 20;  // of a warp: 65,536 registers
constexpr int64_t kMostStatic = int64_t{1} << 24;

int64_t align_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

Modifiers split_opcode(std::string_view opcode) {
  Modifiers m;
  while (true) {
    size_t dot = opcode.find('.');
    m.parts.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return m;
    opcode.remove_prefix(dot + 1);
  }
}

// Inst::sub of a fence: its scope, the wait of an overlapping launch, or a sleep.
uint8_t fence_kind(const Modifiers& m) {
  const std::string_view base = m.base();
  if (base == "nanosleep") return kSleep;
  if (base == "griddepcontrol") return m.has("wait") ? kDependencyWait : kNoFence;
  if (base != "membar" && base != "fence") return kNoFence;
  return m.has("cta") ? kFenceCta : kFenceGpu;
}

}  // namespace

bool Modifiers::has(std::string_view s) const {
  return std::find(parts.begin() + 1, parts.end(), s) != parts.end();
}

// Parameters of the entry.
Result<void> Decoder::layout_parameters() {
  for (const Variable& v : frame_.f->params) {
    ParamSlot slot{v.name, align_up(p_.param_bytes, v.align), v.bytes(), v.align};
    p_.param_bytes = slot.offset + slot.size;
    p_.params.push_back(slot);
  }
  if (p_.param_bytes > 32764) return wrong("the parameters take more than 32,764 bytes");
  return {};
}

// Places static shared variables, and local variables with those that pass arguments.
Result<void> Decoder::layout() {
  for (const Variable& v : frame_.f->variables) {
    if (v.space == Space::shared) {
      auto [place, fresh] = shared_places_.try_emplace(&v, align_up(p_.static_shared, v.align));
      if (!fresh) continue;  // the function is called more than once
      p_.static_shared = place->second + v.bytes();
      if (p_.static_shared > kMostStatic)
        return wrong(fmt::format("variable {} is too large", sanitize(v.name, 60)));
    } else if (v.space == Space::local || v.space == Space::param) {
      CG_TRY(frame_.places[&v], local_place(v.bytes(), v.align));
    }
  }
  return {};
}

Result<void> Decoder::function_body() {
  CG_CHECK(layout());
  for (const Statement& s : frame_.f->statements) {
    frame_.first.push_back(int32_t(p_.code.size()));
    CG_CHECK(statement(s));
  }
  frame_.first.push_back(int32_t(p_.code.size()));
  return {};
}

Result<Program> Decoder::run() {
  const Function& f = *frame_.f;
  p_.name = std::string(f.name);
  std::copy(std::begin(f.max_block), std::end(f.max_block), std::begin(p_.max_block));
  p_.required_block = f.required_block;
  Statement head;
  head.line = f.line;
  now_ = &head;
  CG_CHECK(layout_parameters());
  CG_CHECK(function_body());
  Statement tail;  // falling off the end is a return
  tail.line = f.statements.empty() ? f.line : f.statements.back().line;
  tail.text = "ret";
  now_ = &tail, guard_ = Inst{};
  Inst end;
  end.op = Op::exit, end.kind = Kind::branch;
  emit(end, {}, {});
  CG_CHECK(resolve_targets());
  p_.dynamic_shared_at = p_.static_shared == 0 ? 0 : align_up(p_.static_shared, 1024);
  for (ConstantSlot& c : p_.constants) {
    if (c.variable != -2) continue;
    c.bits += uint64_t(p_.dynamic_shared_at);
    c.variable = -1;
  }
  p_.register_bytes = align_up(used_, 64);
  p_.local_bytes = align_up(p_.local_bytes, 16);
  std::sort(p_.variables.begin(), p_.variables.end());
  p_.variables.erase(std::unique(p_.variables.begin(), p_.variables.end()), p_.variables.end());
  analyze_liveness(p_, effects_, slots_);
  mark_patterns(p_);
  return std::move(p_);
}

Inst& Decoder::emit(Inst in, std::vector<int32_t> reads, std::vector<int32_t> writes) {
  in.guard = guard_.guard, in.guard_negated = guard_.guard_negated;
  if (in.guard >= 0) reads.push_back(in.guard);
  p_.code.push_back(in);
  p_.lines.push_back({now_->line, now_->source_line, now_->text});
  effects_.push_back({std::move(reads), std::move(writes)});
  return p_.code.back();
}

Result<void> Decoder::unsupported(const std::string& what) {
  Inst in;
  in.op = Op::unsupported;
  in.target = int32_t(p_.messages.size());
  p_.messages.push_back(what);
  emit(in, {}, {});
  return {};
}

Result<void> Decoder::statement(const Statement& s) {
  now_ = &s;
  guard_ = Inst{};
  if (!s.guard.empty()) {
    auto slot = find_register(s.guard);
    if (!slot || slot->size != 0)
      return wrong("guard " + sanitize(s.guard, 60) + " is not a predicate");
    guard_.guard = slot->offset, guard_.guard_negated = s.guard_negated;
  }
  if (used_ > kMostRegisterBytes) {
    return unsupported_error("more registers than are simulated", fmt::format("ptx:{}", s.line));
  }
  const Modifiers m = split_opcode(s.opcode);
  if (std::count(m.parts.begin(), m.parts.end(), "") > 0)
    return unsupported(sanitize(s.opcode, 80));
  return dispatch(s, m);
}

Result<void> Decoder::dispatch(const Statement& s, const Modifiers& m) {
  using Member = Done (Decoder::*)(const Statement&, const Modifiers&);
  static const std::unordered_map<std::string_view, Member> families{
      {"mov", &Decoder::move},
      {"cvt", &Decoder::convert},
      {"cvta", &Decoder::convert_address},
      {"isspacep", &Decoder::in_space},
      {"createpolicy", &Decoder::policy},
      {"setp", &Decoder::compare},
      {"set", &Decoder::set},
      {"ld", &Decoder::memory},
      {"ldu", &Decoder::memory},
      {"st", &Decoder::memory},
      {"atom", &Decoder::atomic},
      {"red", &Decoder::atomic},
      {"mma", &Decoder::multiply},
      {"ldmatrix", &Decoder::matrix_rows},
      {"stmatrix", &Decoder::matrix_rows},
      {"movmatrix", &Decoder::move_matrix},
      {"cp", &Decoder::async},
      {"shfl", &Decoder::shuffle},
      {"vote", &Decoder::vote},
      {"activemask", &Decoder::collective},
      {"redux", &Decoder::collective},
      {"match", &Decoder::collective},
      {"elect", &Decoder::collective},
      {"bar", &Decoder::barrier},
      {"barrier", &Decoder::barrier},
      {"call", &Decoder::call},
      {"bra", &Decoder::control},
      {"brx", &Decoder::control},
      {"ret", &Decoder::control},
      {"exit", &Decoder::control},
      {"trap", &Decoder::control},
      {"brkpt", &Decoder::control},
      {"membar", &Decoder::control},
      {"fence", &Decoder::control},
      {"nanosleep", &Decoder::control},
      {"griddepcontrol", &Decoder::control},
      {"prefetch", &Decoder::control},
      {"prefetchu", &Decoder::control},
      {"discard", &Decoder::control},
      {"applypriority", &Decoder::control},
      {"setmaxnreg", &Decoder::control}};
  auto it = families.find(m.base());
  if (it != families.end()) return (this->*it->second)(s, m);
  return arithmetic(s, m);
}

Result<void> Decoder::control(const Statement& s, const Modifiers& m) {
  Inst in;
  in.kind = Kind::branch;
  std::vector<int32_t> reads;
  const std::string_view base = m.base();
  if (base == "bra") {
    CG_CHECK(count(s, 1, 1));
    in.op = Op::branch;
    frame_.branches.push_back({p_.code.size(), {s.scope, s.operands[0].text}});
  } else if (base == "brx") {
    CG_CHECK(count(s, 2, 2));
    CG_TRY(Slot index, source(s.operands[0], 4, "u32"));
    in.op = Op::branch_index, in.a = index.offset;
    reads.push_back(index.offset);
    frame_.branches.push_back({p_.code.size(), {s.scope, s.operands[1].text}});
  } else if (base == "ret" && frame_.depth > 0) {
    in.op = Op::branch;
    frame_.returns.push_back(p_.code.size());
  } else if (base == "ret" || base == "exit") {
    in.op = Op::exit;
  } else if (base == "trap" || base == "brkpt") {
    in.op = Op::trap, in.sub = base == "brkpt";
  } else {
    in.op = Op::fence, in.kind = Kind::other;
    in.sub = fence_kind(m);
  }
  if (in.op == Op::fence && in.sub == kSleep) {
    CG_CHECK(count(s, 1, 1));
    CG_TRY(Slot time, source(s.operands[0], 4, "u32"));
    in.a = time.offset;
    reads.push_back(time.offset);
  }
  emit(in, std::move(reads), {});
  return {};
}

Result<void> Decoder::resolve_targets() {
  auto label = [&](int scope, std::string_view name) -> int32_t {
    for (; scope >= 0; scope = frame_.f->scopes[size_t(scope)].parent) {
      const auto& labels = frame_.f->scopes[size_t(scope)].labels;
      if (auto it = labels.find(name); it != labels.end()) return frame_.first[it->second];
    }
    return -1;
  };
  for (const auto& [at, where] : frame_.branches) {
    Inst& in = p_.code[at];
    if (in.op == Op::branch) {
      in.target = label(where.first, where.second);
      if (in.target >= 0) continue;
    } else {
      const std::vector<std::string_view>* names = nullptr;
      for (int scope = where.first; scope >= 0 && !names;
           scope = frame_.f->scopes[size_t(scope)].parent) {
        const auto& lists = frame_.f->scopes[size_t(scope)].branch_targets;
        if (auto it = lists.find(where.second); it != lists.end()) names = &it->second;
      }
      std::vector<int32_t> table;
      for (size_t i = 0; names && i < names->size(); ++i)
        table.push_back(label(where.first, (*names)[i]));
      in.target = int32_t(p_.tables.size());
      p_.tables.push_back(table);
      if (names && std::count(table.begin(), table.end(), -1) == 0) continue;
    }
    return user_error("unknown label " + sanitize(where.second, 60),
                      fmt::format("ptx:{}", p_.lines[at].line), "define it in the same function");
  }
  return {};
}

Result<Program> decode(const ParsedModule& module, const Function& function) {
  return Decoder(module, function).run();
}

}  // namespace cutegen::ptx
