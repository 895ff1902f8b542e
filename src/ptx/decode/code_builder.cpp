// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/code_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ptx/decode/patterns.h"

namespace cutegen::ptx {

Inst& CodeBuilder::emit(Inst in, std::vector<int32_t> reads, std::vector<int32_t> writes) {
  in.guard = guard_.slot, in.guard_negated = guard_.negated;
  if (in.guard >= 0) reads.push_back(in.guard);
  program.code.push_back(in);
  program.lines.push_back({.line = now_->line,
                           .source_line = now_->source_line,
                           .source_column = now_->source_column,
                           .opcode = now_->opcode,
                           .text = now_->text});
  effects_.push_back({.reads = std::move(reads), .writes = std::move(writes)});
  return program.code.back();
}

Result<void> CodeBuilder::simple(const std::string& name, Slot d, const std::vector<Slot>& sources,
                                 int64_t imm) {
  const Form* form = forms().find(name);
  if (!form) return unsupported(name);
  Inst in;
  in.full = form->full, in.masked = form->masked, in.kind = form->kind, in.flops = form->flops;
  in.d = d.offset, in.imm = imm;
  int32_t* fields[] = {&in.a, &in.b, &in.c, &in.e};
  std::vector<int32_t> reads;
  for (size_t i = 0; i < sources.size(); ++i) {
    *fields[i] = sources[i].offset;
    reads.push_back(sources[i].offset);
  }
  emit(in, std::move(reads), {d.offset});
  return {};
}

Result<void> CodeBuilder::unsupported(const std::string& what) {
  Inst in;
  in.op = Op::unsupported;
  in.target = int32_t(program.messages.size());
  program.messages.push_back(what);
  emit(in, {}, {});
  return {};
}

// A block of 64 bytes holds sixteen predicates; any other slot holds 32 lanes.
int32_t CodeBuilder::allocate(int size) {
  if (size == 0) {
    if (predicates_at_ % 64 == 0) predicates_at_ = used_, used_ += 64;
    int32_t at = int32_t(predicates_at_);
    predicates_at_ += 4;
    return at;
  }
  int32_t at = int32_t(used_);
  used_ += std::max(64, 32 * size);
  return at;
}

Slot CodeBuilder::add_register(int size) {
  const Slot slot{.offset = allocate(size), .size = size};
  slots_.push_back({.offset = slot.offset, .bytes = size == 0 ? 4 : 32 * size});
  return slot;
}

Slot CodeBuilder::constant(uint64_t bits, int size, int32_t variable) {
  if (size > 0 && size < 8) bits &= (uint64_t{1} << (8 * size)) - 1;
  auto [it, fresh] = constants_.try_emplace({bits, size, variable});
  if (fresh) {
    it->second = {.offset = allocate(size), .size = size};
    program.constants.push_back(
        {.offset = it->second.offset, .size = uint8_t(size), .bits = bits, .variable = variable});
  }
  return it->second;
}

Slot CodeBuilder::special(Special which) {
  auto [it, fresh] = specials_.try_emplace(which);
  if (fresh) {
    it->second = {.offset = allocate(4), .size = 4};
    program.specials.push_back({.offset = it->second.offset, .size = 4, .which = which});
  }
  return it->second;
}

Slot CodeBuilder::carry() {
  if (carry_.offset < 0) carry_ = add_register(0);
  return carry_;
}

const int32_t* CodeBuilder::scratch() {
  for (int32_t& slot : scratch_) {
    if (slot < 0) slot = allocate(4);
  }
  return scratch_;
}

const int32_t* CodeBuilder::keep(std::vector<int32_t> list) {
  program.lists.push_back(std::make_shared<const std::vector<int32_t>>(std::move(list)));
  return program.lists.back()->data();
}

Program CodeBuilder::finish() {
  program.register_bytes = (used_ + 63) / 64 * 64;
  analyze_liveness(program, effects_, slots_);
  std::sort(slots_.begin(), slots_.end(),
            [](const SlotRange& a, const SlotRange& b) { return a.offset < b.offset; });
  program.registers = std::move(slots_);
  mark_patterns(program);
  mark_wgmma_registers(program);
  return std::move(program);
}

tl::unexpected<Error> CodeBuilder::wrong(const std::string& message) const {
  return user_error(message + (now_->opcode.empty() ? "" : " in " + sanitize(now_->text, 120)),
                    fmt::format("ptx:{}", now_->line),
                    "give the PTX text as the compiler wrote it");
}

Result<void> CodeBuilder::count(const Statement& s, size_t least, size_t most) const {
  if (s.operands.size() >= least && s.operands.size() <= most) return {};
  return wrong(fmt::format("{} operands (expected {})", s.operands.size(), least));
}

}  // namespace cutegen::ptx
