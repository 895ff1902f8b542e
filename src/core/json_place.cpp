// SPDX-License-Identifier: Apache-2.0
#include "core/json_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace cutegen {
namespace {

// Walks text that was parsed before, so it does not validate.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) { space(); }

  size_t at() const { return at_; }

  // Steps into child `key` of the current value; false if there is none.
  bool enter(const std::string& key) {
    if (peek() == '{') return enter_field(key);
    return peek() == '[' && enter_element(key);
  }

 private:
  bool enter_field(const std::string& key) {
    std::optional<size_t> found;
    for (take(); peek() == '"';) {
      std::string name = string();
      space();
      take();  // the colon
      space();
      if (name == key) found = at_;  // the last duplicate wins, as in the parser
      skip_value();
      if (peek() != ',') break;
      take();
    }
    if (found) at_ = *found;
    return found.has_value();
  }

  bool enter_element(const std::string& key) {
    take();
    for (size_t i = 0; peek() != ']' && peek() != '\0'; ++i) {
      if (std::to_string(i) == key) return true;
      skip_value();
      if (peek() != ',') return false;
      take();
    }
    return false;
  }

  void skip_value() {
    int depth = 0;
    do {
      char c = peek();
      if (c == '\0') return;
      if (c == '"') {
        string();
      } else {
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        ++at_;
      }
      if (depth == 0 && !in_scalar(c)) break;
    } while (true);
    space();
  }

  // True if the number or word that contains `c` continues.
  bool in_scalar(char c) const {
    static constexpr std::string_view ends = ",]} \t\r\n";
    bool word = c != '"' && c != '}' && c != ']';
    return word && at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos;
  }

  std::string string() {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_];
    }
    ++at_;
    return out;
  }

  void take() {
    if (at_ < text_.size()) ++at_;
    space();
  }
  void space() {
    static constexpr std::string_view blanks = " \t\r\n";
    while (at_ < text_.size() && blanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::pair<int, int>> place_of(std::string_view text, std::string_view pointer) {
  Walker walker(text);
  if (!pointer.empty()) {
    if (pointer[0] != '/') return std::nullopt;
    std::vector<std::string> keys = split(pointer.substr(1), '/');
    for (size_t i = 0; i < keys.size(); ++i) {
      bool found = walker.enter(replace_all(replace_all(keys[i], "~1", "/"), "~0", "~"));
      if (!found && i + 1 < keys.size()) return std::nullopt;
      if (!found) return place_of(text, pointer.substr(0, pointer.rfind('/')));
    }
  }
  size_t at = std::min(walker.at(), text.size());
  auto line = std::count(text.begin(), text.begin() + long(at), '\n') + 1;
  size_t last = text.substr(0, at).rfind('\n');
  size_t column = at - (last == std::string_view::npos ? 0 : last + 1) + 1;
  return std::pair(int(line), int(column));
}

Error with_place(Error error, std::string_view text) {
  size_t hash = error.where.find('#');
  if (hash == std::string::npos) return error;
  auto place = place_of(text, std::string_view(error.where).substr(hash + 1));
  if (place)
    error.where = fmt::format("{}:{}:{}", error.where.substr(0, hash), place->first, place->second);
  return error;
}

}  // namespace cutegen
