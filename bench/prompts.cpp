// SPDX-License-Identifier: Apache-2.0
// Measures the sizes of questions to models, by cutegen's own estimate: the first and later ones of
// each task, and the part that all questions of a run share. Needs no model.
//
// Usage: prompts_bench VERDICT.json DESCRIBED.json...
//   VERDICT.json: a correct verdict with a profile; DESCRIBED.json: from `cutegen describe --json`.
// Prints one line of JSON per question, with its text if CUTEGEN_TEXTS is set. The program in a
// later question is the task's recipe, or else the longest recipe of all tasks.
#include <fmt/format.h>

#include <cstdlib>

#include "agent/roles.h"
#include "base/file.h"
#include "engine/propose/proposer.h"
#include "llm/tokens.h"

namespace {

using namespace cutegen;

constexpr size_t kMostFile = size_t{512} << 20;
constexpr size_t kAttempts = 14;

[[noreturn]] void end_with(const Error& error) {
  fmt::print(stderr, "{}\n", error.text());
  std::exit(2);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) end_with(result.error());
  return std::move(*result);
}

struct Described {
  Task task;
  double floor_ns = 0, reachable_ns = 0, roofline_ns = 0;
  RooflineBound bound_by = RooflineBound::memory;
  std::optional<KernelProgram> recipe;
};

std::vector<Described> described_in(const std::string& file) {
  Json document = value_of(parse_json(value_of(read_file(file, kMostFile)), file, kMostFile));
  std::vector<Described> out;
  for (Json& json : document["tasks"]) {
    Described d;
    d.floor_ns = json["roofline"]["floor_ns"].get<double>();
    d.reachable_ns = json["roofline"]["reachable_ns"].get<double>();
    d.roofline_ns = json["roofline"]["roofline_ns"].get<double>();
    d.bound_by = value_of(
        from_name<RooflineBound>(json["roofline"]["bound_by"].get<std::string>(), "bound_by"));
    json.erase("roofline");
    json.erase("describe_ns");
    d.task = value_of(read_json<Task>(json));
    auto builtin = value_of(cutegen::engine::make_proposer("builtin", {.task = d.task}));
    auto answer = value_of(
        builtin->answer({}, search::Ask{Role::coder, {{"purpose", "first"}}}, engine::RunView{}));
    if (answer.candidate) d.recipe = answer.candidate->program;
    out.push_back(std::move(d));
  }
  return out;
}

int64_t program_tokens(const KernelProgram& program) {
  int64_t total = 0;
  for (const auto& [name, text] : program.sources) total += llm::estimate_tokens(text);
  return total;
}

// Fourteen attempts, as in a run of moderate length.
std::vector<agent::Attempt> history() {
  std::vector<agent::Attempt> out;
  for (size_t i = 1; i <= kAttempts; ++i) {
    agent::Attempt a;
    a.id = fmt::format("c{}", i);
    a.parent = i > 1 ? fmt::format("c{}", i - 1) : "";
    a.summary = "load four values at a time through shared memory, block of 256 threads";
    a.status = i % 3 == 0 ? Status::failed : Status::correct;
    a.headline =
        i % 3 == 0 ? "out: 812 of 65536 elements wrong (1.2%) on shape odd1: last tile" : "";
    if (i % 3 != 0) a.time_ns = 90000.0 - 2000.0 * double(i);
    a.kept = i % 2 == 1;
    out.push_back(std::move(a));
  }
  return out;
}

Verdict failed_verdict() {
  Verdict v;
  v.status = Status::failed;
  v.feedback.headline = "kernel.cu:41: no instance of function template \"cute::copy\" matches";
  for (int i = 0; i < 12; ++i)
    v.feedback.detail += fmt::format(
        "kernel.cu({}): error: argument types are: (const cute::TiledCopy<...>, Tensor<...>)\n",
        41 + i);
  return v;
}

void print(const Described& d, const std::string& kind, const cutegen::agent::TaskBrief& brief,
           const cutegen::agent::Question& question, int64_t program) {
  llm::ChatRequest request = make_request(brief, question, {});
  const int64_t prefix =
      llm::estimate_tokens(request.system) + llm::estimate_tokens(request.messages[0].text);
  // The part that the next question about the program shares.
  int64_t kept = prefix, so_far = prefix;
  for (size_t i = 1; i < request.messages.size(); ++i) {
    so_far += llm::estimate_tokens(request.messages[i].text);
    if (request.messages[i].cache_end) kept = so_far;
  }
  Json line{{"task", d.task.name},
            {"class", d.task.workload},
            {"kind", kind},
            {"prefix_tokens", prefix},
            {"with_program_tokens", kept},
            {"program_tokens", program},
            {"recipe", d.recipe.has_value()},
            {"tokens", llm::estimate_tokens(request)}};
  if (std::getenv("CUTEGEN_TEXTS"))
    for (line["text"] = request.system; const llm::Message& m : request.messages)
      line["text"] = line["text"].get<std::string>() + m.text;
  fmt::print("{}\n", dump_json(line));
}

void questions_of(const Described& d, const KernelProgram& longest, const Verdict& correct) {
  cutegen::agent::TaskBrief brief{d.task, value_of(find_gpu("h200")), "sim:h200", d.floor_ns,
                                  d.bound_by};
  brief.reachable_ns = d.reachable_ns, brief.roofline_ns = d.roofline_ns;
  Candidate candidate;
  candidate.id = "c14";
  candidate.program = d.recipe ? *d.recipe : longest;
  const int64_t size = program_tokens(candidate.program);
  const Verdict failed = failed_verdict();
  const std::string approach = "Tiles of 128 rows in shared memory, one warp a row, 16-byte loads.";
  print(d, "planner", brief, {.role = Role::planner, .purpose = Purpose::plan, .approaches = 2}, 0);
  print(d, "coder first", brief,
        {.role = Role::coder, .purpose = Purpose::first, .approach = approach}, 0);
  cutegen::agent::Question later{.role = Role::coder,
                                 .purpose = Purpose::improve,
                                 .stage = Stage::detail,
                                 .subject = &candidate};
  later.verdict = &correct;
  later.history = history();
  later.approach = approach;
  later.profile = true;
  print(d, "coder improve", brief, later, size);
  later.role = Role::judge;
  print(d, "judge improve", brief, later, size);
  later.role = Role::debugger;
  later.purpose = Purpose::repair;
  later.verdict = &failed;
  print(d, "debugger", brief, later, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: prompts_bench VERDICT.json DESCRIBED.json...\n");
    return 2;
  }
  const Json json =
      value_of(parse_json(value_of(read_file(argv[1], kMostFile)), argv[1], kMostFile));
  const Verdict correct = value_of(read_json<Verdict>(json));
  std::vector<Described> tasks;
  for (int i = 2; i < argc; ++i)
    for (Described& d : described_in(argv[i])) tasks.push_back(std::move(d));
  const KernelProgram* longest = nullptr;
  for (const Described& d : tasks)
    if (d.recipe && (!longest || program_tokens(*d.recipe) > program_tokens(*longest)))
      longest = &*d.recipe;
  if (!longest) {
    fmt::print(stderr, "no task has a recipe\n");
    return 2;
  }
  const KernelProgram stand_in = *longest;
  for (const Described& d : tasks) questions_of(d, stand_in, correct);
}
