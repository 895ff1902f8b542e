// SPDX-License-Identifier: Apache-2.0
#include "store/long_texts.h"

#include "base/hash.h"

namespace cutegen::store {
namespace {

constexpr const char* kMark = "$blob";

bool marked(const Json& data) {
  return data.is_object() && data.size() == 1 && data.contains(kMark);
}

}  // namespace

Json take_long_texts(const Json& data,
                     const std::function<void(const std::string&, const std::string&)>& put) {
  if (data.is_string()) {
    const auto& text = data.get_ref<const std::string&>();
    if (text.size() < kLongText) return data;
    std::string hash = sha256(text);
    put(hash, text);
    return Json{{kMark, hash}};
  }
  if (!data.is_structured()) return data;
  Json out = data.is_array() ? Json::array() : Json::object();
  if (data.is_array()) {
    for (const Json& item : data) out.push_back(take_long_texts(item, put));
    return out;
  }
  for (const auto& [key, value] : data.items()) out[key] = take_long_texts(value, put);
  // Wrap an object that looks like the {"$blob": ...} mark, so that a reader gets it back
  // unchanged.
  return marked(data) ? Json{{kMark, out}} : out;
}

Result<Json> restore_long_texts(const Json& data,
                                const std::function<Result<std::string>(const std::string&)>& get) {
  if (marked(data) && data[kMark].is_string()) {
    CG_TRY(std::string text, get(data[kMark].get<std::string>()));
    return Json(std::move(text));
  }
  const Json& source = marked(data) && marked(data[kMark]) ? data[kMark] : data;
  if (!source.is_structured()) return source;
  Json out = source.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : source.items()) {
    CG_TRY(Json restored, restore_long_texts(value, get));
    if (source.is_array())
      out.push_back(std::move(restored));
    else
      out[key] = std::move(restored);
  }
  return out;
}

}  // namespace cutegen::store
