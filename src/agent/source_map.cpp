// SPDX-License-Identifier: Apache-2.0
#include "agent/source_map.h"

#include <algorithm>
#include <cctype>

namespace cutegen::agent {
namespace {

class Mapper {
 public:
  explicit Mapper(std::string_view text) : text_(text), kinds_(text.size(), ByteKind::code) {}

  std::vector<ByteKind> run() {
    bool line_start = true;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        line_start = true;
        ++at_;
      } else if (std::isspace(uint8_t(c))) {
        ++at_;
      } else if (comment_here()) {
        read_comment();
      } else if (c == '#' && line_start) {
        read_directive();
        line_start = true;
      } else {
        line_start = false;
        read_code(c);
      }
    }
    return std::move(kinds_);
  }

 private:
  bool comment_here() const {
    return text_[at_] == '/' && at_ + 1 < text_.size() &&
           (text_[at_ + 1] == '/' || text_[at_ + 1] == '*');
  }
  void mark(size_t from, size_t to, ByteKind kind) {
    std::fill(kinds_.begin() + std::ptrdiff_t(from), kinds_.begin() + std::ptrdiff_t(to), kind);
    at_ = to;
  }
  // The end of the logical line that holds `from`: its line break, or the end of the text.
  size_t line_end(size_t from) const {
    for (size_t at = from;;) {
      size_t end = text_.find('\n', at);
      if (end == std::string_view::npos) return text_.size();
      size_t last = end;
      if (last > from && text_[last - 1] == '\r') --last;
      if (last == from || text_[last - 1] != '\\') return end;
      at = end + 1;
    }
  }
  void read_comment() {
    if (text_[at_ + 1] == '/') return mark(at_, line_end(at_), ByteKind::comment);
    size_t end = text_.find("*/", at_ + 2);
    mark(at_, end == std::string_view::npos ? text_.size() : end + 2, ByteKind::comment);
  }
  // A directive ends before a comment, which may continue over several lines.
  void read_directive() {
    size_t end = line_end(at_), from = at_;
    while (at_ < end && !comment_here()) ++at_;
    mark(from, at_, ByteKind::directive);
    if (at_ < end) read_comment();
  }
  void read_code(char c) {
    if (is_word_byte(c)) {
      size_t from = at_;
      while (at_ < text_.size() && (is_word_byte(text_[at_]) || digit_separator(from))) ++at_;
      bool raw =
          at_ < text_.size() && text_[at_] == '"' && text_[at_ - 1] == 'R' && at_ - from <= 3;
      if (raw) read_raw();
    } else if (c == '"' || c == '\'') {
      read_quoted(c);
    } else {
      ++at_;
    }
  }
  // Whether the quote separates digits, as in 1'000.
  bool digit_separator(size_t from) const {
    return text_[at_] == '\'' && std::isdigit(uint8_t(text_[from])) && at_ + 1 < text_.size() &&
           is_word_byte(text_[at_ + 1]);
  }
  void read_quoted(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    mark(at_, end < text_.size() && text_[end] == quote ? end + 1 : end, ByteKind::literal);
  }
  void read_raw() {
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) return read_quoted('"');
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    size_t end = text_.find(close, open);
    mark(at_, end == std::string_view::npos ? text_.size() : end + close.size(), ByteKind::literal);
  }

  std::string_view text_;
  std::vector<ByteKind> kinds_;
  size_t at_ = 0;
};

bool is_blank(char c) {
  return std::isspace(uint8_t(c)) != 0;
}

// Returns the position after the group that opens at `at`, or npos if the group never closes.
size_t after_group(std::string_view code, size_t at, char open, char close) {
  int depth = 0;
  for (; at < code.size(); ++at) {
    if (code[at] == open) ++depth;
    if (code[at] == close && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

std::string word_at(std::string_view code, size_t at) {
  size_t end = at;
  while (end < code.size() && is_word_byte(code[end])) ++end;
  return std::string(code.substr(at, end - at));
}

size_t skip_blanks(std::string_view code, size_t at) {
  while (at < code.size() && is_blank(code[at])) ++at;
  return at;
}

// Removes the template<...> parts from the head of a declaration.
std::string_view without_templates(std::string_view head) {
  for (;;) {
    size_t at = skip_blanks(head, 0);
    head.remove_prefix(at);
    if (word_at(head, 0) != "template") return head;
    size_t open = skip_blanks(head, 8);
    if (open >= head.size() || head[open] != '<') return head;
    int angles = 0, parens = 0;
    size_t end = open;
    for (; end < head.size(); ++end) {
      char c = head[end];
      if (c == '(') ++parens;
      if (c == ')') --parens;
      if (c == '<' && parens == 0) ++angles;
      if (c == '>' && parens == 0 && --angles == 0) break;
    }
    if (end >= head.size()) return {};
    head.remove_prefix(end + 1);
  }
}

bool takes_arguments(const std::string& word) {
  static const std::vector<std::string> kWords{"__launch_bounds__", "__attribute__",   "alignas",
                                               "decltype",          "requires",        "noexcept",
                                               "__align__",         "__declspec",      "explicit",
                                               "__maxnreg__",       "__cluster_dims__"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// Reads a function's name from its head: the word before the parameter list.
std::string function_name(std::string_view head) {
  std::string last;
  for (size_t at = 0; at < head.size();) {
    char c = head[at];
    if (is_word_byte(c)) {
      last = word_at(head, at);
      at += last.size();
    } else if (c == '(') {
      if (!last.empty() && !takes_arguments(last)) return last;
      at = after_group(head, at, '(', ')');
      if (at == std::string_view::npos) return {};
      last.clear();
    } else if (c == '=') {
      return {};  // a variable with an initialiser
    } else {
      if (!is_blank(c)) last.clear();
      ++at;
    }
  }
  return {};
}

bool opens_type(const std::string& word) {
  return word == "struct" || word == "class" || word == "union" || word == "enum";
}

// Reads the name after struct, class, union or enum, and skips attributes; empty if there is none.
std::string type_name(std::string_view head) {
  bool within = false;
  for (size_t at = 0; at < head.size();) {
    if (!is_word_byte(head[at])) {
      ++at;
      continue;
    }
    std::string word = word_at(head, at);
    at += word.size();
    if (opens_type(word)) {
      within = true;
    } else if (within && takes_arguments(word)) {
      size_t open = skip_blanks(head, at);
      at = open < head.size() && head[open] == '(' ? after_group(head, open, '(', ')') : at;
    } else if (within) {
      return word;
    }
  }
  return {};
}

struct Head {
  enum class Kind { scope, type, function, other } kind = Kind::other;
  std::string name;
};

Head classify(std::string_view code) {
  std::string_view head = without_templates(code);
  std::vector<std::string> words;
  for (size_t at = 0; at < head.size();) {
    if (!is_word_byte(head[at])) {
      ++at;
      continue;
    }
    words.push_back(word_at(head, at));
    at += words.back().size();
  }
  if (words.empty()) return {};
  bool parens = head.find('(') != std::string_view::npos;
  if (words[0] == "namespace" ||
      (words[0] == "inline" && words.size() > 1 && words[1] == "namespace"))
    return {.kind = Head::Kind::scope, .name = {}};
  if (words[0] == "extern" && words.size() == 1)
    return {.kind = Head::Kind::scope, .name = {}};  // extern "C" {
  if (std::string name = parens ? function_name(head) : std::string(); !name.empty())
    return {.kind = Head::Kind::function, .name = name};
  if (std::string name = type_name(head); !name.empty())
    return {.kind = Head::Kind::type, .name = name};
  return {};
}

class DefinitionReader {
 public:
  explicit DefinitionReader(std::string_view text)
      : text_(text), kinds_(map_source(text)), code_(code_only(text)) {}

  std::vector<Definition> run() {
    for (size_t at = 0; at < code_.size();) at = step(at);
    return std::move(found_);
  }

 private:
  size_t step(size_t at) {
    char c = code_[at];
    if (kinds_[at] == ByteKind::directive || c == ';' || c == '}') {
      begun_ = false;
      return at + 1;
    }
    if (is_blank(c)) return at + 1;
    if (!begun_) {
      begun_ = true;
      begin_ = at;
    }
    if (c == '(') {
      size_t end = after_group(code_, at, '(', ')');
      return end == std::string_view::npos ? code_.size() : end;
    }
    return c == '{' ? open_brace(at) : at + 1;
  }

  size_t open_brace(size_t at) {
    Head head = classify(std::string_view(code_).substr(begin_, at - begin_));
    if (head.kind == Head::Kind::scope) {
      begun_ = false;
      return at + 1;
    }
    size_t end = after_group(code_, at, '{', '}');
    if (end == std::string_view::npos) return code_.size();
    if (head.kind == Head::Kind::other) return end;  // a variable: continues to its semicolon
    bool is_type = head.kind == Head::Kind::type;
    if (is_type) {
      size_t semicolon = code_.find(';', end);
      if (semicolon == std::string::npos) return code_.size();
      end = semicolon + 1;
    }
    found_.push_back({.name = head.name,
                      .is_type = is_type,
                      .begin = begin_,
                      .size = end - begin_,
                      .line = line_at(text_, begin_)});
    begun_ = false;
    return end;
  }

  std::string_view text_;
  std::vector<ByteKind> kinds_;
  std::string code_;
  std::vector<Definition> found_;
  bool begun_ = false;
  size_t begin_ = 0;
};

struct Open {
  char bracket;
  int line;
};

char partner(char open) {
  return open == '(' ? ')' : open == '[' ? ']' : '}';
}

// Matches brackets. Each branch of an #if starts with the brackets that were open before the #if.
class BracketReader {
 public:
  explicit BracketReader(std::string_view text) : text_(text), kinds_(map_source(text)) {}

  std::optional<Imbalance> run() {
    for (size_t at = 0; at < text_.size(); ++at) {
      char c = text_[at];
      if (c == '\n') ++line_;
      std::optional<Imbalance> wrong;
      if (kinds_[at] == ByteKind::directive && c == '#' &&
          (at == 0 || kinds_[at - 1] != ByteKind::directive))
        wrong = directive(at);
      else if (kinds_[at] == ByteKind::code)
        wrong = bracket(c);
      if (wrong) return wrong;
    }
    if (!branches_.empty())
      return Imbalance{
          .line = branches_.back().line,
          .message = "#if of line " + std::to_string(branches_.back().line) + " has no #endif"};
    if (!open_.empty()) return never_closed(open_.back());
    return std::nullopt;
  }

 private:
  struct Branch {
    std::vector<Open> before;
    int line;
  };
  static Imbalance never_closed(const Open& open) {
    return {.line = open.line,
            .message = "'" + std::string(1, open.bracket) + "' of line " +
                       std::to_string(open.line) + " is never closed"};
  }
  std::optional<Imbalance> bracket(char c) {
    if (c == '(' || c == '[' || c == '{') {
      open_.push_back({.bracket = c, .line = line_});
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_.empty())
        return Imbalance{.line = line_,
                         .message = "'" + std::string(1, c) + "' of line " + std::to_string(line_) +
                                    " closes nothing"};
      if (partner(open_.back().bracket) != c)
        return Imbalance{.line = line_,
                         .message = "'" + std::string(1, c) + "' of line " + std::to_string(line_) +
                                    " does not fit '" + std::string(1, open_.back().bracket) +
                                    "' of line " + std::to_string(open_.back().line)};
      open_.pop_back();
    }
    return std::nullopt;
  }
  std::optional<Imbalance> directive(size_t at) {
    std::string word = word_at(text_, skip_blanks(text_, at + 1));
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      branches_.push_back({.before = open_, .line = line_});
    } else if (word == "else" || word == "elif") {
      if (branches_.empty()) return lonely(word);
      open_ = branches_.back().before;
    } else if (word == "endif") {
      if (branches_.empty()) return lonely(word);
      branches_.pop_back();
    }
    return std::nullopt;
  }
  std::optional<Imbalance> lonely(const std::string& word) const {
    return Imbalance{.line = line_,
                     .message = "#" + word + " of line " + std::to_string(line_) + " has no #if"};
  }

  std::string_view text_;
  std::vector<ByteKind> kinds_;
  std::vector<Open> open_;
  std::vector<Branch> branches_;
  int line_ = 1;
};

}  // namespace

bool is_word_byte(char c) {
  return std::isalnum(uint8_t(c)) || c == '_' || c == '$';
}

std::vector<ByteKind> map_source(std::string_view text) {
  return Mapper(text).run();
}

std::string code_only(std::string_view text) {
  std::vector<ByteKind> kinds = map_source(text);
  std::string out(text);
  for (size_t i = 0; i < out.size(); ++i)
    if (kinds[i] != ByteKind::code && out[i] != '\n') out[i] = ' ';
  return out;
}

std::vector<Definition> definitions_in(std::string_view text) {
  return DefinitionReader(text).run();
}

std::optional<Imbalance> first_imbalance(std::string_view text) {
  return BracketReader(text).run();
}

int line_at(std::string_view text, size_t at) {
  return 1 + int(std::count(text.begin(), text.begin() + std::ptrdiff_t(std::min(at, text.size())),
                            '\n'));
}

}  // namespace cutegen::agent
