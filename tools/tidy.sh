#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on the C++ files that changed.
#
# Usage: tools/tidy.sh [--build DIR] [--all]     default: build/tidy, configured here and not built
# DIR must compile each file on its own and without precompiled headers, so that clang-tidy finds a
# file that does not include what it uses.
# Changed means since $CUTEGEN_BASE, else since the branch left origin's default branch, else in the
# last commit; uncommitted changes also count. It checks at most $CUTEGEN_TIDY_FILES (24) files, the
# largest first, and says how many it omits.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/tidy
all=0
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=$2; shift 2 ;;
    --all) all=1; shift ;;
    *) echo "tidy: error: unknown argument '$1'" >&2; exit 2 ;;
  esac
done
tidy=${CLANG_TIDY:-clang-tidy-19}
command -v "$tidy" >/dev/null || { echo "tidy: error: no $tidy (run: make setup-dev)" >&2; exit 6; }
[ "$build" != build/tidy ] || cmake --preset dev -B build/tidy -DCUTEGEN_PRECOMPILE=OFF >/dev/null
[ -f "$build/compile_commands.json" ] || { echo "tidy: error: no $build (run: cmake --preset dev)" >&2; exit 6; }

changed_since() {
  local base=${CUTEGEN_BASE:-}
  [ -n "$base" ] || base=$(git merge-base HEAD origin/HEAD 2>/dev/null || true)
  if [ -z "$base" ] || [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  fi
  git diff --name-only --diff-filter=d "$base" --
}

if [ "$all" = 1 ]; then names=$(git ls-files); else names=$(changed_since); fi
mapfile -t files < <(grep -E '^(src|apps)/.*\.cpp$' <<<"$names" | grep -v '_test\.cpp$' |
  while read -r file; do
    [ ! -f "$file" ] || ! grep -qF "/$file\"" "$build/compile_commands.json" ||
      printf '%s %s\n' "$(wc -l <"$file")" "$file"
  done | sort -rn | cut -d' ' -f2-)
limit=${CUTEGEN_TIDY_FILES:-24}
[ "$all" = 0 ] || limit=${#files[@]}
if [ "${#files[@]}" = 0 ]; then
  echo "tidy: no changed sources"
  exit 0
fi
if [ "${#files[@]}" -gt "$limit" ]; then
  echo "tidy: $limit of ${#files[@]} changed files (make check with CUTEGEN_TIDY_FILES=N for more)"
  files=("${files[@]:0:limit}")
fi
status=0
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 "$tidy" -p "$build" --quiet 2>/dev/null || status=1
echo "tidy: ${#files[@]} files, $([ "$status" = 0 ] && echo clean || echo 'problems above')"
exit "$status"
