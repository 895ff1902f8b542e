// SPDX-License-Identifier: Apache-2.0
// Helpers that fill in the template of the report page. Only files in src/engine/report may use the
// helpers.
//
// Contract: the helpers sanitize untrusted text, and the template escapes the text for HTML.
//
// Example: Entries e; e.add("tensors", "x f32 [16, 64]"); page.set("win", e.list());
#pragma once

#include <kainjow/mustache.hpp>
#include <string>

#include "base/text.h"

namespace cutegen::engine {

using ReportData = kainjow::mustache::data;
using Kind = ReportData::type;

inline ReportData text(const std::string& value, size_t limit = 400) {
  return {sanitize(value, limit)};
}

// A list of names with values, without empty values.
class Entries {
 public:
  Entries& add(const std::string& name, const std::string& value) {
    if (value.empty()) return *this;
    ReportData one(Kind::object);
    one.set("name", text(name));
    one.set("value", text(value, 4000));
    list_.push_back(one);
    return *this;
  }
  const ReportData& list() const { return list_; }

 private:
  ReportData list_{Kind::list};
};

}  // namespace cutegen::engine
