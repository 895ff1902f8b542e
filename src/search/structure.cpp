// SPDX-License-Identifier: Apache-2.0
#include "search/structure.h"

#include <array>
#include <map>
#include <set>

#include "base/text.h"

namespace cutegen::search {
namespace {

using Words = std::vector<std::string>;

bool word_byte(char c) {
  return std::isalnum(uint8_t(c)) || c == '_';
}

size_t after_comment(std::string_view text, size_t at) {
  bool line = text[at + 1] == '/';
  size_t end = text.find(line ? "\n" : "*/", at + 2);
  return end == std::string_view::npos ? text.size() : line ? end : end + 2;
}

size_t after_quoted(std::string_view text, size_t at) {
  char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// Splits text into identifiers, numbers and punctuation. Drops comments and quoted text.
Words words_of(std::string_view text) {
  Words out;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    bool comment = c == '/' && at + 1 < text.size() && (text[at + 1] == '/' || text[at + 1] == '*');
    if (comment) {
      at = after_comment(text, at);
    } else if (c == '"' || c == '\'') {
      at = after_quoted(text, at);
    } else if (word_byte(c)) {
      size_t end = at;
      while (end < text.size() && word_byte(text[end])) ++end;
      out.emplace_back(text.substr(at, end - at));
      at = end;
    } else {
      if (!std::isspace(uint8_t(c))) out.emplace_back(1, c);
      ++at;
    }
  }
  return out;
}

bool has(const std::string& word, std::string_view part) {
  return word.find(part) != std::string::npos;
}

std::string exprs(const std::array<Expr, 3>& e) {
  return e[0].text() + "," + e[1].text() + "," + e[2].text();
}

std::string launches_of(const Plan& plan) {
  std::string out;
  for (const auto* steps : {&plan.prepare, &plan.steps})
    for (const Step& s : *steps)
      out += s.is_fill
                 ? "fill " + s.fill_tensor + ";"
                 : s.kernel + "<" + exprs(s.grid) + ">" + (s.when ? s.when->text() : "") + ";";
  return out;
}

// Collects constants such as "constexpr int kTile = 128;" at any depth.
std::string constants_of(const Words& words) {
  std::string out;
  for (size_t i = 0; i + 4 < words.size(); ++i)
    if (words[i] == "constexpr" && words[i + 3] == "=")
      out += words[i + 2] + "=" + words[i + 4] + ";";
  return out;
}

std::string tiling_of(const KernelProgram& program, const Words& words) {
  std::string out;
  for (const Step& s : program.plan.steps)
    if (!s.is_fill)
      out += exprs(s.block) + "|" + exprs(s.cluster) + "|" + s.shared_bytes.text() + ";";
  for (const auto& [name, value] : program.plan.defines) out += name + "=" + value.text() + ";";
  return out + constants_of(words);
}

// Finds constructs that move or multiply data, by words in their names.
std::string movement_of(const Words& words) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> kConstructs{
      {"async", {"CP_ASYNC", "cp_async", "memcpy_async"}},
      {"tma", {"SM90_TMA", "tensormap", "cp_async_bulk"}},
      {"ldmatrix", {"LDSM", "ldmatrix"}},
      {"mma", {"MMA_Atom", "MmaGemm", "mma_sync", "wmma", "TiledMMA", "make_tiled_mma", "GMMA"}},
      {"simt_gemm", {"SimtGemm", "UniversalFMA"}},
      {"shared", {"__shared__"}},
      {"shuffle", {"__shfl", "combine_warp", "combine_row"}},
      {"atomic", {"atomicAdd", "atomicMax", "atomicMin", "atomicCAS"}},
      {"vector",
       {"float4", "float2", "uint4", "int4", "uint128_t", "half2", "bfloat162", "AlignedArray"}},
      {"tiled_copy", {"make_tiled_copy", "TiledCopy", "TileLoader"}},
      {"cooperative", {"grid_group", "this_grid"}}};
  std::set<std::string> found;
  for (const std::string& word : words)
    for (const auto& [name, signs] : kConstructs)
      for (const char* sign : signs)
        if (has(word, sign)) found.insert(name);
  std::string out;
  for (const std::string& name : found) out += name + " ";
  return out;
}

Words all_words(const KernelProgram& program) {
  Words out;
  for (const auto& [name, text] : program.sources) {
    Words words = words_of(text);
    out.insert(out.end(), words.begin(), words.end());
  }
  return out;
}

// Returns the counter for the use of CuTe that a word names, or null.
int* counter_of(CuteUse& use, const std::string& word) {
  static const std::map<std::string, int CuteUse::*> kWords{
      {"make_tiled_mma", &CuteUse::tiled_mma},
      {"TiledMMA", &CuteUse::tiled_mma},
      {"MmaGemm", &CuteUse::tiled_mma},
      {"SimtGemm", &CuteUse::tiled_mma},
      {"make_tiled_copy", &CuteUse::tiled_copy},
      {"make_tiled_copy_A", &CuteUse::tiled_copy},
      {"make_tiled_copy_B", &CuteUse::tiled_copy},
      {"make_tiled_copy_C", &CuteUse::tiled_copy},
      {"TiledCopy", &CuteUse::tiled_copy},
      {"MMA_Atom", &CuteUse::atoms},
      {"Copy_Atom", &CuteUse::atoms},
      {"make_layout", &CuteUse::layouts},
      {"Layout", &CuteUse::layouts},
      {"make_tensor", &CuteUse::tensors},
      {"local_tile", &CuteUse::layouts},
      {"local_partition", &CuteUse::layouts},
      {"partition_S", &CuteUse::layouts},
      {"partition_D", &CuteUse::layouts},
      {"partition_A", &CuteUse::layouts},
      {"partition_B", &CuteUse::layouts},
      {"partition_C", &CuteUse::layouts},
      {"partition_fragment_C", &CuteUse::tensors},
      {"make_fragment_like", &CuteUse::tensors},
      {"copy", &CuteUse::algorithms},
      {"copy_if", &CuteUse::algorithms},
      {"gemm", &CuteUse::algorithms},
      {"clear", &CuteUse::algorithms},
      {"axpby", &CuteUse::algorithms},
      {"make_identity_tensor", &CuteUse::tensors},
      {"Tensor", &CuteUse::tensors}};
  auto it = kWords.find(word);
  return it == kWords.end() ? nullptr : &(use.*(it->second));
}

}  // namespace

Structure structure_of(const KernelProgram& program) {
  Words words = all_words(program);
  return {.launches = launches_of(program.plan),
          .tiling = tiling_of(program, words),
          .movement = movement_of(words)};
}

CuteUse cute_use(const KernelProgram& program) {
  CuteUse use;
  int statements = 0, with_cute = 0;
  bool cute = false;
  for (const auto& [name, text] : program.sources)
    use.includes = use.includes || text.find("<cute/") != std::string::npos ||
                   text.find("<cutegen/gemm") != std::string::npos ||
                   text.find("<cutegen/vec") != std::string::npos;
  if (!use.includes) return use;
  for (const std::string& word : all_words(program)) {
    if (int* counter = counter_of(use, word)) {
      ++*counter;
      cute = true;
    }
    if (word != ";") continue;
    ++statements;
    with_cute += cute;
    cute = false;
  }
  use.share = statements ? double(with_cute) / statements : 0;
  return use;
}

Json to_json(const CuteUse& u) {
  return Json{{"tiled_mma", u.tiled_mma}, {"tiled_copy", u.tiled_copy},
              {"atoms", u.atoms},         {"layouts", u.layouts},
              {"tensors", u.tensors},     {"algorithms", u.algorithms},
              {"share", u.share}};
}

}  // namespace cutegen::search
