# Sourced by the other scripts: one build folder outside the clone, and protoc for Lance's build.
set -euo pipefail
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/omnigraph-toolkit/target}"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"

# Lance needs protoc and the protobuf types that are packaged apart from it.
protoc_works() {
  local folder status=0
  folder="$(mktemp -d)"
  printf 'syntax = "proto3";\nimport "google/protobuf/empty.proto";\n' > "$folder/probe.proto"
  "$1" --proto_path="$folder" --descriptor_set_out="$folder/probe.bin" "$folder/probe.proto" >/dev/null 2>&1 || status=1
  rm -rf "$folder"
  return "$status"
}

find_protoc() {
  local found="${PROTOC:-}"
  if [ -z "$found" ]; then found="$(command -v protoc)" || return 1; fi
  protoc_works "$found" || return 1
  export PROTOC="$found"
}

if ! find_protoc; then
  if [ -n "${PROTOC:-}" ]; then
    echo "error: PROTOC is $PROTOC, which cannot compile a file that imports google/protobuf/empty.proto." >&2
    echo "Unset it, or name a protoc that finds the protobuf types, then run this again." >&2
    exit 1
  fi
  packages="protobuf-compiler libprotobuf-dev"
  echo "protoc or its types are missing; installing the Debian packages $packages" >&2
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "error: this user can neither install packages nor sudo." >&2
      echo "Install the packages $packages, or set PROTOC to a protoc executable, then run this again." >&2
      exit 1
    fi
    as_root="sudo"
  fi
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2
  find_protoc || { echo "error: protoc still does not work after installing $packages" >&2; exit 1; }
fi
