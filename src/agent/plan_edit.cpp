// SPDX-License-Identifier: Apache-2.0
#include "agent/plan_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace cutegen::agent {
namespace {

using Edited = tl::expected<void, Reask>;

std::optional<std::vector<std::string>> tokens_of(const std::string& pointer) {
  if (pointer.empty() || pointer[0] != '/' || pointer.size() > 1000) return std::nullopt;
  auto parts = split(std::string_view(pointer).substr(1), '/');
  for (std::string& part : parts) part = replace_all(replace_all(part, "~1", "/"), "~0", "~");
  return parts;
}

std::optional<size_t> index_of(const std::string& token) {
  size_t value = 0;
  auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  bool plain = error == std::errc() && end == token.data() + token.size() &&
               (token.size() == 1 || token[0] != '0');
  return plain ? std::optional(value) : std::nullopt;
}

std::string what_is_there(const Json& at) {
  if (at.is_array()) return fmt::format("an array of {} there", at.size());
  if (!at.is_object()) return "only the value " + sanitize(dump_json(at), 80) + " there";
  std::vector<std::string> names;
  for (const auto& [name, value] : at.items()) names.push_back(name);
  return names.empty() ? std::string("an empty object there") : "the fields " + join(names, ", ");
}

Json* child(Json& at, const std::string& token) {
  if (at.is_object()) {
    auto it = at.find(token);
    return it == at.end() ? nullptr : &*it;
  }
  auto index = index_of(token);
  return at.is_array() && index && *index < at.size() ? &at[*index] : nullptr;
}

void erase(Json& parent, const std::string& token) {
  if (parent.is_object())
    parent.erase(token);
  else
    parent.erase(*index_of(token));
}

// Adds a member to an object, or inserts an element into an array before the index.
bool insert(Json& parent, const std::string& token, const Json& value) {
  if (parent.is_object()) {
    parent[token] = value;
    return true;
  }
  if (!parent.is_array()) return false;
  size_t index = token == "-" ? parent.size() : index_of(token).value_or(parent.size() + 1);
  if (index > parent.size()) return false;
  parent.insert(parent.begin() + std::ptrdiff_t(index), value);
  return true;
}

}  // namespace

Names<PlanOp> enum_names(PlanOp) {
  static constexpr Name<PlanOp> names[] = {{PlanOp::set, "set"},
                                           {PlanOp::replace, "replace"},
                                           {PlanOp::add, "add"},
                                           {PlanOp::remove, "remove"}};
  return names;
}

Edited edit_plan(Json& plan, const PlanEdit& edit, int number) {
  auto wrong = [&](const std::string& text) {
    return tl::unexpected(Reask{
        .reason = "bad_pointer",
        .text = fmt::format("Plan edit {} (\"{}\"): {}.", number, sanitize(edit.path, 200), text)});
  };
  auto tokens = tokens_of(edit.path);
  if (!tokens) return wrong("a path is a JSON pointer such as /steps/0/block/0");
  Json* parent = &plan;
  std::string so_far;
  for (size_t i = 0; i + 1 < tokens->size(); ++i) {
    Json* next = child(*parent, (*tokens)[i]);
    if (!next)
      return wrong(fmt::format("\"{}\" is not in the plan: {} {}", (*tokens)[i],
                               so_far.empty() ? "it has" : so_far + " has",
                               what_is_there(*parent)));
    parent = next;
    so_far += "/" + (*tokens)[i];
  }
  const std::string& last = tokens->back();
  Json* present = child(*parent, last);
  if (!present && (edit.op == PlanOp::replace || edit.op == PlanOp::remove))
    return wrong(fmt::format("\"{}\" is not there: {} {}", last,
                             so_far.empty() ? "the plan has" : so_far + " has",
                             what_is_there(*parent)));
  if (edit.op == PlanOp::remove) {
    erase(*parent, last);
  } else if (present && (edit.op != PlanOp::add || parent->is_object())) {
    *present = edit.value;
  } else if (!insert(*parent, last, edit.value)) {
    return wrong(fmt::format("cannot add anything at \"{}\": {} {}", last,
                             so_far.empty() ? "the plan has" : so_far + " has",
                             what_is_there(*parent)));
  }
  return {};
}

std::string plan_text(const Plan& plan) {
  std::string out = "{\n";
  Json json = to_json(plan);
  size_t left = json.size();
  for (const auto& [name, value] : json.items()) {
    out += "  " + dump_json(name) + ": ";
    bool listed = value.is_array() && !value.empty() && value.front().is_object();
    if (listed) {
      out += "[\n";
      for (size_t i = 0; i < value.size(); ++i)
        out += "    " + dump_json(value[i]) + (i + 1 < value.size() ? ",\n" : "\n");
      out += "  ]";
    } else {
      out += dump_json(value);
    }
    out += --left ? ",\n" : "\n";
  }
  return out + "}\n";
}

}  // namespace cutegen::agent
