// SPDX-License-Identifier: Apache-2.0
// Makes the files of an export from the templates of python/export/.
#include <fmt/format.h>

#include "base/text.h"
#include "exporter/source_file.h"
#include "exporter/templates.h"

namespace cutegen::exporter {

const std::map<std::string, std::string>& export_templates();

namespace {

const std::string& template_of(const std::string& name) {
  auto at = export_templates().find("python/export/" + name);
  CG_ASSERT(at != export_templates().end());
  return at->second;
}

// Removes the licence line, the docstring and the imports of cutegen's own files.
std::string body_of(const std::string& text) {
  const std::string quotes = "\"\"\"";
  size_t open = text.find(quotes);
  CG_ASSERT(open != std::string::npos);
  std::string body = text.substr(text.find(quotes, open + 3) + 3), out;
  for (const std::string& line : split(body, '\n'))
    if (!line.starts_with("from .")) out += line + "\n";
  return out;
}

Fillings names_of(const ExportSource& source, const Json& launches) {
  const std::string plain = plain_name(source.task.name);
  return {{"NAME", source.task.name},
          {"FILE", plain},
          {"GPU", source.target.gpu},
          {"NAMESPACE", launches["namespace"].get<std::string>()}};
}

std::string images_literal(const ExportSource& source) {
  std::string out = "[\n";
  for (const ExportModule& m : source.modules) {
    const std::string text = base64(m.cubin.empty() ? m.ptx : m.cubin);
    out += "    [\n        b\"\"\n";
    constexpr size_t kLine = 96;
    for (size_t at = 0; at < text.size(); at += kLine)
      out += "        b\"" + text.substr(at, kLine) + "\"\n";
    out += "    ],\n";
  }
  return out + "]";
}

void add_program(const ExportSource& source, ExportFiles& out) {
  for (const auto& [name, text] : source.program.sources) out["program/" + name] = text;
  out["program/plan.json"] = dump_json(to_json(source.program.plan), 2) + "\n";
}

void add_images(const ExportSource& source, ExportFiles& out) {
  for (const ExportModule& m : source.modules) {
    out["images/" + m.name + ".ptx"] = m.ptx;
    if (!m.cubin.empty()) out["images/" + m.name + ".cubin"] = m.cubin;
  }
}

std::string model_new(const ExportSource& source, const Json& launches, const Fillings& names) {
  Json data = launches;
  std::string head = fmt::format(
      "# SPDX-License-Identifier: Apache-2.0\n"
      "\"\"\"{}: ModelNew, the module of the task with kernels for {}. Needs only PyTorch.\n"
      "\n"
      "For other shapes, dtypes and GPUs it runs the task's own module, which is part of this "
      "file.\n"
      "\"\"\"\n"
      "\n"
      "import base64\n"
      "import json\n",
      sanitize(source.task.name, 80), sanitize(source.target.gpu, 80));
  Fillings fillings = names;
  fillings.emplace_back("REFERENCE", python_text(source.task.source));
  fillings.emplace_back("DATA", python_text(dump_json(data)));
  fillings.emplace_back("IMAGES", images_literal(source));
  std::string tail = filled("model_new.py", fillings);
  return head + body_of(template_of("runtime.py")).substr(2) + body_of(template_of("exported.py")) +
         tail.substr(tail.find('\n') + 1);
}

}  // namespace

std::string filled(const std::string& name, const Fillings& fillings) {
  std::string out = template_of(name);
  for (const auto& [key, value] : fillings) {
    // Continues after the replacement, because an inserted source may contain the mark, too.
    const std::string mark = "@" + key + "@";
    for (size_t at = out.find(mark); at != std::string::npos;
         at = out.find(mark, at + value.size()))
      out.replace(at, mark.size(), value);
  }
  return out;
}

std::string joined_runtime() {
  return template_of("runtime.py") + body_of(template_of("exported.py"));
}

std::string python_text(const std::string& text) {
  std::string out = "\"\"\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool quote = c == '"' && (i == 0 || text[i - 1] == '"' || i + 1 == text.size());
    if (c == '\\' || quote) out += '\\';
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\0') {
      out += "\\0";
    } else {
      out += c;
    }
  }
  return out + "\"\"\"";
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < left ? uint8_t(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += k <= left ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

Result<ExportFiles> export_files(const ExportSource& source, ExportKind kind) {
  CG_TRY(Json launches, launches_json(source));
  const Fillings names = names_of(source, launches);
  ExportFiles out;
  if (kind == ExportKind::cpp) {
    CG_TRY(out, cpp_files(source, launches));
  } else if (kind == ExportKind::source) {
    CG_TRY(out, source_files(source, launches));
  }
  out["launches.json"] = dump_json(launches) + "\n";
  out["reference.py"] = source.task.source;
  out["README.md"] = readme(source, kind);
  out["bench.py"] = filled("bench.py", names);
  out["test_" + plain_name(source.task.name) + ".py"] = filled("test.py", names);
  out["load.py"] = filled(fmt::format("load_{}.py", to_string(kind)), names);
  if (source.verdict) out["verdict.json"] = dump_json(to_json(*source.verdict), 2) + "\n";
  if (source.certificate)
    out["certificate.json"] = dump_json(to_json(*source.certificate), 2) + "\n";
  add_program(source, out);
  if (kind == ExportKind::kernelbench) {
    out["model_new.py"] = model_new(source, launches, names);
    return out;
  }
  out["runtime.py"] = joined_runtime();
  if (kind == ExportKind::torch) {
    out["__init__.py"] = filled("package.py", names);
    add_images(source, out);
  }
  return out;
}

}  // namespace cutegen::exporter
