#!/usr/bin/env bash
# try.sh ROOT RUBY GEM: installs GEM in the system below ROOT, whose Ruby is RUBY there, and runs the
# commands of rperf in it, as a user that isn't root. Nothing outside of ROOT is seen but /dev; no root is
# needed. It ends with the first command that fails.
set -euo pipefail
ROOT=$1 RUBY=$2 GEM=$3

for tool in cc gcc cargo rustc make clang; do
  for directory in usr/bin bin "${RUBY%/*}"; do
    [ ! -e "$ROOT/$directory/$tool" ] || { echo "this system has $tool" && exit 1; }
  done
done
mkdir -p "$ROOT/tmp/try" "$ROOT/proc" "$ROOT/dev"
cp "$GEM" "$ROOT/tmp/try/rperf.gem"
cp "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/try_commands.sh" "$ROOT/tmp/try/"
# The first user mounts, and is root for that; the second runs the commands.
# shellcheck disable=SC2016
exec unshare --user --map-root-user --mount --pid --fork --kill-child bash -c '
  mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
    exec unshare --user --map-user=1000 --map-group=1000 --root="$1" --wd=/tmp/try \
      /usr/bin/env -i PATH="$(dirname "$2"):/usr/bin:/bin" HOME=/tmp/try \
      /bin/bash /tmp/try/try_commands.sh "$2" rperf.gem' try "$ROOT" "$RUBY"
