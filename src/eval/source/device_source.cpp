// SPDX-License-Identifier: Apache-2.0
#include "eval/source/device_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace cutegen::eval {
namespace {

// Headers that only host code needs.
const std::vector<std::string>& host_headers() {
  static const std::vector<std::string> kHost{
      "torch/",   "ATen/",     "c10/",    "pybind11/", "Python.h", "vector",   "string",
      "iostream", "algorithm", "cstdio",  "stdio.h",   "cstdlib",  "stdlib.h", "tuple",
      "optional", "stdexcept", "numeric", "memory",    "array>",   "map",      "functional"};
  return kHost;
}

// Words that only host code uses.
bool is_host_word(const Token& t) {
  static const std::set<std::string> kHost{
      "torch",           "c10",           "ATen",        "pybind11",
      "Tensor",          "cudaStream_t",  "cudaError_t", "cudaGetErrorString",
      "TORCH_CHECK",     "printf",        "fprintf",     "exit",
      "PYBIND11_MODULE", "TORCH_LIBRARY", "AT_ERROR",    "cudaSuccess",
      "stderr"};
  if (is_mark(t, "<<<")) return true;
  return t.kind == Token::Kind::word &&
         (kHost.contains(t.text) || t.text.find("DISPATCH") != std::string::npos);
}

bool is_host_text(const std::vector<Token>& t, TokenRange range) {
  for (size_t i = range.first; i < range.second; ++i) {
    const bool at = t[i].is("at") && ((i + 1 < range.second && is_mark(t[i + 1], "::")) ||
                                      (i > range.first && t[i - 1].is("namespace")));
    if (at || is_host_word(t[i])) return true;
  }
  return false;
}

struct SourceEdit {
  size_t begin = 0, end = 0;
  std::string text;
  bool blank = false;
};

// Turns a template into a device function, and adds a kernel that calls it.
class KernelInstance {
 public:
  KernelInstance(const SourceOutline& outline, const HostLaunch& launch, const std::string& file,
                 std::vector<SourceEdit>& edits)
      : outline_(outline), t_(outline.tokens), launch_(launch), file_(file), edits_(edits) {}

  Result<void> add() {
    const SourceFunction* kernel = nullptr;
    for (const SourceFunction& f : outline_.functions) {
      if (f.name != launch_.kernel || !f.global) continue;
      const bool is_template =
          f.begin + 1 < f.end && t_[f.begin].is("template") && t_[f.begin + 1].mark('<');
      if (!is_template) {  // an explicit instantiation
        blank({f.begin, f.end});
        continue;
      }
      if (f.body != 0 && kernel)
        return error(t_[f.begin], fmt::format("the kernel '{}' is defined twice", f.name));
      if (f.body != 0) kernel = &f;
      as_device_function(f);
    }
    if (!kernel)
      return error(launch_.at,
                   fmt::format("the file does not define a template '{}'", launch_.kernel));
    return add_kernel(*kernel);
  }

 private:
  tl::unexpected<Error> error(const Token& at, std::string message) const {
    return user_error(std::move(message), fmt::format("{}:{}:{}", file_, at.line, at.column));
  }

  void blank(TokenRange range) {
    if (range.first < range.second)
      edits_.push_back(
          {.begin = t_[range.first].begin, .end = t_[range.second - 1].end, .blank = true});
  }

  void as_device_function(const SourceFunction& f) {
    for (size_t i = f.begin; i < f.open; ++i) {
      if (t_[i].is("__global__"))
        edits_.push_back(
            {.begin = t_[i].begin, .end = t_[i].end, .text = "__device__ __forceinline__"});
      if (is_launch_attribute(i, f.open)) blank({i, closing(t_, i + 1, f.open) + 1});
    }
    edits_.push_back(
        {.begin = t_[f.open - 1].begin, .end = t_[f.open - 1].end, .text = body_name(f.name)});
  }

  // The template needs another name, so that the kernel's name has one meaning.
  std::string body_name(std::string name) const {
    do name += "_body";
    while (std::ranges::find(t_, name, &Token::text) != t_.end());
    return name;
  }

  bool is_launch_attribute(size_t i, size_t end) const {
    return i + 1 < end && t_[i + 1].mark('(') &&
           (t_[i].is("__launch_bounds__") || t_[i].is("__maxnreg__") ||
            t_[i].is("__cluster_dims__") || t_[i].is("__block_size__"));
  }

  // The name that `typename T`, `int N` or `T (*F)(T)` declares; "" if it has none.
  std::string template_name(TokenRange range) const {
    if (range.first >= range.second) return "";
    if (t_[range.second - 1].kind == Token::Kind::word) return t_[range.second - 1].text;
    for (size_t i = range.first; i + 2 < range.second; ++i)
      if (t_[i].mark('*') && t_[i + 1].kind == Token::Kind::word && t_[i + 2].mark(')'))
        return t_[i + 1].text;
    return "";
  }

  // The template's parameters, each with its argument.
  Result<std::map<std::string, std::string>> template_values(const SourceFunction& f) const {
    std::map<std::string, std::string> out;
    size_t index = 0, begin = f.begin + 2;
    int depth = 1;
    for (size_t i = begin; i < f.open && depth > 0; ++i) {
      if (t_[i].mark('(')) i = closing(t_, i, f.open);
      if (i >= f.open) break;
      depth += t_[i].mark('<') ? 1 : t_[i].mark('>') ? -1 : 0;
      const bool ends = depth == 0 || (depth == 1 && t_[i].mark(','));
      if (!ends) continue;
      size_t equals = begin;
      while (equals < i && !t_[equals].mark('=')) ++equals;
      const std::string name = template_name({begin, equals});
      if (name.empty()) return error(t_[begin], "cutegen cannot read this template parameter");
      if (index < launch_.template_arguments.size())
        out[name] = launch_.template_arguments[index];
      else if (equals < i)
        out[name] = spelled({equals + 1, i}, out);
      else
        return error(launch_.at,
                     fmt::format("the launch does not say the template argument '{}'", name));
      ++index;
      begin = i + 1;
    }
    if (index < launch_.template_arguments.size())
      return error(launch_.at, "the launch has too many template arguments");
    return out;
  }

  std::string spelled(TokenRange range, const std::map<std::string, std::string>& values) const {
    std::string out;
    for (size_t i = range.first; i < range.second; ++i) {
      const auto at = values.find(t_[i].text);
      const bool replaced = t_[i].kind == Token::Kind::word && at != values.end();
      const bool joins = is_mark(t_[i], "::") || (i > range.first && is_mark(t_[i - 1], "::"));
      out += (out.empty() || joins ? "" : " ") + (replaced ? at->second : t_[i].text);
    }
    return out;
  }

  Result<void> add_kernel(const SourceFunction& f) {
    CG_TRY(auto values, template_values(f));
    std::string parameters, names, attributes;
    for (auto [from, to] : comma_parts(t_, {f.open + 1, f.close})) {
      for (size_t i = from; i < to; ++i)
        if (t_[i].mark('=')) to = i;
      const bool named = to > from + 1 && t_[to - 1].kind == Token::Kind::word;
      if (!named) return error(t_[from], "this parameter of the kernel has no name");
      parameters += (parameters.empty() ? "" : ", ") + spelled({from, to}, values);
      names += (names.empty() ? "" : ", ") + t_[to - 1].text;
    }
    for (size_t i = f.begin; i < f.open; ++i)
      if (is_launch_attribute(i, f.open))
        attributes += spelled({i, closing(t_, i + 1, f.open) + 1}, values) + " ";
    const size_t end = t_[f.end - 1].end;
    edits_.push_back(
        {.begin = end,
         .end = end,
         .text = fmt::format(" extern \"C\" __global__ void {}{}({}) {{ {}<{}>({}); }}", attributes,
                             f.name, parameters, body_name(f.name),
                             join(launch_.template_arguments, ", "), names)});
    return {};
  }

  const SourceOutline& outline_;
  const std::vector<Token>& t_;
  const HostLaunch& launch_;
  const std::string& file_;
  std::vector<SourceEdit>& edits_;
};

class DeviceSource {
 public:
  DeviceSource(const std::string& text, const SourceOutline& outline, const HostLaunch& launch,
               const std::string& file)
      : text_(text), outline_(outline), t_(outline.tokens), launch_(launch), file_(file) {}

  Result<std::string> run() {
    keep_device_code();
    remove_host_code();
    remove_directives();
    if (launch_.templated) CG_CHECK(KernelInstance(outline_, launch_, file_, edits_).add());
    return edited();
  }

 private:
  static bool is_kernel_or_device(const SourceFunction& f) { return f.device || f.global; }

  void keep_words(TokenRange range) {
    for (size_t i = range.first; i < range.second; ++i)
      if (t_[i].kind == Token::Kind::word) kept_words_.insert(t_[i].text);
  }

  // Host functions stay if device code mentions them, directly or through other functions.
  void keep_device_code() {
    for (const SourceFunction& f : outline_.functions)
      if (is_kernel_or_device(f)) keep_words({f.begin, f.end});
    for (const TokenRange& other : outline_.others)
      if (!is_host_text(t_, other)) keep_words(other);
    for (const auto& [name, macro] : outline_.macros)
      if (!is_host_text(macro.body, {0, macro.body.size()}))
        for (const Token& token : macro.body) kept_words_.insert(token.text);
    kept_.resize(outline_.functions.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < kept_.size(); ++i) {
        const SourceFunction& f = outline_.functions[i];
        const bool wanted = is_kernel_or_device(f) ||
                            (kept_words_.contains(f.name) && !is_host_text(t_, {f.begin, f.end}));
        if (kept_[i] || !wanted) continue;
        kept_[i] = changed = true;
        keep_words({f.begin, f.end});
      }
    }
  }

  void blank(TokenRange range) {
    if (range.first < range.second)
      edits_.push_back(
          {.begin = t_[range.first].begin, .end = t_[range.second - 1].end, .blank = true});
  }

  void remove_host_code() {
    for (size_t i = 0; i < kept_.size(); ++i)
      if (!kept_[i]) blank({outline_.functions[i].begin, outline_.functions[i].end});
    for (const TokenRange& other : outline_.others)
      if (is_host_text(t_, other)) blank(other);
  }

  void remove_directives() {
    for (const Token& t : t_) {
      if (t.kind != Token::Kind::directive) continue;
      if (is_host_include(t.text) || is_host_macro(t.text))
        edits_.push_back({.begin = t.begin, .end = t.end, .blank = true});
      removed_torch_ = removed_torch_ || is_host_include(t.text);
    }
  }

  static bool is_host_include(std::string_view text) {
    constexpr std::string_view kInclude = "#include ";
    if (!text.starts_with(kInclude) || text.size() < kInclude.size() + 3) return false;
    const std::string_view file = text.substr(kInclude.size() + 1);
    for (const std::string& header : host_headers()) {
      const bool folder = header.ends_with('/');
      if (folder ? file.starts_with(header) : file.substr(0, file.size() - 1) == header)
        return true;
    }
    return false;
  }

  bool is_host_macro(std::string_view text) const {
    constexpr std::string_view kDefine = "#define ";
    if (!text.starts_with(kDefine)) return false;
    const std::string_view rest = text.substr(kDefine.size());
    const std::string name(rest.substr(0, rest.find_first_of(" (")));
    if (kept_words_.contains(name)) return false;
    const auto at = outline_.macros.find(name);
    return at != outline_.macros.end() &&
           (is_host_text(at->second.body, {0, at->second.body.size()}) ||
            text.find("cuda") != std::string_view::npos);
  }

  std::string edited() {
    std::ranges::sort(edits_, [](const SourceEdit& a, const SourceEdit& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::string out;
    size_t at = 0;
    bool included = !removed_torch_ || !(launch_.uses_half || launch_.uses_bfloat16);
    for (const SourceEdit& edit : edits_) {
      if (edit.begin < at) continue;  // inside a part that is blank already
      out += text_.substr(at, edit.begin - at);
      const bool directive = edit.begin < text_.size() && text_[edit.begin] == '#';
      if (!included && edit.blank && directive) {
        // PyTorch's headers include this one, which the kernel's types need.
        out += launch_.uses_half ? "#include <cuda_fp16.h>" : "#include <cuda_bf16.h>";
        included = true;
      }
      if (edit.blank)
        for (char c : text_.substr(edit.begin, edit.end - edit.begin)) {
          if (c == '\n') out += c;
        }
      else
        out += edit.text;
      at = edit.end;
    }
    return out + text_.substr(at);
  }

  const std::string& text_;
  const SourceOutline& outline_;
  const std::vector<Token>& t_;
  const HostLaunch& launch_;
  const std::string& file_;
  std::set<std::string> kept_words_;
  std::vector<bool> kept_;  // for each function
  bool removed_torch_ = false;
  std::vector<SourceEdit> edits_;
};

}  // namespace

Result<std::string> device_source(const std::string& text, const SourceOutline& outline,
                                  const HostLaunch& launch, const std::string& file) {
  return DeviceSource(text, outline, launch, file).run();
}

}  // namespace cutegen::eval
