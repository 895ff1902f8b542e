// SPDX-License-Identifier: Apache-2.0
#include "agent/render.h"

#include "base/result.h"

namespace cutegen::agent {

std::string render(const std::string& file, const PageData& data) {
  auto text = prompt_files().find("prompts/" + file);
  CG_ASSERT(text != prompt_files().end());
  kainjow::mustache::mustache page(text->second);
  page.set_custom_escape([](const std::string& value) { return value; });
  return page.render(data);
}

}  // namespace cutegen::agent
