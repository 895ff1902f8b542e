// SPDX-License-Identifier: Apache-2.0
// cutegen-compiler: parses a prefix of headers once, then forks one child per candidate at the
// point where NVRTC opens the candidate's file. The toolchain module starts it, never the user.
//
//   cutegen-compiler --nvrtc LIB --include DIR... --header NAME... --option OPT... [--plain|--keep]
//
// Round 1 compiles the prefix with an empty candidate and writes the precompiled header. Round 2
// loads it and stops inside NVRTC, in this program's fopen, which serves requests (jobs.h). In each
// child, fopen returns the candidate's text, and NVRTC continues to PTX. If any of this fails,
// every child runs a whole compilation ("plain"). With --keep, the server instead reads one program
// and stops inside it, for programs with the same beginning (chain.h).
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/text.h"
#include "compiler/chain.h"
#include "compiler/files.h"
#include "compiler/jobs.h"
#include "compiler/nvrtc.h"

namespace cutegen::compiler {
namespace fs = std::filesystem;
namespace {

constexpr size_t kPchHeapBytes = size_t{640} << 20;  // CuTe needs 300 MB
constexpr size_t kMostLogBytes = size_t{256} << 10;
constexpr size_t kMostPtxBytes = size_t{32} << 20;
constexpr int kControl = 3, kCompilationError = 6;  // NVRTC_ERROR_COMPILATION

struct Options {
  std::string nvrtc;
  std::vector<std::string> includes, headers, options;
  bool plain = false, keep = false;
};

Result<Options> read_options(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--plain" || flag == "--keep") {
      (flag == "--plain" ? out.plain : out.keep) = true;
      continue;
    }
    if (i + 1 == argc) return user_error("'" + flag + "' needs a value");
    std::string value = argv[++i];
    if (flag == "--nvrtc") {
      out.nvrtc = value;
    } else if (flag == "--include") {
      out.includes.push_back(value);
    } else if (flag == "--header") {
      out.headers.push_back(value);
    } else if (flag == "--option") {
      out.options.push_back(value);
    } else {
      return user_error("unknown option '" + flag + "'");
    }
  }
  if (out.nvrtc.empty()) return user_error("--nvrtc is missing");
  return out;
}

class Server {
 public:
  Server(Options options, Nvrtc nvrtc, std::string work)
      : options_(std::move(options)),
        nvrtc_(std::move(nvrtc)),
        work_(std::move(work)),
        control_(UniqueFd(kControl)) {
    for (const std::string& h : options_.headers) source_ += "#include <" + h + ">\n";
    source_ += "#pragma nv_hdrstop\n#include \"" + std::string(kCandidateFile) + "\"\n";
  }

  int run() {
    if (options_.keep) return keep();
    auto start = Clock::now();
    std::string why = wire::kAskedFor;
    if (!options_.plain && precompile(why)) serve_forked(start);
    serve_plain(why);
  }

 private:
  std::vector<std::string> arguments(bool pch) const {
    std::vector<std::string> out = options_.options;
    if (pch) {
      out.emplace_back("--pch");
      out.push_back("--pch-dir=" + work_);
    }
    out.push_back("-I" + work_);
    for (const std::string& dir : options_.includes) out.push_back("-I" + dir);
    return out;
  }

  Files::Rules rules(std::function<FILE*(size_t)> open_candidate) const {
    Files::Rules out{
        .include_dirs = {}, .work_dir = work_, .open_candidate = std::move(open_candidate)};
    for (const std::string& dir : options_.includes) {
      char resolved[PATH_MAX];
      if (::realpath(dir.c_str(), resolved)) out.include_dirs.emplace_back(resolved);
    }
    return out;
  }

  NvrtcOutput compile(bool pch, std::function<FILE*(size_t)> open_candidate) {
    files().begin(rules(std::move(open_candidate)));
    NvrtcOutput out = nvrtc_.compile(source_, "candidate.cu", arguments(pch));
    files().end();
    return out;
  }

  // Round 1. False, with the reason, if precompiled headers do not work.
  bool precompile(std::string& why) {
    if (!nvrtc_.set_pch_heap(kPchHeapBytes)) {
      why = "this NVRTC has no precompiled headers";
      return false;
    }
    NvrtcOutput out = compile(true, {});
    prefix_headers_ = files().take_opened();
    if (out.status != 0) {
      why = "the prefix does not compile: " + sanitize(out.log, 2000);
      return false;
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(work_, error))
      if (entry.path().extension() == ".pch") return true;
    why = "NVRTC wrote no precompiled header";
    return false;
  }

  void send_ready(wire::CompileMode how, const std::string& why, Clock::time_point start) {
    Nanoseconds spent = Clock::now() - start;
    const wire::CompilerReady ready{.how = how,
                                    .why = why,
                                    .version = nvrtc_.version(),
                                    .warm_up = spent,
                                    .headers = prefix_headers_};
    if (!control_.send(Context().with_timeout(std::chrono::seconds(10)), to_json(ready)))
      ::_exit(kExitOk);
  }

  // Round 2. Returns only if NVRTC never opened the candidate.
  void serve_forked(Clock::time_point start) {
    std::optional<Request> request;
    NvrtcOutput out = compile(true, [&](size_t) {
      if (!request) {  // still the server
        send_ready(wire::CompileMode::forked, "", start);
        request = next_request(control_);
      }
      return open_text(
          request->call.source);  // NVRTC opens the file again to quote lines in errors
    });
    if (request) finish(*request, out, wire::CompileMode::forked);
  }

  [[noreturn]] void serve_plain(const std::string& why) {
    prefix_headers_.clear();  // every child parses and lists them itself
    send_ready(wire::CompileMode::plain, why, Clock::now());
    Request request = next_request(control_);
    NvrtcOutput out = compile(false, [&](size_t) { return open_text(request.call.source); });
    finish(request, out, wire::CompileMode::plain);
  }

  // The head of a chain. Uses no precompiled header, whose heap would have to hold the program too.
  // Returns only if the program does not compile.
  int keep() {
    auto chain = Chain::receive(std::move(control_));
    if (!chain) {
      std::fprintf(stderr, "cutegen-compiler: %s\n", chain.error().text().c_str());
      return kExitInternal;
    }
    for (size_t part = 1; part < chain->parts(); ++part) {
      const std::string name = part_file(part);
      if (!write_file(fs::path(work_) / name, "")) return kExitInternal;
      source_ += "#include \"" + name + "\"\n";
    }
    NvrtcOutput out = compile(false, [&](size_t part) { return chain->open(part); });
    if (chain->request()) finish(*chain->request(), out, wire::CompileMode::warm);
    std::fprintf(stderr, "%s\n", sanitize(out.log, 2000).c_str());
    return kExitInternal;
  }

  [[noreturn]] void finish(Request& request, NvrtcOutput& out, wire::CompileMode how) {
    if (out.ptx.size() > kMostPtxBytes) {
      out.status = kCompilationError;
      out.log = "error: the PTX has " + std::to_string(out.ptx.size()) + " bytes; the limit is " +
                std::to_string(kMostPtxBytes);
      out.ptx.clear();
    }
    const wire::CompileReply reply{.ok = out.status == 0,
                                   .how = how,
                                   .status = nvrtc_.status_text(out.status),
                                   .ptx = std::move(out.ptx),
                                   .log = sanitize(out.log, kMostLogBytes),
                                   .headers = files().take_opened(),
                                   .refused = files().take_refused(),
                                   .grade = request.grade.label,
                                   .missing = request.grade.missing,
                                   .spent = Nanoseconds(processor_ns())};
    auto sent =
        request.reply.send(Context().with_timeout(std::chrono::seconds(60)), to_json(reply));
    ::_exit(sent ? kExitOk : kExitInternal);
  }

  Options options_;
  Nvrtc nvrtc_;
  std::string work_;
  wire::Channel control_;
  std::string source_;
  std::vector<std::string> prefix_headers_;
};

Result<std::string> make_work_dir() {
  std::string work = "/tmp/cutegen-compiler.XXXXXX";
  if (!::mkdtemp(work.data())) return errno_error("cannot create '" + work + "'");
  CG_CHECK(write_file(fs::path(work) / kCandidateFile, ""));
  ::setenv("TMPDIR", work.c_str(), 1);  // NVRTC's front end keeps its temporary files there
  return work;
}

int run(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  auto serve = [&]() -> Result<int> {
    CG_TRY(Options options, read_options(argc, argv));
    CG_TRY(Nvrtc nvrtc, Nvrtc::load(options.nvrtc));
    CG_TRY(std::string work, make_work_dir());
    return Server(std::move(options), std::move(nvrtc), std::move(work)).run();
  };
  auto done = serve();
  if (done) return *done;
  std::fprintf(stderr, "cutegen-compiler: %s\n", done.error().text().c_str());
  return exit_code(done.error());
}

}  // namespace
}  // namespace cutegen::compiler

int main(int argc, char** argv) {
  return cutegen::compiler::run(argc, argv);
}
