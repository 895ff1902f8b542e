// SPDX-License-Identifier: Apache-2.0
#include "device/map_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace cutegen::device {
namespace {

constexpr int64_t kPlainSwizzleBase = 4;  // the M of Swizzle<B, 4, 3>: chunks of 16 bytes

// The driver's unsigned type with this many bits. That suffices for copies, which do not interpret
// the bits; a reduction would need the real type.
int type_of(int64_t bits) {
  constexpr int kU8 = 0, kU16 = 1, kU32 = 2, kU64 = 4;
  return bits == 8 ? kU8 : bits == 16 ? kU16 : bits == 32 ? kU32 : bits == 64 ? kU64 : -1;
}

// The corners and steps of im2col mode, which must fit the driver's integers.
Result<void> read_pixels(const int64_t* words, size_t spatial, MapFields& out,
                         const std::string& where) {
  out.im2col = true;
  for (size_t i = 0; i < 3 * spatial; ++i)
    if (words[i] < INT32_MIN || words[i] > INT32_MAX)
      return user_error(fmt::format("{} in im2col mode of a tensor map", words[i]), where,
                        "corners and steps are small numbers");
  for (size_t i = 0; i < spatial; ++i) {
    out.lower[i] = int(words[i]), out.upper[i] = int(words[spatial + i]);
    out.steps[i + 1] = uint32_t(words[2 * spatial + i]);
  }
  return {};
}

}  // namespace

Json to_json(const MapFields& fields) {
  Json sizes = Json::array(), pitches = Json::array(), box = Json::array();
  for (size_t i = 0; i < fields.rank; ++i) {
    sizes.push_back(fields.sizes[i]);
    box.push_back(fields.box[i]);
    if (i > 0) pitches.push_back(fields.pitches[i]);
  }
  Json map{{"type", fields.type},
           {"sizes", std::move(sizes)},
           {"pitches", std::move(pitches)},
           {"box", std::move(box)},
           {"swizzle", fields.swizzle}};
  if (!fields.im2col) return map;
  Json lower = Json::array(), upper = Json::array(), steps = Json::array();
  for (size_t i = 0; i < fields.rank; ++i) steps.push_back(fields.steps[i]);
  for (size_t i = 0; i + 2 < fields.rank; ++i) {
    lower.push_back(fields.lower[i]);
    upper.push_back(fields.upper[i]);
  }
  map["im2col"] = {
      {"lower", std::move(lower)}, {"upper", std::move(upper)}, {"steps", std::move(steps)}};
  return map;
}

Result<MapFields> map_fields(std::span<const std::byte> description, const std::string& where) {
  std::vector<int64_t> words(description.size() / sizeof(int64_t));
  if (!words.empty()) std::memcpy(words.data(), description.data(), words.size() * sizeof(int64_t));
  const size_t given = words.empty() ? 0 : size_t(words[0]);
  const size_t tiled = 1 + 2 * given + kSpecWords, spatial = given - std::min<size_t>(given, 2);
  const bool im2col = spatial > 0 && words.size() == tiled + 3 * spatial;
  if (given < 1 || given > kMostMapRank || (words.size() != tiled && !im2col))
    return world_error("a tensor map's description is damaged");
  const int64_t *dims = &words[1], *strides = dims + given, *spec = strides + given;
  const int64_t *box = spec + 2, *mode = spec + 7, bits = spec[12];
  MapFields out;
  out.rank = uint32_t(spec[1]);
  out.type = type_of(bits);
  out.swizzle = int(spec[13]);
  if (out.rank < 1 || out.rank > kMostMapRank || out.type < 0)
    return unsupported_error(fmt::format("a tensor map with {} bits per element", bits), where);
  if (spec[13] < 0 || spec[13] > 3 || (spec[13] > 0 && spec[14] != kPlainSwizzleBase))
    return unsupported_error(
        fmt::format("the swizzle <{}, {}> of a tensor map", spec[13], spec[14]), where);
  for (size_t i = 0; i < out.rank; ++i) {
    const auto m = uint32_t(mode[i]);
    if (m >= given)
      return user_error(fmt::format("a tensor map of {} dims has no mode {}", given, mode[i]),
                        where, "give the map as many dims as the copy has modes");
    out.sizes[i] = uint64_t(dims[m]);
    out.pitches[i] = uint64_t(strides[m] * bits / 8);
    out.box[i] = uint32_t(box[i]);
  }
  if (!im2col) return out;
  if (out.rank != given)
    return user_error(fmt::format("a tensor map of {} dims in im2col mode has a spec of rank {}",
                                  given, out.rank),
                      where, "give the spec as many modes as the map has dims");
  CG_CHECK(read_pixels(&words[tiled], spatial, out, where));
  return out;
}

}  // namespace cutegen::device
