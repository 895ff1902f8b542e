// SPDX-License-Identifier: Apache-2.0
#include "core/asked_accuracy.h"

#include <cmath>
#include <utility>

namespace cutegen {
namespace {

std::string source_of(const AskedAccuracy& asked, const std::string& key) {
  auto at = asked.sources.find(key);
  return at == asked.sources.end() ? "the caller" : at->second;
}

// A reader for one entry; also notes the entry's source.
Result<ObjectReader> entry(ObjectReader& r, const std::string& key, Json& body,
                           AskedAccuracy& asked) {
  CG_TRY(body, r.object(key));
  ObjectReader one(body, r.place(key));
  CG_TRY(asked.sources[key], one.string("source"));
  return one;
}

}  // namespace

Json to_json(const AskedAccuracy& asked) {
  Json out = Json::object();
  auto put = [&](const char* key, const Json& value) {
    out[key] = {{"value", value}, {"source", source_of(asked, key)}};
  };
  if (asked.math_mode) put("math_mode", to_string(*asked.math_mode));
  if (asked.rtol) put("rtol", *asked.rtol);
  if (asked.atol) put("atol", *asked.atol);
  return out;
}

Result<AskedAccuracy> asked_accuracy_from_json(const Json& json) {
  ObjectReader r(json, "asked#");
  AskedAccuracy asked;
  Json body;
  if (r.has("math_mode")) {
    CG_TRY(ObjectReader one, entry(r, "math_mode", body, asked));
    CG_TRY(std::string name, one.string("value"));
    CG_TRY(asked.math_mode, math_mode_from(name));
    CG_CHECK(one.finish());
  }
  for (auto [key, bound] : {std::pair{"rtol", &asked.rtol}, std::pair{"atol", &asked.atol}}) {
    if (!r.has(key)) continue;
    CG_TRY(ObjectReader one, entry(r, key, body, asked));
    CG_TRY(*bound, one.number("value"));
    if (!(**bound >= 0) || !std::isfinite(**bound))
      return user_error(std::string(key) + " must be a finite number, not negative", r.place(key));
    CG_CHECK(one.finish());
  }
  CG_CHECK(r.finish());
  return asked;
}

}  // namespace cutegen
