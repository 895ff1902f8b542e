// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_side.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace cutegen {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSide = size_t{1} << 20;
constexpr int kMostDepth = 8;
constexpr const char* kStep = "/steps/0";
constexpr const char* kLauncher = "/launcher";  // the plan has no such field
constexpr const char* kReference = "a PyTorch module with Model and get_inputs";

// Keys of [kernel], and the places of their values in the plan.
enum class Form { value, name, arguments, sizes };  // sizes: up to three
struct Key {
  const char *name, *pointer;
  bool needed = false;
  Form form = Form::value;
};
constexpr Key kKeys[] = {
    {.name = "name", .pointer = "/steps/0/kernel", .needed = true},
    {.name = "launcher", .pointer = kLauncher, .form = Form::name},
    {.name = "args", .pointer = "/steps/0/args", .needed = true, .form = Form::arguments},
    {.name = "grid", .pointer = "/steps/0/grid", .needed = true, .form = Form::sizes},
    {.name = "block", .pointer = "/steps/0/block", .needed = true, .form = Form::sizes},
    {.name = "cluster", .pointer = "/steps/0/cluster", .needed = false, .form = Form::sizes},
    {.name = "shared_bytes", .pointer = "/steps/0/shared_bytes"},
    {.name = "cooperative", .pointer = "/steps/0/cooperative"},
    {.name = "dialect", .pointer = "/dialect"},
    {.name = "arch", .pointer = "/arch"},
    {.name = "bind", .pointer = "/bind"},
    {.name = "symbols", .pointer = "/symbols"},
    {.name = "defines", .pointer = "/defines"},
    {.name = "requires", .pointer = "/requires"}};

std::string place_text(const toml::node& node) {
  return fmt::format("{}:{}", node.source().begin.line, node.source().begin.column);
}

class SideReader {
 public:
  SideReader(KernelSide& out, const fs::path& kernel) : out_(out), kernel_(kernel) {}

  Result<void> read(const toml::table& file) {
    CG_CHECK(read_reference(file));
    const toml::table* table = file["kernel"].as_table();
    if (!table)
      return user_error("the side file has no table [kernel]", out_.file.string(),
                        "say how the kernel is launched: name, args, grid, block");
    out_.places[""] = place_text(*table);
    out_.plan = {{"cutegen", 1},
                 {"dialect", "cuda"},
                 {"sources", Json::array({kernel_.filename().string()})},
                 {"steps", Json::array({Json::object()})}};
    for (const auto& [name, node] : *table) CG_CHECK(read_key(std::string(name.str()), node));
    if (!out_.launcher.empty()) {
      Json& step = out_.plan["steps"][0];
      if (step.contains("args")) out_.launcher_args = step["args"];
      step.erase("args");
      return {};
    }
    for (const Key& key : kKeys)
      if (key.needed && !table->contains(key.name))
        return user_error(fmt::format("[kernel] has no '{}'", key.name), out_.place(""),
                          "name, args, grid and block are needed, or the launcher");
    return {};
  }

 private:
  Result<void> read_reference(const toml::table& file) {
    const toml::node* given = file.get("reference");
    fs::path path = kernel_;
    path.replace_extension(".py");
    if (given) {
      const auto text = given->value<std::string>();
      if (!text || text->empty())
        return user_error("'reference' is not the path of a file", wrong(*given),
                          std::string("name ") + kReference);
      path = fs::path(*text).is_absolute() ? fs::path(*text) : out_.file.parent_path() / *text;
    }
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      return user_error(
          given ? fmt::format("there is no reference {}", path.string())
                : "the kernel has no reference: truth, inputs and tolerances come from a PyTorch "
                  "module, "
                  "not from the kernel",
          given ? wrong(*given) : out_.file.string(),
          fmt::format("{} reference = \"FILE.py\", {}", given ? "correct" : "add", kReference));
    out_.reference = path.lexically_normal();
    return {};
  }

  std::string wrong(const toml::node& node) const {
    return out_.file.string() + ":" + place_text(node);
  }

  Result<void> read_key(const std::string& name, const toml::node& node) {
    const auto key = std::ranges::find(kKeys, name, &Key::name);
    if (key == std::end(kKeys)) {
      std::vector<std::string> known;
      for (const Key& k : kKeys) known.emplace_back(k.name);
      const auto near = nearest(name, known);
      return user_error(fmt::format("unknown key '{}' of [kernel]", name.substr(0, 64)),
                        wrong(node),
                        near ? "did you mean '" + *near + "'?" : "one of " + join(known, ", "));
    }
    CG_TRY(Json value, convert(node, key->pointer, 0));
    if (key->form == Form::name) {
      if (!value.is_string() || value.get<std::string>().empty())
        return user_error("'launcher' is not the name of a function", wrong(node),
                          "name the host function of the source that launches the kernel");
      out_.launcher = value.get<std::string>();
      return {};
    }
    if (key->form == Form::arguments) CG_CHECK(arguments(value, node));
    if (key->form == Form::sizes) value = three(std::move(value));
    out_.plan[Json::json_pointer(key->pointer)] = std::move(value);
    return {};
  }

  // A string among the arguments is the name of a tensor.
  Result<void> arguments(Json& value, const toml::node& node) {
    if (!value.is_array())
      return user_error("'args' is not a list", wrong(node),
                        "write the arguments in order: args = [\"x\", \"out\", {i32 = \"n\"}]");
    for (Json& one : value)
      if (one.is_string()) one = Json{{"tensor", one}};
    return {};
  }

  // 256 and [256] mean [256, 1, 1].
  static Json three(Json value) {
    if (!value.is_array()) value = Json::array({value});
    while (value.size() < 3) value.push_back(1);
    return value;
  }

  Result<Json> convert(const toml::node& node, const std::string& pointer, int depth) {
    out_.places[pointer] = place_text(node);
    if (depth > kMostDepth) return user_error("too deep", wrong(node), "remove a level");
    if (auto text = node.as_string()) return Json(text->get());
    if (auto whole = node.as_integer()) return Json(whole->get());
    if (auto number = node.as_floating_point()) return Json(number->get());
    if (auto yes = node.as_boolean()) return Json(yes->get());
    if (auto list = node.as_array()) {
      Json out = Json::array();
      for (const toml::node& one : *list) {
        CG_TRY(Json value, convert(one, fmt::format("{}/{}", pointer, out.size()), depth + 1));
        out.push_back(std::move(value));
      }
      return out;
    }
    if (auto table = node.as_table()) return convert_table(*table, pointer, depth);
    return user_error("a launch cannot contain a date", wrong(node), "write a number or a string");
  }

  // Keeps the order of the file, because a symbol may use earlier ones.
  Result<Json> convert_table(const toml::table& table, const std::string& pointer, int depth) {
    std::vector<std::pair<std::string, const toml::node*>> entries;
    for (const auto& [name, node] : table) entries.emplace_back(std::string(name.str()), &node);
    std::ranges::sort(entries, {}, [](const auto& entry) {
      const auto at = entry.second->source().begin;
      return std::pair(at.line, at.column);
    });
    Json out = Json::object();
    for (const auto& [name, node] : entries) {
      CG_TRY(Json value, convert(*node, fmt::format("{}/{}", pointer, name), depth + 1));
      out[name] = std::move(value);
    }
    return out;
  }

  KernelSide& out_;
  const fs::path& kernel_;
};

}  // namespace

std::string KernelSide::kernel() const {
  return plan["steps"][0].value("kernel", "");
}

std::string KernelSide::place(std::string pointer) const {
  for (;;) {
    if (const auto at = source_places.find(pointer); at != source_places.end()) return at->second;
    if (const auto at = places.find(pointer); at != places.end())
      return file.string() + ":" + at->second;
    const size_t cut = pointer.rfind('/');
    if (cut == std::string::npos) return file.string();
    pointer = pointer.starts_with(kStep) && cut < std::string_view(kStep).size()
                  ? std::string()
                  : pointer.substr(0, cut);
  }
}

Error KernelSide::placed(Error error) const {
  const size_t hash = error.where.find('#');
  if (hash != std::string::npos) error.where = place(error.where.substr(hash + 1));
  return error;
}

bool is_kernel_file(const fs::path& file) {
  return file.extension() == ".cu";
}

Result<KernelSide> read_kernel_side(const fs::path& kernel) {
  KernelSide out;
  out.file = kernel;
  out.file.replace_extension(".toml");
  std::error_code error;
  if (!fs::exists(kernel, error))
    return user_error("the file does not exist", kernel.string(), "name a CUDA source");
  if (!fs::exists(out.file, error))
    return user_error("a kernel needs a side file " + out.file.filename().string(), kernel.string(),
                      "write one with `reference` and [kernel] (docs/kernel_tasks.md)");
  CG_TRY(out.text, read_file(out.file, kMostSide));
  try {
    const toml::table file = toml::parse(out.text, out.file.string());
    CG_CHECK(SideReader(out, kernel).read(file));
  } catch (const toml::parse_error& e) {
    return user_error(
        "the side file does not parse: " + std::string(e.description()),
        fmt::format("{}:{}:{}", out.file.string(), e.source().begin.line, e.source().begin.column),
        "correct the TOML syntax");
  }
  return out;
}

}  // namespace cutegen
