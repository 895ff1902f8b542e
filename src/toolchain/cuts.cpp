// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cuts.h"

#include <cctype>
#include <string_view>

namespace cutegen::toolchain {
namespace {

constexpr size_t kMostCuts = 256;

// Words that mean something else in a piece than in the whole, or at another time of day.
constexpr std::string_view kTellTale[] = {"__has_include", "__has_embed",   "__INCLUDE_LEVEL__",
                                          "__FILE_NAME__", "__TIMESTAMP__", "__DATE__",
                                          "__TIME__",      "_Pragma",       "candidate.cuh"};

bool is_word(char c) {
  return std::isalnum(uint8_t(c)) || c == '_';
}

class CutScanner {
 public:
  CutScanner(const std::string& text, size_t body) : text_(text), body_(body) {}

  Cuts scan() {
    for (std::string_view word : kTellTale) out_.plain &= text_.find(word) == std::string::npos;
    out_.plain &= text_.find('\r') == std::string::npos;
    while (out_.plain && i_ < text_.size()) step();
    out_.plain &= paren_ == 0 && groups_.empty();
    if (!out_.plain) out_.at.clear();
    thin();
    return std::move(out_);
  }

 private:
  char at(size_t k) const { return k < text_.size() ? text_[k] : '\0'; }
  void odd() { out_.plain = false; }

  void step() {
    const char c = text_[i_];
    if (c == '\n') return end_line();
    if (c == '\\' && at(i_ + 1) == '\n') return splice();
    if (c == '/' && at(i_ + 1) == '/') return line_comment();
    if (c == '/' && at(i_ + 1) == '*') return block_comment();
    if (c == ' ' || c == '\t') {
      ++i_;
      return;
    }
    if (c == '#' && fresh_line_) return directive();
    fresh_line_ = false;
    if (c == '"' || c == '\'') return literal(c);
    if (is_word(c)) return word();
    in_directive_ ? void(directive_paren_ += (c == '(') - (c == ')')) : punctuation(c);
    ++i_;
  }

  void count_line() {
    if (i_ >= body_) ++line_;
  }

  void end_line() {
    count_line();
    ++i_;
    if (in_directive_ && directive_paren_ != 0) odd();  // a macro with an open parenthesis
    in_directive_ = false;
    directive_paren_ = 0;
    fresh_line_ = true;
    if (i_ == body_) line_ = 1;
    const bool between = last_ == ';' || last_ == '{' || last_ == '}';
    if (i_ > body_ && between && news_ && paren_ == 0 && groups_.empty()) {
      out_.at.push_back({.offset = i_, .line = line_});
      news_ = false;
    }
  }

  // Accepts a line splice only if it cannot form the start of a comment or a literal.
  void splice() {
    const char before = i_ > 0 ? text_[i_ - 1] : '\n';
    if (!in_directive_ || (before != ' ' && !is_word(before) && before != ';' && before != '}'))
      return odd();
    i_ += 1;
    count_line();
    i_ += 1;
  }

  void line_comment() {
    for (; i_ < text_.size() && text_[i_] != '\n'; ++i_)
      if (text_[i_] == '\\' && at(i_ + 1) == '\n') return odd();
  }

  void block_comment() {
    const size_t end = text_.find("*/", i_ + 2);
    if (end == std::string::npos) return odd();
    for (; i_ < end + 2; ++i_) {
      if (text_[i_] == '\\' && at(i_ + 1) == '\n') return odd();
      if (text_[i_] != '\n') continue;
      if (i_ < body_ && end >= body_) return odd();  // hides the #line before the source
      count_line();
    }
  }

  void literal(char quote) {
    for (++i_; i_ < text_.size() && text_[i_] != quote; ++i_) {
      if (text_[i_] == '\n') return odd();
      if (text_[i_] == '\\') ++i_;
      if (at(i_) == '\n') return odd();
    }
    ++i_;
    news_ = news_ || !in_directive_;
    if (!in_directive_) last_ = quote;
  }

  // Reads names and numbers. The ' in a number is not a quote.
  void word() {
    const bool number = std::isdigit(uint8_t(text_[i_]));
    while (is_word(at(i_)) || (number && at(i_) == '\'' && is_word(at(i_ + 1)))) ++i_;
    if (at(i_) == '"' && text_[i_ - 1] == 'R') return odd();
    if (in_directive_) return;
    last_ = 'a';
    news_ = true;
  }

  void punctuation(char c) {
    if (c == '(') ++paren_;
    if (c == ')' && --paren_ < 0) odd();
    last_ = c;
    news_ = true;
  }

  void directive() {
    in_directive_ = true;
    fresh_line_ = false;
    ++i_;
    skip_blanks();
    size_t begin = i_;
    while (is_word(at(i_))) ++i_;
    const std::string_view name = std::string_view(text_).substr(begin, i_ - begin);
    skip_blanks();
    if (name == "include") return include();
    if (name == "pragma") return pragma();
    if (name == "line") return own_line();
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      groups_.push_back(paren_);
    } else if (name == "elif" || name == "else" || name == "endif") {
      if (groups_.empty() || groups_.back() != paren_) return odd();
      if (name == "endif") groups_.pop_back();
    } else if (name != "define" && name != "undef" && name != "error" && name != "warning") {
      odd();
    }
  }

  void skip_blanks() {
    while (at(i_) == ' ' || at(i_) == '\t') ++i_;
  }

  // Accepts <header> and "folder/header", which the compiler finds in an include folder.
  void include() {
    const char close = at(i_) == '<' ? '>' : '"';
    if (at(i_) != '<' && at(i_) != '"') return odd();
    const size_t end = text_.find_first_of(std::string{close, '\n'}, i_ + 1);
    if (end == std::string::npos || text_[end] != close) return odd();
    const std::string_view path = std::string_view(text_).substr(i_ + 1, end - i_ - 1);
    const bool below = path.find('/') != std::string_view::npos && is_word(path[0]);
    if (close == '"' && !below) return odd();
    i_ = end + 1;
  }

  void pragma() {
    const size_t begin = i_;
    while (is_word(at(i_))) ++i_;
    const std::string_view what = std::string_view(text_).substr(begin, i_ - begin);
    if (what != "unroll" && what != "nounroll" && what != "once") odd();
  }

  // The #line that full_source() puts before the source.
  void own_line() {
    const size_t end = text_.find('\n', i_);
    if (end == std::string::npos || end + 1 != body_) return odd();
    i_ = end;
  }

  void thin() {
    if (out_.at.size() <= kMostCuts) return;
    std::vector<Cut> kept;
    for (size_t k = 0; k < kMostCuts; ++k)
      kept.push_back(out_.at[(k + 1) * out_.at.size() / kMostCuts - 1]);
    out_.at = std::move(kept);
  }

  const std::string& text_;
  const size_t body_;
  Cuts out_;
  size_t i_ = 0;
  int line_ = 1, paren_ = 0, directive_paren_ = 0;
  std::vector<int> groups_;  // for each open #if: its number of open parentheses
  char last_ = '\0';         // the last character of code
  bool fresh_line_ = true, in_directive_ = false;
  bool news_ = false;  // there was code since the last cut
};

}  // namespace

Cuts find_cuts(const std::string& text, size_t body) {
  return CutScanner(text, body).scan();
}

}  // namespace cutegen::toolchain
