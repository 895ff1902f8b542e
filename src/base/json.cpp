// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <numeric>

namespace cutegen {
namespace {

constexpr int kMaxDepth = 200;

// Counts the levels of nesting, so that parse_json refuses deep input before the parser recurses.
int depth_of(std::string_view text) {
  int depth = 0, most = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      most = std::max(most, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return most;
}

void sort_keys(const Json& in, nlohmann::json& out) {
  if (in.is_object()) {
    out = nlohmann::json::object();
    for (const auto& [key, value] : in.items()) sort_keys(value, out[key]);
  } else if (in.is_array()) {
    out = nlohmann::json::array();
    for (const auto& value : in) sort_keys(value, out.emplace_back());
  } else {
    out = nlohmann::json::parse(in.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = std::exchange(row[j], next);
    }
  }
  return row.back();
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& name, size_t limit) {
  if (text.size() > limit)
    return user_error("JSON of " + std::to_string(text.size()) + " bytes is over the limit of " +
                          std::to_string(limit),
                      name);
  if (depth_of(text) > kMaxDepth) return user_error("JSON is nested too deeply", name);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, text.size());
    auto line = 1 + std::count(text.begin(), text.begin() + long(at), '\n');
    size_t last = text.substr(0, at).rfind('\n');
    size_t column = at - (last == std::string_view::npos ? 0 : last + 1) + 1;
    std::string what = e.what();
    if (size_t p = what.find(": ", what.find("parse error")); p != std::string::npos)
      what = what.substr(p + 2);
    return user_error("not valid JSON: " + what,
                      name + ":" + std::to_string(line) + ":" + std::to_string(column));
  } catch (const Json::exception& e) {  // a number out of double's range
    std::string what = e.what();
    return user_error("not valid JSON: " + what.substr(what.find("] ") + 2), name);
  }
}

std::string canonical_json(const Json& value) {
  nlohmann::json sorted;
  sort_keys(value, sorted);
  return sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

ObjectReader::ObjectReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {}

bool ObjectReader::has(const std::string& key) const {
  return object_.is_object() && object_.contains(key);
}

Result<const Json*> ObjectReader::value(const std::string& key) {
  seen_.push_back(key);
  if (!object_.is_object()) return user_error("expected an object", where_);
  auto it = object_.find(key);
  if (it != object_.end()) return &*it;
  std::vector<std::string> others;
  for (const auto& item : object_.items())
    if (std::find(seen_.begin(), seen_.end(), item.key()) == seen_.end())
      others.push_back(item.key());
  auto near = nearest(key, others);
  return user_error("missing field '" + key + "'", where_,
                    near ? "is it '" + near->substr(0, 64) + "', misspelt?" : "");
}

tl::unexpected<Error> ObjectReader::wrong(const std::string& key, const char* wanted,
                                          const Json& got) const {
  return user_error(std::string("expected ") + wanted + ", found " + got.type_name(), place(key));
}

Result<std::string> ObjectReader::string(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_string()) return wrong(key, "a string", *j);
  return j->get<std::string>();
}

Result<int64_t> ObjectReader::integer(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_number_integer()) return wrong(key, "an integer", *j);
  if (j->is_number_unsigned() && j->get<uint64_t>() > uint64_t{INT64_MAX})
    return user_error("integer is too large", place(key));
  return j->get<int64_t>();
}

Result<double> ObjectReader::number(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_number()) return wrong(key, "a number", *j);
  return j->get<double>();
}

Result<bool> ObjectReader::boolean(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_boolean()) return wrong(key, "true or false", *j);
  return j->get<bool>();
}

Result<Json> ObjectReader::object(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_object()) return wrong(key, "an object", *j);
  return *j;
}

Result<Json> ObjectReader::array(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  if (!j->is_array()) return wrong(key, "an array", *j);
  return *j;
}

Result<Json> ObjectReader::any(const std::string& key) {
  CG_TRY(const Json* j, value(key));
  return *j;
}

Result<std::vector<std::string>> ObjectReader::strings(const std::string& key) {
  CG_TRY(Json list, array(key));
  std::vector<std::string> out;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string())
      return user_error("expected a string", place(key) + "/" + std::to_string(i));
    out.push_back(list[i].get<std::string>());
  }
  return out;
}

#define CG_OR(NAME, TYPE)                                                       \
  Result<TYPE> ObjectReader::NAME##_or(const std::string& key, TYPE fallback) { \
    if (has(key)) return NAME(key);                                             \
    seen_.push_back(key);                                                       \
    return fallback;                                                            \
  }
CG_OR(string, std::string)
CG_OR(integer, int64_t)
CG_OR(number, double)
CG_OR(boolean, bool)
#undef CG_OR

const Json* ObjectReader::value_or_null(const std::string& key) {
  seen_.push_back(key);
  if (!object_.is_object()) return nullptr;
  auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

Result<Json> ObjectReader::object_or_null(const std::string& key) {
  if (has(key)) return object(key);
  seen_.push_back(key);
  return Json(nullptr);
}

Result<Json> ObjectReader::array_or_empty(const std::string& key) {
  if (has(key)) return array(key);
  seen_.push_back(key);
  return Json::array();
}

Result<void> ObjectReader::finish() {
  if (!object_.is_object()) return user_error("expected an object", where_);
  for (const auto& [key, value] : object_.items()) {
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) continue;
    auto near = nearest(key, seen_);
    return user_error("unknown field '" + key + "'", where_,
                      near ? "did you mean '" + *near + "'?" : "remove it");
  }
  return {};
}

std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& options) {
  std::optional<std::string> best;
  size_t least = std::max<size_t>(1, (word.size() + 1) / 3) + 1;  // swapping two letters costs 2
  for (const auto& option : options) {
    size_t d = edit_distance(word, option);
    if (d < least) least = d, best = option;
  }
  return best;
}

}  // namespace cutegen
