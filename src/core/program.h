// SPDX-License-Identifier: Apache-2.0
// KernelProgram: device sources and a plan, their ids, and the results of compiling and resolving.
//
// Contract: program_id hashes the canonical sources (line ends normalised) and the canonical plan.
// build_id hashes a module's source with its defines, the include closure, compiler, flags and
// arch. resolve_plan turns the plan into numbers for one shape; it needs the facts of the compiled
// modules to evaluate k(name) and to check arguments.
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
  std::map<std::string, std::string> sources;  // file name -> text
  Plan plan;
};

Result<KernelProgram> load_program(const std::filesystem::path& dir);
Result<void> save_program(const KernelProgram& program, const std::filesystem::path& dir);
std::string program_id(const KernelProgram& program);
void fields(Fields& v, KernelProgram& program);

// One module to compile: a source under one set of define values.
struct ModuleBuild {
  std::string source;  // file name
  std::vector<std::pair<std::string, std::string>> defines;
  std::string key() const;  // "kernel.cu|STAGES=4"
};

// A compiled module.
struct KernelImage {
  ModuleBuild build;
  std::string arch;  // "sm_90a"
  std::string ptx;
  std::string build_id;
  Nanoseconds compile_time{0};
  bool cached = false;
  std::string how;  // "forked", "plain", "warm" (toolchain/toolchain.h)
};

struct ParamFacts {
  size_t size = 0, align = 0;
};
struct EntryFacts {
  std::string name;
  std::vector<ParamFacts> params;
  std::array<int, 3> max_block{0, 0, 0};  // .maxntid/.reqntid; 0: not given
  int64_t static_shared_bytes = 0;
};
// What a device reports about loaded modules.
struct ModuleFacts {
  std::vector<EntryFacts> entries;
  std::map<std::string, int64_t> constants;                // k(name)
  std::map<std::string, std::vector<uint32_t>> tma_specs;  // words of cutegen::tma_spec
};

struct DeviceFacts {
  std::string name;  // "sim:h200"
  std::string arch;  // "sm_90a"
  int64_t sms = 0;
  int64_t max_threads_per_block = 1024, max_shared_bytes = 0, max_grid_x = 2147483647,
          max_grid_yz = 65535;
  // For occupancy(kernel), which is modelled from threads and shared memory only.
  int64_t max_threads_per_sm = 2048, max_blocks_per_sm = 32, shared_bytes_per_sm = 0;
};

struct LaunchArg {
  std::string buffer;            // the task's tensor name, or a scratch; empty for a value
  std::vector<std::byte> bytes;  // the value; or a tensor map of `buffer`, as int64 words: rank,
                                 // dims, strides in elements, then the tma_spec's words; in
                                 // im2col mode, lower, upper and steps of the spatial dims
};
struct Launch {
  std::string step, kernel;
  size_t module = 0;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared_bytes = 0;
  bool cooperative = false, pdl = false;
  int registers = 0;  // per thread, from the assembler; 0: unknown
  std::vector<LaunchArg> args;
};
struct Fill {
  std::string step, buffer;
  double value = 0;
  DType dtype = DType::f32;  // of the buffer
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

// Stage 1, before compilation: which modules the plan needs for one shape. Plan errors are user
// errors; if `requires` does not hold, the kind is unsupported. Define values are decimal integers,
// or floats such as "1e-05f".
Result<std::vector<ModuleBuild>> module_builds(const KernelProgram& program, const Task& task,
                                               const ShapeCase& shape, const DeviceFacts& device);
// Stage 2: launches with numbers. facts[i] belongs to builds[i].
Result<ResolvedPlan> resolve_plan(const KernelProgram& program, const Task& task,
                                  const ShapeCase& shape, const DeviceFacts& device,
                                  const std::vector<ModuleFacts>& facts);
// The architecture to compile for ("sm_90a"), or the reason why the plan does not run on the
// device.
Result<std::string> choose_arch(const Plan& plan, const DeviceFacts& device);

}  // namespace cutegen
