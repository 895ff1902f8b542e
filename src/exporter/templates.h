// SPDX-License-Identifier: Apache-2.0
// The templates of python/export/ with their names filled in. Private to the exporter.
//
// Contract: "@NAME@" is replaced everywhere; a name that a template does not have is a bug. Texts
// keep their first comment, so that every exported file says what its terms are.
//
// Example: filled("package.py", {{"NAME", "softmax"}})
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "exporter/exporter.h"

namespace cutegen {

using Fillings = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] std::string filled(const std::string& name, const Fillings& fillings);
// runtime.py and exported.py as one text.
[[nodiscard]] std::string joined_runtime();
// A Python literal: triple-quoted, for texts that people may want to read.
[[nodiscard]] std::string python_text(const std::string& text);
[[nodiscard]] std::string base64(const std::string& bytes);

[[nodiscard]] std::string readme(const ExportSource& source, ExportKind kind);
// The launches of the official shape as tables of C++.
[[nodiscard]] Result<ExportFiles> cpp_files(const ExportSource& source, const Json& launches);

}  // namespace cutegen
