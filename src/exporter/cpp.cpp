// SPDX-License-Identifier: Apache-2.0
// The export to C++: writes launches.json of the official shape as tables, next to fixed code.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "exporter/templates.h"

namespace cutegen::exporter {
namespace {

// Keywords of C and C++ that modules are likely to use as names of inputs.
const std::set<std::string> kWords{"auto",   "bool",   "char",   "class",    "const",    "default",
                                   "delete", "double", "float",  "for",      "if",       "int",
                                   "long",   "new",    "short",  "signed",   "template", "this",
                                   "union",  "using",  "switch", "unsigned", "void",     "operator",
                                   "return", "static", "struct", "enum",     "explicit", "export"};

std::string number_list(const Json& list, size_t least) {
  std::string out;
  for (size_t i = 0; i < std::max(list.size(), least); ++i)
    out += (i ? ", " : "") + (i < list.size() ? list[i].dump() : std::string("0"));
  return "{" + out + "}";
}

std::string byte_list(const std::string& bytes) {
  std::string out;
  constexpr size_t kLine = 24;
  for (size_t i = 0; i < bytes.size(); ++i)
    out += fmt::format("{}{},", i % kLine == 0 ? "\n    " : "", uint8_t(bytes[i]));
  return out;
}

// Collects the tables of all steps.
class Tables {
 public:
  explicit Tables(const ExportSource& source) : source_(source) {}

  std::string text(const Json& launches) {
    const Json& shape = launches["shapes"][0];
    for (const Json& step : shape["steps"]) step.contains("fill") ? fill(step) : launch(step);
    size_t tensors = 0;
    for (const char* key : {"inputs", "state", "outputs"}) tensors += launches[key].size();
    const Json& gpu = launches["gpu"];
    std::string out = fmt::format(
        "constexpr Gpu kGpu = {{{}, {}, {}}};\n"
        "constexpr unsigned kTensors = {}, kBuffers = {};\n"
        "constexpr size_t kScratchBytes = {};\n"
        "constexpr uint64_t kScratch[] = {};\n",
        gpu["capability"][0].dump(), gpu["capability"][1].dump(), gpu["sms"].dump(), tensors,
        shape["buffers"].dump(), shape["scratch_bytes"].dump(), number_list(shape["scratch"], 1));
    out +=
        "alignas(8) constexpr unsigned char kValues[] = {" + byte_list(values_ + '\0') + "\n};\n";
    out += "constexpr Map kMaps[] = {\n" + maps_ + "    {},\n};\n";
    out += "constexpr Argument kArguments[] = {\n" + arguments_ + "    {kValue, 0},\n};\n";
    out += "constexpr Step kSteps[] = {\n" + steps_ + "};\n\n";
    return out + images();
  }

 private:
  std::string images() const {
    std::string out, names;
    for (size_t i = 0; i < source_.modules.size(); ++i) {
      const ExportModule& m = source_.modules[i];
      out += fmt::format("// {}.{}\nalignas(64) const unsigned char kImage{}[] = {{", m.name,
                         m.cubin.empty() ? "ptx" : "cubin", i);
      out += byte_list((m.cubin.empty() ? m.ptx : m.cubin) + '\0') + "\n};\n";
      names += fmt::format("{}kImage{}", i ? ", " : "", i);
    }
    return out + "const unsigned char* const kImages[] = {" + names + "};\n";
  }

  void fill(const Json& step) {
    std::string pattern = from_hex(step["pattern"].get<std::string>()).value();
    size_t width = pattern.size();
    if (width == 8 && pattern.substr(0, 4) == pattern.substr(4)) width = 4;
    uint32_t words[2] = {};
    for (size_t i = 0; i < width; ++i) words[i / 4] |= uint32_t(uint8_t(pattern[i])) << (i % 4 * 8);
    steps_ += fmt::format(
        "    {{nullptr, 0, {{}}, {{}}, {{}}, 0, 0, 0, 0, 0, {}, {}, {{{}u, {}u}}, {}}},\n",
        step["fill"].dump(), width, words[0], words[1], step["bytes"].dump());
  }

  void launch(const Json& step) {
    const size_t first = count_;
    for (const Json& a : step["args"]) argument(a);
    steps_ += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}, {}, {}, {}, 0, 0, {{}}, 0}},\n",
                          step["kernel"].get<std::string>(), step["module"].dump(),
                          number_list(step["grid"], 3), number_list(step["block"], 3),
                          number_list(step["cluster"], 3), step["shared"].dump(),
                          step["cooperative"].get<bool>() ? 1 : 0, step["pdl"].get<bool>() ? 1 : 0,
                          first, count_ - first);
  }

  void argument(const Json& a) {
    ++count_;
    if (a.contains("map")) {
      const Json& m = a["map"];
      const Json pixels = m.value("im2col", Json::object());
      const Json none = Json::array(), ones{1, 1, 1, 1, 1};
      maps_ += fmt::format(
          "    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},\n", a["buffer"].dump(),
          m["sizes"].size(), m["type"].dump(), m["swizzle"].dump(), number_list(m["sizes"], 5),
          number_list(m["pitches"], 5), number_list(m["box"], 5),
          number_list(pixels.value("steps", ones), 5), pixels.empty() ? 0 : 1,
          number_list(pixels.value("lower", none), 3), number_list(pixels.value("upper", none), 3));
      arguments_ += fmt::format("    {{kMap, {}}},\n", maps_count_++);
    } else if (a.contains("buffer")) {
      arguments_ += fmt::format("    {{kPointer, {}}},\n", a["buffer"].dump());
    } else {
      values_.resize((values_.size() + 7) / 8 * 8);
      arguments_ += fmt::format("    {{kValue, {}}},\n", values_.size());
      values_ += from_hex(a["value"].get<std::string>()).value();
    }
  }

  const ExportSource& source_;
  std::string values_, maps_, arguments_, steps_;
  size_t count_ = 0, maps_count_ = 0;
};

const char* c_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i64:
      return "int64_t";
    case DType::i32:
      return "int32_t";
    case DType::u8:
      return "uint8_t";
    default:
      return "void";
  }
}

char random_type(const TensorInfo& t) {
  switch (t.dtype) {
    case DType::f32:
      return 'f';
    case DType::f64:
      return 'd';
    case DType::f16:
      return 'h';
    case DType::bf16:
      return 'b';
    default:
      return '0';
  }
}

// Writes the tensors as members of a C struct and as rows of main's table.
Result<std::pair<std::string, std::string>> tensor_lists(const ExportSource& source,
                                                         const Json& launches) {
  std::set<std::string> taken;
  std::string members, rows;
  for (const char* key : {"inputs", "state", "outputs"})
    for (const Json& entry : launches[key]) {
      const TensorInfo* t = source.task.find(entry[0].get<std::string>());
      CG_ASSERT(t != nullptr);
      std::string name = plain_name(t->name);
      if (kWords.count(name)) name += '_';
      while (!taken.insert(name).second) name += '_';
      const Shape& shape = source.shapes.front().shape.tensors.at(t->name);
      CG_TRY(int64_t count, element_count(shape));
      members += fmt::format("  {}{}* {}; /* {}{} {} {} */\n", is_result(*t) ? "" : "const ",
                             c_type(t->dtype), name, t->mutated ? "mutated " : "",
                             to_string(t->role), torch_name(t->dtype), cutegen::to_string(shape));
      rows += fmt::format("    {{\"{}\", '{}', {}, {}, {}}},\n", name, random_type(*t),
                          count * int64_t(size_of(t->dtype)), t->role != TensorRole::output,
                          is_result(*t));
    }
  return std::pair(members, rows);
}

}  // namespace

Result<ExportFiles> cpp_files(const ExportSource& source, const Json& launches) {
  const std::string plain = plain_name(source.task.name);
  CG_TRY(auto lists, tensor_lists(source, launches));
  const Fillings names{{"NAME", sanitize(source.task.name, 80)},
                       {"FILE", plain},
                       {"GPU", sanitize(source.target.gpu, 80)},
                       {"MEMBERS", lists.first},
                       {"TENSORS", lists.second},
                       {"TABLES", Tables(source).text(launches)}};
  return ExportFiles{{plain + ".h", filled("cpp/library.h", names)},
                     {plain + ".cpp", filled("cpp/library.cpp", names)},
                     {"main.cpp", filled("cpp/main.cpp", names)},
                     {"CMakeLists.txt", filled("cpp/CMakeLists.txt", names)}};
}

}  // namespace cutegen::exporter
