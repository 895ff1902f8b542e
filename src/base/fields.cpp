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
  if (!outer_) reading_.error->kind = ErrorKind::user;  // as ObjectReader does for a field
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

void Input::scalar(std::string& out, const FieldRule& rule) const {
  if (!json_.is_string()) return wrong("a string");
  out = json_.get_ref<const std::string&>();
  if (rule.shown) out = sanitize(out, rule.shown);
}

void Input::scalar(int64_t& out, const FieldRule& rule) const {
  if (!json_.is_number_integer()) return wrong("an integer");
  if (json_.is_number_unsigned() && json_.get<uint64_t>() > uint64_t{INT64_MAX})
    return refuse({.message = "integer is too large"});
  out = json_.get<int64_t>();
  if (rule.clamps)
    out = std::clamp(out, rule.low, rule.high);
  else if (out >= rule.low && out <= rule.high)
    return;
  else if (rule.high == INT64_MAX)
    refuse({.message = fmt::format("{} is below {}", out, rule.low)});
  else
    refuse({.message = fmt::format("{} is not from {} to {}", out, rule.low, rule.high)});
}

void Input::scalar(int& out, const FieldRule& rule) const {
  int64_t wide = 0;
  scalar(wide, rule);
  out = static_cast<int>(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
}

void Input::scalar(uint64_t& out, const FieldRule& rule) const {
  int64_t number = 0;
  scalar(number, rule);
  out = static_cast<uint64_t>(number);
}

void Input::scalar(uint32_t& out, const FieldRule& rule) const {
  int64_t number = 0;
  scalar(number, rule);
  out = static_cast<uint32_t>(number);
}

void Input::scalar(double& out, const FieldRule& rule) const {
  if (!json_.is_number()) return wrong("a number");
  out = json_.get<double>();
  if (rule.low != INT64_MIN && !(out >= static_cast<double>(rule.low)))
    refuse({.message = fmt::format("{} is below {}", out, rule.low)});
}

void Input::scalar(bool& out, const FieldRule&) const {
  if (!json_.is_boolean()) return wrong("true or false");
  out = json_.get<bool>();
}

void Input::scalar(Json& out, const FieldRule& rule) const {
  if (rule.object && !json_.is_object()) return wrong("an object");
  out = json_;
}

void Input::scalar(std::filesystem::path& out, const FieldRule& rule) const {
  std::string text;
  scalar(text, rule);
  out = text;
}

void Input::scalar(Nanoseconds& out, const FieldRule& rule) const {
  int64_t ns = 0;
  scalar(ns, rule);
  out = Nanoseconds(ns);
}

void Input::scalar(std::vector<std::byte>& out, const FieldRule&) const {
  std::string text;
  scalar(text, FieldRule{});
  auto bytes = from_hex(text);
  if (!bytes) return refuse({.message = "expected bytes as hex"});
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
  if (!ok && reading()) refuse({reading_->refused, message, in_->place(key), remedy}, key);
}

void Fields::finish() {
  if (reading_->error || !strict_) return;
  auto whole = in_->finish();
  if (!whole) reading_->error = whole.error();
}

}  // namespace cutegen
