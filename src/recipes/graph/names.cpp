// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/names.h"

#include <fmt/format.h>

#include <cctype>

namespace cutegen::recipes {
namespace {

// Keywords of C++ and CUDA, functions of math.h, and names that kernels and plan expressions use.
const std::set<std::string>& reserved() {
  static const std::set<std::string> words{
      "alignas",  "alignof",   "and",        "asm",      "auto",      "bool",        "break",
      "case",     "catch",     "char",       "class",    "const",     "constexpr",   "continue",
      "decltype", "default",   "delete",     "do",       "double",    "else",        "enum",
      "explicit", "export",    "extern",     "false",    "float",     "for",         "friend",
      "goto",     "if",        "inline",     "int",      "long",      "mutable",     "namespace",
      "new",      "not",       "nullptr",    "operator", "or",        "private",     "protected",
      "public",   "register",  "return",     "short",    "signed",    "sizeof",      "static",
      "struct",   "switch",    "template",   "this",     "throw",     "true",        "try",
      "typedef",  "typename",  "union",      "unsigned", "using",     "virtual",     "void",
      "volatile", "while",     "xor",        "cute",     "cutegen",   "elementwise", "reduction",
      "compute",  "half_t",    "bfloat16_t", "Elements", "Index",     "Int",         "Shape",
      "Tensor",   "blockIdx",  "blockDim",   "gridDim",  "threadIdx", "shared",      "e",
      "i",        "j",         "v",          "team",     "n",         "flat",        "shape",
      "vectors",  "first",     "row",        "rows",     "length",    "step",        "steps",
      "most",     "kernel",    "rest",       "along",    "across",    "lane",        "live",
      "column",   "columns",   "count",      "cache",    "read",      "part",        "parts",
      "dim",      "size",      "stride",     "attr",     "arg",       "k",           "min",
      "max",      "ceil_div",  "occupancy",  "gpu",      "powf",      "expf",        "logf",
      "copy",     "print",     "load",       "store",    "exp",       "log",         "sqrt",
      "pow",      "tanh",      "sin",        "cos",      "abs",       "fabs",        "floor",
      "_",        "malloc",    "free",       "printf",   "system",    "vector",      "tiles",
      "VECTOR",   "ceil",      "round",      "trunc",    "erf",       "div",         "layout",
      "get",      "matmul",    "combine",    "finish",   "product",   "inside",      "batch",
      "batches",  "at_m",      "at_n",       "at_batch", "m",         "m_size",      "n_size",
      "k_size",   "tile",      "tiles_m",    "tiles_n",  "tiles_k",   "share",       "last",
      "storage",  "shared",    "gemm",       "Gemm",     "partial",   "s",           "elements",
      "vector_a", "vector_b",  "vector_out", "position", "apart",     "Sum",         "p",
      "kept",     "slots",     "room",       "group",    "next",      "on_chip",     "in_cluster",
      "taps",     "tap",       "places",     "images",   "image",     "pixels",      "pixel",
      "plane",    "positions", "sums",       "window",   "value",     "values",      "channel",
      "channels", "groups",    "start",      "end",      "depth",     "above",       "left",
      "height",   "width",     "down",       "work",     "from",      "at"};
  return words;
}

// Whether a word looks like a loop size of the kernels: n0, k1, r0.
bool is_loop(const std::string& word) {
  return word.size() > 1 && std::string("nkr").find(word[0]) != std::string::npos &&
         word.find_first_not_of("0123456789", 1) == std::string::npos;
}

}  // namespace

std::string Names::unique(const std::string& word) {
  std::string name;
  for (char c : word) name += std::isalnum(uint8_t(c)) ? c : '_';
  if (name.empty() || std::isdigit(uint8_t(name[0]))) name = "t" + name;
  if (name.size() > 48) name.resize(48);
  std::string candidate = name;
  for (int i = 1; reserved().count(candidate) || is_loop(candidate) || taken_.count(candidate); ++i)
    candidate = fmt::format("{}_{}", name, i);
  taken_.insert(candidate);
  return candidate;
}

std::map<std::string, std::string> short_names(const Task& task) {
  Names names;
  std::map<std::string, std::string> result;
  for (const TensorInfo& tensor : task.tensors)
    if (!result.count(tensor.name)) result[tensor.name] = names.unique(tensor.name);
  return result;
}

Json bindings(const std::map<std::string, std::string>& names) {
  Json bind = Json::object();
  for (const auto& [tensor, name] : names)
    if (tensor != name) bind[name] = tensor;
  return bind;
}

}  // namespace cutegen::recipes
