// SPDX-License-Identifier: Apache-2.0
// The commands of `cutegen`, one file each. main.cpp registers them on the CLI11 app.
//
// Contract: add_NAME declares the sub-command with its options, help and an example in the footer.
// Its callback does the work and stores the exit code in Globals::exit. Results go to stdout
// (`--json`: one JSON document), progress and messages to stderr. report() prints an Error.
//
// Example: void add_runs(CLI::App& app, Globals& g);
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/json.h"

namespace cutegen::cli {

struct Globals {
  bool json = false;
  bool quiet = false;
  Context ctx;  // ends on Ctrl-C
  int exit = 0;
  bool error_tty = false;  // stderr is a terminal: live progress
};

// Prints the error ("error: …" or {"error": …} with --json) and returns its exit code.
int report(const Globals& g, const Error& error);
// Prints a result document: `value` with --json, else `text`.
void print_result(const Globals& g, const Json& value, const std::string& text);

// Only main.cpp uses the rest of this file. finish_output() checks at the end whether all output
// was written: a full disk is an error; a reader that closed the pipe is not.
bool stderr_is_terminal();
void print_text(const std::string& text);
int finish_output(int code);
// An error for a first word that is not a command, with the nearest command.
std::optional<Error> unknown_command(const CLI::App& app, const std::vector<std::string>& words);
// Prints help or version on request, else the parse error as a user error. Returns the exit code.
int answer_parse(const CLI::App& app, Globals& g, const CLI::ParseError& e,
                 const std::vector<std::string>& words);

void add_describe(CLI::App& app, Globals& g);
void add_eval(CLI::App& app, Globals& g);
void add_certify(CLI::App& app, Globals& g);
void add_check(CLI::App& app, Globals& g);
void add_new(CLI::App& app, Globals& g);
void add_optimize(CLI::App& app, Globals& g);
void add_bench(CLI::App& app, Globals& g);
void add_baselines(CLI::App& app, Globals& g);
void add_compare(CLI::App& app, Globals& g);
void add_resume(CLI::App& app, Globals& g);
void add_runs(CLI::App& app, Globals& g);
void add_show(CLI::App& app, Globals& g);
void add_report(CLI::App& app, Globals& g);
void add_handout(CLI::App& app, Globals& g);
void add_import(CLI::App& app, Globals& g);
void add_export(CLI::App& app, Globals& g);
void add_docs(CLI::App& app, Globals& g);
void add_doctor(CLI::App& app, Globals& g);

}  // namespace cutegen::cli
