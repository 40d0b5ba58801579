# try_commands.sh RUBY GEM: installs GEM into a directory of its own, and runs the commands of rperf there. It ends
# with the first command that fails. Started by bin/package, by try.sh, and by the release workflow on systems of each
# platform.
set -euo pipefail
RUBY=$1 GEM=$2
WORK=$(mktemp -d)
program=''
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || :; rm -rf "$WORK"' EXIT
export GEM_HOME="$WORK/gems" GEM_PATH="$WORK/gems"
# GEM may be told from the directory that this leaves.
cp "$GEM" "$WORK/rperf.gem"
cd "$WORK"
# The only command that the gem has, whatever it is called.
profiler() { "$GEM_HOME"/bin/* "$@"; }
has_work() { grep -m1 'Object#fib' "$1" || { echo "nothing of the work in $1:" && cat "$1" && return 1; } >&2; }
cat >work.rb <<'WORK'
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(ARGV[0])
fib(18) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
WORK
began=${EPOCHREALTIME/[.,]/}
"$RUBY" -rrubygems/gem_runner -e 'Gem::GemRunner.new.run(ARGV)' install --local --no-document rperf.gem
echo "installed in $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms, as user $UID"
PATH="${RUBY%/*}:$PATH"
profiler --version
profiler stat "$RUBY" work.rb 0.5
profiler record -o try.data "$RUBY" work.rb 0.5
profiler report --top try.data >report
has_work report
profiler trace -p "$RUBY" work.rb 0.01 >trace
has_work trace
RPERF_LISTEN=1 RUBYOPT=-rrperf "$RUBY" work.rb 60 &
program=$!
until profiler ps >ps && grep -q "^$program " ps; do
  kill -0 "$program"
  sleep 0.2
done
profiler stacks "$program" >stacks
has_work stacks
profiler attach -d 1 -p "$program" >attached
has_work attached
profiler top --once "$program" >top
has_work top
echo "all commands work"
