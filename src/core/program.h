// SPDX-License-Identifier: Apache-2.0
// KernelProgram: device sources and a launch plan. This file also has the types of compiled modules
// and of plans with all expressions evaluated.
//
// Contract: program_id hashes the sources (with normalised line ends) and the canonical plan.
// build_id hashes all inputs of one compilation: source, defines, included files, compiler, flags
// and arch. resolve_plan evaluates the plan for one shape. It needs the compiled modules' facts for
// the constants k(name) and for checks of the arguments.
//
// Example: CG_TRY(auto p, load_program("out/")); fmt::print("{}", program_id(p));
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/context.h"
#include "core/plan.h"

namespace cutegen {

struct KernelProgram {
  std::map<std::string, std::string> sources;  // text of each file, by file name
  Plan plan;
};

Result<KernelProgram> load_program(const std::filesystem::path& dir);
Result<void> save_program(const KernelProgram& program, const std::filesystem::path& dir);
std::string program_id(const KernelProgram& program);
void fields(Fields& v, KernelProgram& program);

// One module to compile: a source file with values for its defines.
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
  std::string how;  // how it was compiled: "forked", "plain", "warm" (see toolchain/toolchain.h)
};

struct ParamFacts {
  size_t size = 0, align = 0;
};
struct EntryFacts {
  std::string name;
  std::vector<ParamFacts> params;
  std::array<int, 3> max_block{0, 0, 0};  // .maxntid or .reqntid; 0 if absent
  int64_t static_shared_bytes = 0;
};
// Properties of a loaded module, as the device reports them.
struct ModuleFacts {
  std::vector<EntryFacts> entries;
  std::map<std::string, int64_t> constants;  // k(name)
  // words of each cutegen::tma_spec constant
  std::map<std::string, std::vector<uint32_t>> tma_specs;
};

struct DeviceFacts {
  std::string name;  // "sim:h200"
  std::string arch;  // "sm_90a"
  int64_t sms = 0;
  int64_t max_threads_per_block = 1024, max_shared_bytes = 0, max_grid_x = 2147483647,
          max_grid_yz = 65535;
  // Limits for occupancy(kernel), which counts only threads, blocks and shared memory, not
  // registers.
  int64_t max_threads_per_sm = 2048, max_blocks_per_sm = 32, shared_bytes_per_sm = 0;
};

struct LaunchArg {
  // tensor name of the task, or scratch name; empty if the argument is a scalar
  std::string buffer;
  // The scalar's value, or the parameters of a tensor map of `buffer` as int64 words: rank, dims,
  // strides in elements, the words of the tma_spec, and in im2col mode the lower, upper and steps
  // lists.
  std::vector<std::byte> bytes;
};
struct Launch {
  std::string step, kernel;
  size_t module = 0;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared_bytes = 0;
  bool cooperative = false, pdl = false;
  int registers = 0;  // per thread, as ptxas reports; 0 if unknown
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

// Stage 1, before compilation: lists the modules that the plan needs for one shape. An error in the
// plan is a user error; a false condition in `requires` is an `unsupported` error. Define values
// are decimal integers, or floats such as "1e-05f".
Result<std::vector<ModuleBuild>> module_builds(const KernelProgram& program, const Task& task,
                                               const ShapeCase& shape, const DeviceFacts& device);
// Stage 2, after compilation: evaluates the launches. facts[i] describes the module that
// module_builds() returned at index i.
Result<ResolvedPlan> resolve_plan(const KernelProgram& program, const Task& task,
                                  const ShapeCase& shape, const DeviceFacts& device,
                                  const std::vector<ModuleFacts>& facts);
// Returns the architecture to compile for ("sm_90a"). The error says why the plan does not run on
// the device.
Result<std::string> choose_arch(const Plan& plan, const DeviceFacts& device);

}  // namespace cutegen
