#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs unit tests under sanitizers.
#
# Usage: tools/sanitize.sh asan|tsan [--all | MODULE...]
# Without modules: the sets that CI runs (asan: whatever parses foreign text; tsan: threads).
# Programs are taken from build/release: the compile server is never built with sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-}
shift || true
case "$preset" in
  asan) modules=(base tensor wire core ptx gpu search llm agent) ;;
  tsan) modules=(base wire ptx engine) ;;
  *) echo "usage: tools/sanitize.sh asan|tsan [--all | MODULE...]" >&2; exit 2 ;;
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
# A driver for tests that is built with a sanitizer cannot be loaded by the release runner.
export GTEST_FILTER='-GpuProfile.*:HardwareCounters.*:OfficialRun.*:OfficialRuns.*'
pattern=$(IFS='|'; echo "${wanted[*]}")
"${runner[@]}" ctest --test-dir "$build" --output-on-failure --no-label-summary --timeout 300 \
  -j "$(nproc)" -L unit -R "^($pattern)\$"
