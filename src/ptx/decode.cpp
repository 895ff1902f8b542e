// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ptx/decoder.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostRegisterBytes = int64_t{8} << 20;  // of a warp: 65,536 registers
constexpr int64_t kMostLocal = 512 << 10, kMostStatic = int64_t{1} << 24;

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

}  // namespace

bool Modifiers::has(std::string_view s) const {
  return std::find(parts.begin() + 1, parts.end(), s) != parts.end();
}

// Parameters, static shared variables and local variables get their offsets.
Result<void> Decoder::layout() {
  for (const Variable& v : f_.params) {
    ParamSlot slot{v.name, align_up(p_.param_bytes, v.align), v.bytes(), v.align};
    p_.param_bytes = slot.offset + slot.size;
    p_.params.push_back(slot);
  }
  if (p_.param_bytes > 32764) return wrong("the parameters take more than 32,764 bytes");
  for (const Variable& v : f_.variables) {
    int64_t& end = v.space == Space::shared ? p_.static_shared : p_.local_bytes;
    if (v.space != Space::shared && v.space != Space::local) continue;
    places_[&v] = align_up(end, v.align);
    end = places_[&v] + v.bytes();
    if (end > (v.space == Space::shared ? kMostStatic : kMostLocal))
      return wrong(fmt::format("variable {} is too large", sanitize(v.name, 60)));
  }
  return {};
}

Result<Program> Decoder::run() {
  p_.name = std::string(f_.name);
  std::copy(std::begin(f_.max_block), std::end(f_.max_block), std::begin(p_.max_block));
  p_.required_block = f_.required_block;
  Statement head;
  head.line = f_.line;
  now_ = &head;
  CG_CHECK(layout());
  for (const Statement& s : f_.statements) {
    first_.push_back(int32_t(p_.code.size()));
    CG_CHECK(statement(s));
  }
  first_.push_back(int32_t(p_.code.size()));
  Statement tail;  // falling off the end is a return
  tail.line = f_.statements.empty() ? f_.line : f_.statements.back().line;
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
  std::sort(p_.variables.begin(), p_.variables.end());
  p_.variables.erase(std::unique(p_.variables.begin(), p_.variables.end()), p_.variables.end());
  analyze_liveness(p_, effects_, slots_);
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
      return wrong("guard " + sanitize(s.guard, 60) + " is no predicate");
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
      {"setp", &Decoder::compare},
      {"set", &Decoder::set},
      {"ld", &Decoder::memory},
      {"ldu", &Decoder::memory},
      {"st", &Decoder::memory},
      {"atom", &Decoder::atomic},
      {"red", &Decoder::atomic},
      {"shfl", &Decoder::shuffle},
      {"vote", &Decoder::vote},
      {"activemask", &Decoder::collective},
      {"redux", &Decoder::collective},
      {"match", &Decoder::collective},
      {"elect", &Decoder::collective},
      {"bar", &Decoder::barrier},
      {"barrier", &Decoder::barrier},
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
    branches_.push_back({p_.code.size(), {s.scope, s.operands[0].text}});
  } else if (base == "brx") {
    CG_CHECK(count(s, 2, 2));
    CG_TRY(Slot index, source(s.operands[0], 4, "u32"));
    in.op = Op::branch_index, in.a = index.offset;
    reads.push_back(index.offset);
    branches_.push_back({p_.code.size(), {s.scope, s.operands[1].text}});
  } else if (base == "ret" || base == "exit") {
    in.op = Op::exit;
  } else if (base == "trap" || base == "brkpt") {
    in.op = Op::trap;
  } else {
    in.op = Op::fence, in.kind = Kind::other;
  }
  emit(in, std::move(reads), {});
  return {};
}

Result<void> Decoder::resolve_targets() {
  auto label = [&](int scope, std::string_view name) -> int32_t {
    for (; scope >= 0; scope = f_.scopes[size_t(scope)].parent) {
      const auto& labels = f_.scopes[size_t(scope)].labels;
      if (auto it = labels.find(name); it != labels.end()) return first_[it->second];
    }
    return -1;
  };
  for (const auto& [at, where] : branches_) {
    Inst& in = p_.code[at];
    if (in.op == Op::branch) {
      in.target = label(where.first, where.second);
      if (in.target >= 0) continue;
    } else {
      const std::vector<std::string_view>* names = nullptr;
      for (int scope = where.first; scope >= 0 && !names; scope = f_.scopes[size_t(scope)].parent) {
        const auto& lists = f_.scopes[size_t(scope)].branch_targets;
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
