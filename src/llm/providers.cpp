// SPDX-License-Identifier: Apache-2.0
#include "llm/providers.h"

#include <algorithm>

namespace cutegen::llm {

const std::vector<Provider>& providers() {
  using A = ApiKind;
  using S = SchemaSupport;
  using R = ReasoningBack;
  constexpr const char* kNew = "max_completion_tokens";
  constexpr const char* kOld = "max_tokens";
  // name, api, url, key variable, needs key, free, max_tokens field, schemas, reasoning back,
  // cache key, calls tools, reports cost, priced as
  static const std::vector<Provider> table{
      {"openai", A::openai_chat, "https://api.openai.com/v1", "OPENAI_API_KEY", true, false, kNew,
       S::full, R::never, true, true, false, "openai"},
      {"openai-responses", A::openai_responses, "https://api.openai.com/v1", "OPENAI_API_KEY", true,
       false, "", S::full, R::always, true, true, false, "openai"},
      {"anthropic", A::anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", true, false,
       "", S::full, R::always, false, true, false, "anthropic"},
      {"deepseek", A::openai_chat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", true, false,
       kOld, S::any_object, R::in_tool_loop, false, true, false, "deepseek"},
      {"openrouter", A::openai_chat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", true,
       false, kOld, S::full, R::in_tool_loop, false, true, true, "openrouter"},
      {"moonshot", A::openai_chat, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", true, false,
       kOld, S::any_object, R::in_tool_loop, false, true, false, "moonshot"},
      {"together", A::openai_chat, "https://api.together.xyz/v1", "TOGETHER_API_KEY", true, false,
       kOld, S::full, R::never, false, true, false, "together"},
      {"vllm", A::openai_chat, "http://localhost:8000/v1", "VLLM_API_KEY", false, true, kOld,
       S::full, R::never, false, false, false, "vllm"},
      {"sglang", A::openai_chat, "http://localhost:30000/v1", "SGLANG_API_KEY", false, true, kOld,
       S::full, R::never, false, false, false, "sglang"},
      {"ollama", A::openai_chat, "http://localhost:11434/v1", "OLLAMA_API_KEY", false, true, kOld,
       S::full, R::never, false, false, false, "ollama"},
      {"llamacpp", A::openai_chat, "http://localhost:8080/v1", "LLAMACPP_API_KEY", false, true,
       kOld, S::full, R::never, false, false, false, "llamacpp"},
  };
  return table;
}

const Provider* find_provider(const std::string& name) {
  const auto& table = providers();
  auto it =
      std::find_if(table.begin(), table.end(), [&](const Provider& p) { return name == p.name; });
  return it == table.end() ? nullptr : &*it;
}

}  // namespace cutegen::llm
