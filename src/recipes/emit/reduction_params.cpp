// SPDX-License-Identifier: Apache-2.0
// The parameters of the reduction recipe: legal values, the safe choice, and legal combinations.
#include <algorithm>
#include <array>
#include <optional>

#include "recipes/emit/passes.h"
#include "recipes/emit/reduction.h"
#include "recipes/emit/reduction_kernel.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kShortRow = 256;  // a warp takes a row up to this length, so no thread idles long
constexpr int64_t kShare = 16;      // elements of a row that a thread takes, if rows are many
constexpr int64_t kManyThreads = int64_t{1} << 17;  // fill the SMs of a large GPU
// Elements of a row that a thread keeps in registers, best first. On an H100, rows of 4096 and 8192
// took 1 to 7% less time with 16 than with 32. With 8, a thread spends more time on other work.
constexpr std::array<int64_t, 2> kShares{16, 32};
// For 16-bit elements, which registers hold in pairs. On an H200, RMS norm of rows of 5120 takes
// 58 us with 8 elements a thread, 48.5 us with 16, 46.4 us with 32.
constexpr std::array<int64_t, 2> kSharesOfHalves{32, 16};
constexpr int64_t kMostBytes = 64;       // of a thread's elements, if more than kShares.front()
constexpr int64_t kMostWidth = 512;      // threads that keep a row in registers
constexpr int64_t kMostThreads = 1024;   // such threads if other timed shapes have longer rows
constexpr int64_t kThreadsOfRows = 128;  // least threads of a CTA that keeps rows in registers
// Loads of a thread that hide the latency of DRAM. On an H200, means over two tensors of 4 GB each
// take 1.86 ms with two steps of both in flight, 1.91 ms with four, 2.15 ms with one.
constexpr int64_t kInFlight = 4;
// The same for single elements of 4 bytes or fewer. On an H200, argmax over 512 rows of 50257
// floats takes 49.7 us with four, 40.1 us with eight.
constexpr int64_t kNarrowInFlight = 8;
constexpr int64_t kMaxCached = 64;       // elements a thread may keep in registers
constexpr int64_t kRegisters = 65536;    // of an SM, and therefore at most of a CTA
constexpr int64_t kOtherRegisters = 24;  // of a thread, besides cached elements
constexpr int64_t kOfColumn = 4;         // further registers for each column of a thread
constexpr int64_t kMiddleRow = 4096;     // elements of a row that one warpgroup reads
constexpr int64_t kLongRow = 16384;      // elements; a longer row is worth a CTA of 1024 threads
constexpr int64_t kWanted = 1056;        // CTAs that fill a GPU: 8 for each of 132 SMs
constexpr int64_t kLeastPart = 4096;     // elements of a row that are worth a CTA
constexpr int64_t kFewCtas = 128;        // fewer leave SMs idle
constexpr int64_t kEnoughCtas = 264;     // two for each of 132 SMs
constexpr int64_t kLeastRun = 64;        // bytes of neighbouring columns that a CTA reads
constexpr int64_t kLeastRows = 256;      // rows of columns that are worth a CTA
// Rows of a column that one team takes. On an H200, argmax over 21 rows of 2 million columns takes
// 65 us with one team and 90 us with 8.
constexpr int64_t kFewRows = 32;
constexpr int64_t kTeam = 128;                  // threads of such a team
constexpr int64_t kTurns = 4, kManyTurns = 16;  // rows that a cluster takes one after another
constexpr int64_t kWorthSplitting = 32768;      // elements of a row, if rows are few
constexpr int64_t kLeastResident = 8192;        // elements of a row; registers keep a shorter one
constexpr int64_t kMostCluster = 16;  // CTAs; more than 8 need an opt-in, which cutegen sets
// On an H100, rows of 1.5 MiB took 4.9 ms with clusters of 8, and 6.3 to 8.2 ms with clusters
// of 16.
constexpr int64_t kGoodCluster = 8;
constexpr int64_t kLittleShared = int64_t{8} << 10;  // bytes of a row that are worth a CTA
// Bytes of a row that fit twice into an SM of sm_90, with one more vector for each thread.
constexpr int64_t kHalfShared = int64_t{104} << 10;
constexpr int64_t kMostOfOthers = int64_t{96} << 10;  // bytes of shared memory on other GPUs
constexpr int64_t kMostSharedReduction = int64_t{220}
                                         << 10;  // of a CTA of sm_90, without its other variables
constexpr int64_t kMostOfColumn = 64;            // elements of a column that a thread should keep
constexpr int64_t kLongColumn = 1024;            // rows that are worth a CTA of 1024 threads
constexpr int64_t kLong = int64_t{1} << 18;      // elements that one CTA should not reduce alone

// Bytes of registers that one element of a row takes. Operands with one value for a whole row, or
// the same for all rows, take no lasting registers.
int64_t register_bytes(const Fused& fused, const Nest& nest) {
  // A row kernel keeps the values that it computes before the first reduction as floats.
  const bool half = !nest.reduced_inside || !computes_before_reducing(fused);
  int64_t bytes = 0;
  for (const Operand& operand : fused.inputs)
    if (in_registers(fused, nest, operand)) bytes += half && packed(fused, nest, operand) ? 2 : 4;
  return bytes > 0 ? bytes : 4;
}

// Whether registers hold all elements of a row in 16 bits or fewer.
bool keeps_halves(const Fused& fused, const Nest& nest) {
  if (!nest.reduced_inside || computes_before_reducing(fused)) return false;
  return std::all_of(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& operand) {
    return !in_registers(fused, nest, operand) || packed(fused, nest, operand);
  });
}

bool has_element_output(const Fused& fused) {
  return std::any_of(fused.outputs.begin(), fused.outputs.end(),
                     [&](const FusedOutput& o) { return varies(fused, o.operand); });
}

// Bytes of the widest operand that varies along the columns.
int64_t kept_bytes(const Fused& fused, const Nest& nest) {
  int64_t bytes = 1;
  for (const Operand& operand : fused.inputs)
    if (in_registers(fused, nest, operand))
      bytes = std::max(bytes, int64_t(size_of(operand.dtype)));
  return bytes;
}

// The CTAs of a kernel that does not split rows.
int64_t ctas(const Nest& nest) {
  return nest.reduced_inside ? nest.rows() : (nest.rows() + 31) / 32;
}

// CTAs that share long columns, two for each SM: the last kernel of a program merges the parts of
// its columns in each of its CTAs.
int64_t parts_of_columns(const Nest& nest, int64_t vector) {
  const int64_t across = std::max<int64_t>(1, nest.rows() / (32 * vector));
  return std::min(nest.length() / kLeastRows, kEnoughCtas / across);
}

// Numbers of CTAs for a row, best first, then 1 (not split). Empty if rows are not worth splitting.
std::vector<int64_t> parts_worth_trying(const Fused& fused, const Nest& nest) {
  int64_t most = nest.length() / kLeastPart, have = std::max<int64_t>(1, ctas(nest));
  std::vector<int64_t> list;
  if (have * 2 > kWanted && nest.length() <= kLong * 4) return list;
  // Parts of very long rows should be many, so that the last CTAs are not alone. On an H200, group
  // norm of 896 rows of 2 million elements takes 5.39 ms with 16 parts and 5.83 ms with 2.
  const int64_t least = std::clamp<int64_t>(nest.length() >> 17, 2, 16);
  for (int64_t wanted : {kWanted, kWanted * 2, kWanted / 2, kWanted * 4}) {
    int64_t parts = std::min(most, std::max(least, wanted / have));
    if (parts > 1 && std::find(list.begin(), list.end(), parts) == list.end())
      list.push_back(parts);
  }
  if (!nest.reduced_inside) {
    const int64_t parts = parts_of_columns(nest, vector_widths(fused, nest.inner()).front());
    if (parts > 1 && std::find(list.begin(), list.end(), parts) == list.end())
      list.push_back(parts);
  }
  if (!list.empty()) list.push_back(1);
  return list;
}

bool several_passes(const Fused& fused) {
  return fused.max_depth() > 1 || has_element_output(fused);
}

// Sizes of a cluster whose CTAs can keep a row in shared memory, best first. Two CTAs should fit an
// SM, so that one loads while the other computes. Empty if no cluster can, or registers do as well.
std::vector<int64_t> clusters_worth_trying(const Fused& fused, bool hopper) {
  const Nest nest = make_nest(fused);
  std::vector<int64_t> list;
  if (!nest.reduced_inside || !several_passes(fused) || nest.length() < kLeastResident) return list;
  const int64_t bytes = nest.length() * element_bytes(fused, nest);
  if (bytes == 0) return list;
  auto add = [&](int64_t first, int64_t last, int64_t least, int64_t most) {
    for (int64_t ctas = first; ctas <= (hopper ? last : 1); ctas *= 2)
      if (bytes / ctas > least && bytes / ctas <= most) list.push_back(ctas);
  };
  add(1, kGoodCluster, kLittleShared, hopper ? kHalfShared : kMostOfOthers);
  if (hopper) add(1, kGoodCluster, kHalfShared, kMostSharedReduction - kLittleShared);
  if (hopper) add(kMostCluster, kMostCluster, kLittleShared, kMostSharedReduction - kLittleShared);
  return list;
}

// Threads that share a short row. If rows are many, each thread takes several vectors, so that most
// instructions of a warp process elements.
int64_t short_width(const Nest& nest, int64_t vector) {
  int64_t width = 32;
  auto halved = [&](int64_t half) {
    return nest.length() <= half * kShare && half * vector >= kShare &&
           nest.rows() * half >= kManyThreads;
  };
  while (halved(width / 2)) width /= 2;
  return width;
}

// Chooses a row in the shared memory of a cluster: DRAM delivers it once.
void keep_on_chip(const Fused& fused, const Nest& nest, int64_t ctas, Json& params) {
  params["vector"] = vector_widths(fused, nest.inner()).front();
  params["parts"] = 1;
  params["cached"] = 2;
  params["cluster"] = ctas;
  // If an SM holds only one CTA, that CTA needs more warps to hide latency.
  const bool alone = nest.length() * element_bytes(fused, nest) / ctas > kHalfShared;
  params["width"] = params["threads"] = alone ? 1024 : 512;
  params["unroll"] = 4;
  // Nothing else on its SM reads while such a CTA writes or waits. On an H100, rows of 1 MiB
  // took 6.5 ms with 16 rows in turn, 9.1 ms without turns.
  if (alone && has_element_output(fused))
    for (int64_t turns : {kManyTurns, kTurns})
      if (nest.rows() * ctas >= turns * kWanted) {
        Json next = params;
        next["turns"] = turns;
        if (!ring_of(fused, nest, next)) continue;
        params = std::move(next);
        break;
      }
  const auto joint = find_joint(fused);
  params["online"] = joint && !joint->moments ? 1 : 0;
}

// Threads that share a row if each keeps about `share` elements: whole warps, whose threads all
// take the same number of vectors if possible.
int64_t width_for(const Nest& nest, int64_t vector, int64_t share) {
  const int64_t vectors = (nest.length() + vector - 1) / vector,
                items = std::max(share / vector, int64_t{1});
  const int64_t width = (vectors + items - 1) / items;
  int64_t power = 32;
  while (power < width) power *= 2;
  return power <= kThreadsOfRows ? power : (width + 31) / 32 * 32;
}

// Chooses registers for a row if no thread has to keep more than `share` elements: DRAM delivers
// the row once, and enough warps fit an SM. Empty for other rows.
std::optional<Json> keep_in_registers(const Fused& fused, const Nest& nest, Json params,
                                      int64_t share, bool hopper) {
  if (!nest.reduced_inside || !several_passes(fused) || params["parts"] != 1) return std::nullopt;
  int64_t bytes = 0;
  for (const Operand& operand : fused.inputs)
    if (in_registers(fused, nest, operand)) bytes += int64_t(size_of(operand.dtype));
  if (bytes == 0 || (share > kShares.front() && share * bytes > kMostBytes)) return std::nullopt;
  const auto vector = params["vector"].get<int64_t>();
  share = std::max(vector, share);
  // The CTA must have enough threads for the longest row that the evaluator times.
  const int64_t longest = fused.lengths.empty() ? 0 : fused.lengths.back();
  const int64_t least =
      std::max(vector, (longest + kMostThreads * vector - 1) / (kMostThreads * vector) * vector);
  while (share > least && nest.rows() * width_for(nest, vector, share) < kManyThreads)
    share -= vector;
  const int64_t width = width_for(nest, vector, share);
  params["width"] = width;
  params["threads"] = std::max<int64_t>(width, kThreadsOfRows);
  params["cached"] = 1;
  params["unroll"] = 1;
  if (width > kMostWidth || !reduction_legal(fused, params, hopper)) return std::nullopt;
  return params;
}

// Numbers of threads that keep a row in registers, best last.
std::vector<int64_t> register_widths(const Fused& fused, const Nest& nest, bool hopper) {
  std::vector<int64_t> list;
  const Json params{{"vector", vector_widths(fused, nest.inner()).front()},
                    {"parts", 1},
                    {"online", 0},
                    {"cluster", 1},
                    {"turns", 1}};
  for (int64_t share : {32, 8, 16})
    if (auto kept = keep_in_registers(fused, nest, params, share, hopper)) {
      const auto width = kept->at("width").get<int64_t>();
      std::erase(list, width);
      list.push_back(width);
    }
  return list;
}

// Threads that share a row that they read once: each has several loads in flight.
int64_t streaming_width(const Nest& nest, int64_t vector) {
  int64_t width = 32;
  while (width < kMostWidth && width * vector * kInFlight < nest.length()) width *= 2;
  return width;
}

// Whether the operand has the same elements for all rows, so that most reads of it hit L1.
bool same_for_rows(const Nest& nest, const Operand& operand) {
  return std::none_of(nest.kept.begin(), nest.kept.end(), [&](const Loop& loop) {
    return std::any_of(loop.axes.begin(), loop.axes.end(),
                       [&](int axis) { return position(operand, axis) >= 0; });
  });
}

// Threads that share a row in one pass. If all rows are multiplied by one vector, a warp takes a
// row where there are enough rows: it needs no barrier, and reads the vector for several rows.
int64_t once_width(const Fused& fused, const Nest& nest, int64_t vector) {
  const int64_t streaming = streaming_width(nest, vector);
  if (std::none_of(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& operand) {
        return varies(fused, operand) && same_for_rows(nest, operand);
      }))
    return streaming;
  int64_t width = 32;
  while (width < streaming && nest.rows() * width < 2 * kManyThreads) width *= 2;
  return width;
}

// Chooses few threads for each row if there is one pass over many rows of middle length. On an
// H200, averages of 65536 rows of 784 floats take 109 us if 256 threads share a row, and means and
// maxima of 16384 rows of 3136 floats take 68.4 us with 256 threads, 57.3 us with 128.
std::optional<Json> read_once(const Fused& fused, const Nest& nest, Json params) {
  int64_t width = once_width(fused, nest, params["vector"].get<int64_t>());
  if (nest.length() <= kMiddleRow) width = std::min(width, kThreadsOfRows);
  if (!nest.reduced_inside || several_passes(fused) || params["parts"] != 1 || width >= 256 ||
      nest.length() <= kShortRow || nest.rows() * width < kManyThreads)
    return std::nullopt;
  params["width"] = width;
  params["threads"] = std::max<int64_t>(width, kThreadsOfRows);
  return params;
}

// Chooses a single pass if only the maximum and the sum of exponentials of each row are wanted.
std::optional<Json> stream_rows(const Fused& fused, const Nest& nest, Json params) {
  const auto joint = find_joint(fused);
  if (!nest.reduced_inside || !joint || joint->moments || fused.max_depth() > 2 ||
      has_element_output(fused) || params["parts"] != 1)
    return std::nullopt;
  const auto vector = params["vector"].get<int64_t>();
  const int64_t width = streaming_width(nest, vector);
  params["online"] = 1;
  params["width"] = width;
  params["threads"] = std::max<int64_t>(width, kThreadsOfRows);
  params["unroll"] = kInFlight;
  return params;
}

// CTAs of a column kernel.
int64_t column_ctas(const Nest& nest, const Json& params) {
  auto get = [&](const char* name) { return params.at(name).get<int64_t>(); };
  const int64_t across = std::max<int64_t>(1, get("vector") * get("columns"));
  return (nest.rows() + across - 1) / across * get("cluster");
}

// Chooses how many columns a CTA takes, and how many CTAs share them. If a kernel reads its
// elements several times, they stay in registers. Empty if a plain kernel has enough CTAs.
std::optional<Json> share_columns(const Fused& fused, const Nest& nest, Json params, bool hopper,
                                  bool keeps) {
  const bool enough = column_ctas(nest, params) >= kEnoughCtas;
  if (!keeps && (enough || nest.length() < kLongColumn)) return std::nullopt;
  if (keeps) params["cached"] = 1, params["unroll"] = 1;
  params["threads"] = 256;
  // On an H200, softmax over 1000 rows of 46620 columns takes 272 us with 256 threads, which
  // keep 125 elements each, and 182 us with 512.
  Json narrow = params;
  narrow["columns"] = 32;
  if (const int64_t elements = elements_of_thread(nest, narrow);
      keeps && elements > kMostOfColumn && elements <= 2 * kMostOfColumn)
    params["threads"] = 512;
  std::optional<Json> best;
  for (int64_t cluster : {1, 2, 4, 8, 16})
    for (int64_t columns : {32, 16, 8, 4}) {
      const int64_t bytes = columns * params["vector"].get<int64_t>() * kept_bytes(fused, nest);
      if (bytes < kLeastRun || (cluster > 1 && bytes > 4 * kLeastRun)) continue;
      Json next = params;
      next["columns"] = columns, next["cluster"] = cluster;
      if (!reduction_legal(fused, next, hopper)) continue;
      // On an H200, means of 512 columns of 65536 floats take 47.3 us this way, and 50.6 us with
      // half as many columns and threads.
      if (!keeps && cluster == 16 && columns == 8 && 2 * column_ctas(nest, next) > kEnoughCtas) {
        next["threads"] = 512;
        return next;
      }
      if (column_ctas(nest, next) >= kEnoughCtas) return next;
      if (!best || column_ctas(nest, next) > column_ctas(nest, *best)) best = next;
    }
  return best;
}

// Chooses two kernels that both read long columns, if only very large clusters could share the
// columns. Such clusters read, wait and write in step. On an H200, standardising 2048 columns of
// 16384 rows takes 127 us this way with 16 parts (176 us with 66), 135 us with clusters of 16.
std::optional<Json> split_columns(const Fused& fused, const Nest& nest, Json params) {
  const int64_t vector = params["vector"].get<int64_t>(), parts = parts_of_columns(nest, vector);
  const bool one_pass = fused.max_depth() == 1 || (fused.max_depth() == 2 && find_joint(fused));
  const bool reads_twice = params["cached"] == 1 || has_element_output(fused);
  if (!reads_twice || params["cluster"] <= kGoodCluster || !one_pass || parts <= 1 ||
      nest.rows() < 32 * vector)
    return std::nullopt;
  params["cached"] = 0, params["cluster"] = 1, params["parts"] = parts;
  params["online"] = fused.max_depth() == 2 ? 1 : 0;
  params["columns"] = 32, params["threads"] = 256, params["unroll"] = kInFlight;
  return params;
}

}  // namespace

std::vector<RecipeParameter> reduction_parameters(const Fused& fused, bool hopper) {
  Nest nest = make_nest(fused);
  std::vector<RecipeParameter> list{
      {.name = "vector",
       .meaning = "neighbouring elements that a thread moves in one access",
       .legal = vector_widths(fused, nest.inner())}};
  if (auto parts = parts_worth_trying(fused, nest); !parts.empty())
    list.push_back({.name = "parts",
                    .meaning = "CTAs that share a row; their results are merged by the next kernel",
                    .legal = std::move(parts)});
  const auto clusters = clusters_worth_trying(fused, hopper);
  if (several_passes(fused))
    list.push_back(
        {.name = "cached",
         .meaning = "where elements stay between the passes; 1: in registers, 2: in shared memory",
         .legal = clusters.empty() ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{2, 1, 0}});
  if (clusters.size() > 1)
    list.push_back({.name = "cluster",
                    .meaning = "CTAs of a cluster that keep a row in their shared memory",
                    .legal = clusters});
  if (!clusters.empty() && has_element_output(fused))
    list.push_back(
        {.name = "turns",
         .meaning = "rows that a cluster takes; it reads ahead of the row that it writes",
         .legal = {1, kTurns, kManyTurns}});
  if (auto joint = find_joint(fused))
    list.push_back({.name = "online",
                    .meaning = joint->moments ? "1: mean and sum of squares about it in one pass"
                                              : "1: maximum and sum of exponentials in one pass",
                    .legal = {1, 0}});
  if (nest.reduced_inside) {
    std::vector<int64_t> widths{256, 32, 512, 128, 64, 1024};
    if (nest.length() <= 1024) widths = {32, 64, 128, 256};
    if (nest.length() <= kShortRow) widths = {32, 16, 8, 4, 64};
    if (nest.length() > kLongRow) widths = {1024, 512, 256, 128};
    if (nest.length() > 65536) widths = {512, 1024, 256, 128};
    for (int64_t width : register_widths(fused, nest, hopper)) {
      std::erase(widths, width);
      widths.insert(widths.begin(), width);
    }
    list.push_back({.name = "width", .meaning = "threads that share a row", .legal = widths});
  } else {
    list.push_back({.name = "columns",
                    .meaning = "threads side by side on neighbouring columns",
                    .legal = {32, 64, 128, 256, 16, 8, 4}});
    if (hopper)
      list.push_back({.name = "cluster",
                      .meaning = "CTAs of a cluster that share columns",
                      .legal = {1, 2, 4, 8, 16}});
  }
  list.push_back({.name = "unroll",
                  .meaning = "loop steps whose loads are in flight together",
                  .legal = {4, 2, 8, 1}});
  std::vector<int64_t> threads{256, 512, 128, 1024};
  for (int64_t width : register_widths(fused, nest, hopper))
    if (width > kThreadsOfRows && width % 128 != 0) threads.push_back(width);
  list.push_back({.name = "threads", .meaning = "threads of a CTA", .legal = std::move(threads)});
  return list;
}

namespace {

// Steps whose loads a thread issues together, if it does not keep its elements. On an H200, losses
// over two tensors of 134 MB (smooth L1) take 76.8 us with four steps and 74.0 us with two. Losses
// of logits over two of 67 MB, which compute more, take 47.7 us with four and 54.7 us with two;
// dice losses of 32 pairs of 1 MB take 30.0 us with four and 32.2 us with two.
int64_t steps_in_flight(const Fused& fused, const Nest& nest, const Json& params) {
  const bool computes = computes_functions(fused) && !several_passes(fused),
             one_row = nest.rows() == 1 && !computes;
  const int64_t parts = params.at("parts").get<int64_t>(),
                steps = steps_of_thread(nest, params) / std::max<int64_t>(1, parts),
                loads =
                    std::count_if(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& o) {
                      return varies(fused, o) && !computes && !o.in_join &&
                             (several_passes(fused) || one_row || !same_for_rows(nest, o));
                    });
  const bool narrow = params.at("vector") == 1 && kept_bytes(fused, nest) <= 4;
  const int64_t most = narrow ? kNarrowInFlight : kInFlight;
  int64_t unroll = most;
  while (unroll > 1 && (unroll > steps || unroll * loads > most)) unroll /= 2;
  return unroll;
}

Json safe_parameters(const Fused& fused, bool hopper) {
  Nest nest = make_nest(fused);
  auto parts = parts_worth_trying(fused, nest);
  const bool split = nest.length() > kLong || (nest.reduced_inside && ctas(nest) * 2 <= kFewCtas &&
                                               nest.length() >= kWorthSplitting);
  Json params{{"vector", vector_widths(fused, nest.inner()).front()},
              {"parts", parts.empty() || !split ? 1 : parts.front()},
              {"cached", 0},
              {"online", 0}};
  params["cluster"] = 1;
  if (nest.reduced_inside)
    params["width"] = 256, params["turns"] = 1;
  else
    params["columns"] = 32;
  // An H100 sums columns of 4096 x 4095 in 3.8 ms with one access in flight, in 3.1 ms with four.
  params["unroll"] = nest.reduced_inside ? 1 : 4;
  params["threads"] = 256;
  if (!nest.reduced_inside && params["vector"] == 1) {
    // With fewer columns, a CTA has more rows in flight, and CTAs that run together read longer
    // runs of memory. On an H100, CTAs of 256 columns side by side summed the same columns in
    // 4.3 ms. CTAs of 64 columns and 1024 threads take 3.06 ms, and CTAs of 32 columns and 512
    // threads 3.3 to 3.7 ms.
    params["columns"] = 64;
    if (nest.length() >= kLongColumn) params["threads"] = 1024;
  }
  // If the reduced axis is short, there is no work for a second team. On an H100, sums of 6 rows by
  // index take 150 us with 8 teams, 49 us with one.
  if (!nest.reduced_inside && nest.length() <= kFewRows && params["parts"] == 1 &&
      nest.rows() >= kTeam * kFewCtas * params["vector"].get<int64_t>()) {
    params["columns"] = params["threads"] = kTeam;
    params["unroll"] = nest.length() % 4 == 0 || nest.length() > kFewRows / 2 ? 4 : 2;
  }
  if (nest.reduced_inside && nest.length() <= kShortRow) {
    params["width"] = short_width(nest, params["vector"].get<int64_t>());
    // If registers keep a short row, loads of all its vectors are in flight at once.
    Json kept = params;
    kept["cached"] = 1;
    if (params["width"] < 32 && several_passes(fused) && reduction_legal(fused, kept, hopper))
      return kept;
  }
  if (auto streamed = stream_rows(fused, nest, params)) return *streamed;
  if (auto once = read_once(fused, nest, params)) return *once;
  for (int64_t share : keeps_halves(fused, nest) ? kSharesOfHalves : kShares)
    if (auto kept = keep_in_registers(fused, nest, params, share, hopper)) return *kept;
  if (!nest.reduced_inside && params["parts"] == 1)
    for (bool keeps : {several_passes(fused), false})
      if (auto shared = share_columns(fused, nest, params, hopper, keeps)) {
        const auto joint = find_joint(fused);
        if (!keeps && joint) (*shared)["online"] = 1;
        if (auto split = split_columns(fused, nest, *shared)) return *split;
        return *shared;
      }
  // On an H200, rows of 65535 take 7.9 ms with 1024 threads each and 14 ms with 32: fewer rows are
  // in flight, and more of them are still in L2 for the second pass.
  // With a single pass, no later pass reads a row from L2, so more rows may be in flight.
  const bool once = !several_passes(fused) && nest.rows() >= kFewCtas;
  bool long_row = nest.length() > kLongRow && nest.length() <= 65536 && !once;
  // Registers cannot keep such a row, so computing both moments in one pass saves one of three
  // reads.
  auto joint = find_joint(fused);
  if (joint && joint->moments && nest.length() > kLongRow) params["online"] = 1;
  if (nest.reduced_inside && long_row && params["parts"] == 1)
    params["width"] = params["threads"] = 1024;
  // Fewer CTAs than SMs leave bandwidth unused. If there are so few rows, they stay in L2 between
  // the passes without clusters.
  const auto clusters = clusters_worth_trying(fused, hopper);
  const auto enough = std::find_if(clusters.begin(), clusters.end(),
                                   [&](int64_t ctas) { return nest.rows() * ctas >= kFewCtas; });
  if (hopper && enough != clusters.end()) keep_on_chip(fused, nest, *enough, params);
  return params;
}

}  // namespace

Json reduction_safe(const Fused& fused, bool hopper) {
  Json params = safe_parameters(fused, hopper);
  const Nest nest = make_nest(fused);
  if (params["cached"] == 0 && nest.reduced_inside)
    params["unroll"] = steps_in_flight(fused, nest, params);
  return params;
}

bool reduction_legal(const Fused& fused, const Json& params, bool hopper) {
  Nest nest = make_nest(fused);
  auto get = [&](const char* name) { return params.at(name).get<int64_t>(); };
  int64_t threads = get("threads"), side = get(nest.reduced_inside ? "width" : "columns");
  if (side > threads || threads % side != 0) return false;
  if (get("online") != 0 && !find_joint(fused)) return false;
  const int64_t cluster = get("cluster");
  if (cluster > 1 && (!hopper || (nest.reduced_inside && get("cached") != 2))) return false;
  if (cluster > 1 && get("parts") > 1) return false;
  if (turns_of(params) > 1 &&
      (get("cached") != 2 || !has_element_output(fused) || !ring_of(fused, nest, params)))
    return false;
  if (get("cached") == 0) return true;
  if (get("parts") > 1) return false;  // a kernel cannot read registers or shared memory of another
  if (get("cached") == 2) {
    int64_t bytes = resident_bytes(fused, nest, params);
    if (!fused.lengths.empty() && fused.lengths.back() > nest.length())
      bytes = bytes / nest.length() * fused.lengths.back() + bytes % nest.length();
    return nest.reduced_inside && side == threads && element_bytes(fused, nest) > 0 &&
           bytes <= (hopper ? kMostSharedReduction : kMostOfOthers);
  }
  const int64_t vector = nest.reduced_inside ? 1 : get("vector");  // neighbouring columns
  const int64_t others = kOtherRegisters + (nest.reduced_inside ? 0 : kOfColumn * vector);
  if (!fused.lengths.empty() && nest.reduced_inside) {
    const int64_t longest = fused.lengths.back();
    if (width_follows(fused, nest, params))
      threads = std::max(threads, width_at(nest, params, longest));
    else if (longest > side * elements_of_thread(nest, params))
      return false;
    if (threads > kMostThreads) return false;
  }
  const int64_t most = std::min(kMaxCached, kRegisters / threads - others);
  return elements_of_thread(nest, params) * vector * register_bytes(fused, nest) <= 4 * most;
}

}  // namespace cutegen::recipes
