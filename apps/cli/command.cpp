// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/fields.h"
#include "base/text.h"

namespace cutegen::cli {
namespace {

constexpr size_t kErrorBytes = 16 << 10;  // cap for third-party text in a message

// errno of the first write to stdout that failed; 0 if none did.
int output_error = 0;

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The command that CLI11 was parsing at the error: the deepest one that it reached.
const CLI::App& parsed_command(const CLI::App& app) {
  auto reached = app.get_subcommands();
  return reached.empty() ? app : *reached.front();
}

// Returns "did you mean --device?" for the first word that looks like a misspelt option.
std::string suggestion(const CLI::App& command, const std::vector<std::string>& words) {
  auto names = option_names(command);
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    std::string name = word.substr(0, word.find('='));
    bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (known) continue;
    if (auto near = nearest(name, names)) return "did you mean " + *near + "?";
  }
  return {};
}

}  // namespace

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

void print_text(const std::string& text) {
  std::string_view rest = text;
  size_t done = std::fwrite(rest.data(), 1, rest.size(), stdout);
  if (done != rest.size() && output_error == 0) output_error = errno ? errno : EIO;
}

void print_result(const Globals& g, const Json& value, const std::string& text) {
  std::string out = g.json ? dump_json(value, 2) : text;
  if (!out.ends_with('\n')) out += '\n';
  print_text(out);
}

int report(const Globals& g, const Error& error) {
  if (g.json) {
    print_result(g, {{"error", to_json(error)}}, {});
  } else {
    std::string text = sanitize(error.text(), kErrorBytes) + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return exit_code(error);
}

int finish_output(int code) {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno ? errno : EIO;
  if (output_error == 0 || output_error == EPIPE) return code;  // EPIPE: the reader stopped early
  std::fprintf(stderr, "error: cannot write the result to stdout: %s\n",
               std::generic_category().message(output_error).c_str());
  return code == kExitOk ? kExitEnvironment : code;
}

std::optional<Error> unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  for (const std::string& word : words) {
    if (word.starts_with("-")) continue;  // flags before a command take no values
    if (std::find(names.begin(), names.end(), word) != names.end()) return std::nullopt;
    auto near = nearest(word, names);
    std::string remedy =
        near ? "did you mean '" + *near + "'?" : "the commands are " + join(names, ", ");
    return Error{.kind = ErrorKind::user,
                 .message = "no command '" + sanitize(word, 80) + "'",
                 .where = "cutegen",
                 .remedy = remedy};
  }
  return std::nullopt;
}

int answer_parse(const CLI::App& app, Globals& g, const CLI::ParseError& e,
                 const std::vector<std::string>& words) {
  if (e.get_exit_code() == int(CLI::ExitCodes::Success)) {
    if (e.get_name() == "CallForVersion") {
      print_text(std::string(e.what()) + "\n");
    } else {
      print_text(app.help());  // CLI11 prints the help of the command that it has reached
    }
    return kExitOk;
  }
  const CLI::App& command = parsed_command(app);
  std::string name = &command == &app ? "cutegen" : "cutegen " + command.get_name();
  std::string message = e.what();
  while (message.ends_with('\n')) message.pop_back();
  for (char& c : message)
    if (c == '\n') c = ' ';
  std::string remedy = suggestion(command, words);
  if (remedy.empty()) remedy = "see " + name + " --help";
  return report(g, {.kind = ErrorKind::user, .message = message, .where = name, .remedy = remedy});
}

}  // namespace cutegen::cli
