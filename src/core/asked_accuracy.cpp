// SPDX-License-Identifier: Apache-2.0
#include "core/asked_accuracy.h"

#include <cmath>

namespace cutegen {
namespace {

template <class T>
struct Asked {
  T value{};
  std::string source = "the caller";
};

void fields(Fields& v, Asked<MathMode>& asked) {
  v.by_name("value", asked.value, math_mode_from);
  v("source", asked.source);
}

void fields(Fields& v, Asked<double>& asked) {
  v("value", asked.value);
  v("source", asked.source);
}

template <class T>
void asked_field(Fields& v, const char* key, std::optional<T>& value,
                 std::map<std::string, std::string>& sources) {
  std::optional<Asked<T>> asked;
  if (value) asked = Asked<T>{.value = *value};
  if (auto at = sources.find(key); asked && at != sources.end()) asked->source = at->second;
  v(key, asked);
  if (!v.reading() || !asked) return;
  value = asked->value;
  sources[key] = asked->source;
}

void bound_field(Fields& v, const char* key, std::optional<double>& bound,
                 std::map<std::string, std::string>& sources) {
  asked_field(v, key, bound, sources);
  v.check(!bound || (*bound >= 0 && std::isfinite(*bound)), key,
          std::string(key) + " must be a finite number, not negative");
}

}  // namespace

void fields(Fields& v, AskedAccuracy& asked) {
  v.document("asked#");
  asked_field(v, "math_mode", asked.math_mode, asked.sources);
  bound_field(v, "rtol", asked.rtol, asked.sources);
  bound_field(v, "atol", asked.atol, asked.sources);
}

}  // namespace cutegen
