// SPDX-License-Identifier: Apache-2.0
// JSON: a value type that keeps the order of fields, a bounded parser, and a reader whose errors
// name the faulty field.
//
// Contract: Json is nlohmann's ordered_json. The function parse_json() refuses text of more than
// `limit` bytes or 200 levels of nesting. A parse error names line and column. ObjectReader reads
// each field of an object once, and its errors name the field by JSON pointer.
// ObjectReader::finish() refuses fields that the caller did not read, and suggests a similar name.
//
// Example:
//   CG_TRY(Json j, parse_json(text, "plan.json"));
//   ObjectReader r(j, "plan.json#"); CG_TRY(auto n, r.integer("cutegen")); CG_CHECK(r.finish());
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cutegen {

using Json = nlohmann::ordered_json;

Result<Json> parse_json(std::string_view text, const std::string& name,
                        size_t limit = size_t{64} << 20);
// Returns compact text with sorted keys, so that equal values give equal text. Ids are hashes of
// canonical JSON.
std::string canonical_json(const Json& value);
// Like dump(), but replaces invalid UTF-8 instead of throwing.
std::string dump_json(const Json& value, int indent = -1);

class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where);

  bool has(const std::string& key) const;
  Result<std::string> string(const std::string& key);
  Result<int64_t> integer(const std::string& key);
  Result<double> number(const std::string& key);
  Result<bool> boolean(const std::string& key);
  Result<Json> object(const std::string& key);
  Result<Json> array(const std::string& key);
  Result<Json> any(const std::string& key);
  Result<std::vector<std::string>> strings(const std::string& key);
  // A function NAME_or() returns `fallback` if the key is absent.
  Result<std::string> string_or(const std::string& key, std::string fallback);
  Result<int64_t> integer_or(const std::string& key, int64_t fallback);
  Result<double> number_or(const std::string& key, double fallback);
  Result<bool> boolean_or(const std::string& key, bool fallback);
  // value() and value_or_null() return a pointer into the object. If the key is absent, value()
  // returns an error, and value_or_null() returns null.
  Result<const Json*> value(const std::string& key);
  const Json* value_or_null(const std::string& key);
  // If the key is absent, object_or_null() returns Json null, and array_or_empty() an empty array.
  Result<Json> object_or_null(const std::string& key);
  Result<Json> array_or_empty(const std::string& key);

  // Returns an error if the JSON value is not an object or has a key that the caller has not read.
  Result<void> finish();
  const std::string& where() const { return where_; }
  void set_where(std::string where) { where_ = std::move(where); }
  std::string place(const std::string& key) const { return where_ + "/" + key; }

 private:
  tl::unexpected<Error> wrong(const std::string& key, const char* wanted, const Json& got) const;
  const Json& object_;
  std::string where_;
  std::vector<std::string> seen_;
};

// Returns the option most similar to `word`, if `word` may be a misspelling of it.
std::optional<std::string> nearest(const std::string& word,
                                   const std::vector<std::string>& options);

}  // namespace cutegen
