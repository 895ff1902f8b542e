#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what cutegen needs on Debian 12: apt packages, and a Python environment in .venv.
#
# Usage: tools/setup.sh [--dev | --docs | --system | --python]
# --system installs only the apt packages, --python only .venv: a build needs only the first.
# --dev also installs the tools for checks, fuzzing and the documentation (clang 19, mypy, Sphinx).
# --docs installs only the tools that build the documentation: no compiler, no torch.
# Idempotent: it keeps everything that is already there, so a second run takes a fraction of a
# second. Outside the tree it writes only apt packages and the usual caches of apt and pip.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly BUILD_PACKAGES=(
  ca-certificates g++ make cmake ninja-build ccache pkg-config git python3 python3-venv
  nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libfmt-dev libexpected-dev libssl-dev
  libcurl4-openssl-dev bubblewrap
  libvalijson-dev libseccomp-dev libsqlite3-dev libsqlitecpp-dev libgtest-dev libgmock-dev
  librapidcheck-dev libkainjow-mustache-dev
)
readonly DEV_PACKAGES=(clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev libbenchmark-dev)
readonly REQUIREMENTS=tools/requirements.txt
readonly DEV_REQUIREMENTS=tools/requirements-dev.txt
readonly DOCS_PACKAGES=(make git python3 python3-venv)
readonly DOCS_REQUIREMENTS=tools/requirements-docs.txt
readonly VENV=.venv

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 6
}

# Sets `elevate` to the prefix that runs a command as root.
find_root() {
  elevate=()
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null ||
    die "apt packages are missing, and this is neither root nor a machine with sudo" \
      "as root, run: apt-get install --no-install-recommends ${missing[*]}"
  elevate=(sudo)
  [ -t 0 ] || elevate=(sudo -n) # nobody can type a password
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  missing=()
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: taking it that the equivalents of these are installed: $*"
    return
  fi
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  if [ "${#missing[@]}" = 0 ]; then
    say "apt packages: all $# are there"
    return
  fi
  say "apt packages: installing ${missing[*]}"
  find_root
  [ "${#elevate[@]}" = 0 ] || "${elevate[@]}" true || die "sudo refused" "run as root: make setup"
  local log status=0 apt=("${elevate[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -q -y -o DPkg::Lock::Timeout=300)
  log=$(mktemp)
  { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" != 0 ]; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    die "apt-get failed (its last lines are above)" \
      "Is the network up? Are Debian 12's sources configured (/etc/apt/sources.list*)?" \
      "Then run: make setup"
  fi
  rm -f "$log"
}

# Uses Debian's interpreter, because another python3 on the PATH may be too old, too new or without
# venv.
find_python() {
  local python
  for python in "${CUTEGEN_SETUP_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] || continue
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      printf '%s' "$python"
      return
    fi
  done
  die "no python3 >= 3.10 with venv" "install python3 and python3-venv, then run: make setup"
}

pip_install() {
  local log
  log=$(mktemp)
  say "Python packages: installing $*"
  if ! "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input -q "$@" \
    >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    die "pip could not install $*" \
      "Is the network up? Behind a mirror, set PIP_INDEX_URL. Then run: make setup"
  fi
  rm -f "$log"
}

make_venv() {
  if ! "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
    local python
    python=$(find_python)
    say "Python environment: creating $VENV with $python"
    rm -rf "$VENV"
    "$python" -m venv "$VENV" || die "cannot create $VENV" "install python3-venv, then: make setup"
  fi
}

# Installs the pins of file $1 that the environment lacks.
install_wheels() {
  local with alone
  mapfile -t with < <("$VENV/bin/python" tools/missing_wheels.py --with-deps "$1")
  [ "${#with[@]}" = 0 ] || pip_install "${with[@]}"
  mapfile -t alone < <("$VENV/bin/python" tools/missing_wheels.py --no-deps "$1")
  [ "${#alone[@]}" = 0 ] || pip_install --no-deps "${alone[@]}"
  if [ "${#with[@]}" = 0 ] && [ "${#alone[@]}" = 0 ]; then
    say "Python packages: all pins of $1 are in $VENV"
    return
  fi
  local left
  left=$("$VENV/bin/python" tools/missing_wheels.py "$1")
  [ -z "$left" ] || die "still missing after installation: $left" "remove $VENV, then: make setup"
}

requirements=("$REQUIREMENTS")
case "${1:-}" in
  "") packages=("${BUILD_PACKAGES[@]}") ;;
  --dev)
    packages=("${BUILD_PACKAGES[@]}" "${DEV_PACKAGES[@]}")
    requirements+=("$DEV_REQUIREMENTS" "$DOCS_REQUIREMENTS")
    ;;
  --docs)
    packages=("${DOCS_PACKAGES[@]}")
    requirements=("$DOCS_REQUIREMENTS")
    ;;
  --system) packages=("${BUILD_PACKAGES[@]}") requirements=() ;;
  --python) packages=() ;;
  *) die "unknown argument '$1'" "usage: tools/setup.sh [--dev | --docs | --system | --python]" ;;
esac
[ "${#packages[@]}" = 0 ] || install_packages "${packages[@]}"
[ "${#requirements[@]}" = 0 ] || make_venv
for file in "${requirements[@]}"; do install_wheels "$file"; done
say "done"
