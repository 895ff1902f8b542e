// SPDX-License-Identifier: Apache-2.0
// Fills in the templates of python/export/. Only src/exporter may use these functions.
//
// Contract: filled() replaces every "@NAME@" in the template by the value of NAME. A template that
// does not exist fails an assertion. The result keeps the template's first comment, so every
// exported file states its licence.
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
// Returns the texts of runtime.py and exported.py as one text.
std::string joined_runtime();
// Converts a text to a triple-quoted Python literal, so that people can read the text.
std::string python_text(const std::string& text);
std::string base64(const std::string& bytes);

std::string readme(const ExportSource& source, ExportKind kind);
// Returns the files of ExportKind::cpp, with the launches of the official shape as C++ tables.
Result<ExportFiles> cpp_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen::exporter
