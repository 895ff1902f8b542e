// SPDX-License-Identifier: Apache-2.0
// Finds the variables in global memory that PTX refers to, and whether it may write them.
//
// The scan follows a variable's address through registers, function by function: an instruction
// that reads a marked register marks the register it writes. If an address reaches a store, an
// atomic, a call or memory, the variable counts as written, because the scan does not follow
// addresses in memory.
//
// In the same way, it checks that the address of a load from constant memory comes from a declared
// variable.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "toolchain/binary_text.h"

namespace cutegen::toolchain {
namespace {

constexpr size_t kMostVariables = 65536, kMostCalls = 256, kMostUsedNameBytes = 1024;
constexpr size_t kMostReads = 64;  // special registers to report
constexpr size_t kMostMarks = 1 << 20;
constexpr int kMostRounds = 64;  // rounds of data flow; loops need several

using Words = std::vector<std::string_view>;

bool word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

// Splits PTX into statements. A statement consists of names and the characters [ ] , ( ) = { }.
class UseScanner {
 public:
  explicit UseScanner(std::string_view text) : text_(text) {}

  // Returns false at the end. A "{" or "}" that delimits a block is a statement. Skips labels.
  bool next(Words& out) {
    out.clear();
    int inner = 0;  // depth in braces of vectors and initial values
    for (std::string_view word = read(); !word.empty(); word = read()) {
      if ((word == "{" && inner == 0 && (out.empty() || is_header(out))) ||
          (word == "}" && inner == 0)) {
        if (out.empty())
          out.push_back(word);
        else
          back_to(word);
        return true;
      }
      inner += word == "{" ? 1 : word == "}" ? -1 : 0;
      if (word == ";" && !out.empty()) return true;
      if (word == ";" || (word == ":" && out.size() == 1)) {
        out.clear();
      } else if (out.empty() && has_no_end(word)) {
        skip_directive(word);
      } else {
        out.push_back(word);
      }
    }
    return !out.empty();
  }

  // Whether the words begin a function or section, which a block in braces follows.
  static bool is_header(const Words& words) {
    return std::any_of(words.begin(), words.end(), [](std::string_view w) {
      return w == ".entry" || w == ".func" || w == ".section";
    });
  }

 private:
  // Directives that end without a semicolon, so that an instruction may follow on the same line.
  static bool has_no_end(std::string_view word) {
    return word == ".loc" || word == ".file" || word == ".version" || word == ".target" ||
           word == ".address_size";
  }

  void skip_directive(std::string_view directive) {
    for (int i = directive == ".loc" ? 3 : directive == ".file" ? 2 : 1; i > 0; --i) (void)read();
    for (std::string_view word = read(); !word.empty(); word = read()) {
      if (word != ",") return back_to(word);
      std::string_view attribute = read();
      if (attribute == "inlined_at") (void)read(), (void)read(), (void)read();
      if (attribute != "function_name") continue;
      (void)read();
      if (std::string_view plus = read(); plus != "+")
        back_to(plus);
      else
        (void)read();
    }
  }

  void back_to(std::string_view word) {
    if (!word.empty()) at_ = size_t(word.data() - text_.data());
  }

  std::string_view read() {
    skip_blank();
    if (at_ >= text_.size()) return {};
    size_t begin = at_;
    if (text_[at_] == '"') {
      ++at_;
      while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
      at_ = std::min(at_ + 1, text_.size());
    } else if (word_byte(text_[at_])) {
      while (at_ < text_.size() && word_byte(text_[at_])) ++at_;
    } else {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (uint8_t(text_[at_]) <= ' ') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct UsedVariable {
  int64_t bytes = 0;
  bool used = false, written = false;
  bool constant = false;  // in constant memory
};

// Special registers that differ between launches, multiprocessors or driver settings. Cooperative
// groups use %envreg1 and %envreg2 to find the barrier of their grid.
bool is_unusual(std::string_view word) {
  if (word[0] != '%') return false;
  if (word.starts_with("%envreg")) return word != "%envreg1" && word != "%envreg2";
  return word == "%gridid" || word == "%smid" || word == "%nsmid" || word == "%warpid" ||
         word == "%nwarpid" || word.starts_with("%pm");
}

int64_t number(std::string_view word) {
  int64_t out = 0;
  if (word.empty() || word.size() > 15) return 0;
  for (char c : word) {
    if (c < '0' || c > '9') return 0;
    out = out * 10 + (c - '0');
  }
  return out;
}

// Bytes per element, from the digits of ".b8", ".u32", ".f64".
int64_t element_bytes(std::string_view type) {
  size_t digits = type.find_first_of("0123456789");
  return digits == std::string_view::npos ? 0
                                          : std::max<int64_t>(1, number(type.substr(digits)) / 8);
}

bool is_register_type(std::string_view word) {
  return word.size() > 2 && word[0] == '.' && std::string_view("bsuf").find(word[1]) < 4 &&
         word[2] >= '0' && word[2] <= '9';
}

class Reader {
 public:
  PtxUse read(std::string_view ptx) {
    UseScanner scanner(ptx);
    Words words;
    int depth = 0;
    while (scanner.next(words)) {
      if (words[0] == "{") {
        ++depth;
      } else if (words[0] == "}") {
        if (--depth <= 0) {
          depth = 0;
          end_function();
        }
      } else if (words[0][0] != '.') {
        body_.push_back(words);
        for (std::string_view w : words)
          if (is_unusual(w) && w.size() < 20 && unusual_.size() < kMostReads)
            unusual_.insert(std::string(w));
      } else if (UseScanner::is_header(words)) {
        if (words[0] == ".extern") declare_function(words);
      } else if (std::find(words.begin(), words.end(), ".global") != words.end()) {
        declare(words, false);
      } else if (std::find(words.begin(), words.end(), ".const") != words.end()) {
        declare(words, true);
      }
    }
    end_function();
    return result();
  }

 private:
  void declare(const Words& words, bool constant) {
    auto end =
        std::find_if(words.begin(), words.end(), [](auto w) { return w == "[" || w == "="; });
    int64_t element = 0, count = 1;
    std::string_view name;
    for (auto w = words.begin(); w != end; ++w) {
      if (is_register_type(*w)) element = element_bytes(*w);
      if ((*w)[0] != '.' && word_byte((*w)[0])) name = *w;
    }
    for (auto w = end; w != words.end() && *w != "="; ++w)
      if (number(*w) > 0 && __builtin_mul_overflow(count, number(*w), &count)) count = 0;
    if (__builtin_mul_overflow(count, element, &count)) count = 0;
    if (!name.empty() && name.size() <= kMostUsedNameBytes && variables_.size() < kMostVariables)
      variables_[std::string(name)] = {.bytes = count, .constant = constant};
    // If an initial value contains the address of a variable, code can reach that variable through
    // memory.
    for (auto w = end; w != words.end(); ++w)
      if (word_byte((*w)[0]) && number(*w) == 0 && in_memory_.size() < kMostVariables)
        in_memory_.insert(std::string(*w));
  }

  void declare_function(const Words& words) {
    auto func = std::find(words.begin(), words.end(), ".func");
    if (func == words.end()) return;
    int depth = 0;
    for (auto w = func + 1; w != words.end(); ++w) {
      depth += *w == "(" ? 1 : *w == ")" ? -1 : 0;
      if (depth == 0 && word_byte((*w)[0]) && (*w)[0] != '.') {
        external_.insert(std::string(*w));
        return;
      }
    }
  }

  // The variables that a register may point to; null for other words.
  std::set<std::string_view>* marks_of(std::string_view word) {
    auto at = marks_.find(word);
    return at == marks_.end() ? nullptr : &at->second;
  }

  void write_all(std::string_view word) {
    if (auto at = variables_.find(std::string(word)); at != variables_.end())
      at->second.used = at->second.written = true;
    if (auto* marks = marks_of(word))
      for (std::string_view m : *marks) variables_[std::string(m)].written = true;
  }

  // Follows addresses through one instruction. Returns whether this added a mark.
  bool flow(const Words& words) {
    size_t begin = 0;
    if (words[0] == "@") begin = words.size() > 1 && words[1] == "!" ? 3 : 2;
    if (begin >= words.size()) return false;
    std::string_view opcode = words[begin];
    auto is = [&](std::string_view prefix) { return opcode.starts_with(prefix); };
    bool sink = is("st.") || is("atom.") || is("red.") || is("call") || is("cp.") ||
                is("multimem.") || is("stmatrix") || is("mbarrier") || is("wgmma") ||
                is("tensormap") || is("discard");
    for (size_t i = begin + 1; i < words.size(); ++i) {
      if (auto at = variables_.find(std::string(words[i])); at != variables_.end())
        at->second.used = true;
      if (is("call") && external_.contains(std::string(words[i])) && calls_.size() < kMostCalls)
        calls_.insert(std::string(words[i]));
      if (sink) write_all(words[i]);
    }
    if (sink || is("ld.") || is("ldu.") || is("prefetch") || is("bra")) return false;
    return mark_results(words, begin + 1);
  }

  // An instruction writes the operands before the first comma outside braces and reads the others.
  bool mark_results(const Words& words, size_t first) {
    size_t comma = first, depth = 0;
    for (; comma < words.size() && (words[comma] != "," || depth > 0); ++comma) {
      if (words[comma] == "{") ++depth;
      if (words[comma] == "}" && depth > 0) --depth;
    }
    std::set<std::string_view> incoming;
    for (size_t i = comma; i < words.size(); ++i) {
      auto at = variables_.find(std::string(words[i]));
      if (at != variables_.end()) incoming.insert(at->first);
      if (auto* marks = marks_of(words[i])) incoming.insert(marks->begin(), marks->end());
    }
    if (incoming.empty()) return false;
    bool changed = false;
    for (size_t i = first; i < comma; ++i) {
      if (words[i][0] != '%' && !word_byte(words[i][0])) continue;
      auto& marks = marks_[words[i]];
      size_t before = marks.size();
      marks.insert(incoming.begin(), incoming.end());
      changed = changed || marks.size() > before;
      marks_made_ += marks.size() - before;
    }
    return changed;
  }

  // Whether the instruction loads from constant memory, or converts a pointer to it, at an address
  // that does not come from a declared variable.
  bool constant_by_address(const Words& words) {
    size_t at = words[0] == "@" ? (words.size() > 1 && words[1] == "!" ? 3 : 2) : 0;
    if (at >= words.size()) return false;
    std::string_view opcode = words[at];
    const bool load = opcode.starts_with("ld.const") || opcode.starts_with("ldu.const"),
               cast = opcode.starts_with("cvta.const") || opcode.starts_with("cvta.to.const");
    if (!load && !cast) return false;
    auto from = std::find(words.begin() + int64_t(at), words.end(), load ? "[" : ",");
    for (; from != words.end() && *from != "]"; ++from) {
      auto variable = variables_.find(std::string(*from));
      if (variable != variables_.end() && variable->second.constant) return false;
      if (auto* marks = marks_of(*from))
        for (std::string_view m : *marks)
          if (variables_[std::string(m)].constant) return false;
    }
    return true;
  }

  void end_function() {
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
      changed = false;
      for (const Words& words : body_) {
        if (marks_made_ <= kMostMarks) changed = flow(words) || changed;
      }
    }
    if (changed || marks_made_ > kMostMarks)  // if the scan gave up, assume that all are written
      for (auto& [name, v] : variables_) v.used = v.written = true;
    for (const Words& words : body_)
      if (constant_by_address(words)) unusual_.insert(kConstantByAddress);
    body_.clear();
    marks_.clear();
    marks_made_ = 0;
  }

  PtxUse result() {
    PtxUse out;
    for (auto& [name, v] : variables_) {
      bool reached = in_memory_.contains(name);
      if (v.constant) continue;
      if (v.used || reached)
        out.globals.push_back({.name = name, .bytes = v.bytes, .written = v.written || reached});
    }
    std::sort(out.globals.begin(), out.globals.end(),
              [](auto& a, auto& b) { return a.name < b.name; });
    out.device_calls.assign(calls_.begin(), calls_.end());
    out.unusual_reads.assign(unusual_.begin(), unusual_.end());
    return out;
  }

  std::unordered_map<std::string, UsedVariable> variables_;
  std::set<std::string> in_memory_, external_, calls_, unusual_;
  std::vector<Words> body_;
  size_t marks_made_ = 0;
  std::unordered_map<std::string_view, std::set<std::string_view>> marks_;
};

}  // namespace

PtxUse read_ptx_use(std::string_view ptx) {
  return Reader().read(ptx);
}

}  // namespace cutegen::toolchain
