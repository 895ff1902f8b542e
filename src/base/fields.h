// SPDX-License-Identifier: Apache-2.0
// Fields: reads and writes the JSON form of a struct from a single list of its fields.
//
// Contract: `void fields(Fields& v, T& x)` in T's namespace names every field once, in the order of
// the JSON object. The functions to_json(x) and read_json<T>(json) call fields(v, x). While
// writing, fields() must not change x. Every error names the JSON pointer of the faulty value.
// Reading stops at the first error. Reading refuses unknown fields and suggests a similar name,
// unless fields() calls ignore_unknown().
//
// A field may be a string, number, boolean, Json, path, duration (as ns), bytes (as hex), an
// enumeration with names (base/names.h), a struct with fields, or a list, map or optional of such
// values. Writing omits an empty optional. A list of pairs becomes a JSON object that keeps the
// order of the pairs. Reading an int clamps the number to 32 bits. Unsigned numbers keep all 64
// bits, because seeds use them.
//
// Example:
//   void fields(Fields& v, Mismatch& x) {
//     v("shape", x.shape);
//     v("gate", x.gate, field::written_if(x.gate != Gate::element));
//     v("first", x.first, field::list(64));
//   }
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/field_rule.h"
#include "base/json.h"
#include "base/names.h"
#include "base/text.h"

namespace cutegen {

class Fields;

template <class T>
concept HasFields = requires(Fields& v, T& x) { fields(v, x); };

// Only the implementation of Fields uses this namespace, which converts values to JSON and back.
namespace json_form {

enum class Form { scalar, optional, list, array, map, pairs };
template <class T>
inline constexpr Form form_of = Form::scalar;
template <class T>
inline constexpr Form form_of<std::optional<T>> = Form::optional;
template <class T>
inline constexpr Form form_of<std::vector<T>> = Form::list;
template <>
inline constexpr Form form_of<std::vector<std::byte>> = Form::scalar;
template <class T>
inline constexpr Form form_of<std::vector<std::pair<std::string, T>>> = Form::pairs;
template <class T>
inline constexpr Form form_of<std::map<std::string, T>> = Form::map;
template <class T, size_t N>
inline constexpr Form form_of<std::array<T, N>> = Form::array;

// The state of one call of read_json(), which all values that the call reads share.
struct Reading {
  std::optional<Error> error;
  ErrorKind refused = ErrorKind::user;  // the kind of error that a refused value causes
};

// A JSON value to read, and the value's place in the document.
class Input {
 public:
  Input(const Json& json, std::string_view base, std::string_view key, Reading& reading)
      : json_(json), base_(base), key_(key), reading_(reading) {}

  template <class T>
  void read(T& out, const FieldRule& rule) const;
  template <class T, class F>
  void read_as(T& out, F form, const FieldRule& rule = {}) const;
  template <class E>
  void named(E& out, Names<E> names) const;

  const Json& json() const { return json_; }
  // For a wrong JSON type or number of entries, is_object() and is_array() set the error and return
  // false.
  bool is_object(const FieldRule& rule) const;
  bool is_array(size_t least, size_t most) const;
  bool failed() const { return reading_.error.has_value(); }
  void wrong(const char* wanted) const;  // `wanted`: the expected JSON type
  void refuse(Error error) const;

 private:
  Input(const Json& json, const Input& outer, std::string_view key, size_t index)
      : json_(json), key_(key), outer_(&outer), index_(index), reading_(outer.reading_) {}

  template <class T>
  void read_map(T& out, const FieldRule& rule) const;
  template <class T>
  void read_list(T& out, const FieldRule& rule) const;
  std::string place() const;

  const Json& json_;
  std::string_view base_, key_;
  const Input* outer_ = nullptr;
  size_t index_ = 0;
  Reading& reading_;
};

// read_scalar() and scalar_json() convert scalar values from JSON and to JSON.
void read_scalar(const Input& in, std::string& out, const FieldRule& rule);
void read_scalar(const Input& in, int64_t& out, const FieldRule& rule);
void read_scalar(const Input& in, int& out, const FieldRule& rule);
void read_scalar(const Input& in, uint64_t& out, const FieldRule& rule);
void read_scalar(const Input& in, uint32_t& out, const FieldRule& rule);
void read_scalar(const Input& in, double& out, const FieldRule& rule);
void read_scalar(const Input& in, bool& out, const FieldRule& rule);
void read_scalar(const Input& in, Json& out, const FieldRule& rule);
void read_scalar(const Input& in, std::filesystem::path& out, const FieldRule& rule);
void read_scalar(const Input& in, Nanoseconds& out, const FieldRule& rule);
void read_scalar(const Input& in, std::vector<std::byte>& out, const FieldRule& rule);
Json scalar_json(const std::filesystem::path& value);
Json scalar_json(Nanoseconds value);
Json scalar_json(const std::vector<std::byte>& value);
template <class T>
Json scalar_json(const T& value) {
  return Json(value);
}

}  // namespace json_form

class Fields {
 public:
  explicit Fields(Json& object) : out_(&object) {}  // writes
  Fields(ObjectReader& object, json_form::Reading& reading) : in_(&object), reading_(&reading) {}

  bool reading() const { return in_ != nullptr; }
  // While reading, returns whether the JSON object has this field. While writing, returns false.
  bool has(const char* key) const { return in_ && in_->has(key); }

  template <class T>
  void operator()(const char* key, T& value, const FieldRule& rule = {});
  // Reads and writes an enumeration. Reading accepts only the values in `names`.
  template <class E>
  void named(const char* key, E& value, std::type_identity_t<Names<E>> names);
  // Reads and writes a value as a text: value.text() or to_string(value) makes the text, and
  // from(text) parses it.
  template <class T, class F>
  void by_name(const char* key, T& value, F from);
  // Reads and writes a struct or a list of structs. The function form(Fields&, T&) names the JSON
  // fields, instead of fields().
  template <class T, class F>
  void as(const char* key, T& value, F form, const FieldRule& rule = {});
  // Reads and writes a value as a JSON object: to_json(value) makes the object, and from(json)
  // parses it.
  template <class T, class F>
  void via(const char* key, T& value, F from, const FieldRule& rule = {});

  // Writes a value that is only for people who read the JSON. Reading skips the value.
  void also(const char* key, Json value);
  // Errors name `place` as the place of this struct, even if another struct contains this struct. A
  // value out of bounds causes an error of kind `refused`. Use `world` if another process wrote the
  // values.
  void document(const char* place, ErrorKind refused = ErrorKind::user);
  void schema(const char* expected);
  void ignore_unknown() { strict_ = false; }
  // While reading, refuses the value of `key` if `ok` is false.
  void check(bool ok, const std::string& key, const std::string& message,
             const std::string& remedy = {});
  // While reading, stops with the error of `result`, if `result` is an error. An error without a
  // place gets the place `key`.
  template <class T>
  void check(const Result<T>& result, const std::string& key) {
    if (!result) refuse(result.error(), key);
  }
  void finish();

 private:
  // Returns null if the field is absent or reading has failed.
  const Json* find(const char* key, bool may_lack);
  void put(const char* key, Json value);
  void refuse(Error error, const std::string& key);
  json_form::Input input(const Json& json, const char* key) const {
    return {json, in_->where(), key, *reading_};
  }

  Json* out_ = nullptr;
  ObjectReader* in_ = nullptr;
  json_form::Reading* reading_ = nullptr;
  bool strict_ = true;
};

// Writes the fields that `form(Fields&, T&)` names instead of fields(). A vector of T becomes an
// array.
template <class T, class F>
Json to_json_as(const T& value, F form) {
  if constexpr (std::is_invocable_v<F, Fields&, T&>) {
    Json out = Json::object();
    Fields list(out);
    // The cast is safe, because writing changes nothing; `form` takes T& because reading changes T.
    form(list, const_cast<T&>(value));
    return out;
  } else {
    Json out = Json::array();
    for (const auto& entry : value) out.push_back(to_json_as(entry, form));
    return out;
  }
}

template <class T, class F>
Result<T> read_json_as(const Json& json, F form, const std::string& where = {}) {
  json_form::Reading reading;
  T out;
  json_form::Input(json, where, {}, reading).read_as(out, form);
  if (reading.error) return fail(std::move(*reading.error));
  return out;
}

// The JSON form of errors, which other programs read.
void fields(Fields& v, Error& error);

template <HasFields T>
Json to_json(const T& value) {
  return to_json_as(value, [](Fields& v, T& x) { fields(v, x); });
}

// Converts a value of any supported type to JSON: a struct, an enumeration, a list, a map, ...
template <class T>
Json write_json(const T& value) {
  using json_form::Form, json_form::form_of;
  if constexpr (HasFields<T>) {
    return cutegen::to_json(value);
  } else if constexpr (HasNames<T>) {
    return to_string(value);
  } else if constexpr (form_of<T> == Form::optional) {
    return value ? write_json(*value) : Json();
  } else if constexpr (form_of<T> == Form::map || form_of<T> == Form::pairs) {
    Json out = Json::object();
    for (const auto& [key, entry] : value) out[key] = write_json(entry);
    return out;
  } else if constexpr (form_of<T> != Form::scalar) {
    Json out = Json::array();
    for (const auto& entry : value) out.push_back(write_json(entry));
    return out;
  } else {
    return json_form::scalar_json(value);
  }
}

template <class T>
Result<T> read_json(const Json& json, const std::string& where = {}) {
  json_form::Reading reading;
  T out;
  json_form::Input(json, where, {}, reading).read(out, {});
  if (reading.error) return fail(std::move(*reading.error));
  return out;
}

namespace json_form {

template <class T>
bool is_set(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value > 0;
  } else if constexpr (HasFields<T>) {
    return !cutegen::to_json(value).empty();
  } else if constexpr (requires { value.empty(); }) {
    return !value.empty();
  } else {
    return true;
  }
}

template <class T>
void Input::read(T& out, const FieldRule& rule) const {
  if constexpr (HasFields<T>) {
    read_as(out, [](Fields& v, T& x) { fields(v, x); });
  } else if constexpr (HasNames<T>) {
    named(out, enum_names(out));
  } else if constexpr (form_of<T> == Form::optional) {
    if (rule.or_null && json_.is_null())
      out.reset();
    else
      read(out.emplace(), rule);
  } else if constexpr (form_of<T> == Form::map || form_of<T> == Form::pairs) {
    if (is_object(rule)) read_map(out, rule);
  } else if constexpr (form_of<T> == Form::array) {
    if (!is_array(out.size(), out.size())) return;
    for (size_t i = 0; i < out.size() && !failed(); ++i)
      Input(json_[i], *this, {}, i).read(out[i], rule);
  } else if constexpr (form_of<T> == Form::list) {
    if (is_array(0, rule.most)) read_list(out, rule);
  } else {
    read_scalar(*this, out, rule);
  }
}

template <class T, class F>
void Input::read_as(T& out, F form, const FieldRule& rule) const {
  if constexpr (std::is_invocable_v<F, Fields&, T&>) {
    const bool inside = outer_ || !key_.empty();
    if (inside && !is_object({})) return;  // is_object() has set an error that names the field
    ObjectReader object(json_, place());
    Fields list(object, reading_);
    form(list, out);
    list.finish();
  } else if (is_array(0, rule.most)) {
    out.clear();
    for (size_t i = 0; i < json_.size() && !failed(); ++i)
      Input(json_[i], *this, {}, i).read_as(out.emplace_back(), form);
  }
}

template <class E>
void Input::named(E& out, Names<E> names) const {
  std::string name;
  read_scalar(*this, name, {});
  if (failed()) return;
  auto value = from_name<E>(name, std::string(key_), {}, names);
  if (value)
    out = *value;
  else
    refuse(value.error());
}

template <class T>
void Input::read_map(T& out, const FieldRule& rule) const {
  out.clear();
  for (auto at = json_.begin(); at != json_.end() && !failed(); ++at) {
    const std::string key = rule.shown ? sanitize(at.key(), rule.shown) : at.key();
    const Input entry(at.value(), *this, at.key(), 0);
    if constexpr (form_of<T> == Form::map)
      entry.read(out[key], rule);
    else
      entry.read(out.emplace_back(key, typename T::value_type::second_type{}).second, rule);
  }
}

template <class T>
void Input::read_list(T& out, const FieldRule& rule) const {
  out.clear();
  out.reserve(json_.size());
  for (size_t i = 0; i < json_.size() && !failed(); ++i)
    Input(json_[i], *this, {}, i).read(out.emplace_back(), rule);
}

}  // namespace json_form

template <class T>
void Fields::operator()(const char* key, T& value, const FieldRule& rule) {
  constexpr bool optional = json_form::form_of<T> == json_form::Form::optional;
  if (reading()) {
    if (const Json* json = find(key, rule.may_lack || (optional && !rule.or_null)))
      input(*json, key).read(value, rule);
    return;
  }
  if (!rule.written) return;
  if constexpr (optional) {
    if (!value && !rule.or_null) return;
  } else if (rule.if_set && !json_form::is_set(value)) {
    return;
  }
  put(key, write_json(value));
}

template <class E>
void Fields::named(const char* key, E& value, std::type_identity_t<Names<E>> names) {
  if (!reading()) return put(key, to_string(value));
  if (const Json* json = find(key, false)) input(*json, key).named(value, names);
}

template <class T, class F>
void Fields::by_name(const char* key, T& value, F from) {
  std::string name;
  if constexpr (requires { value.text(); })
    name = value.text();
  else
    name = to_string(value);
  (*this)(key, name);
  if (!reading() || reading_->error) return;
  auto parsed = from(name);
  check(parsed, key);
  if (parsed) value = *parsed;
}

template <class T, class F>
void Fields::as(const char* key, T& value, F form, const FieldRule& rule) {
  if (!reading()) {
    if (rule.written) put(key, to_json_as(value, form));
  } else if (const Json* json = find(key, rule.may_lack)) {
    input(*json, key).read_as(value, form, rule);
  }
}

template <class T, class F>
void Fields::via(const char* key, T& value, F from, const FieldRule& rule) {
  if (!reading()) {
    if (rule.written) put(key, to_json(value));
  } else if (const Json* json = find(key, rule.may_lack)) {
    if (!input(*json, key).is_object({})) return;
    auto parsed = from(*json);
    check(parsed, key);
    if (parsed) value = std::move(*parsed);
  }
}

}  // namespace cutegen
