// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/pointwise.h"
#include "recipes/matmul/matmul_tiling.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostSharedAttention = int64_t{227} << 10;
constexpr int64_t kMostOfTwo = int64_t{112} << 10;  // shared memory of a CTA if an SM holds two
constexpr int64_t kCached = int64_t{32} << 20;      // bytes of keys and values that stay in the L2
constexpr int64_t kFewQueries = 64;
constexpr int64_t kKeysOfTile = 128;  // if there are enough keys
constexpr int64_t kMostSplit = 64;
constexpr int64_t kPartsInARun = 8, kKeysOfPart = 1024;
// Least number of elements of a part's keys and values, divided by four times the number of
// elements of the results.
constexpr int64_t kSmallResults = 50;

// Whether heads that share keys become the rows of one tile, because each has a single row.
bool stacks_heads(const Attention& a) {
  return a.node.grouped && a.size(Attention::kRow) == 1 && !a.node.causal && a.node.mask.empty();
}

int64_t rows_of(const Attention& a) {
  if (!stacks_heads(a)) return a.size(Attention::kRow);
  return a.size(Attention::kHead) / std::max<int64_t>(1, a.size(Attention::kKeyHead));
}

int64_t heads_of(const Attention& a) {
  return a.size(Attention::kBatch) *
         a.size(stacks_heads(a) ? Attention::kKeyHead : Attention::kHead);
}

int64_t stage_bytes(int64_t keys, int64_t depth, int64_t width) {
  return keys * 128 * (ceil_div(depth, 64) + ceil_div(width, 64));
}

// The size of StorageOf<queries> in attention_wgmma.cuh.
int64_t attention_storage(const Attention& a, const Json& params, int64_t queries) {
  const int64_t stages = int_param(params, "stages"), depth = a.size(Attention::kDepth);
  const int64_t bytes =
      queries * int_param(params, "consumers") * 64 * 128 * ceil_div(depth, 64) +
      stages * stage_bytes(int_param(params, "keys"), depth, a.size(Attention::kWidth)) +
      16 * (queries + 2 * stages);
  return ceil_div(bytes, 1024) * 1024;
}

// The same as a plan expression.
std::string storage_text(const Json& params, const Label& label, int64_t queries) {
  const int64_t stages = int_param(params, "stages"), keys = int_param(params, "keys");
  const std::string depth = fmt::format("ceil_div({},64)", label("head_dim")),
                    width = fmt::format("ceil_div({},64)", label("value_dim"));
  return fmt::format("ceil_div({0}*{1}+{2}*({1}+{3})+{4},1024)*1024",
                     queries * int_param(params, "consumers") * 64 * 128, depth,
                     stages * keys * 128, width, 16 * (queries + 2 * stages));
}

int64_t columns_of_product(int64_t width) {
  for (int64_t columns : {16, 32, 64, 96, 128, 192})
    if (width <= columns) return columns;
  return 256;
}

// CTAs that an SM holds.
int64_t attention_resident(const Attention& a, const Json& params) {
  const bool two =
      int_param(params, "consumers") == 1 && attention_storage(a, params, 1) <= kMostOfTwo;
  return two ? 2 : 1;
}

// The size of Storage, which holds two tiles of queries if they fit.
std::string shared_text(const Json& params, const Label& label) {
  const std::string one = storage_text(params, label, 1), two = storage_text(params, label, 2);
  std::string most = std::to_string(kMostSharedAttention);
  if (int_param(params, "consumers") == 1)
    most = fmt::format("({} <= {} ? {} : {})", one, kMostOfTwo, kMostOfTwo, most);
  return fmt::format("{} <= {} ? {} : {}", two, most, two, one);
}

// What the plan and the kernel's text share: names and strides.
class AttentionParts {
 public:
  AttentionParts(const Attention& a, const Json& params, const Label& label)
      : a_(a), params_(params), label_(label) {}

 protected:
  std::string name_of(const Attended& of) const { return a_.loads.names.at(of.operand.tensor); }
  std::string result() const { return name_of(a_.out); }
  std::string element() const { return device_type(a_.element()); }
  bool split() const { return int_param(params_, "split") > 1; }

  std::string extent(Attention::AxisOf axis) const { return "(" + a_.extent(axis) + ")"; }

  static std::string text_of(const Stride& stride) {
    if (stride.move == Move::none) return "0";
    return stride.move == Move::next ? "1" : "(" + stride.expression + ")";
  }

  // Strides along batch, head, row and depth. Stacked heads are rows.
  std::array<std::string, 4> strides_of(const Attended& of) const {
    std::array<std::string, 4> list{text_of(of.batch), text_of(of.head), text_of(of.row),
                                    text_of(of.along)};
    const bool queries = &of == &a_.q || &of == &a_.out;
    if (stacks_heads(a_) && queries) list[2] = list[1], list[1] = label_("group") + "*" + list[1];
    return list;
  }

  std::vector<std::pair<std::string, std::string>> stride_arguments() const {
    std::vector<std::pair<std::string, std::string>> list;
    auto add = [&](const char* word, const Attended& of) {
      const auto strides = strides_of(of);
      const char* names[] = {"batch", "head", "row", "along"};
      for (size_t i = 0; i < 4; ++i)
        list.emplace_back(fmt::format("{}_{}", word, names[i]), strides[i]);
    };
    add("q", a_.q), add("k", a_.k), add("v", a_.v);
    for (const auto& [word, of] :
         {std::pair("q_first", &a_.q), {"k_first", &a_.k}, {"v_first", &a_.v}})
      if (of->slices > 1)
        list.emplace_back(word, fmt::format("{}*{}", of->index, text_of(of->slice)));
    if (a_.mask) add("mask", *a_.mask);
    if (!split()) add("out", a_.out);
    return list;
  }

  // Names of the tensors that the kernel gets, each once.
  std::vector<std::string> tensors() const {
    std::vector<std::string> list;
    auto add = [&](const std::string& name) {
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    };
    for (const Attended* of : {&a_.q, &a_.k, &a_.v}) add(name_of(*of));
    if (a_.mask) add(name_of(*a_.mask));
    if (split())
      add(std::string(kPartial)), add(std::string(kExponents));
    else
      add(result());
    return list;
  }

  // Scratch of split keys, by its name in the kernel.
  static constexpr std::string_view kPartial = "partial", kExponents = "exponents";
  bool is_scratch(const std::string& name) const {
    return split() && (name == kPartial || name == kExponents);
  }

  const Attention& a_;
  const Json& params_;
  const Label& label_;
};

class AttentionPlan : AttentionParts {
 public:
  using AttentionParts::AttentionParts;

  void write(ProgramPart& part) const {
    symbols(part);
    maps(part);
    steps(part);
  }

 private:
  void symbols(ProgramPart& part) const {
    auto& s = part.symbols;
    const std::string heads = extent(Attention::kHead),
                      key_heads = a_.node.grouped ? extent(Attention::kKeyHead) : heads;
    s[label_("group")] = a_.node.grouped ? fmt::format("{}/max(1,{})", heads, key_heads) : "1";
    const bool stacks = stacks_heads(a_);
    s[label_("rows")] =
        stacks ? fmt::format("{}*{}/max(1,{})", extent(Attention::kRow), heads, key_heads)
               : extent(Attention::kRow);
    s[label_("keys")] = extent(Attention::kKey);
    s[label_("heads")] = stacks ? key_heads : heads;
    s[label_("key_heads")] = key_heads;
    s[label_("shared_by")] = stacks ? "1" : label_("group");
    s[label_("batches")] = extent(Attention::kBatch);
    s[label_("head_dim")] = extent(Attention::kDepth);
    s[label_("value_dim")] = extent(Attention::kWidth);
    s[label_("lines")] =
        fmt::format("{}*{}*{}", label_("rows"), label_("heads"), label_("batches"));
    s[label_("elements")] = label_("lines") + "*" + label_("value_dim");
    // cached: the number of heads whose keys and values fit in L2 together. section: the number of
    // heads in each of several equal groups of at most `cached` heads.
    s[label_("cached")] = fmt::format("max(1,{}/max(1,2*{}*({}+{}))*{})", kCached, label_("keys"),
                                      label_("head_dim"), label_("value_dim"), label_("shared_by"));
    const std::string all_heads = fmt::format("max(1,{}*{})", label_("heads"), label_("batches"));
    s[label_("section")] =
        fmt::format("ceil_div({0},ceil_div({0},{1}))", all_heads, label_("cached"));
    s[label_("tma")] = tma_rule();
    s[label_("vector_out")] = vector_rule();
    part.defines = {{label_("USE_TMA"), label_("tma")},
                    {label_("HEAD_DIM"), fmt::format("max(1,{})", label_("head_dim"))},
                    {label_("VALUE_DIM"), fmt::format("max(1,{})", label_("value_dim"))},
                    {label_("VECTOR_OUT"), label_("vector_out")}};
    if (a_.mask) part.defines[label_("MASK_PAIR")] = pair_rule();
    for (const char* size : {"head_dim", "value_dim"})
      part.requirements.push_back(label_(size) + " <= 256");
    part.requirements.push_back(label_("elements") + " <= 500000000000");
    for (const char* size : {"rows", "keys"})
      part.requirements.push_back(label_(size) + " <= 1000000000");
    part.requirements.push_back(label_("tiles") + " <= 2000000000");
    for (const std::string& demand : fixed_sizes(a_.loads)) part.requirements.push_back(demand);
    if (a_.node.grouped)
      part.requirements.push_back(fmt::format("{} % max(1,{}) == 0", heads, key_heads));
    if (stacks) part.requirements.push_back(extent(Attention::kRow) + " == 1");
    s[label_("tiles")] = fmt::format("ceil_div({},{})*{}*{}*{}", label_("rows"),
                                     64 * int_param(params_, "consumers"), label_("heads"),
                                     label_("batches"), int_param(params_, "split"));
  }

  // 1 if TMA can read q, k and v: elements along the depth are neighbours, and all other strides
  // are multiples of 16 bytes.
  std::string tma_rule() const {
    std::string rest;
    for (const Attended* of : {&a_.q, &a_.k, &a_.v}) {
      const auto strides = strides_of(*of);
      if (strides[3] != "1") return "0";
      for (size_t i = 0; i < 3; ++i)
        if (strides[i] != "0") rest += fmt::format("{}({})%8", rest.empty() ? "" : "+", strides[i]);
      if (of->slices > 1) rest += fmt::format("+({})%8", text_of(of->slice));
    }
    return fmt::format("{}*{}*{} == 0 ? 0 : {} == 0 ? 1 : 0", label_("elements"), label_("keys"),
                       label_("head_dim"), rest.empty() ? "0" : rest);
  }

  std::string vector_rule() const {
    const auto strides = strides_of(a_.out);
    if (strides[3] != "1") return "1";
    std::string rest = label_("value_dim") + "%8";
    for (size_t i = 0; i < 3; ++i)
      if (strides[i] != "0") rest += fmt::format("+({})%8", strides[i]);
    return fmt::format("{} > 16 ? {} == 0 ? 8 : 1 : 1", label_("value_dim"), rest);
  }

  Json map_of(const Attended& of, const char* rows, const char* heads, const char* depth,
              const char* spec) const {
    const auto strides = strides_of(of);
    auto if_tma = [&](const std::string& value, const char* otherwise) {
      return fmt::format("{} == 1 ? {} : {}", label_("tma"), value, otherwise);
    };
    Json dims = Json::array({if_tma(label_(depth), "1"), if_tma(label_(rows), "1")}),
         steps = Json::array({"1", strides[2] == "0" ? "16" : if_tma(strides[2], "16")});
    const std::pair<size_t, std::string> outer[] = {{1, label_(heads)}, {0, label_("batches")}};
    for (const auto& [i, size] : outer) {
      dims.push_back(strides[i] == "0" ? "1" : if_tma(size, "1"));
      steps.push_back(strides[i] == "0" ? "16" : if_tma(strides[i], "16"));
    }
    const bool sliced = of.slices > 1;
    dims.push_back(sliced ? if_tma(std::to_string(of.slices), "1") : "1");
    steps.push_back(sliced ? if_tma(text_of(of.slice), "16") : "16");
    return {{"tensor", name_of(of)}, {"spec", spec}, {"dims", dims}, {"strides", steps}};
  }

  void maps(ProgramPart& part) const {
    part.tensor_maps = {
        {label_("map_q"), map_of(a_.q, "rows", "heads", "head_dim", "cg_map_q")},
        {label_("map_k"), map_of(a_.k, "keys", "key_heads", "head_dim", "cg_map_k")},
        {label_("map_v"), map_of(a_.v, "keys", "key_heads", "value_dim", "cg_map_v")}};
  }

  // 1 if the mask's values of two neighbouring keys lie in one aligned access.
  std::string pair_rule() const {
    const auto strides = strides_of(*a_.mask);
    if (strides[3] != "1") return "0";
    std::string rest = label_("keys") + "%2";
    for (size_t i = 0; i < 3; ++i)
      if (strides[i] != "0") rest += fmt::format("+({})%2", strides[i]);
    return rest + " == 0 ? 1 : 0";
  }

  std::string in_plan(const std::string& name) const {
    return is_scratch(name) ? label_(name) : name;
  }

  void steps(ProgramPart& part) const {
    Json args = Json::array();
    for (const char* map : {"map_q", "map_k", "map_v"}) args.push_back({{"map", label_(map)}});
    for (const std::string& tensor : tensors()) args.push_back({{"tensor", in_plan(tensor)}});
    for (const char* size : {"rows", "keys", "heads", "batches", "shared_by", "section"})
      args.push_back({{"i32", label_(size)}});
    for (const auto& [word, expression] : stride_arguments()) args.push_back({{"i64", expression}});
    const int64_t threads = 128 * (int_param(params_, "consumers") + 1);
    const std::string when = label_("elements") + " > 0";
    part.steps.push_back(
        {{"id", label_("attention")},
         {"kernel", label_("attention")},
         {"when", when},
         {"grid",
          {fmt::format("min({},{})", label_("tiles"), kSms * attention_resident(a_, params_)), 1,
           1}},
         {"block", {threads, 1, 1}},
         {"shared_bytes", shared_text(params_, label_)},
         {"args", args}});
    if (!split()) return;
    part.scratch.push_back({{"name", label_("partial")},
                            {"dtype", "f32"},
                            {"shape", {params_.at("split"), label_("elements")}}});
    part.scratch.push_back({{"name", label_("exponents")},
                            {"dtype", "f32"},
                            {"shape", {params_.at("split"), label_("lines")}}});
    Json last = Json::array({{{"tensor", label_("partial")}},
                             {{"tensor", label_("exponents")}},
                             {{"tensor", result()}}});
    for (const char* size : {"rows", "heads", "batches"}) last.push_back({{"i32", label_(size)}});
    for (const std::string& stride : strides_of(a_.out)) last.push_back({{"i64", stride}});
    part.steps.push_back({{"id", label_("combine")},
                          {"kernel", label_("combine")},
                          {"when", when},
                          {"grid", {fmt::format("ceil_div({},256)", label_("elements")), 1, 1}},
                          {"block", {256, 1, 1}},
                          {"args", last}});
  }
};

class AttentionText : AttentionParts {
 public:
  AttentionText(const Task& task, const Attention& a, const Json& params, const Label& label)
      : AttentionParts(a, params, label), task_(task) {}

  std::string write() const { return fill("kernels/attention/fused.cu", texts()); }

 private:
  // cutegen::tma_spec: version, rank, box[5], mode[5], bits of an element, swizzle of 128 bytes.
  std::string constants() const {
    auto constant = [](const char* name, int64_t rows) {
      return fmt::format(
          "extern \"C\" __device__ const unsigned {}[15] = {{1, 5, 64, {}, 1, 1, 1, 0, 1, 2, 3, 4, "
          "16, 3, 4}};\n",
          name, rows);
    };
    const int64_t keys = int_param(params_, "keys");
    return "// What the plan's tensor maps load: boxes with lines of 128 bytes.\n" +
           constant("cg_map_q", 64 * int_param(params_, "consumers")) + constant("cg_map_k", keys) +
           constant("cg_map_v", keys);
  }

  std::string mask_text() const {
    if (!a_.mask) return "    const cutegen::NoMask mask{};";
    const bool boolean = a_.mask->operand.dtype == DType::boolean;
    auto change = [&](const char* score, int i) {
      return boolean ? fmt::format("{0} = {1}pair.element[{2}] ? {0} : -INFINITY;", score,
                                   a_.node.hides ? "!" : "", i)
                     : fmt::format("{} += static_cast<float>(pair.element[{}]);", score, i);
    };
    const bool rows = a_.mask->row.move != Move::none;
    return fmt::format(
        "    const auto* mask_head_from = {} + batch * mask_batch + head * mask_head;\n"
        "    {}[&](int{}) {{\n"
        "      const auto* line = mask_head_from{};\n"
        "      return [=](int key, float& a, float& b) {{\n"
        "        const auto pair =\n"
        "            cutegen::two_of_mask<MASK_PAIR{} == 1>(line, key, keys, mask_along);\n"
        "        {}\n"
        "        {}\n"
        "      }};\n"
        "    }}{};",
        name_of(*a_.mask),
        boolean ? "const cutegen::HidingMask mask{" : "auto mask = ", rows ? " row" : "",
        rows ? " + min(row, rows - 1) * mask_row" : "",
        label_.number.empty() ? "" : "_" + label_.number, change("a", 0), change("b", 1),
        boolean ? "}" : "");
  }

  std::map<std::string, std::string> texts() const {
    std::map<std::string, std::string> t;
    t["title"] = title(task_, a_.loads);
    t["name"] = label_("attention");
    t["suffix"] = label_.number.empty() ? "" : "_" + label_.number;
    t["element"] = element();
    t["out_type"] = device_type(a_.out.operand.dtype);
    t["q"] = name_of(a_.q), t["k"] = name_of(a_.k), t["v"] = name_of(a_.v), t["result"] = result();
    for (const char* name : {"consumers", "keys", "stages", "split"})
      t[name] = params_.at(name).dump();
    t["causal"] = a_.node.causal ? "true" : "false";
    t["diagonal"] = std::to_string(a_.node.diagonal);
    t["scale"] = literal(a_.node.scale);
    t["safe"] = a_.node.safe ? "true" : "false";
    t["safe_part"] = split() || a_.node.safe ? "true" : "false";
    t["has_split"] = split() ? "1" : "0";
    t["constants"] = constants();
    t["mask"] = mask_text();
    t["slices"] = fmt::format("{}, {}, {}", a_.q.index, a_.k.index, a_.v.index);
    t["q_first"] = a_.q.slices > 1 ? " + q_first" : "";
    t["k_first"] = a_.k.slices > 1 ? " + k_first" : "";
    t["v_first"] = a_.v.slices > 1 ? " + v_first" : "";
    std::vector<std::string> params;
    for (const std::string& tensor : tensors()) params.push_back(declaration(tensor));
    t["params"] = join(params, ", ");
    std::vector<std::string> strides;
    for (const auto& [word, expression] : stride_arguments()) strides.push_back("int64_t " + word);
    t["strides"] = join(strides, ", ");
    t["combine"] = "";
    if (split()) {
      auto c = t;
      c["name"] = label_("combine");
      t["combine"] = combine_text(c);
    }
    return t;
  }

  static std::string combine_text(const std::map<std::string, std::string>& t) {
    const std::string whole = fill("kernels/attention/combine.cu", t);
    return "\n" + whole.substr(whole.find("\n\n") + 2);
  }

  std::string declaration(const std::string& name) const {
    if (is_scratch(name)) return "float* __restrict__ " + name;
    if (!split() && name == result())
      return fmt::format("{}* __restrict__ {}", device_type(a_.out.operand.dtype), name);
    std::string type = element();
    if (a_.mask && name == name_of(*a_.mask)) type = device_type(a_.mask->operand.dtype);
    return fmt::format("const {}* __restrict__ {}", type, name);
  }

  const Task& task_;
};

}  // namespace

bool attention_legal(const Attention& a, const Json& params) {
  const int64_t consumers = int_param(params, "consumers"), keys = int_param(params, "keys"),
                width = columns_of_product(a.size(Attention::kWidth));
  // Scores, rounded weights and sums of a thread, in registers.
  const int64_t registers = keys / 2 + keys / 4 + width / 2;
  const int64_t most = consumers == 3 ? 128 : attention_resident(a, params) == 2 ? 176 : 192;
  return registers <= most && attention_storage(a, params, 1) <= kMostSharedAttention &&
         int_param(params, "stages") >= 2;
}

std::vector<RecipeParameter> attention_parameters(const Attention& a) {
  std::vector<int64_t> splits{1};
  if (rows_of(a) <= kFewQueries)
    for (int64_t split = 2; split <= kMostSplit; split *= 2)
      if (split * 128 <= a.size(Attention::kKey)) splits.push_back(split);
  const auto safe = int_param(attention_safe(a), "split");
  std::stable_sort(splits.begin(), splits.end(), [&](int64_t x, int64_t y) {
    auto far = [&](int64_t s) { return std::max(s, safe) / std::min(s, safe); };
    return far(x) < far(y);
  });
  return {{.name = "keys", .meaning = "keys of a tile", .legal = {128, 64, 96, 192, 256}},
          {.name = "consumers",
           .meaning = "warpgroups that multiply, with 64 rows each",
           .legal = {2, 3, 1}},
          {.name = "stages",
           .meaning = "tiles of keys and of values in shared memory at once",
           .legal = {2, 3, 4, 6}},
          {.name = "split", .meaning = "CTAs that share the keys of one tile", .legal = splits}};
}

namespace {

// The share of the tiles of keys that tiles of `rows` queries process with a causal mask.
double causal_share(const Attention& a, int64_t rows) {
  const int64_t all = a.size(Attention::kRow), keys = a.size(Attention::kKey);
  const int64_t tiles = ceil_div(all, rows), tiles_of_keys = ceil_div(keys, kKeysOfTile);
  int64_t processed = 0;
  for (int64_t t = 0; t < tiles; ++t)
    processed += std::min(tiles_of_keys, ceil_div((t + 1) * rows, kKeysOfTile));
  return double(processed) / double(std::max<int64_t>(1, tiles * tiles_of_keys));
}

// The time of all tiles, relative to one tile of two consumers. With three, a consumer
// waits less for the tensor cores, so 1.5 times the rows take 1.3 times as long on an H100.
double attention_cost(const Attention& a, int64_t consumers) {
  const double tiles = double(ceil_div(a.size(Attention::kRow), 64 * consumers)) *
                       double(heads_of(a)) / double(kSms);
  const double rounds =
      a.node.causal ? std::max(1.0, tiles) * causal_share(a, 64 * consumers) : std::ceil(tiles);
  return rounds * (consumers == 3 ? 1.3 : 1.0);
}

constexpr int64_t kManyRounds = 8;  // of tiles, in which a CTA reads ahead

// Parameters if one tile holds all keys. Nothing else of the CTA overlaps with such a tile, so two
// CTAs share an SM. On an H200, 8192 queries of 10 heads over 77 keys take 18.2 us with 96 keys and
// one consumer, 21.9 us with 128 keys and two. 4096 queries of 80 heads take 58.7 us with one
// consumer, 51.7 us with three.
std::optional<Json> single_tile(const Attention& a, Json params) {
  params["consumers"] = 3;
  params["keys"] = ceil_div(a.size(Attention::kKey), 32) * 32;
  if (ceil_div(a.size(Attention::kRow), 192) * heads_of(a) >= kManyRounds * kSms &&
      (params["keys"] == 64 || params["keys"] == 96) && attention_legal(a, params))
    return params;
  params["consumers"] = 1;
  for (int64_t keys : {64, 96, 128}) {
    params["keys"] = keys;
    if (keys >= a.size(Attention::kKey) && attention_legal(a, params) &&
        attention_resident(a, params) == 2)
      return params;
  }
  return std::nullopt;
}

}  // namespace

Json attention_safe(const Attention& a) {
  const bool few = rows_of(a) <= kFewQueries;
  Json params{{"consumers", few ? 1 : 2}, {"keys", 128}, {"stages", 2}, {"split", 1}};
  if (few) params["keys"] = 64;
  if (!attention_legal(a, params)) params["keys"] = 64;
  for (int64_t stages : {4, 3})
    if (few && int_param(params, "stages") == 2) {
      Json more = params;
      more["stages"] = stages;
      if (attention_legal(a, more) && attention_resident(a, more) == 2) params = more;
    }
  if (!few && a.size(Attention::kKey) <= kKeysOfTile)
    if (auto single = single_tile(a, params)) return *single;
  if (!few) {
    Json three = params;
    three["consumers"] = 3;
    const bool legal = attention_legal(a, three);
    return legal && attention_cost(a, 3) < attention_cost(a, 2) ? three : params;
  }
  const int64_t tiles = heads_of(a), wanted = 2 * kSms, keys = a.size(Attention::kKey);
  int64_t split = 1;
  while (split * 2 <= kMostSplit && split * tiles * 2 <= 2 * wanted && split * 2 * 256 <= keys)
    split *= 2;
  // DRAM serves a few long runs of keys better than one run for each of many heads, as long as the
  // parts' results are small beside the keys and values.
  auto worth = [&](int64_t parts) {
    const int64_t of_part = keys / parts * (a.size(Attention::kDepth) + a.size(Attention::kWidth));
    return parts <= kPartsInARun && keys / parts >= kKeysOfPart &&
           rows_of(a) * a.size(Attention::kWidth) * 4 * kSmallResults <= of_part;
  };
  while (worth(2 * split)) split *= 2;
  params["split"] = split;
  return params;
}

ProgramPart attention_part(const Task& task, const Attention& attention, const Json& params,
                           const Label& label) {
  ProgramPart part;
  part.hopper = true;
  part.file = label("kernel") + ".cu";
  AttentionPlan(attention, params, label).write(part);
  part.source = AttentionText(task, attention, params, label).write();
  return part;
}

}  // namespace cutegen::recipes
