# Sourced by the other scripts: one build folder outside the clone, and protoc for Lance's build.
set -euo pipefail
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/omnigraph-toolkit/target}"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"

find_protoc() {
  if [ -n "${PROTOC:-}" ] && [ -x "${PROTOC}" ]; then return 0; fi
  if command -v protoc >/dev/null 2>&1; then
    PROTOC="$(command -v protoc)"; export PROTOC
    return 0
  fi
  return 1
}

if ! find_protoc; then
  echo "protoc is missing; installing the Debian package protobuf-compiler" >&2
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "error: protoc is not installed and this user can neither install packages nor sudo." >&2
      echo "Install the package protobuf-compiler, or set PROTOC to a protoc executable, then run this again." >&2
      exit 1
    fi
    as_root="sudo"
  fi
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends protobuf-compiler >&2
  find_protoc || { echo "error: protoc is still not found after installing protobuf-compiler" >&2; exit 1; }
fi
