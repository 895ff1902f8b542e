// SPDX-License-Identifier: Apache-2.0
#include "core/codec.h"

namespace cutegen::codec {

Result<std::vector<int64_t>> integers(const Json& json, const std::string& where, int64_t least,
                                      size_t limit) {
  if (!json.is_array()) return user_error("expected an array of integers", where);
  if (json.size() > limit)
    return user_error(fmt::format("{} entries; the limit is {}", json.size(), limit), where);
  std::vector<int64_t> out;
  for (size_t i = 0; i < json.size(); ++i) {
    const Json& v = json[i];
    std::string place = fmt::format("{}/{}", where, i);
    if (!v.is_number_integer()) return user_error("expected an integer", place);
    if (v.is_number_unsigned() && v.get<uint64_t>() > uint64_t{INT64_MAX})
      return user_error("integer is too large", place);
    out.push_back(v.get<int64_t>());
    if (out.back() < least)
      return user_error(fmt::format("{} is below {}", out.back(), least), place);
  }
  return out;
}

Result<void> check_schema(ObjectReader& r, const std::string& expected) {
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != expected)
    return user_error(fmt::format("schema is '{}', not '{}'", schema, expected), r.place("schema"),
                      "it was written by another version of cutegen");
  return {};
}

}  // namespace cutegen::codec
