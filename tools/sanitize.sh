#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs unit tests under sanitizers.
#
# Usage: tools/sanitize.sh asan|tsan [--all | MODULE...]
#        tools/sanitize.sh --part [COMMIT]
# Without modules: all parts of that sanitizer (asan: modules that parse foreign text; tsan: modules
# with threads).
# --part is for CI: the commit's hash chooses one part, so that it fits CI's time limit and every
# part runs within a few commits. Programs come from build/release, because the compile server
# cannot be built with sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PARTS=("asan base wire tensor gpu" "asan core" "asan ptx" "asan llm" "asan search"
  "asan agent" "tsan base wire" "tsan ptx" "tsan engine")

usage() {
  echo "usage: tools/sanitize.sh asan|tsan [--all | MODULE...], or --part [COMMIT]" >&2
  exit 2
}

preset=${1:-}
shift || true
modules=()
case "$preset" in
  asan | tsan)
    for part in "${PARTS[@]}"; do
      [ "${part%% *}" != "$preset" ] || read -ra more <<<"${part#* }"
      [ "${part%% *}" != "$preset" ] || modules+=("${more[@]}")
    done
    ;;
  --part)
    hash=$(git rev-parse --verify "${1:-HEAD}^{commit}")
    number=$((16#${hash:0:7} % ${#PARTS[@]}))
    read -ra modules <<<"${PARTS[number]}"
    preset=${modules[0]} modules=("${modules[@]:1}")
    set --
    echo "sanitize: part $((number + 1)) of ${#PARTS[@]}, by the commit's hash: $preset of ${modules[*]}"
    ;;
  *) usage ;;
esac
build=build/$preset
cmake --preset "$preset" >/dev/null
mapfile -t known < <(ctest --test-dir "$build" -N -L unit | sed -n 's/^ *Test *#[0-9]*: //p')
if [ "${1:-}" = --all ]; then modules=("${known[@]}"); elif [ $# -gt 0 ]; then modules=("$@"); fi
wanted=()
for module in "${modules[@]}"; do
  for name in "${known[@]}"; do [ "$name" != "$module" ] || wanted+=("$module"); done
done
[ "${#wanted[@]}" -gt 0 ] || { echo "sanitize: no tests of: ${modules[*]}"; exit 1; }
cmake --build "$build" -j "$(nproc)" --target "${wanted[@]/%/_test}"

# Old sanitizer runtimes need the kernel's usual address layout.
runner=()
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then runner=(setarch -R); fi
export CUTEGEN_BIN=$PWD/build/release/bin
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
export TSAN_OPTIONS=halt_on_error=1:suppressions=$PWD/tools/tsan_suppressions.txt:${TSAN_OPTIONS:-}
# The release runner cannot load a test driver that was built with a sanitizer. TSan does not support new threads in a
# forked child of a process that has had threads, so KilledRun runs without it.
export GTEST_FILTER='-GpuProfile.*:HardwareCounters.*:OfficialRun.*:PairedRuns.*'
[ "$preset" != tsan ] || GTEST_FILTER+=':KilledRun.*'
pattern=$(IFS='|'; echo "${wanted[*]}")
"${runner[@]}" ctest --test-dir "$build" --output-on-failure --no-label-summary --timeout 300 \
  -j "$(nproc)" -L unit -R "^($pattern)\$"
