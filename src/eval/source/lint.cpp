// SPDX-License-Identifier: Apache-2.0
#include "eval/source/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "eval/source/strict_lint.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostSourceBytes = 1 << 20;
constexpr size_t kMostFindings = 32;  // in one source

// Prefixes of the headers that device code may include.
const std::vector<std::string>& allowed_headers() {
  static const std::vector<std::string> kAllowed{"cute/",
                                                 "cutlass/",
                                                 "cub/block/",
                                                 "cub/warp/",
                                                 "cub/thread/",
                                                 "cub/util_",
                                                 "cub/cub.cuh",
                                                 "cuda/",
                                                 "nv/target",
                                                 "cutegen/",
                                                 "cuda_fp4.h",
                                                 "cuda_fp6.h",
                                                 "cuda_fp8.h",
                                                 "cuda_fp16.h",
                                                 "cuda_bf16.h",
                                                 "cuda_pipeline",
                                                 "cooperative_groups",
                                                 "mma.h",
                                                 "math_constants.h",
                                                 "cuda_runtime.h",
                                                 "vector_types.h",
                                                 "vector_functions.h",
                                                 "stdint.h",
                                                 "cstdint",
                                                 "stddef.h",
                                                 "cstddef",
                                                 "limits.h",
                                                 "float.h",
                                                 "climits",
                                                 "cfloat",
                                                 "math.h",
                                                 "cmath",
                                                 "type_traits",
                                                 "utility",
                                                 "assert.h",
                                                 "cassert",
                                                 "cuda.h",
                                                 "device_launch_parameters.h"};
  return kAllowed;
}

// Words that no device source needs.
struct Forbidden {
  const char* word;
  bool rule;
  const char* why;
  const char* remedy;
};
constexpr Forbidden kForbidden[] = {
    {.word = "__DATE__",
     .rule = true,
     .why = "depends on the time of the build",
     .remedy = "remove it"},
    {.word = "__TIME__",
     .rule = true,
     .why = "depends on the time of the build",
     .remedy = "remove it"},
    {.word = "__TIMESTAMP__",
     .rule = true,
     .why = "depends on the time of the build",
     .remedy = "remove it"},
    {.word = "__has_include",
     .rule = true,
     .why = "reads files of the build machine",
     .remedy = "include an allowed header"},
    {.word = "__has_include_next",
     .rule = true,
     .why = "reads files of the build machine",
     .remedy = "remove it"},
    {.word = "__has_embed",
     .rule = true,
     .why = "reads files of the build machine",
     .remedy = "remove it"},
    {.word = "__managed__",
     .rule = true,
     .why = "keeps state between launches",
     .remedy = "use scratch of the plan"},
    {.word = "malloc",
     .rule = false,
     .why = "the device heap is not available",
     .remedy = "use scratch of the plan"},
    {.word = "free",
     .rule = false,
     .why = "the device heap is not available",
     .remedy = "use scratch of the plan"},
    {.word = "printf",
     .rule = false,
     .why = "printf is not available in kernels",
     .remedy = "remove it"},
    {.word = "vprintf",
     .rule = false,
     .why = "printf is not available in kernels",
     .remedy = "remove it"},
    {.word = "cudaTextureObject_t",
     .rule = false,
     .why = "textures are not available",
     .remedy = "read through pointers"},
    {.word = "cudaSurfaceObject_t",
     .rule = false,
     .why = "surfaces are not available",
     .remedy = "write through pointers"},
    {.word = "system", .rule = true, .why = "is host code", .remedy = "write device code only"},
    {.word = "dlopen", .rule = true, .why = "is host code", .remedy = "write device code only"},
    {.word = "fopen", .rule = true, .why = "is host code", .remedy = "write device code only"}};

// Prefixes of forbidden words.
constexpr Forbidden kForbiddenBeginnings[] = {
    {.word = "tex1D",
     .rule = false,
     .why = "textures are not available",
     .remedy = "read through pointers"},
    {.word = "tex2D",
     .rule = false,
     .why = "textures are not available",
     .remedy = "read through pointers"},
    {.word = "tex3D",
     .rule = false,
     .why = "textures are not available",
     .remedy = "read through pointers"},
    {.word = "surf2D",
     .rule = false,
     .why = "surfaces are not available",
     .remedy = "write through pointers"},
    {.word = "cudaLaunch",
     .rule = true,
     .why = "launches from the device are not available",
     .remedy = "add a step to the plan"},
    {.word = "cudaGraph",
     .rule = true,
     .why = "launches from the device are not available",
     .remedy = "add a step to the plan"},
    {.word = "cudaStream",
     .rule = true,
     .why = "is host code: streams belong to the evaluator",
     .remedy = "use steps of the plan"},
    {.word = "cudaEvent",
     .rule = true,
     .why = "is host code: timing belongs to the evaluator",
     .remedy = "remove it"},
    {.word = "cudaMemcpy", .rule = true, .why = "is host code", .remedy = "copy in a kernel"},
    {.word = "cudaMemset",
     .rule = true,
     .why = "is host code",
     .remedy = "use a fill step of the plan"},
    {.word = "cudaMalloc",
     .rule = true,
     .why = "is host code",
     .remedy = "use scratch of the plan"},
    {.word = "cudaFree", .rule = true, .why = "is host code", .remedy = "use scratch of the plan"},
    {.word = "cudaDevice",
     .rule = true,
     .why = "is host code",
     .remedy = "use expressions of the plan"},
    {.word = "cudaFunc", .rule = true, .why = "is host code", .remedy = "use the plan's fields"},
    {.word = "cudaGetParameterBuffer",
     .rule = true,
     .why = "launches from the device are not available",
     .remedy = "add a step"}};

constexpr const char* kForbiddenInText[] = {".incbin", ".include", "tex.", "suld.", "sust."};

// The findings of one source.
class Findings {
 public:
  explicit Findings(std::string name) : name_(std::move(name)) {}

  void add(const Token& at, bool rule, const std::string& what, const std::string& remedy) {
    if (found_.size() >= kMostFindings) return;
    found_.push_back({.rule = rule,
                      .error = {.kind = ErrorKind::user,
                                .message = what,
                                .where = fmt::format("{}:{}:{}", name_, at.line, at.column),
                                .remedy = remedy}});
  }
  std::vector<LintFinding> take() { return std::move(found_); }

 private:
  std::string name_;
  std::vector<LintFinding> found_;
};

// Finds words, directives and assembly that device source must not contain.
class WordLinter {
 public:
  WordLinter(const std::vector<Token>& tokens, Findings& out) : tokens_(tokens), out_(out) {}

  void run() {
    find_variables();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.kind == Token::Kind::directive) directive(t);
      if (t.kind == Token::Kind::word) word(i);
      if (t.kind == Token::Kind::string) text(i);
      if (i + 2 < tokens_.size() && t.mark('<') && tokens_[i + 1].mark('<') &&
          tokens_[i + 2].mark('<') && adjacent(i))
        out_.add(t, true, "launches from the device are not available", "add a step to the plan");
    }
  }

 private:
  bool adjacent(size_t i) const {
    return tokens_[i].line == tokens_[i + 2].line && tokens_[i].column + 2 == tokens_[i + 2].column;
  }

  void directive(const Token& t) {
    std::string_view rest = trim(std::string_view(t.text).substr(1));
    size_t end = 0;
    while (end < rest.size() && (std::isalnum(uint8_t(rest[end])) || rest[end] == '_')) ++end;
    std::string_view word = rest.substr(0, end);
    std::string body(trim(rest.substr(end)));
    if (word == "include")
      include(t, body);
    else if (word == "include_next" || word == "embed" || word == "import" || word == "using")
      out_.add(t, true, fmt::format("#{} is not allowed", word), "#include an allowed header");
    else if (word == "pragma")
      pragma(t, body);
    else
      for_words_in(t, body);
  }

  // The same words are forbidden in a macro's body and in a preprocessor condition.
  void for_words_in(const Token& at, const std::string& body) {
    for (Token& inner : scan_source(body)) {
      inner.line = at.line;
      if (inner.kind == Token::Kind::word) forbidden_word(inner);
      if (inner.kind == Token::Kind::string) forbidden_text(inner, inner.text);
    }
  }

  void include(const Token& t, const std::string& body) {
    bool angle = body.size() > 2 && body.front() == '<' && body.back() == '>';
    bool quoted = body.size() > 2 && body.front() == '"' && body.back() == '"';
    if (!angle && !quoted)
      return out_.add(t, true, "an include must name its file plainly", "write #include <...>");
    std::string file = body.substr(1, body.size() - 2);
    if (file.front() == '/' || file.find("..") != std::string::npos ||
        file.find('\\') != std::string::npos)
      return out_.add(t, true, fmt::format("the include '{}' is outside the allowed headers", file),
                      "include headers of cute/, cutlass/, cub/block/, cuda/ or cutegen/");
    if (!starts_with_any(file, allowed_headers()))
      out_.add(t, false, fmt::format("the header '{}' is not allowed", file),
               "include headers of cute/, cutlass/, cub/block/, cuda/ or cutegen/");
  }

  void pragma(const Token& t, const std::string& body) {
    static const std::vector<std::string> kAllowed{"unroll",        "once",     "nv_",
                                                   "diag_suppress", "nounroll", "pack"};
    if (!starts_with_any(body, kAllowed))
      out_.add(t, true, fmt::format("#pragma {} is not allowed", body.substr(0, 40)),
               "use only unroll, once and nv_diagnostic pragmas");
  }

  void word(size_t i) {
    const Token& t = tokens_[i];
    if (t.text == "_Pragma") {
      bool plain = i + 2 < tokens_.size() && tokens_[i + 1].mark('(') &&
                   tokens_[i + 2].kind == Token::Kind::string;
      if (plain) return pragma(t, tokens_[i + 2].text);
      return out_.add(t, true, "_Pragma must name its pragma plainly", "write _Pragma(\"unroll\")");
    }
    bool after_equal = i > 0 && tokens_[i - 1].mark('=');
    if (t.text == "delete" && !after_equal)
      return out_.add(t, false, "the device heap is not available", "use scratch of the plan");
    bool placement = i + 1 < tokens_.size() && tokens_[i + 1].mark('(');
    bool is_operator = i > 0 && tokens_[i - 1].is("operator");
    if (t.text == "new" && !placement && !is_operator)
      return out_.add(t, false, "the device heap is not available", "use scratch of the plan");
    if (!is_variable(i)) forbidden_word(t);
  }

  // A variable may have the name of a library function, such as `int free = 3;`. A call may not.
  bool is_variable(size_t i) const {
    const std::string& name = tokens_[i].text;
    const bool called = i + 1 < tokens_.size() && tokens_[i + 1].mark('(');
    return !called && variables_.contains(name);
  }

  // Finds variables that have the name of a library function.
  void find_variables() {
    std::set<std::string> names;
    for (const Forbidden& f : kForbidden)
      if (!std::string_view(f.word).starts_with("__")) names.insert(f.word);
    for (size_t at = 1; at + 1 < tokens_.size(); ++at)
      if (names.contains(tokens_[at].text) && declares(at)) variables_.insert(tokens_[at].text);
  }

  // "int free =", "float free[", "auto& free :"
  bool declares(size_t at) const {
    static const std::set<std::string> kNoTypes{"return", "case", "else", "do", "throw", "using"};
    const Token& next = tokens_[at + 1];
    const bool ends = next.mark('=') || next.mark(';') || next.mark(',') || next.mark('[') ||
                      next.mark('{') || next.mark(':') || next.mark(')');
    size_t type = at - 1;
    while (type > 0 && (tokens_[type].mark('&') || tokens_[type].mark('*'))) --type;
    return ends && tokens_[type].kind == Token::Kind::word &&
           !kNoTypes.contains(tokens_[type].text);
  }

  void forbidden_word(const Token& t) {
    for (const Forbidden& f : kForbidden)
      if (t.text == f.word)
        return out_.add(t, f.rule, fmt::format("'{}' {}", t.text, f.why), f.remedy);
    for (const Forbidden& f : kForbiddenBeginnings)
      if (t.text.starts_with(f.word))
        return out_.add(t, f.rule, fmt::format("'{}' {}", t.text, f.why), f.remedy);
  }

  // The compiler joins adjacent literals, so this does, too.
  void text(size_t i) {
    if (i > 0 && tokens_[i - 1].kind == Token::Kind::string) return;
    std::string whole;
    for (size_t at = i; at < tokens_.size() && tokens_[at].kind == Token::Kind::string; ++at)
      whole += tokens_[at].text;
    forbidden_text(tokens_[i], whole);
  }

  void forbidden_text(const Token& at, const std::string& text) {
    for (const char* bad : kForbiddenInText) {
      size_t found = text.find(bad);
      bool inside_word = found != std::string::npos && found > 0 && bad[0] != '.' &&
                         std::isalnum(uint8_t(text[found - 1]));
      if (found != std::string::npos && !inside_word)
        return out_.add(at, true, fmt::format("'{}' is not allowed in assembly", bad), "remove it");
    }
  }

  const std::vector<Token>& tokens_;
  Findings& out_;
  std::set<std::string> variables_;  // variables named like a library function
};

// Finds variables that outlive a launch.
class StateLinter {
 public:
  StateLinter(const std::vector<Token>& tokens, Findings& out) : tokens_(tokens), out_(out) {}

  void run() {
    globals();
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].is("static")) static_variable(i);
  }

 private:
  // Finds module variables that kernels can write, because they outlive a launch.
  void globals() {
    int depth = 0;            // open braces, except of namespaces and extern "C"
    size_t start = 0;         // first token of the current declaration
    std::vector<bool> plain;  // for each open brace: whether it counts in `depth`
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.kind == Token::Kind::directive) {
        if (depth == 0) start = i + 1;
        continue;
      }
      if (t.mark('{')) {
        bool transparent = depth == 0 && opens_scope(start, i);
        if (depth == 0 && !transparent) declaration(start, i);
        plain.push_back(!transparent);
        depth += !transparent;
        if (transparent) start = i + 1;
      } else if (t.mark('}') && !plain.empty()) {
        depth -= plain.back();
        plain.pop_back();
        if (depth == 0) start = i + 1;
      } else if (t.mark(';') && depth == 0) {
        declaration(start, i);
        start = i + 1;
      }
    }
  }

  // Finds static variables of functions, because they outlive a launch. Static functions and
  // constants do no harm.
  void static_variable(size_t at) {
    for (size_t i = at; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.is("const") || t.is("constexpr") || t.is("__shared__") || t.is("__constant__")) return;
      bool alignment = i > 0 && (tokens_[i - 1].is("alignas") || tokens_[i - 1].is("__align__"));
      if (t.mark('(') && !alignment) return;  // a function
      if (t.mark(';') || t.mark('=') || t.mark('{')) break;
    }
    out_.add(tokens_[at], true, "a static variable keeps state between launches",
             "use scratch of the plan, or declare it const");
  }

  bool opens_scope(size_t from, size_t to) const {
    for (size_t i = from; i < to; ++i)
      if (tokens_[i].is("namespace")) return true;
    return to == from + 2 && tokens_[from].is("extern") &&
           tokens_[from + 1].kind == Token::Kind::string;
  }

  // Checks a declaration at namespace scope: tokens [from, to), up to its body or initialiser.
  void declaration(size_t from, size_t to) {
    const Token* device = nullptr;
    bool fixed = false;  // the variable itself is const, not only what it points to
    for (size_t i = from; i < to; ++i) {
      const Token& t = tokens_[i];
      if (t.is("constexpr") || t.is("__constant__") || t.is("struct") || t.is("class") ||
          t.is("using") || t.is("typedef"))
        return;
      fixed = (fixed || t.is("const")) && !t.mark('*');
      if (t.is("__device__")) device = &t;
      if (t.mark('=')) break;
      bool alignment = i > 0 && (tokens_[i - 1].is("alignas") || tokens_[i - 1].is("__align__") ||
                                 tokens_[i - 1].is("__attribute__"));
      if (t.mark('(') && !alignment) return;  // a function
    }
    if (device && !fixed)
      out_.add(*device, true, "a writable __device__ variable keeps state between launches",
               "use scratch of the plan, or declare it const");
  }

  const std::vector<Token>& tokens_;
  Findings& out_;
};

std::vector<LintFinding> lint_tokens(const std::string& name, const std::vector<Token>& tokens) {
  Findings out(name);
  WordLinter(tokens, out).run();
  StateLinter(tokens, out).run();
  return out.take();
}

LintFinding plan_finding(const std::string& what, const std::string& where,
                         const std::string& remedy) {
  return {.rule = false,
          .error = {.kind = ErrorKind::user, .message = what, .where = where, .remedy = remedy}};
}

// Checks one step against the kernels that the sources declare.
void check_step(const Step& step, const std::string& where,
                const std::map<std::string, std::vector<Signature>>& kernels,
                std::vector<LintFinding>& out) {
  if (step.is_fill) return;
  auto found = kernels.find(step.kernel);
  if (found == kernels.end()) {
    std::vector<std::string> names;
    names.reserve(kernels.size());
    for (const auto& [name, unused] : kernels) names.push_back(name);
    auto near = nearest(step.kernel, names);
    out.push_back(plan_finding(
        fmt::format("no source declares a kernel named '{}'", step.kernel), where + "/kernel",
        near ? "did you mean '" + *near + "'?"
             : "declare it: extern \"C\" __global__ void " + step.kernel + "(...)"));
    return;
  }
  const Signature& s = found->second.front();
  if (s.parameters.size() != step.args.size())
    out.push_back(plan_finding(
        fmt::format("'{}' takes {} argument{}, the step gives {}", step.kernel, s.parameters.size(),
                    s.parameters.size() == 1 ? "" : "s", step.args.size()),
        where + "/args", "give one entry for each parameter, in order"));
}

}  // namespace

std::vector<LintFinding> lint_source(const std::string& name, const std::string& text) {
  return lint_tokens(name, scan_source(text));
}

std::vector<LintFinding> lint_program(const KernelProgram& program) {
  std::vector<LintFinding> out;
  size_t total = 0;
  for (const auto& [name, text] : program.sources) total += text.size();
  if (total > kMostSourceBytes || program.sources.size() > kMostSources) {
    out.push_back(
        plan_finding(fmt::format("{} sources with {} bytes; the limits are {} and {}",
                                 program.sources.size(), total, kMostSources, kMostSourceBytes),
                     "plan.json#/sources", "make the program smaller"));
    return out;
  }
  std::map<std::string, std::vector<Signature>> kernels;
  bool macros_declare = false;  // a macro may declare kernels that the scan cannot see
  for (const auto& [name, text] : program.sources) {
    auto tokens = scan_source(text);
    for (const Token& t : tokens)
      macros_declare = macros_declare || (t.kind == Token::Kind::directive &&
                                          t.text.find("__global__") != std::string::npos);
    for (Signature& s : kernel_signatures(tokens)) kernels[s.name].push_back(std::move(s));
    auto findings = lint_tokens(name, tokens);
    out.insert(out.end(), findings.begin(), findings.end());
    if (program.plan.dialect != Dialect::cute_strict) continue;
    auto strict = lint_strict(name, tokens);
    out.insert(out.end(), strict.begin(), strict.end());
  }
  if (macros_declare) return out;
  for (const auto& [part, steps] :
       {std::pair{"prepare", &program.plan.prepare}, std::pair{"steps", &program.plan.steps}})
    for (size_t i = 0; i < steps->size(); ++i)
      check_step((*steps)[i], fmt::format("plan.json#/{}/{}", part, i), kernels, out);
  return out;
}

}  // namespace cutegen::eval
