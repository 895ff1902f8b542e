// SPDX-License-Identifier: Apache-2.0
#include "toolchain/tool_run.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cutegen::toolchain {
namespace {

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("writing a memory file");
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

}  // namespace

// The memory file may grow up to the tool's file size limit.
Result<UniqueFd> tool_file(const char* name, std::string_view content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) return errno_error("creating a memory file");
  CG_CHECK(write_all(fd.get(), content));
  return fd;
}

Result<std::string> tool_text(int file, int64_t most) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return errno_error("reading a memory file");
  std::string out(size_t(std::clamp<int64_t>(info.st_size, 0, most)), '\0');
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = ::pread(file, out.data() + done, out.size() - done, off_t(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("reading a memory file");
    if (n == 0) break;
    done += size_t(n);
  }
  out.resize(done);
  return out;
}

ToolRun tool_run_of(const sandbox::ExitStatus& status) {
  ToolRun out;
  out.exited = status.exited;
  out.timed_out = !status.exited && status.signal == SIGXCPU;
  out.died = status.text();
  out.ok = status.exited && status.code == 0;
  return out;
}

Result<void> replace_input(ToolProcess& process, std::string_view input) {
  if (::ftruncate(process.input.get(), 0) != 0 || ::lseek(process.input.get(), 0, SEEK_SET) != 0)
    return errno_error("rewinding a memory file");
  return write_all(process.input.get(), input);
}

Result<ToolProcess> start_tool(const ToolCall& call) {
  ToolProcess out;
  CG_TRY(out.input, tool_file("input", call.input));
  CG_TRY(out.output, tool_file("output", {}));
  sandbox::SpawnSpec spec;
  spec.argv = call.argv;
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  spec.env.insert(spec.env.end(), call.environment.begin(), call.environment.end());
  spec.cwd = "/";
  spec.readable = call.readable;
  spec.fds = {{out.input.get(), 3}, {out.output.get(), 4}};
  if (call.gate >= 0) spec.fds.emplace_back(call.gate, 5);
  if (call.stdout_is_output) spec.fds.emplace_back(out.output.get(), 1);
  auto seconds = std::chrono::ceil<std::chrono::seconds>(call.timeout).count();
  spec.limits.memory_bytes = call.memory_bytes;
  spec.limits.cpu_seconds = seconds;
  spec.limits.file_bytes = call.output_bytes;
  spec.limits.open_files = 32;
  spec.isolation = {
      .namespaces = true, .no_network = true, .seccomp = true, .deny_fork = !call.forks};
  CG_TRY(out.child, sandbox::spawn(spec));
  return out;
}

Result<ToolRun> finish_tool(const Context& ctx, ToolProcess process, const ToolCall& call) {
  ToolRun out;
  auto status = process.child.wait(ctx.with_timeout(call.timeout));
  if (!status) {
    CG_CHECK(ctx.check("reading machine code"));
    if (status.error().kind != ErrorKind::timeout) return fail(status.error());
    process.child.kill();
    out.timed_out = true;
  } else {
    out = tool_run_of(*status);
  }
  out.grade = process.child.grade();
  out.log = process.child.error_text();
  if (out.ok) {
    CG_TRY(out.output, tool_text(process.output.get(), call.output_bytes));
  }
  return out;
}

Result<ToolRun> run_tool(const Context& ctx, const ToolCall& call) {
  CG_TRY(ToolProcess process, start_tool(call));
  return finish_tool(ctx, std::move(process), call);
}

}  // namespace cutegen::toolchain
