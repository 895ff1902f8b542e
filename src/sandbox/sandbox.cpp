// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "sandbox/bubblewrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/launch.h"

namespace cutegen::sandbox {
namespace fs = std::filesystem;
namespace {

constexpr auto kErrorsLimit = std::chrono::seconds(2);
constexpr int kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;

struct SharedMemory {
  SharedMemory()
      : page(static_cast<SharedPage*>(::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    CG_ASSERT(page != MAP_FAILED);
  }
  ~SharedMemory() { ::munmap(page, sizeof(SharedPage)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedPage* page;
};

// The parent's handles on a started child.
struct Started {
  pid_t supervisor = -1;
  UniqueFd pidfd, lifeline, errors;  // errors: the pipe that the supervisor drains
  std::unique_ptr<SharedMemory> shared;
};

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno_error("pipe");
  return Pipe{.read = UniqueFd(fds[0]), .write = UniqueFd(fds[1])};
}

Result<std::string> find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    fs::path path = fs::absolute(name, error);
    if (!fs::exists(path, error)) return world_error("there is no program '" + name + "'");
    return path.string();
  }
  const char* path = std::getenv("PATH");
  for (const std::string& dir : split(path ? path : "/usr/bin:/bin", ':'))
    if (!dir.empty() && ::access((dir + "/" + name).c_str(), X_OK) == 0) return dir + "/" + name;
  return world_error("there is no program '" + name + "' on the PATH");
}

// Paths that must stay visible even below /tmp: the program with its libraries, its folder,
// cutegen's own files, and the caller's `readable`.
std::vector<Readable> readable_below_tmp(const SpawnSpec& spec, const std::string& program) {
  std::vector<fs::path> wanted(spec.readable.begin(), spec.readable.end());
  std::error_code error;
  for (const fs::path& p : {fs::path(program), fs::canonical(program, error)}) {
    fs::path dir = p.parent_path();
    wanted.push_back(dir.filename() == "bin" ? dir.parent_path() : dir);
  }
  if (auto share = share_dir()) wanted.push_back(*share);
  if (!spec.cwd.empty()) wanted.emplace_back(spec.cwd);
  std::vector<Readable> out;
  for (const fs::path& p : wanted) {
    fs::path path = fs::weakly_canonical(p, error);
    std::string text = path.string();
    if (!text.starts_with("/tmp/") && !text.starts_with("/dev/shm/")) continue;
    Readable r{.path = text, .is_folder = fs::is_directory(path, error), .parents = {}};
    for (fs::path up = path.parent_path(); up.has_relative_path(); up = up.parent_path())
      r.parents.insert(r.parents.begin(), up.string());
    if (fs::exists(path, error)) out.push_back(std::move(r));
  }
  // Outer folders first, so that inner mounts go on top and stay visible.
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.path < b.path; });
  auto same = [](auto& a, auto& b) { return a.path == b.path; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

Plan make_plan(const SpawnSpec& spec, const std::string& program) {
  Plan plan;
  plan.program = program;
  plan.cwd = !spec.cwd.empty() ? spec.cwd : spec.isolation.namespaces ? "/" : ".";
  for (const std::string& a : spec.argv) plan.argv.push_back(const_cast<char*>(a.c_str()));
  for (const std::string& e : spec.env) plan.env.push_back(const_cast<char*>(e.c_str()));
  plan.argv.push_back(nullptr);
  plan.env.push_back(nullptr);
  plan.fds = spec.fds;
  plan.capture_stderr = spec.capture_stderr;
  plan.limits = limit_values(spec.limits);
  const Isolation& want = spec.isolation;
  plan.drop_capabilities =
      !want.keep_capabilities && (want.namespaces || want.no_network || want.seccomp);
  plan.loopback = want.loopback;
  if (want.seccomp) plan.filter = seccomp_program(want, false);
  plan.filtered = !plan.filter.empty();
  if (want.namespaces) {
    plan.readable = readable_below_tmp(spec, program);
    // The kernel accepts no pid_max below 301. Without a cgroup, only this process limit binds
    // root.
    if (spec.limits.processes > 0)
      plan.process_limit = std::to_string(std::max<int64_t>(301, spec.limits.processes));
  }
  auto line = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; };
  plan.id_map = line(::geteuid());
  plan.group_map = line(::getegid());
  return plan;
}

// Whether the kernel lets us create the namespaces ourselves, and mount in them.
bool own_namespaces_work() {
  SpawnSpec spec{.argv = {"/bin/true"}};
  spec.isolation = {.namespaces = true, .no_network = true};
  spec.driver = Driver::own;
  auto child = spawn(spec);
  return child && child->grade().label == Protection::full;
}

// For root, our own namespaces enforce more (the process limit) and start sooner. For other users
// the kernel may refuse them but allow bubblewrap.
Driver better_driver() {
  if (::geteuid() == 0 && own_namespaces_work()) return Driver::own;
  return bubblewrap().empty() ? Driver::own : Driver::bubblewrap;
}

constexpr const char *kOwn = "own", *kBubblewrap = "bubblewrap";  // values of CUTEGEN_SANDBOX

Driver choose_driver(Driver asked) {
  if (asked != Driver::automatic) return asked;
  const char* named = std::getenv("CUTEGEN_SANDBOX");
  std::string name = named ? named : "";
  if (name == kOwn) return Driver::own;
  if (name == kBubblewrap && !bubblewrap().empty()) return Driver::bubblewrap;
  static const Driver better = better_driver();
  return better;
}

struct Attempt {
  int flags = 0;  // namespaces that cutegen creates
  bool bubblewrap = false;
};

// The attempts, best first. The last one creates no namespaces.
std::vector<Attempt> attempts(const Isolation& want, Driver driver) {
  int all = (want.namespaces ? kNamespaces : 0) | (want.no_network ? CLONE_NEWNET : 0);
  std::vector<Attempt> out;
  if (want.keep_capabilities) return {{.flags = all}, {}};
  if (want.namespaces && choose_driver(driver) == Driver::bubblewrap)
    out.push_back({.flags = 0, .bubblewrap = true});
  if (all) out.push_back({.flags = all | CLONE_NEWUSER});
  if (all && ::geteuid() == 0)
    out.push_back({.flags = all});  // user namespaces may be switched off
  if (want.namespaces && want.no_network) out.push_back({.flags = CLONE_NEWUSER | CLONE_NEWNET});
  out.push_back({});
  return out;
}

// Best effort, because only the administrator may create groups on most machines.
Cgroup cgroup_for(const SpawnSpec& spec) {
  bool wanted = spec.limits.resident_bytes > 0 || spec.limits.processes > 0;
  if (!spec.isolation.namespaces || !wanted) return {};
  auto base = cgroup_base();
  if (!base) return {};
  auto group = Cgroup::make(*base, spec.limits);
  return group ? std::move(*group) : Cgroup();
}

Result<Started> start(Plan& plan) {
  Started out;
  out.shared = std::make_unique<SharedMemory>();
  CG_TRY(Pipe life, make_pipe());
  CG_TRY(Pipe setup, make_pipe());
  Pipe errors;
  if (plan.capture_stderr) {
    CG_TRY(errors, make_pipe());
    ::fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
  }
  plan.shared = out.shared->page;
  plan.lifeline = life.read.get();
  plan.setup = setup.write.get();
  plan.stderr_read = errors.read.get();
  plan.stderr_write = errors.write.get();

  sigset_t all, before;  // none of our signal handlers may run in the clone
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  pid_t parent_life = life.write.release();
  pid_t pid = raw_clone(plan.clone_flags, &pidfd);
  if (pid == 0) {
    ::close(parent_life);
    run_supervisor(plan);
  }
  int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  out.lifeline = UniqueFd(parent_life);
  errno = error;
  if (pid < 0) return errno_error("starting a process");
  out.supervisor = pid;
  out.pidfd = UniqueFd(pidfd);
  out.errors = std::move(errors.read);
  setup.write.reset();
  char byte;  // the read ends when the program has exec'ed or died
  while (::read(setup.read.get(), &byte, 1) < 0 && errno == EINTR) continue;
  return out;
}

void reap_supervisor(const Started& started) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, id_t(started.pidfd.get()), &info, WEXITED) != 0)
    if (errno != EINTR) break;
}

Grade grade_of(const SpawnSpec& spec, const Plan& plan, const SharedPage& shared) {
  const Isolation& want = spec.isolation;
  std::vector<std::string> missing;
  auto holds = [&](std::initializer_list<Step> steps) {
    bool ok = true;
    for (Step s : steps)
      if (int error = shared.errors[s]) {
        missing.push_back(std::string(to_string(s)) + ": " + std::strerror(error));
        ok = false;
      }
    return ok;
  };
  Grade g;
  bool bubblewrap = plan.bubblewrap, group = plan.cgroup >= 0 && shared.errors[kStepCgroup] == 0;
  bool seccomp = want.seccomp && holds({kStepSeccomp, kStepCapabilities});
  if (want.seccomp && !plan.filtered) {
    seccomp = false;
    missing.emplace_back("seccomp: libseccomp refused the filter");
  }
  if (want.namespaces) {
    bool have = bubblewrap || (plan.clone_flags & CLONE_NEWNS);
    if (!have) missing.emplace_back("namespaces: refused by the kernel");
    g.held["namespaces"] =
        holds({kStepIds, kStepReadOnly, kStepTmp, kStepProc, kStepReadable}) && have;
    if (bubblewrap) g.held["bubblewrap"] = true;
    if (group) g.held["cgroup"] = true;
  }
  if (want.no_network) {
    g.held["network"] = bubblewrap || (plan.clone_flags & CLONE_NEWNET) || seccomp;
    if (!g.held["network"]) missing.emplace_back("network: the kernel refused the namespace");
  }
  if (want.seccomp) g.held["seccomp"] = seccomp;
  if (want.keep_capabilities) {
    g.held["capabilities"] = false;
    missing.emplace_back("capabilities: root keeps them");
  }
  const Limits& l = spec.limits;
  if (l.memory_bytes > 0 || l.cpu_seconds > 0 || l.file_bytes >= 0 || l.open_files > 0 ||
      l.processes > 0) {
    g.held["rlimits"] = holds({kStepRlimit});
    bool root = ::geteuid() == 0;  // RLIMIT_NPROC does not bind root
    if (group) {
      // The cgroup enforces the process limit, for root, too.
    } else if (root && l.processes > 0 && (plan.clone_flags & CLONE_NEWPID) == 0) {
      g.held["rlimits"] = false;
      missing.emplace_back("the process limit: does not bind root without a pid namespace");
    } else if (root && l.processes > 0) {
      g.held["rlimits"] = holds({kStepProcessLimit}) && g.held["rlimits"];
    }
  }
  auto held = std::count_if(g.held.begin(), g.held.end(), [](auto& kv) { return kv.second; });
  bool every = held == int64_t(g.held.size());
  g.label = held == 0 ? Protection::none : every ? Protection::full : Protection::partial;
  g.missing = join(missing, "; ");
  return g;
}

// The error that kept the program from starting, if any.
Result<void> check_started(const Plan& plan, const SharedPage& shared) {
  for (Step s : {kStepStart, kStepDescriptors, kStepFolder, kStepExec})
    if (int error = shared.errors[s])
      return world_error("cannot start '" + plan.program + "': " + to_string(s) + ": " +
                         std::strerror(error) + (s == kStepFolder ? " (" + plan.cwd + ")" : ""));
  return {};
}

// The program's pid in our own namespace.
pid_t outer_pid(pid_t supervisor, int clone_flags, pid_t inner) {
  if (!(clone_flags & CLONE_NEWPID)) return inner;
  std::string me = std::to_string(supervisor);
  std::ifstream children("/proc/" + me + "/task/" + me + "/children");
  pid_t pid = 0;
  return children >> pid ? pid : supervisor;
}

}  // namespace

struct Child::State {
  Cgroup cgroup;
  Started started;
  bool pid_namespace = false, bubblewrap = false;
  pid_t program = -1;
  Grade grade;
  bool reaped = false;
  ExitStatus status;

  void reap() {
    reap_supervisor(started);
    reaped = true;
    const SharedPage& s = *started.shared->page;
    if (!s.ended) {  // someone killed the supervisor, and with it the program
      status.signal = SIGKILL;
      return;
    }
    status.exited = WIFEXITED(s.status);
    status.code = status.exited ? WEXITSTATUS(s.status) : 0;
    status.signal = status.exited ? 0 : WTERMSIG(s.status);
    status.max_rss_bytes = int64_t{s.max_rss_kb} * 1024;
    if (bubblewrap) status = unwrapped(status);
  }

  // What the program printed may still be in the pipe, above all on a busy machine.
  void wait_for_errors() const {
    if (reaped || !started.errors) return;
    const auto end = Clock::now() + kErrorsLimit;
    int left = 0;
    while (::ioctl(started.errors.get(), FIONREAD, &left) == 0 && Clock::now() < end) {
      if (left == 0 && started.shared->page->draining == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Waits for the supervisor; true if it ended in time.
  bool wait_for(Nanoseconds time) {
    if (reaped) return true;
    pollfd p{.fd = started.pidfd.get(), .events = POLLIN, .revents = 0};
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    if (::poll(&p, 1, int(std::min<int64_t>(ms, 3'600'000))) <= 0) return false;
    reap();
    return true;
  }
};

Child::Child() = default;
Child::~Child() {
  kill();
}
Child::Child(Child&&) noexcept = default;

Child& Child::operator=(Child&& o) noexcept {
  std::swap(state_, o.state_);  // o's destructor kills our former child
  return *this;
}

pid_t Child::pid() const {
  return state_ ? state_->program : -1;
}

bool Child::running() {
  return state_ && !state_->wait_for(Nanoseconds{0});
}

Result<ExitStatus> Child::wait(const Context& ctx) {
  CG_ASSERT(state_ != nullptr);
  for (;;) {
    Nanoseconds most = std::chrono::hours(1);
    if (ctx.stop().stop_possible()) most = std::chrono::milliseconds(20);
    if (state_->wait_for(ctx.remaining(most))) return state_->status;
    CG_CHECK(ctx.check("waiting for a child process"));
  }
}

void Child::kill() {
  if (!state_ || state_->reaped) return;
  pid_t program = state_->started.shared->page->program;
  // In a pid namespace the death of process 1 ends all others. Otherwise kill the program's group;
  // the supervisor then reaps it and ends by itself.
  if (!state_->pid_namespace && program > 0 && !state_->started.shared->page->ended) {
    ::kill(-program, SIGKILL);
    state_->started.lifeline.reset();
    if (state_->wait_for(std::chrono::milliseconds(500))) return;
  }
  ::syscall(SYS_pidfd_send_signal, state_->started.pidfd.get(), SIGKILL, nullptr, 0);
  state_->reap();
}

std::string Child::error_text() const {
  if (!state_) return {};
  state_->wait_for_errors();
  const SharedPage& s = *state_->started.shared->page;
  uint64_t end = s.written, begin = end > kErrorBytes ? end - kErrorBytes : 0;
  std::string text;
  for (uint64_t i = begin; i < end; ++i) text += s.ring[i % kErrorBytes];
  return sanitize(text, kErrorBytes);
}

const Grade& Child::grade() const {
  CG_ASSERT(state_ != nullptr);
  return state_->grade;
}

Result<Child> spawn(const SpawnSpec& spec) {
  CG_ASSERT(!spec.argv.empty());
  CG_TRY(std::string program, find_program(spec.argv[0]));
  const Plan wanted = make_plan(spec, program);
  Cgroup group = cgroup_for(spec);
  BubblewrapStorage storage;
  Plan plan;
  Result<Started> started = world_error("not tried");
  for (const Attempt& attempt : attempts(spec.isolation, spec.driver)) {
    plan = wanted;
    plan.clone_flags = attempt.flags;
    plan.mount_view = attempt.flags & CLONE_NEWNS;
    plan.cgroup = group.join_fd();
    if (attempt.bubblewrap && !apply_bubblewrap(plan, spec.isolation, storage)) continue;
    bool last = attempt.flags == 0;
    started = start(plan);
    // Nothing works in a namespace without id maps, so retry with fewer namespaces.
    if (started && (last || started->shared->page->errors[kStepIds] == 0)) break;
    if (!started && last) return fail(started.error());
    if (started) reap_supervisor(*started);
  }
  Child child;
  child.state_ = std::make_unique<Child::State>();
  Child::State& s = *child.state_;
  s.started = std::move(*started);
  s.cgroup = std::move(group);
  s.pid_namespace = plan.clone_flags & CLONE_NEWPID;
  s.bubblewrap = plan.bubblewrap;
  const SharedPage& shared = *s.started.shared->page;
  s.grade = grade_of(spec, plan, shared);
  CG_CHECK(check_started(plan, shared));
  s.program = outer_pid(s.started.supervisor, plan.clone_flags, shared.program);
  if (spec.required && s.grade.label != Protection::full)
    return world_error("the full sandbox is not available: " + s.grade.missing,
                       "allow user namespaces (sysctl user.max_user_namespaces) and seccomp, "
                       "install bubblewrap, or run without --require-sandbox");
  return child;
}

std::string ExitStatus::text() const {
  if (exited) return "exit code " + std::to_string(code);
  const char* name = ::sigabbrev_np(signal);
  return name ? "killed by SIG" + std::string(name) : "killed by signal " + std::to_string(signal);
}

}  // namespace cutegen::sandbox
