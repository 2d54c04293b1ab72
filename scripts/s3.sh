# Sourced by scripts/test after env.sh: an S3 server on loopback for the tests, and its end with the script.
# The Python package moto brings the server; it goes into a folder beside the build folder.
# OMNIGRAPH_REQUIRE_S3=1 makes its absence an error; otherwise the S3 tests are skipped.
moto_version="5.2.5"
s3_pid=""
s3_log=""

stop_s3() {
  if [ -n "$s3_pid" ]; then
    kill "$s3_pid" 2>/dev/null || true
    wait "$s3_pid" 2>/dev/null || true
    s3_pid=""
  fi
  if [ -n "$s3_log" ]; then rm -f "$s3_log"; fi
}
trap stop_s3 EXIT

# On Debian python3 comes without venv, so that a folder may be half made when it fails.
make_venv() {
  rm -rf "$1"
  python3 -m venv "$1" >/dev/null 2>&1 && return 0
  rm -rf "$1"
  local as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || return 1
    as_root="sudo"
  fi
  command -v apt-get >/dev/null 2>&1 || return 1
  echo "python3 or its venv module is missing; installing the Debian package python3-venv" >&2
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >&2 || return 1
  python3 -m venv "$1" >&2
}

# Named by version and finished by a rename: what an interrupted install leaves is never used.
install_moto() {
  local folder="$1" making="$1.making"
  [ -x "$folder/bin/python" ] && "$folder/bin/python" -c 'import moto.server' >/dev/null 2>&1 && return 0
  echo "installing the Python package moto $moto_version into $folder" >&2
  rm -rf "$folder"
  make_venv "$making" || return 1
  "$making/bin/python" -m pip install --quiet --disable-pip-version-check "moto[server]==$moto_version" >&2 || return 1
  mv "$making" "$folder"
}

# The server ends itself when the script that started it is gone, however that ended.
serve_s3='
import os, sys, threading, time
parent = os.getppid()
def watch():
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
from moto.server import main
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
'

start_s3() {
  local folder port
  folder="$(dirname "$CARGO_TARGET_DIR")/moto-$moto_version"
  mkdir -p "$(dirname "$folder")" || return 1
  install_moto "$folder" || return 1
  port="$("$folder/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')" || return 1
  s3_log="$(mktemp)" || return 1
  "$folder/bin/python" -c "$serve_s3" "$port" >"$s3_log" 2>&1 </dev/null &
  s3_pid=$!
  local tries=0
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$s3_pid" 2>/dev/null; then
      echo "the S3 server did not start:" >&2
      tail -n 5 "$s3_log" >&2
      stop_s3
      return 1
    fi
    sleep 0.2
  done
  # Nothing of the caller's own account may reach the tests.
  local name
  for name in "${!AWS_@}"; do unset "$name"; done
  export AWS_ENDPOINT="http://127.0.0.1:$port" AWS_ENDPOINT_URL="http://127.0.0.1:$port"
  export AWS_ACCESS_KEY_ID="test" AWS_SECRET_ACCESS_KEY="test"
  export AWS_REGION="us-east-1" AWS_DEFAULT_REGION="us-east-1" AWS_ALLOW_HTTP="true"
  export OMNIGRAPH_TEST_S3="http://127.0.0.1:$port"
}

unset OMNIGRAPH_TEST_S3
if ! start_s3; then
  if [ -n "${OMNIGRAPH_REQUIRE_S3:-}" ]; then
    echo "error: the S3 server for the tests cannot be set up, and OMNIGRAPH_REQUIRE_S3 asks for it." >&2
    exit 1
  fi
  echo "note: the S3 tests are skipped: the Python package moto cannot be set up here." >&2
fi
