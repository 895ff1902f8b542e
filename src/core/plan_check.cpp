// SPDX-License-Identifier: Apache-2.0
// Checks of a plan against a task before compilation: names, axes, literals.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/expr_node.h"
#include "core/plan.h"

namespace cutegen {
namespace {

constexpr const char* kPrepare = "prepare";  // the list of steps that run once
constexpr const char* kGpu = "gpu";          // expressions read the device's facts from it: gpu.sms

constexpr int64_t kMostThreads = 1024;
constexpr int64_t kMostSharedBytes = 232448;  // 227 KiB, the most that any supported GPU has

// Evaluates expressions without names.
class NoScope final : public Scope {
 public:
  Result<Number> symbol(const std::string& n) const override { return none(n); }
  Result<int64_t> dim(const std::string& n, int64_t) const override { return none(n); }
  Result<int64_t> size(const std::string& n) const override { return none(n); }
  Result<int64_t> stride(const std::string& n, int64_t) const override { return none(n); }
  Result<Number> attribute(const std::string& n) const override { return none(n); }
  Result<Number> argument(const std::string& n) const override { return none(n); }
  Result<int64_t> module_constant(const std::string& n) const override { return none(n); }
  Result<int64_t> occupancy(const std::string& n) const override { return none(n); }

 private:
  static tl::unexpected<Error> none(const std::string& name) {
    return user_error("'" + name + "' has no value here");
  }
};

class Checker {
 public:
  Checker(const Plan& plan, const Task& task) : plan_(plan), task_(task) {}

  std::vector<Error> run() {
    for (const TensorInfo& t : task_.tensors) tensors_.push_back(t.name);
    check_bind();
    check_scratch_names();
    check_symbols();
    for (size_t i = 0; i < plan_.requires_.size(); ++i)
      early(plan_.requires_[i], fmt::format("/requires/{}", i));
    for (const auto& [name, e] : plan_.defines) early(e, "/defines/" + name);
    check_scratch_shapes();
    check_maps();
    check_steps(plan_.prepare, kPrepare);
    check_steps(plan_.steps, "steps");
    check_outputs();
    return std::move(errors_);
  }

 private:
  void report(const std::string& place, std::string message, std::string remedy = {}) {
    errors_.push_back({.kind = ErrorKind::user,
                       .message = std::move(message),
                       .where = "plan.json#" + place,
                       .remedy = std::move(remedy)});
  }

  static std::string meant(const std::string& word, const std::vector<std::string>& options,
                           const std::string& otherwise = {}) {
    auto near = nearest(word, options);
    return near ? "did you mean '" + *near + "'?" : otherwise;
  }

  static std::string known(const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return std::string("there are no ") + what;
    if (names.size() > 12) return {};
    return fmt::format("{}: {}", what, fmt::join(names, ", "));
  }

  std::string target(const std::string& name) const {
    for (const auto& [alias, tensor] : plan_.bind)
      if (alias == name) return tensor;
    return name;
  }

  const ScratchSpec* scratch(const std::string& name) const {
    for (const ScratchSpec& s : plan_.scratch)
      if (s.name == name) return &s;
    return nullptr;
  }

  std::vector<std::string> visible_names() const {
    std::vector<std::string> out = tensors_;
    for (const auto& [alias, tensor] : plan_.bind) out.push_back(alias);
    for (const ScratchSpec& s : plan_.scratch) out.push_back(s.name);
    return out;
  }

  void check_bind() {
    for (const auto& [alias, tensor] : plan_.bind) {
      if (!task_.find(tensor))
        report("/bind/" + alias, "the task has no tensor '" + tensor + "'",
               meant(tensor, tensors_, known("tensors", tensors_)));
      if (task_.find(alias) && alias != tensor)
        report("/bind/" + alias, "'" + alias + "' is already a tensor of the task",
               "choose another short name");
    }
  }

  void check_scratch_names() {
    std::set<std::string> seen;
    for (size_t i = 0; i < plan_.scratch.size(); ++i) {
      const std::string& name = plan_.scratch[i].name;
      std::string place = fmt::format("/scratch/{}/name", i);
      if (!seen.insert(name).second) report(place, "scratch '" + name + "' occurs twice");
      if (task_.find(name) || target(name) != name)
        report(place, "'" + name + "' is already a tensor", "choose another name");
    }
  }

  void check_symbols() {
    for (const auto& [name, e] : plan_.symbols) {
      std::string place = "/symbols/" + name;
      if (name == kGpu) report(place, "'gpu' is taken", "choose another name");
      if (auto use = Expr::parse(name); !use)
        report(place, use.error().message, use.error().remedy);
      check(e, place);
      if (needs_modules(e)) late_.insert(name);
      symbols_.push_back(name);
    }
  }

  // True if the value depends on compiled modules: k(name), directly or through a symbol.
  bool needs_modules(const Expr& e) const {
    for (const std::string& m : e.mentions())
      if (m.starts_with("k:") || late_.contains(m)) return true;
    return false;
  }

  // Checks an expression that needs a value before compilation.
  void early(const Expr& e, const std::string& place) {
    check(e, place);
    if (needs_modules(e))
      report(place, "'" + e.text() + "' needs k(name), which is known only after compiling",
             "use a number, a symbol without k, or a define of the same value");
  }

  void check(const Expr& e, const std::string& place) {
    size_t before = errors_.size();
    visit(e.root(), [&](const Expr::Node& n) { check_node(n, place); });
    if (errors_.size() != before || !e.mentions().empty()) return;
    auto value = e.evaluate(NoScope());
    if (!value) report(place, value.error().message);
  }

  void check_node(const Expr::Node& n, const std::string& place) {
    using Kind = Expr::Node::Kind;
    switch (n.kind) {
      case Kind::symbol:
        return check_symbol(n.name, place);
      case Kind::dim:
      case Kind::stride:
      case Kind::size:
        return check_tensor_node(n, place);
      case Kind::attribute:
        return check_scalar(task_.attributes, n.name, "attribute", place);
      case Kind::argument:
        return check_scalar(task_.arguments, n.name, "scalar argument", place);
      case Kind::occupancy:
        return check_kernel(n.name, place);
      default:
        return;
    }
  }

  void check_symbol(const std::string& name, const std::string& place) {
    if (name == "gpu.sms" || std::find(symbols_.begin(), symbols_.end(), name) != symbols_.end())
      return;
    bool later = std::any_of(plan_.symbols.begin(), plan_.symbols.end(),
                             [&](const auto& s) { return s.first == name; });
    if (later)
      report(place, "symbol '" + name + "' is used before it is defined",
             "put '" + name + "' first in 'symbols'");
    else
      report(place, "unknown symbol '" + name + "'",
             meant(name, symbols_, known("symbols", symbols_)));
  }

  void check_tensor_node(const Expr::Node& n, const std::string& place) {
    const TensorInfo* t = task_.find(target(n.name));
    if (!t && target(n.name) != n.name) return;  // the check of `bind` reports it
    if (!t)
      return report(place, "the task has no tensor '" + n.name + "'",
                    meant(n.name, visible_names(), known("tensors", tensors_)));
    auto rank = int64_t(t->shape.size());
    if (n.kind != Expr::Node::Kind::size && (n.value < -rank || n.value >= rank))
      report(place, fmt::format("'{}' has {} dimension(s), so there is no axis {}", n.name, rank,
                                n.value));
  }

  void check_scalar(const std::vector<ScalarInfo>& list, const std::string& name, const char* what,
                    const std::string& place) {
    std::vector<std::string> names;
    for (const ScalarInfo& s : list) {
      names.push_back(s.name);
      if (s.name != name) continue;
      if (std::holds_alternative<std::string>(s.value))
        report(place, fmt::format("{} '{}' is a string, not a number", what, name));
      return;
    }
    report(place, fmt::format("the task has no {} '{}'", what, name),
           meant(name, names, known((what + std::string("s")).c_str(), names)));
  }

  void check_kernel(const std::string& name, const std::string& place) {
    std::vector<std::string> kernels;
    for (const Step& s : plan_.steps)
      if (!s.is_fill) kernels.push_back(s.kernel);
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end())
      report(place, "no step launches a kernel '" + name + "'", meant(name, kernels));
  }

  void check_scratch_shapes() {
    for (size_t i = 0; i < plan_.scratch.size(); ++i)
      for (size_t d = 0; d < plan_.scratch[i].shape.size(); ++d) {
        std::string place = fmt::format("/scratch/{}/shape/{}", i, d);
        check(plan_.scratch[i].shape[d], place);
        auto n = literal(plan_.scratch[i].shape[d]);
        if (n && *n < 0) report(place, fmt::format("a size of {}", *n), "sizes are not negative");
      }
  }

  void check_list(const std::vector<Expr>& list, const std::string& place) {
    for (size_t i = 0; i < list.size(); ++i) check(list[i], fmt::format("{}/{}", place, i));
  }

  void check_maps() {
    for (const TensorMapSpec& m : plan_.tensor_maps) {
      std::string place = "/tensor_maps/" + m.name;
      check_buffer(m.tensor, place + "/tensor");
      for (size_t d = 0; d < m.dims.size(); ++d) {
        check(m.dims[d], fmt::format("{}/dims/{}", place, d));
        check(m.strides[d], fmt::format("{}/strides/{}", place, d));
      }
      if (!m.im2col) continue;
      check_list(m.im2col->lower, place + "/im2col/lower");
      check_list(m.im2col->upper, place + "/im2col/upper");
      check_list(m.im2col->steps, place + "/im2col/steps");
    }
  }

  void check_buffer(const std::string& name, const std::string& place) {
    bool bound = target(name) != name;  // the check of `bind` reports a wrong target
    if (!bound && !scratch(name) && !task_.find(name))
      report(place, "neither the task nor the scratch has '" + name + "'",
             meant(name, visible_names(), known("tensors", tensors_)));
  }

  void check_steps(const std::vector<Step>& steps, const std::string& list) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& s = steps[i];
      std::string place = fmt::format("/{}/{}", list, i);
      if (!ids_.insert(s.id).second) report(place + "/id", "two steps are called '" + s.id + "'");
      if (s.when) check(*s.when, place + "/when");
      if (s.is_fill)
        check_fill(s, list, place);
      else
        check_launch(s, list, place);
    }
  }

  void check_fill(const Step& s, const std::string& list, const std::string& place) {
    check_buffer(s.fill_tensor, place + "/fill");
    const TensorInfo* t = task_.find(target(s.fill_tensor));
    if (t && !is_result(*t))
      report(place + "/fill",
             fmt::format("'{}' is the task's {} and must not be written", s.fill_tensor,
                         to_string(t->role)),
             "fill an output, a mutated tensor or a scratch");
    if (list == kPrepare) check_prepared(s.fill_tensor, place + "/fill");
    used_.insert(target(s.fill_tensor));
  }

  void check_launch(const Step& s, const std::string& list, const std::string& place) {
    check_triple(s.grid, place + "/grid", INT32_MAX);
    check_triple(s.block, place + "/block", kMostThreads);
    check_triple(s.cluster, place + "/cluster", 16);
    check(s.shared_bytes, place + "/shared_bytes");
    auto shared = literal(s.shared_bytes);
    if (shared && (*shared < 0 || *shared > kMostSharedBytes))
      report(place + "/shared_bytes",
             fmt::format("{} bytes of shared memory: the limit is {}", *shared, kMostSharedBytes),
             "use smaller tiles or fewer stages");
    for (size_t i = 0; i < s.args.size(); ++i)
      check_arg(s.args[i], list, fmt::format("{}/args/{}", place, i));
  }

  void check_triple(const std::array<Expr, 3>& triple, const std::string& place, int64_t most) {
    int64_t product = 1;
    for (size_t i = 0; i < 3; ++i) {
      std::string at = fmt::format("{}/{}", place, i);
      std::string what = fmt::format("{}[{}]", place.substr(place.rfind('/') + 1), i);
      check(triple[i], at);
      auto n = literal(triple[i]);
      if (!n) continue;
      if (*n <= 0)
        report(at, fmt::format("{} is {}; it must be positive", what, *n),
               "for a step that may be empty add \"when\": \"... > 0\"");
      else if (*n > most)
        report(at, fmt::format("{} is {}, over the limit of {}", what, *n, most));
      else
        product = std::min(product * *n, int64_t{INT32_MAX});
    }
    if (product > most && most == kMostThreads)
      report(place, fmt::format("{} threads per block: the limit is {}", product, most));
  }

  void check_arg(const ArgSpec& a, const std::string& list, const std::string& place) {
    if (a.kind == ArgSpec::Kind::tensor) {
      check_buffer(a.name, place + "/tensor");
      if (list == kPrepare) check_prepared(a.name, place + "/tensor");
      used_.insert(target(a.name));
    } else if (a.kind == ArgSpec::Kind::map) {
      check_map_arg(a.name, list, place + "/map");
    } else {
      static const std::map<ArgSpec::Kind, const char*> keys{{ArgSpec::Kind::i32, "/i32"},
                                                             {ArgSpec::Kind::u32, "/u32"},
                                                             {ArgSpec::Kind::i64, "/i64"},
                                                             {ArgSpec::Kind::f32, "/f32"},
                                                             {ArgSpec::Kind::f64, "/f64"}};
      check(a.value, place + keys.at(a.kind));
    }
  }

  void check_map_arg(const std::string& name, const std::string& list, const std::string& place) {
    std::vector<std::string> names;
    for (const TensorMapSpec& m : plan_.tensor_maps) {
      names.push_back(m.name);
      if (m.name != name) continue;
      if (list == kPrepare) check_prepared(m.tensor, place);
      used_.insert(target(m.tensor));
      return;
    }
    report(place, "no tensor map '" + name + "'", meant(name, names, "define it in 'tensor_maps'"));
  }

  // prepare runs once for many calls, so it may use only data that outlives a call.
  void check_prepared(const std::string& name, const std::string& place) {
    const TensorInfo* t = task_.find(target(name));
    bool lasting =
        t && (t->role == TensorRole::parameter || t->role == TensorRole::buffer) && !t->mutated;
    const ScratchSpec* s = scratch(name);
    if ((t && !lasting) || (s && !s->weights_life))
      report(place, "'" + name + "' does not persist between calls",
             "prepare may use only parameters that no call mutates, and scratch with \"life\": "
             "\"weights\"");
  }

  void check_outputs() {
    for (const TensorInfo* t : results_of(task_))
      if (!used_.contains(t->name))
        report("/steps",
               fmt::format("no step gets the {} '{}'", t->mutated ? "mutated tensor" : "output",
                           t->name),
               "pass {\"tensor\": \"" + t->name + "\"} to the kernel that writes it");
  }

  // The value of an expression without names.
  static std::optional<int64_t> literal(const Expr& e) {
    if (!e.mentions().empty()) return std::nullopt;
    auto value = e.integer(NoScope());
    return value ? std::optional(*value) : std::nullopt;
  }

  const Plan& plan_;
  const Task& task_;
  std::vector<Error> errors_;
  std::vector<std::string> tensors_, symbols_;  // symbols_: only those defined so far
  std::set<std::string> late_, ids_, used_;
};

}  // namespace

std::vector<Error> check_plan(const Plan& plan, const Task& task) {
  return Checker(plan, task).run();
}

}  // namespace cutegen
