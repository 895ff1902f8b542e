// SPDX-License-Identifier: Apache-2.0
// Fills the templates of python/export/. Private to the exporter.
//
// Contract: replaces "@NAME@" everywhere. A name that does not occur in the template is a bug.
// Texts keep their first comment, so every exported file states its licence.
//
// Example: filled("package.py", {{"NAME", "softmax"}})
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "exporter/exporter.h"

namespace cutegen::exporter {

using Fillings = std::vector<std::pair<std::string, std::string>>;

std::string filled(const std::string& name, const Fillings& fillings);
// runtime.py and exported.py as one text.
std::string joined_runtime();
// A triple-quoted Python literal, for texts that people may want to read.
std::string python_text(const std::string& text);
std::string base64(const std::string& bytes);

std::string readme(const ExportSource& source, ExportKind kind);
// The launches of the official shape as C++ tables.
Result<ExportFiles> cpp_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen::exporter
