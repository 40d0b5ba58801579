#!/usr/bin/env bash
# try.sh ROOT RUBY GEM: installs GEM in the system below ROOT, whose Ruby is RUBY there, and runs the
# commands of rperf in it, as its only user. Nothing outside of ROOT is seen but /dev; no root is needed.
# It ends with the first command that fails.
set -euo pipefail
ROOT=$1 RUBY=$2 GEM=$3

mkdir -p "$ROOT/tmp/try" "$ROOT/proc" "$ROOT/dev"
rm -rf "$ROOT/tmp/try/gems"
cp "$GEM" "$ROOT/tmp/try/rperf.gem"
cat >"$ROOT/tmp/try/run" <<'RUN'
set -euo pipefail
cd /tmp/try
for tool in cc gcc cargo rustc make clang; do
  ! command -v "$tool" >/dev/null || { echo "this system has $tool" && exit 1; }
done
has_work() { grep -m1 'Object#fib' "$1"; }
cat >work.rb <<'WORK'
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(ARGV[0])
fib(18) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
WORK
began=$(date +%s%N)
"$RUBY" -rrubygems/gem_runner -e 'Gem::GemRunner.new.run(ARGV)' install --local --no-document rperf.gem
echo "installed in $((($(date +%s%N) - began) / 1000000)) ms"
PATH="$GEM_HOME/bin:$PATH"
rperf --version
rperf stat "$RUBY" work.rb 0.5
rperf record -o try.data "$RUBY" work.rb 0.5
rperf report --top try.data >report
has_work report
rperf trace -p "$RUBY" work.rb 0.01 >trace
has_work trace
RPERF_LISTEN=1 RUBYOPT=-rrperf "$RUBY" work.rb 60 &
program=$!
trap 'kill $program' EXIT
until rperf ps >ps && grep -q "^$program " ps; do
  kill -0 "$program"
  sleep 0.2
done
rperf stacks "$program" >stacks
has_work stacks
rperf attach -d 1 -p "$program" >attached
has_work attached
rperf top --once "$program" >top
has_work top
echo "all commands work"
RUN
# shellcheck disable=SC2016
exec unshare --user --map-root-user --mount --pid --fork --kill-child bash -c '
  mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
    exec chroot "$1" /usr/bin/env -i PATH="$(dirname "$2"):/usr/bin:/bin" HOME=/tmp/try GEM_HOME=/tmp/try/gems \
      GEM_PATH=/tmp/try/gems RUBY="$2" /bin/bash /tmp/try/run' try "$ROOT" "$RUBY"
