// SPDX-License-Identifier: Apache-2.0
#include "agent/tools.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostText = size_t{256} << 10;  // bytes of one argument
constexpr size_t kMostName = 120;

struct Declared {
  Tool tool;
  const char* name;
  const char* description;
};

constexpr std::array<Declared, 5> kTools{{
    {.tool = Tool::read_docs,
     .name = "read_docs",
     .description = "Returns the page about a device component: what it does, and a kernel that "
                    "compiles. Without a name it returns the list of pages."},
    {.tool = Tool::compile,
     .name = "compile",
     .description =
         "Checks a draft (plan against task and signatures, source), compiles and loads "
         "it. Returns the compiler's first errors, or registers and spills. Costs no evaluation."},
    {.tool = Tool::evaluate,
     .name = "evaluate",
     .description = "Evaluates a draft like an answer: compiles it, compares it with the truth on "
                    "all shapes, and times it. Costs one evaluation of the run's budget."},
    {.tool = Tool::profile,
     .name = "profile",
     .description = "Returns the profile of an evaluated program: what limits it, hot lines, and "
                    "what to do about it. Without a draft it profiles the program in question."},
    {.tool = Tool::diff_best,
     .name = "diff_best",
     .description =
         "Returns the unified diff from the best program so far to a draft, or to the program in "
         "question."},
}};

Json text_field(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

Json object_schema(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json parameters_of(Tool tool) {
  switch (tool) {
    case Tool::read_docs:
      return object_schema({{"name", text_field("a page, a symbol or a header")}});
    case Tool::compile:
    case Tool::evaluate:
      return object_schema(
          {{"kernel", text_field("kernel.cu, whole")},
           {"plan", text_field("plan.json, whole")},
           {"edits", text_field("instead of whole files: edit, function, plan or file blocks in "
                                "their fences, as in an answer")},
           {"draft",
            text_field(
                "a draft of this question, such as d1. With changes: the program that they start "
                "from (default: the program in question). Without changes: the draft to use")},
           {"summary", text_field("what the draft changes, in one line")}});
    case Tool::profile:
    case Tool::diff_best:
      return object_schema({{"draft", text_field("a draft of this question, such as d1")}});
  }
  return object_schema(Json::object());
}

tl::unexpected<Error> refused(const std::string& message, const std::string& remedy = {}) {
  return fail({.kind = ErrorKind::user, .message = message, .where = {}, .remedy = remedy});
}

const Declared* find_tool(const std::string& name) {
  for (const Declared& d : kTools)
    if (name == d.name) return &d;
  return nullptr;
}

// Reads a string. Null counts as missing, because some models fill every field.
Result<std::string> text_argument(const std::string& name, const Json& value) {
  if (value.is_null()) return std::string();
  // Models often send the plan as an object.
  std::string text = name == "plan" && value.is_object() ? dump_json(value, 2)
                     : value.is_string()                 ? value.get<std::string>()
                                                         : std::string();
  if (text.empty() && !value.is_string())
    return refused("'" + name + "' is not a string", "give text");
  if (text.size() > kMostText)
    return refused(fmt::format("'{}' has {} bytes; the most is {}", name, text.size(), kMostText));
  if (text.find('\0') != std::string::npos) return refused("'" + name + "' holds zero bytes");
  return text;
}

std::string* field_of(ToolUse& use, const std::string& name) {
  if (use.tool == Tool::read_docs) return name == "name" ? &use.page : nullptr;
  if (name == "draft") return &use.draft;
  if (use.tool != Tool::compile && use.tool != Tool::evaluate) return nullptr;
  if (name == "kernel") return &use.kernel;
  if (name == "plan") return &use.plan;
  if (name == "edits") return &use.edits;
  return name == "summary" ? &use.summary : nullptr;
}

}  // namespace

const char* to_string(Tool tool) {
  for (const Declared& d : kTools)
    if (d.tool == tool) return d.name;
  return "";
}

bool Offer::has(Tool tool) const {
  switch (tool) {
    case Tool::read_docs:
      return true;
    case Tool::compile:
      return compile;
    case Tool::evaluate:
      return evaluate;
    case Tool::profile:
      return profile;
    case Tool::diff_best:
      return diff_best;
  }
  return false;
}

std::vector<llm::ToolSpec> tool_specs(const Offer& offer) {
  std::vector<llm::ToolSpec> out;
  for (const Declared& d : kTools)
    if (offer.has(d.tool))
      out.push_back(
          {.name = d.name, .description = d.description, .parameters = parameters_of(d.tool)});
  return out;
}

Result<ToolUse> read_tool_call(const llm::ToolCall& call) {
  const Declared* declared = find_tool(call.name);
  if (!declared) {
    std::vector<std::string> names;
    names.reserve(std::size(kTools));
    for (const Declared& d : kTools) names.emplace_back(d.name);
    return refused("there is no tool '" + sanitize(call.name, kMostName) + "'",
                   "there are: " + join(names, ", "));
  }
  const Json& arguments = call.arguments;
  if (!call.malformed.empty() || !(arguments.is_object() || arguments.is_null()))
    return refused("the arguments are not a JSON object: " + sanitize(call.malformed, 200),
                   "send one object; line breaks in text are \\n");
  ToolUse use;
  use.tool = declared->tool;
  for (const auto& [name, value] : arguments.items()) {
    std::string* field = field_of(use, name);
    if (!field)
      return refused("'" + sanitize(name, kMostName) + "' is not an argument of " + call.name);
    CG_TRY(*field, text_argument(name, value));
  }
  if (use.page.size() > kMostName || use.draft.size() > kMostName)
    return refused("a name has more than " + std::to_string(kMostName) + " bytes");
  use.summary = sanitize(use.summary, 200);
  bool wants_program = use.tool == Tool::compile || use.tool == Tool::evaluate;
  if (wants_program && !use.changes() && use.draft.empty())
    return refused(std::string(call.name) + " got no program",
                   "give kernel and plan, or edits, or a draft");
  return use;
}

tl::expected<Reply, Reask> changes_of(const ToolUse& use, const KernelProgram* base) {
  Reply reply;
  if (!use.edits.empty()) {
    auto parsed = parse_reply(use.edits, base);
    if (!parsed) return parsed;
    reply = std::move(*parsed);
  }
  auto add = [&](const std::string& file, const std::string& text) {
    if (!text.empty())
      reply.changes.push_back(
          WholeFile{.file = file, .text = text.ends_with('\n') ? text : text + "\n"});
  };
  add(base && base->sources.size() == 1 ? base->sources.begin()->first : "kernel.cu", use.kernel);
  add("plan.json", use.plan);
  if (!use.summary.empty()) reply.summary = use.summary;
  return reply;
}

}  // namespace cutegen::agent
