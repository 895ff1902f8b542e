// SPDX-License-Identifier: Apache-2.0
#include "tensor/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cutegen {
namespace {

// The number of wrong elements in each row, or in each column.
struct Lines {
  std::vector<int64_t> wrong;  // by line
  int64_t length = 0;          // elements of one line
  int64_t touched() const {
    return std::count_if(wrong.begin(), wrong.end(), [](int64_t n) { return n > 0; });
  }
  bool whole() const {  // all elements of every touched line are wrong
    return std::all_of(wrong.begin(), wrong.end(),
                       [&](int64_t n) { return n == 0 || n == length; });
  }
};

struct View {
  int64_t rows = 1, columns = 1;
  Lines by_row, by_column;
};

View view_of(const Judgement& j, const Shape& shape) {
  View v;
  v.columns = shape.empty() ? 1 : shape.back();
  v.rows = v.columns ? j.elements / v.columns : 0;
  v.by_row = {.wrong = std::vector<int64_t>(size_t(v.rows)), .length = v.columns};
  v.by_column = {.wrong = std::vector<int64_t>(size_t(v.columns)), .length = v.rows};
  for (size_t i = 0; i < j.is_wrong.size(); ++i) {
    if (!j.is_wrong[i]) continue;
    ++v.by_row.wrong[i / size_t(v.columns)];
    ++v.by_column.wrong[i % size_t(v.columns)];
  }
  return v;
}

// "3", "3 and 7", "3, 7, 11, ... (40 in all)"
std::string listed(const std::vector<int64_t>& values) {
  if (values.size() == 1) return std::to_string(values[0]);
  if (values.size() == 2) return fmt::format("{} and {}", values[0], values[1]);
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(values.size(), 3); ++i)
    out += fmt::format("{}{}", i ? ", " : "", values[i]);
  return values.size() == 3 ? out : fmt::format("{}, ... ({} in all)", out, values.size());
}

// Describes the touched lines as a tail, a stride or a short list.
std::optional<std::string> line_pattern(const Lines& lines, const char* plural) {
  auto count = int64_t(lines.wrong.size());
  int64_t touched = lines.touched();
  if (count < 2 || touched == count) return std::nullopt;
  std::vector<int64_t> at;
  for (int64_t i = 0; i < count; ++i)
    if (lines.wrong[size_t(i)]) at.push_back(i);
  const char* extent = lines.whole() ? "" : " (parts of them)";
  if (at.back() - at.front() + 1 == touched && at.back() == count - 1)
    return touched == 1 ? fmt::format("the last of {} {}{}", count, plural, extent)
                        : fmt::format("{} from {} on{}", plural, at.front(), extent);
  std::string_view singular(plural, std::string_view(plural).size() - 1);
  if (touched == 1) return fmt::format("{} {}{}", singular, at.front(), extent);
  if (at.back() - at.front() + 1 == touched)
    return fmt::format("{} {} to {}{}", plural, at.front(), at.back(), extent);
  int64_t step = at[1] - at[0];
  bool regular = touched > 2;
  for (size_t i = 1; i < at.size() && regular; ++i) regular = at[i] - at[i - 1] == step;
  if (regular && step > 1)
    return fmt::format("every {}th of the {} starting at {}{}", step, plural, at.front(), extent);
  if (touched * 4 <= count) return fmt::format("{} {}{}", plural, listed(at), extent);
  return std::nullopt;
}

std::optional<std::string> tail_pattern(const Judgement& j) {
  auto first = std::find(j.is_wrong.begin(), j.is_wrong.end(), 1) - j.is_wrong.begin();
  if (j.elements - first != j.wrong || first == 0) return std::nullopt;
  return j.wrong == 1 ? fmt::format("the very last element")
                      : fmt::format("the last {} elements", j.wrong);
}

// Detects whole blocks of `size` consecutive elements (the last may be shorter).
std::optional<std::string> block_pattern(const Judgement& j) {
  for (int64_t size : {1024, 512, 256, 128, 64, 32, 16}) {
    if (size * 2 > j.elements) continue;
    int64_t blocks = 0;
    bool whole = true;
    for (int64_t at = 0; at < j.elements && whole; at += size) {
      int64_t end = std::min(at + size, j.elements);
      auto n = std::count(j.is_wrong.begin() + at, j.is_wrong.begin() + end, 1);
      whole = n == 0 || n == end - at;
      blocks += n != 0;
    }
    if (whole)
      return fmt::format("{} whole block{} of {} consecutive elements of {}", blocks,
                         blocks == 1 ? "" : "s", size, (j.elements + size - 1) / size);
  }
  return std::nullopt;
}

// Detects whole square tiles of the rows x columns view.
std::optional<std::string> tile_pattern(const Judgement& j, const View& v) {
  for (int64_t size : {128, 64, 32, 16}) {
    if (v.rows < 2 * size && v.columns < 2 * size) continue;
    if (v.rows < size || v.columns < size) continue;
    int64_t across = (v.columns + size - 1) / size, down = (v.rows + size - 1) / size;
    std::vector<int64_t> wrong(size_t(across * down));
    for (int64_t i = 0; i < j.elements; ++i)
      if (j.is_wrong[size_t(i)])
        ++wrong[size_t(i / v.columns / size * across + i % v.columns / size)];
    bool whole = true;
    int64_t tiles = 0, first = -1;
    for (int64_t t = 0; t < across * down && whole; ++t) {
      int64_t height = std::min(size, v.rows - t / across * size);
      int64_t width = std::min(size, v.columns - t % across * size);
      int64_t n = wrong[size_t(t)];
      whole = n == 0 || n == height * width;
      if (n != 0 && ++tiles == 1) first = t;
    }
    if (whole)
      return fmt::format("{} whole {}x{} tile{} of {}, the first at row {}, column {}", tiles, size,
                         size, tiles == 1 ? "" : "s", across * down, first / across * size,
                         first % across * size);
  }
  return std::nullopt;
}

}  // namespace

std::string describe_pattern(const Judgement& j, const Shape& shape) {
  if (j.wrong == 0) return "none";
  std::string kind;
  if (j.unwritten == j.wrong)
    kind = ", never written";
  else if (j.nan == j.wrong)
    kind = ", all NaN";
  else if (j.zero == j.wrong)
    kind = ", all zero";
  if (j.wrong == j.elements) return "every element" + kind;
  View v = view_of(j, shape);
  auto whole_rows = v.by_row.whole() ? line_pattern(v.by_row, "rows") : std::nullopt;
  auto whole_columns = v.by_column.whole() ? line_pattern(v.by_column, "columns") : std::nullopt;
  if (v.rows > 1 && v.columns > 1) {
    if (whole_rows) return *whole_rows + kind;
    if (whole_columns) return *whole_columns + kind;
  }
  if (auto p = tail_pattern(j)) return *p + kind;
  if (auto p = tile_pattern(j, v)) return *p + kind;
  if (auto p = block_pattern(j)) return *p + kind;
  if (v.rows > 1 && v.columns > 1) {
    auto columns = line_pattern(v.by_column, "columns"), rows = line_pattern(v.by_row, "rows");
    if (columns && rows) return fmt::format("{} of {}{}", *columns, *rows, kind);
    if (columns) return *columns + kind;
    if (rows) return *rows + kind;
  } else if (auto p = line_pattern(v.rows > 1 ? v.by_row : v.by_column, "elements")) {
    return *p + kind;
  }
  return fmt::format("scattered, {:.2g}% of the elements{}",
                     100.0 * double(j.wrong) / double(j.elements), kind);
}

std::vector<std::vector<int64_t>> first_wrong(const Judgement& j, const Shape& shape, size_t most) {
  std::vector<std::vector<int64_t>> out;
  for (size_t i = 0; i < j.is_wrong.size() && out.size() < most; ++i) {
    if (!j.is_wrong[i]) continue;
    std::vector<int64_t> at(shape.size());
    auto rest = int64_t(i);
    for (size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    out.push_back(std::move(at));
  }
  return out;
}

}  // namespace cutegen
