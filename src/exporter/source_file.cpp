// SPDX-License-Identifier: Apache-2.0
#include "exporter/source_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "base/text.h"
#include "device/module_facts.h"
#include "eval/source/outline.h"
#include "eval/source/source_scan.h"
#include "exporter/plan_cpp.h"
#include "exporter/templates.h"

namespace cutegen::exporter {
namespace {

bool is_include(std::string_view line) {
  return trim(line).starts_with("#include") || trim(line).starts_with("#pragma once");
}

// The names of macros that a source defines.
std::vector<std::string> macros_of(const std::string& source) {
  std::vector<std::string> out;
  for (const std::string& line : split(source, '\n')) {
    const std::string_view text = trim(line);
    if (!text.starts_with("#define ")) continue;
    const std::string_view rest = trim(text.substr(8));
    const size_t end = rest.find_first_of(" \t(");
    std::string name(rest.substr(0, end));
    if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
  }
  return out;
}

// A function with C linkage belongs to no namespace, so this removes the linkage from the text.
std::string without_c_linkage(const std::string& source) {
  static const std::regex block(R"(extern\s*"C"\s*\{)"), single(R"(extern\s*"C"\s*)");
  return std::regex_replace(std::regex_replace(source, block, "inline namespace c_names {"), single,
                            "");
}

// Wraps a module in its own namespace, and undefines its macros at the end.
std::string module_text(const SourceModule& m, const std::string& source) {
  std::vector<std::string> macros = macros_of(source);
  std::string out =
      fmt::format("// {}, for the faster program.\nnamespace {} {{\n", m.build.source, m.space);
  for (const auto& [name, value] : m.build.defines) {
    out += fmt::format("#define {} {}\n", name, value);
    macros.push_back(name);
  }
  for (const std::string& line : split(without_c_linkage(source), '\n'))
    if (!is_include(line)) out += line + "\n";
  for (const std::string& name : macros) out += fmt::format("#undef {}\n", name);
  return out + fmt::format("}}  // namespace {}\n\n", m.space);
}

// The includes of all sources, without repetition.
std::string includes_of(const KernelProgram& program) {
  std::vector<std::string> lines;
  for (const auto& [name, text] : program.sources)
    for (const std::string& line : split(text, '\n')) {
      std::string own(trim(line));
      if (own.starts_with("#include") && std::ranges::find(lines, own) == lines.end())
        lines.push_back(std::move(own));
    }
  return join(lines, "\n") + (lines.empty() ? "" : "\n");
}

// One parameter of the source kernel: its text, its name, and what it stands for.
struct LauncherParameter {
  std::string text, name, type;
  std::string tensor;                                 // a pointer to this tensor
  std::optional<std::pair<std::string, size_t>> dim;  // or this size
  std::string scalar;                                 // or this scalar of the task
};

const char* scalar_type(ArgSpec::Kind kind) {
  return to_string(kind);
}

// The launcher has the parameters of the source kernel. This class finds the tensor, size or scalar
// that each one stands for.
class LauncherParameters {
 public:
  LauncherParameters(const Task& task, const KernelProgram& start) : task_(task), start_(start) {}

  Result<void> read() {
    const auto all = eval::kernel_signatures(eval::scan_source(start_.sources.begin()->second));
    const auto at =
        std::ranges::find(all, start_.plan.steps.front().kernel, &eval::Signature::name);
    if (at == all.end() || at->parameters.size() != start_.plan.steps.front().args.size())
      return user_error("the source has no kernel '" + start_.plan.steps.front().kernel +
                        "' with these parameters");
    for (size_t i = 0; i < at->parameters.size(); ++i)
      all_.push_back(parameter(at->parameters[i], start_.plan.steps.front().args[i], i));
    return {};
  }

  const std::vector<LauncherParameter>& all() const { return all_; }

  const LauncherParameter* given_by(const auto& matches) const {
    const auto at = std::ranges::find_if(all_, matches);
    return at == all_.end() ? nullptr : &*at;
  }

 private:
  // Follows symbols of the side file's launch to a size or a scalar.
  bool resolve_leaf(const Expr& expression, ExprLeaf& leaf) const {
    if (!is_leaf(expression, leaf)) return false;
    if (leaf.kind != ExprLeaf::Kind::symbol) return true;
    for (const auto& [name, value] : start_.plan.symbols)
      if (name == leaf.name) return resolve_leaf(value, leaf);
    return false;
  }

  std::string bound(const std::string& name) const {
    for (const auto& [alias, target] : start_.plan.bind)
      if (alias == name) return target;
    return name;
  }

  LauncherParameter parameter(const std::string& text, const ArgSpec& arg, size_t number) const {
    LauncherParameter out{.text = std::string(trim(text)), .type = scalar_type(arg.kind)};
    const size_t begin = out.text.find_last_of(" *&");
    const std::string last = begin == std::string::npos ? "" : out.text.substr(begin + 1);
    static const std::set<std::string> kNoNames{"",     "const", "int",          "float",
                                                "long", "char",  "__restrict__", "double"};
    out.name = last;
    if (kNoNames.contains(last)) {
      out.name = fmt::format("parameter{}", number);
      out.text += " " + out.name;
    }
    if (arg.kind == ArgSpec::Kind::tensor) {
      out.tensor = bound(arg.name);
      return out;
    }
    ExprLeaf leaf;
    if (!resolve_leaf(arg.value, leaf)) return out;
    const TensorInfo* tensor = task_.find(bound(leaf.name));
    if (leaf.kind == ExprLeaf::Kind::dim && tensor) {
      const auto rank = int64_t(tensor->shape.size());
      out.dim.emplace(tensor->name, size_t(leaf.axis < 0 ? leaf.axis + rank : leaf.axis));
    } else if (leaf.kind == ExprLeaf::Kind::attribute || leaf.kind == ExprLeaf::Kind::argument) {
      out.scalar = leaf.name;
    }
    return out;
  }

  const Task& task_;
  const KernelProgram& start_;
  std::vector<LauncherParameter> all_;
};

// The namespaces in which a source defines its kernels.
std::map<std::string, std::string> kernel_scopes(const std::string& source) {
  std::map<std::string, std::string> out;
  for (const eval::SourceFunction& f : eval::outline_of(source).functions)
    if (f.global && f.body != 0) out[f.name] = f.scope;
  return out;
}

class SourceFile {
 public:
  SourceFile(const ExportSource& source, const Json& launches)
      : source_(source),
        task_(source.task),
        start_(*source.start),
        parameters_(task_, start_),
        launches_(launches) {}

  Result<ExportFiles> files() {
    CG_CHECK(read_modules());
    PlanWriter own(task_, source_.program, modules_, given_, "program");
    own.demand("is_aligned(g)");
    CG_TRY(program_, own.text());
    PlanWriter first(task_, start_, first_modules_, given_, "source_kernel");
    CG_TRY(source_kernel_, first.text());
    CG_CHECK(parameters_.read());
    CG_CHECK(check_given());
    ExportFiles out;
    const std::string plain = plain_name(task_.name);
    CG_TRY(out[plain + ".cu"], library());
    out[plain + "_op.py"] = op();
    for (const auto& [name, text] : source_.headers) out[name] = text;
    return out;
  }

 private:
  const Step& step() const { return start_.plan.steps.front(); }
  const std::string& kernel_source() const { return start_.sources.begin()->second; }

  Result<void> read_modules() {
    for (const ExportModule& m : source_.modules) {
      CG_TRY(ModuleFacts facts, device::declared_facts(m.ptx));
      modules_.push_back(
          {.build = m.build,
           .facts = std::move(facts),
           .space = fmt::format("{}_program{}", plain_name(task_.name), modules_.size())});
      modules_.back().scopes = kernel_scopes(source_.program.sources.at(m.build.source));
    }
    SourceModule first;
    first.build.source = start_.sources.begin()->first;
    first.facts.entries.push_back({.name = step().kernel});
    first.scopes = kernel_scopes(kernel_source());
    first_modules_ = {std::move(first)};
    if (!start_.plan.defines.empty())
      return user_error("the side file has defines, which one source file cannot hold", {},
                        "write their values into the source");
    return {};
  }

  Result<void> check_given() const {
    for (const std::string& name : given_.tensors)
      if (!parameters_.given_by([&](const LauncherParameter& p) { return p.tensor == name; }))
        return unsupported_error(
            "the program uses '" + name +
            "', which the source kernel does not receive; --to torch and cpp do");
    return {};
  }

  // The sizes that no parameter gives, which become further parameters.
  std::vector<std::pair<std::string, size_t>> further_sizes() const {
    std::vector<std::pair<std::string, size_t>> out;
    for (const auto& size : given_.sizes)
      if (!parameters_.given_by([&](const LauncherParameter& p) { return p.dim == size; }))
        out.push_back(size);
    return out;
  }

  std::map<std::string, Scalar> scalars() const {
    std::map<std::string, Scalar> out;
    auto add = [&](const std::vector<ScalarInfo>& known, const std::set<std::string>& used) {
      for (const ScalarInfo& s : known)
        if (used.contains(s.name)) out[s.name] = s.value;
    };
    add(task_.attributes, given_.attributes);
    add(task_.arguments, given_.arguments);
    return out;
  }

  static std::string number_text(const Scalar& value) {
    if (const bool* b = std::get_if<bool>(&value)) return *b ? "INT64_C(1)" : "INT64_C(0)";
    if (const int64_t* i = std::get_if<int64_t>(&value)) return fmt::format("INT64_C({})", *i);
    if (const double* d = std::get_if<double>(&value))
      return fmt::format("double({})", Json(*d).dump());
    return "0";
  }

  Result<std::string> library() const {
    std::string members, values, modules, parameters;
    for (const std::string& name : given_.tensors) {
      members += fmt::format("  void* {};\n", GivenNames::tensor(name));
      const auto* p =
          parameters_.given_by([&](const LauncherParameter& q) { return q.tensor == name; });
      values += fmt::format("const_cast<void*>(static_cast<const void*>({})), ", p->name);
    }
    for (const auto& size : given_.sizes) {
      members += fmt::format("  int64_t {};\n", GivenNames::size(size.first, size.second));
      const auto* p =
          parameters_.given_by([&](const LauncherParameter& q) { return q.dim == size; });
      values += p ? fmt::format("int64_t({}), ", p->name)
                  : GivenNames::size(size.first, size.second) + ", ";
    }
    for (const auto& [name, value] : scalars()) {
      const bool real = std::holds_alternative<double>(value);
      members += fmt::format("  {} {};\n", real ? "double" : "int64_t", GivenNames::scalar(name));
      const auto* p =
          parameters_.given_by([&](const LauncherParameter& q) { return q.scalar == name; });
      values +=
          (p ? fmt::format("{}({})", real ? "double" : "int64_t", p->name) : number_text(value)) +
          ", ";
    }
    for (const LauncherParameter& p : parameters_.all()) parameters += p.text + ", ";
    for (const auto& [tensor, axis] : further_sizes())
      parameters += "int64_t " + GivenNames::size(tensor, axis) + ", ";
    for (const SourceModule& m : modules_)
      modules += module_text(m, source_.program.sources.at(m.build.source));
    Fillings fillings = names();
    fillings.emplace_back("KERNEL", step().kernel);
    fillings.emplace_back("INCLUDES", includes_of(source_.program));
    fillings.emplace_back("MODULES", modules);
    fillings.emplace_back("GIVEN", members);
    fillings.emplace_back("PROGRAM", addresses() + program_);
    fillings.emplace_back("SOURCE", source_kernel_);
    fillings.emplace_back("PARAMETERS", parameters);
    fillings.emplace_back("VALUES", values);
    fillings.emplace_back("ORIGINAL", kernel_source());
    return filled("source/library.cu", fillings);
  }

  // The evaluator judges programs on tensors at multiples of 256 bytes, so the launcher checks
  // addresses.
  std::string addresses() const {
    std::string all;
    for (const std::string& name : given_.tensors)
      all += " | reinterpret_cast<uintptr_t>(g." + GivenNames::tensor(name) + ")";
    return fmt::format(
        "inline bool is_aligned(const Given& g) {{\n  return (uintptr_t(0){}) % 256 == 0;\n}}\n\n",
        all);
  }

  Fillings names() const {
    return {{"NAME", sanitize(task_.name, 80)},
            {"FILE", plain_name(task_.name)},
            {"ARCH", source_.arch},
            {"NAMESPACE", launches_["namespace"].get<std::string>()}};
  }

  std::string op() const {
    const std::string plain = plain_name(task_.name);
    Json args = Json::array(), sizes = Json::array(), defaults = Json::object(),
         tensors = Json::object();
    std::string schema = plain + "(", words;
    int written = 0;
    for (const LauncherParameter& p : parameters_.all()) {
      if (!p.tensor.empty()) {
        const TensorInfo& info = *task_.find(p.tensor);
        args.push_back({{"tensor", p.tensor}});
        tensors[p.tensor] = {torch_name(info.dtype), info.shape.size()};
        schema += fmt::format("{}{} {}, ", "Tensor",
                              is_result(info) ? fmt::format("(a{}!)", written++) : "",
                              plain_name(p.tensor));
        words += (words.empty() ? "" : ", ") + plain_name(p.tensor);
        continue;
      }
      Json one{{"type", p.type}};
      if (p.dim) one["dim"] = {p.dim->first, p.dim->second};
      if (!p.scalar.empty()) one["scalar"] = p.scalar;
      args.push_back(std::move(one));
    }
    for (const auto& [name, value] : scalars())
      if (parameters_.given_by(
              [&, n = name](const LauncherParameter& p) { return p.scalar == n; })) {
        defaults[name] = scalar_json(value);
        schema += fmt::format("{} {}={}, ", std::holds_alternative<double>(value) ? "float" : "int",
                              plain_name(name), scalar_json(value).dump());
      }
    for (const auto& [tensor, axis] : further_sizes()) sizes.push_back({tensor, axis});
    schema.resize(schema.size() - 2);
    const Json signature{{"function", plain + "_launch"},
                         {"schema", schema + ") -> ()"},
                         {"tensors", tensors},
                         {"args", args},
                         {"sizes", sizes},
                         {"scalars", defaults}};
    Fillings fillings = names();
    fillings.emplace_back("ARGUMENTS", words);
    fillings.emplace_back("SIGNATURE", dump_json(signature));
    return filled("source/op.py", fillings);
  }

  const ExportSource& source_;
  const Task& task_;
  const KernelProgram& start_;
  LauncherParameters parameters_;
  const Json& launches_;
  std::vector<SourceModule> modules_, first_modules_;
  GivenNames given_;
  std::string program_, source_kernel_;
};

}  // namespace

Result<ExportFiles> source_files(const ExportSource& source, const Json& launches) {
  if (!source.start)
    return user_error("'" + source.task.name +
                          "' is no CUDA kernel, so there is no source file "
                          "to replace",
                      "--to source", "export it with --to torch, kernelbench or cpp");
  return SourceFile(source, launches).files();
}

}  // namespace cutegen::exporter
