// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/module.h"

#include <fmt/format.h>

#include <atomic>

#include "ptx/decode/declarations.h"
#include "ptx/decode/decode.h"
#include "ptx/text/parser.h"

namespace cutegen::ptx {

Result<Module> Module::parse(std::string_view text) {
  if (text.size() > kMostText) {
    return user_error(fmt::format("PTX of {} bytes (at most {})", text.size(), kMostText), {},
                      "split the module");
  }
  static std::atomic<uint64_t> next_id{1};
  auto state = std::make_shared<State>();
  state->text = std::string(text.substr(0, text.find('\0')));
  state->id = next_id++;
  CG_TRY(state->parsed, parse_module(state->text));
  for (const Function& f : state->parsed.functions) {
    if (!f.is_entry) continue;  // inlined by their callers
    CG_TRY(Program p, decode(state->parsed, f));
    Entry e;
    e.name = p.name;
    for (const ParamSlot& s : p.params)
      e.params.push_back({.size = size_t(s.size), .align = size_t(s.align)});
    for (size_t i = 0; i < 3; ++i) e.max_block[i] = int(p.max_block[i]);
    e.static_shared_bytes = p.static_shared;
    e.registers_estimate = p.registers_estimate;
    state->entries.push_back(std::move(e));
    state->programs.push_back(std::move(p));
  }
  Module m;
  m.state_ = std::move(state);
  return m;
}

const std::vector<Entry>& Module::entries() const {
  return state_->entries;
}

std::map<std::string, int64_t> Module::integer_constants() const {
  return ptx::integer_constants(state_->parsed);
}

std::vector<std::string> Module::constant_names() const {
  return ptx::constant_names(state_->parsed);
}

std::optional<std::vector<std::byte>> Module::constant_bytes(const std::string& name) const {
  return ptx::constant_bytes(state_->parsed, name);
}

}  // namespace cutegen::ptx
