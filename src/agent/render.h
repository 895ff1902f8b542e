// SPDX-License-Identifier: Apache-2.0
// Fills in the Mustache templates of prompts/, which the build embeds in the program.
//
// Contract: render() inserts values unchanged, without HTML escapes. An unknown file name fails an
// assertion.
//
// Example: PageData data; data.set("id", "c3"); std::string text = render("subject.md", data);
#pragma once

#include <kainjow/mustache.hpp>
#include <map>
#include <string>

namespace cutegen::agent {

using PageData = kainjow::mustache::data;

// Returns the templates by path ("prompts/system.md").
const std::map<std::string, std::string>& prompt_files();
// `file`: the path below prompts/.
std::string render(const std::string& file, const PageData& data);

}  // namespace cutegen::agent
