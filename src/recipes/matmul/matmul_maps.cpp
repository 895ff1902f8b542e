// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "recipes/matmul/matmul_kernel.h"

namespace cutegen::recipes {
namespace {

bool moves_with_batch(const Factor& factor) {
  return factor.batch.size() == 1 && factor.batch[0].move != Move::none;
}

const Stride& across(const Factor& factor) {
  return along_depth(factor) ? factor.row : factor.depth;
}

// Returns one factor for each tensor map.
std::vector<JoinedFactor> distinct_factors(const Contraction& c) {
  std::vector<JoinedFactor> list;
  for (JoinedFactor& of : factors_of(c))
    if (std::none_of(list.begin(), list.end(),
                     [&](const JoinedFactor& other) { return other.map == of.map; }))
      list.push_back(std::move(of));
  return list;
}

// Whether the operand can have a map, whatever its sizes.
bool has_map(const Contraction& c, const Factor& factor) {
  const Stride& along = along_depth(factor) ? factor.depth : factor.row;
  return c.batch_axes.size() <= 1 && along.move == Move::next &&
         across(factor).move == Move::stride &&
         (!moves_with_batch(factor) || factor.batch[0].move == Move::stride) &&
         int64_t(size_of(factor.operand.dtype)) == bytes_of_element(c);
}

// 1 if TMA can read both operands: their strides are whole chunks of 16 bytes.
std::string rule(const Contraction& c, const Label& label) {
  const int64_t chunk = 16 / bytes_of_element(c);
  std::string rest, empty;
  std::vector<const Factor*> factors{&c.a};
  for (const JoinedFactor& of : distinct_factors(c)) factors.push_back(of.factor);
  for (const Factor* factor : factors) {
    if (!has_map(c, *factor)) return "0";
    rest += fmt::format("{}({})%{}", rest.empty() ? "" : "+", across(*factor).expression, chunk);
    if (moves_with_batch(*factor))
      rest += fmt::format("+({})%{}", factor->batch[0].expression, chunk);
  }
  for (size_t i = 0; i < c.parts.size(); ++i)
    empty += fmt::format("{} == 0 ? 0 : ", label(fmt::format("part{}_size", i + 1)));
  return fmt::format("{} == 0 ? 0 : {} == 0 ? 0 : {}{} == 0 ? 1 : 0", label("elements"),
                     label("k_size"), empty, rest);
}

// `rows`: the number of the factor's rows, a plan expression.
Json map_of(const Contraction& c, const Label& label, const Factor& factor, const std::string& rows,
            const char* spec) {
  auto if_tma = [&](const std::string& value, const char* otherwise) {
    return fmt::format("{} == 1 ? {} : {}", label("tma"), value, otherwise);
  };
  const std::string stride = has_map(c, factor) ? across(factor).expression : "16";
  const bool depth = along_depth(factor), batched = has_map(c, factor) && moves_with_batch(factor);
  const std::string along = depth ? label("k_size") : rows, other = depth ? rows : label("k_size");
  return {{"tensor", name_of(c, factor)},
          {"spec", spec},
          {"dims",
           {if_tma(along, "1"), if_tma(other, "1"), batched ? if_tma(label("batches"), "1") : "1"}},
          {"strides",
           {"1", if_tma(stride, "16"), batched ? if_tma(factor.batch[0].expression, "16") : "16"}}};
}

// cutegen::tma_spec: version, rank, box[5], mode[5], bits of an element, swizzle of 128 bytes.
std::string constant(const Contraction& c, const Factor& factor, const char* name, int64_t rows) {
  const int64_t bytes = bytes_of_element(c), line = 128 / bytes;
  return fmt::format(
      "extern \"C\" __device__ const unsigned {}[15] = {{1, 3, {}, {}, 1, 0, 0, 0, 1, 2, 0, 0, {}, "
      "3, 4}};\n",
      name, line, along_depth(factor) ? rows : line, 8 * bytes);
}

}  // namespace

std::vector<JoinedFactor> factors_of(const Contraction& c) {
  std::vector<JoinedFactor> list;
  std::vector<std::string> known;
  const auto add = [&](const Factor& factor, const std::string& start, const std::string& columns) {
    std::string key = factor.operand.tensor + " " + factor.row.expression + " " +
                      factor.depth.expression + " " + columns;
    for (const Stride& batch : factor.batch) key += " " + batch.expression;
    size_t i = size_t(std::find(known.begin(), known.end(), key) - known.begin());
    if (i == known.size()) known.push_back(key);
    list.push_back({.factor = &factor,
                    .start = start,
                    .columns = columns,
                    .map = i == 0 ? "map_b" : fmt::format("map_b{}", i)});
  };
  for (const Contraction* part : parts_of(c)) {
    add(part->b, part->start, part->n < 0 ? "1" : part->loads.axes[size_t(part->n)].extent);
    for (const Contraction::Partner& partner : part->partners)
      add(partner.b, partner.start, partner.columns);
  }
  return list;
}

void add_maps(const Contraction& c, const Label& label, ProgramPart& part) {
  part.symbols[label("tma")] = rule(c, label);
  part.defines[label("USE_TMA")] = label("tma");
  part.tensor_maps = {{label("map_a"), map_of(c, label, c.a, label("m_size"), "cg_map_a")}};
  for (const JoinedFactor& of : distinct_factors(c))
    part.tensor_maps[label(of.map)] = map_of(
        c, label, *of.factor, c.joined() ? "(" + of.columns + ")" : label("n_size"), "cg_map_b");
}

std::string map_parameters(const Contraction& c) {
  std::string text = "const __grid_constant__ TmaDescriptor map_a";
  for (const JoinedFactor& of : distinct_factors(c))
    text += ", const __grid_constant__ TmaDescriptor " + of.map;
  return text;
}

void add_map_arguments(const Contraction& c, const Label& label, Json& step) {
  Json args = Json::array({{{"map", label("map_a")}}});
  for (const JoinedFactor& of : distinct_factors(c)) args.push_back({{"map", label(of.map)}});
  for (const Json& arg : step.at("args")) args.push_back(arg);
  step["args"] = args;
}

std::string map_constants(const Contraction& c, const Json& params) {
  const auto cluster = params.at("cluster").get<int64_t>();
  return "// What the plan's tensor maps load: boxes with lines of 128 bytes.\n" +
         constant(c, c.a, "cg_map_a", params.at("tile_m").get<int64_t>()) +
         constant(c, c.b, "cg_map_b", params.at("tile_n").get<int64_t>() / c.groups() / cluster);
}

std::string map_batch(const Contraction& c, const Factor& factor) {
  return has_map(c, factor) && moves_with_batch(factor) ? "batch" : "0";
}

}  // namespace cutegen::recipes
