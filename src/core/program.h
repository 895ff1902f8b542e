// SPDX-License-Identifier: Apache-2.0
// KernelProgram: device sources and a launch plan. This file also declares the types of compiled
// modules and of resolved plans, in which values replace all expressions.
//
// Contract: program_id() hashes the sources (with normalised line ends) and the canonical plan. A
// build_id is a hash of all inputs of one compilation: source, defines, included files, compiler,
// flags and arch. The function resolve_plan() evaluates the plan for one shape. It needs the facts
// about the compiled modules: the constants that the plan names k(name), and the kernels'
// parameters, with which it compares the plan's arguments.
//
// Example: CG_TRY(auto p, load_program("out/")); fmt::print("{}", program_id(p));
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/context.h"
#include "core/plan.h"
#include "gpu/code_shape.h"

namespace cutegen {

struct KernelProgram {
  std::map<std::string, std::string> sources;  // text of each source file, by file name
  Plan plan;
};

Result<KernelProgram> load_program(const std::filesystem::path& dir);
Result<void> save_program(const KernelProgram& program, const std::filesystem::path& dir);
std::string program_id(const KernelProgram& program);
void fields(Fields& v, KernelProgram& program);

// One module to compile: a source file with values for the macros that the plan defines.
struct ModuleBuild {
  std::string source;  // file name
  std::vector<std::pair<std::string, std::string>> defines;
  std::string key() const;  // unique name: "kernel.cu|STAGES=4"
};

// A compiled module.
struct KernelImage {
  ModuleBuild build;
  std::string arch;  // "sm_90a"
  std::string ptx;
  std::string build_id;
  Nanoseconds compile_time{0};
  bool cached = false;
  std::string how;  // way of compilation: "forked", "plain", "warm" (toolchain/toolchain.h)
};

struct ParamFacts {
  size_t size = 0, align = 0;
};
struct EntryFacts {
  std::string name;
  std::vector<ParamFacts> params;
  std::array<int, 3> max_block{0, 0, 0};  // PTX directive .maxntid or .reqntid; 0 if absent
  int64_t static_shared_bytes = 0;
};
// Properties of a loaded module, as the device reports them.
struct ModuleFacts {
  std::vector<EntryFacts> entries;
  std::map<std::string, int64_t> constants;  // k(name)
  // words of each constant of the type cutegen::tma_spec, which describes a tensor map
  std::map<std::string, std::vector<uint32_t>> tma_specs;
};

struct DeviceFacts {
  std::string name;  // "sim:h200"
  std::string arch;  // "sm_90a"
  int64_t sms = 0;
  int64_t max_threads_per_block = 1024, max_shared_bytes = 0, max_grid_x = 2147483647,
          max_grid_yz = 65535;
  // Limits for the plan's occupancy(kernel), which counts threads, blocks and shared memory, but
  // not registers.
  int64_t max_threads_per_sm = 2048, max_blocks_per_sm = 32, shared_bytes_per_sm = 0;
};

struct LaunchArg {
  // name of the task's tensor or of the scratch buffer; empty if the argument is a scalar
  std::string buffer;
  // The value of a scalar, or the parameters of a tensor map of `buffer` as int64 words: rank,
  // dims, strides in elements, the words of the tma_spec, and in im2col mode the lists lower, upper
  // and steps.
  std::vector<std::byte> bytes;
};
struct Launch {
  std::string step, kernel;
  size_t module = 0;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared_bytes = 0;
  bool cooperative = false, pdl = false;
  int registers = 0;                   // registers per thread, from ptxas; 0 if unknown
  std::optional<CodeShape> code = {};  // of the kernel's machine code
  std::vector<LaunchArg> args;
};
struct Fill {
  std::string step, buffer;
  double value = 0;
  DType dtype = DType::f32;  // the buffer's dtype
};
struct ScratchBuffer {
  std::string name;
  int64_t bytes = 0;
  bool zero = false, weights_life = false;
};
struct ResolvedPlan {
  std::vector<ScratchBuffer> scratch;
  std::vector<std::variant<Launch, Fill>> prepare, steps;
};

// Before compilation: lists the modules that the plan needs for one shape. If the plan has an
// error, returns a user error. If a condition in `requires` is false, returns an `unsupported`
// error. Values of defines are decimal integers, or floats such as "1e-05f".
Result<std::vector<ModuleBuild>> module_builds(const KernelProgram& program, const Task& task,
                                               const ShapeCase& shape, const DeviceFacts& device);
// After compilation: evaluates the launches. The element facts[i] describes the module that
// module_builds() returned at index i.
Result<ResolvedPlan> resolve_plan(const KernelProgram& program, const Task& task,
                                  const ShapeCase& shape, const DeviceFacts& device,
                                  const std::vector<ModuleFacts>& facts);
// Returns the architecture to compile for ("sm_90a"), or an error that says why the plan does not
// run on the device.
Result<std::string> choose_arch(const Plan& plan, const DeviceFacts& device);

}  // namespace cutegen
