// SPDX-License-Identifier: Apache-2.0
#include "eval/source/strict_lint.h"

#include <fmt/format.h>

#include <cstdlib>

namespace cutegen::eval {
namespace {

constexpr size_t kMostStrictFindings = 16;
constexpr long kLargestMask = 31;  // largest mask for the bits of a row or a bank in a swizzle

struct MatrixInstruction {
  const char* name;
  const char* remedy;
};
constexpr MatrixInstruction kMatrixInstructions[] = {
    {.name = "wgmma",
     .remedy = "use cutegen::WgmmaGemm (page gemm_wgmma), or a TiledMMA with an SM90 atom"},
    {.name = "mma",
     .remedy = "use make_tiled_mma and gemm() (pages tiled_mma and three_products), or "
               "cutegen::MmaGemm (page gemm)"},
    {.name = "ldmatrix",
     .remedy = "use a Copy_Atom<SM75_U32x4_LDSM_N, ...> with make_tiled_copy_A or _B"},
    {.name = "stmatrix",
     .remedy = "use a Copy_Atom<SM90_U32x4_STSM_N, ...> with make_tiled_copy_C (page "
               "tiled_epilogue)"}};

constexpr const char* kSwizzleRemedy =
    "give the shared tensor a swizzled layout and index it by row and column: "
    "composition(Swizzle<2, 3, 3>{}, layout) (page tiled_epilogue)";

// Whether the assembly has this instruction, and not only a longer word.
bool has_instruction(const std::string& text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !(std::isalnum(uint8_t(text[at - 1])) || text[at - 1] == '_');
    const size_t end = at + name.size();
    if (begins && end < text.size() && text[end] == '.') return true;
  }
  return false;
}

bool ends_of_statement(const Token& t) {
  return t.mark(';') || t.mark('{') || t.mark('}') || t.kind == Token::Kind::directive;
}

class StrictLinter {
 public:
  StrictLinter(std::string name, const std::vector<Token>& tokens)
      : name_(std::move(name)), tokens_(tokens) {}

  std::vector<LintFinding> run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == Token::Kind::directive) directive(tokens_[i]);
      if (tokens_[i].kind == Token::Kind::string) assembly(i);
      if (tokens_[i].mark('^') && is_swizzle(i))
        add(tokens_[i], "'^' computes a swizzle by hand", kSwizzleRemedy);
    }
    return std::move(found_);
  }

 private:
  void add(const Token& at, std::string what, std::string remedy) {
    if (found_.size() >= kMostStrictFindings) return;
    found_.push_back({.rule = false,
                      .error = {.kind = ErrorKind::user,
                                .message = std::move(what) + "; the dialect is cute-strict",
                                .where = fmt::format("{}:{}:{}", name_, at.line, at.column),
                                .remedy = std::move(remedy)}});
  }

  // The compiler joins adjacent literals, so this does, too.
  void assembly(size_t i) {
    if (i > 0 && tokens_[i - 1].kind == Token::Kind::string) return;
    std::string whole;
    for (size_t at = i; at < tokens_.size() && tokens_[at].kind == Token::Kind::string; ++at)
      whole += tokens_[at].text;
    for (const MatrixInstruction& one : kMatrixInstructions)
      if (has_instruction(whole, one.name))
        return add(tokens_[i], fmt::format("inline assembly with '{}'", one.name), one.remedy);
  }

  void directive(const Token& t) {
    const size_t at = t.text.find("define");
    if (at == std::string::npos) return;
    std::vector<Token> body = scan_source(t.text.substr(at));
    for (Token& inner : body) inner.line = t.line, inner.column = t.column;
    for (LintFinding& finding : StrictLinter(name_, body).run())
      if (found_.size() < kMostStrictFindings) found_.push_back(std::move(finding));
  }

  // Whether the '^' at token `at` is part of an index, or combines a value with a few bits of
  // another one (x & 7). A shuffle in the same statement excludes a swizzle.
  bool is_swizzle(size_t at) const {
    if (at + 1 < tokens_.size() && tokens_[at + 1].mark('=')) return false;
    size_t begin = at, end = at;
    while (begin > 0 && !ends_of_statement(tokens_[begin - 1])) --begin;
    while (end < tokens_.size() && !ends_of_statement(tokens_[end])) ++end;
    int open = 0;
    bool masked = false, indexes = false;
    for (size_t i = begin; i < end; ++i) {
      if (tokens_[i].kind == Token::Kind::word && tokens_[i].text.starts_with("__shfl"))
        return false;
      if (i < at) open += tokens_[i].mark('[') - tokens_[i].mark(']');
      if (i == at) indexes = open > 0;
      const bool mask = tokens_[i].mark('&') || tokens_[i].mark('%');
      if (mask && i + 1 < end && tokens_[i + 1].kind == Token::Kind::number)
        masked = masked || std::strtol(tokens_[i + 1].text.c_str(), nullptr, 0) <= kLargestMask;
    }
    return indexes || masked;
  }

  const std::string name_;
  const std::vector<Token>& tokens_;
  std::vector<LintFinding> found_;
};

}  // namespace

std::vector<LintFinding> lint_strict(const std::string& name, const std::vector<Token>& tokens) {
  return StrictLinter(name, tokens).run();
}

}  // namespace cutegen::eval
