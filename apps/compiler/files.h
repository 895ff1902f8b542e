// SPDX-License-Identifier: Apache-2.0
// Controls which files NVRTC may open. NVRTC opens includes with fopen; this program exports its
// own fopen, which permits or refuses each file and lists it.
//
// Contract: while active, it opens files only below the include folders and the work folder.
// `open_candidate` provides the candidate's own files. `opened` lists every opened header,
// `refused` every refusal. Single-threaded.
//
// Example: files().begin({dirs, work, [](int) { ... }});
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace cutegen::compiler {

// The candidate. If compiled in parts, the later ones are "candidate.cuh.1", ...
inline constexpr const char* kCandidateFile = "candidate.cuh";
std::string part_file(size_t part);

class Files {
 public:
  struct Rules {
    std::vector<std::string> include_dirs;  // resolved
    std::string work_dir;                   // resolved
    // Opens a part (from 0). Without this function, NVRTC gets the empty file in the work folder.
    std::function<FILE*(size_t)> open_candidate;
  };
  void begin(Rules rules);
  void end() { active_ = false; }
  std::vector<std::string> take_opened();
  std::vector<std::string> take_refused();

  bool active() const { return active_; }
  FILE* open(const char* path, const char* mode);

 private:
  Rules rules_;
  bool active_ = false;
  std::vector<std::string> opened_, refused_;
};

Files& files();
// The C library's fopen.
FILE* real_fopen(const char* path, const char* mode);
// An open stream over a copy of `text` that behaves like a file.
FILE* open_text(const std::string& text);

}  // namespace cutegen::compiler
