// SPDX-License-Identifier: Apache-2.0
#include "base/fields.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace cutegen {
namespace json_form {

Json scalar_json(const std::filesystem::path& value) {
  return value.string();
}
Json scalar_json(Nanoseconds value) {
  return value.count();
}

Json scalar_json(const std::vector<std::byte>& value) {
  return to_hex(std::span(value));
}

std::string Input::place() const {
  std::string out = outer_ ? outer_->place() : std::string(base_);
  if (!key_.empty()) return out.append("/").append(key_);
  return outer_ ? out + "/" + std::to_string(index_) : out;
}

void Input::refuse(Error error) const {
  if (failed()) return;
  error.kind = reading_.refused;
  if (error.where.empty()) error.where = place();
  reading_.error = std::move(error);
}

void Input::wrong(const char* wanted) const {
  if (failed()) return;
  refuse({.message = fmt::format("expected {}, found {}", wanted, json_.type_name())});
  if (!outer_) reading_.error->kind = ErrorKind::user;  // as ObjectReader does
}

bool Input::is_object(const FieldRule& rule) const {
  if (!json_.is_object()) return wrong("an object"), false;
  if (json_.size() <= rule.most_keys) return true;
  refuse({.message = fmt::format("{} fields; the limit is {}", json_.size(), rule.most_keys)});
  return false;
}

bool Input::is_array(size_t least, size_t most) const {
  if (!json_.is_array()) return wrong("an array"), false;
  if (json_.size() >= least && json_.size() <= most) return true;
  const char* form = least == most ? "{} entries, not {}" : "{} entries; the limit is {}";
  refuse({.message = fmt::format(fmt::runtime(form), json_.size(), most)});
  return false;
}

void read_scalar(const Input& in, std::string& out, const FieldRule& rule) {
  if (!in.json().is_string()) return in.wrong("a string");
  out = in.json().get_ref<const std::string&>();
  if (rule.shown) out = sanitize(out, rule.shown);
}

void read_scalar(const Input& in, int64_t& out, const FieldRule& rule) {
  if (!in.json().is_number_integer()) return in.wrong("an integer");
  if (in.json().is_number_unsigned() && in.json().get<uint64_t>() > uint64_t{INT64_MAX})
    return in.refuse({.message = "integer is too large"});
  out = in.json().get<int64_t>();
  if (rule.clamps)
    out = std::clamp(out, rule.low, rule.high);
  else if (out >= rule.low && out <= rule.high)
    return;
  else if (rule.high == INT64_MAX)
    in.refuse({.message = fmt::format("{} is below {}", out, rule.low)});
  else
    in.refuse({.message = fmt::format("{} is not from {} to {}", out, rule.low, rule.high)});
}

void read_scalar(const Input& in, int& out, const FieldRule& rule) {
  int64_t wide = 0;
  read_scalar(in, wide, rule);
  out = int(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
}

void read_scalar(const Input& in, uint64_t& out, const FieldRule& rule) {
  int64_t number = 0;
  read_scalar(in, number, rule);
  out = uint64_t(number);
}

void read_scalar(const Input& in, uint32_t& out, const FieldRule& rule) {
  int64_t number = 0;
  read_scalar(in, number, rule);
  out = uint32_t(number);
}

void read_scalar(const Input& in, double& out, const FieldRule& rule) {
  if (!in.json().is_number()) return in.wrong("a number");
  out = in.json().get<double>();
  if (rule.low != INT64_MIN && !(out >= double(rule.low)))
    in.refuse({.message = fmt::format("{} is below {}", out, rule.low)});
}

void read_scalar(const Input& in, bool& out, const FieldRule&) {
  if (!in.json().is_boolean()) return in.wrong("true or false");
  out = in.json().get<bool>();
}

void read_scalar(const Input& in, Json& out, const FieldRule& rule) {
  if (rule.object && !in.json().is_object()) return in.wrong("an object");
  out = in.json();
}

void read_scalar(const Input& in, std::filesystem::path& out, const FieldRule& rule) {
  std::string text;
  read_scalar(in, text, rule);
  out = text;
}

void read_scalar(const Input& in, Nanoseconds& out, const FieldRule& rule) {
  int64_t ns = 0;
  read_scalar(in, ns, rule);
  out = Nanoseconds(ns);
}

void read_scalar(const Input& in, std::vector<std::byte>& out, const FieldRule&) {
  std::string text;
  read_scalar(in, text, FieldRule{});
  auto bytes = from_hex(text);
  if (!bytes) return in.refuse({.message = "expected bytes as hex"});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes->data());
  out.assign(begin, begin + bytes->size());
}

}  // namespace json_form

void fields(Fields& v, Error& e) {
  v.also("kind", to_string(e.kind));
  v("message", e.message);
  v("where", e.where);
  v("remedy", e.remedy);
}

const Json* Fields::find(const char* key, bool may_lack) {
  if (reading_->error) return nullptr;
  if (may_lack) return in_->value_or_null(key);
  auto value = in_->value(key);
  if (value) return *value;
  reading_->error = value.error();
  return nullptr;
}

void Fields::put(const char* key, Json value) {
  (*out_)[key] = std::move(value);
}

void Fields::refuse(Error error, const std::string& key) {
  if (!reading() || reading_->error) return;
  if (error.where.empty()) error.where = in_->place(key);
  reading_->error = std::move(error);
}

void Fields::also(const char* key, Json value) {
  if (reading())
    (void)find(key, true);
  else
    put(key, std::move(value));
}

void Fields::document(const char* place, ErrorKind refused) {
  if (!reading()) return;
  in_->set_where(place);
  reading_->refused = refused;
}

void Fields::schema(const char* expected) {
  std::string found = expected;
  (*this)("schema", found);
  check(found == expected, "schema", fmt::format("schema is '{}', not '{}'", found, expected),
        "it was written by another version of cutegen");
}

void Fields::check(bool ok, const std::string& key, const std::string& message,
                   const std::string& remedy) {
  if (!ok && reading())
    refuse(
        {.kind = reading_->refused, .message = message, .where = in_->place(key), .remedy = remedy},
        key);
}

void Fields::finish() {
  if (reading_->error || !strict_) return;
  auto whole = in_->finish();
  if (!whole) reading_->error = whole.error();
}

}  // namespace cutegen
