#!/bin/sh
# gate.sh BASE TARGET: records app.rb in both directories, several times, and ends with status 3 if
# the one in TARGET, or a method of it, is slower by more than PERCENT, beyond the noise.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: gate.sh BASE TARGET, two directories with an app.rb" >&2
  exit 2
fi
base=$(cd "$1" && pwd) target=$(cd "$2" && pwd)
runs=${RUNS:-30} percent=${PERCENT:-2} rperf=${RPERF:-rperf} ruby=${RUBY:-ruby}
profiles=$(mktemp -d)
trap 'rm -rf "$profiles"' EXIT

# record SIDE DIRECTORY RUN
record() {
  (cd "$2" && $rperf record -m cpu -f 5000 -o "$profiles/$1.$3.pb.gz" "$ruby" app.rb >/dev/null)
}

# In turn, and each first in every second run: what the machine does meanwhile meets both alike.
run=1
while [ "$run" -le "$runs" ]; do
  if [ $((run % 2)) -eq 1 ]; then
    record base "$base" "$run"
    record target "$target" "$run"
  else
    record target "$target" "$run"
    record base "$base" "$run"
  fi
  run=$((run + 1))
done

# The time of methods of C counts as that of the methods that call them.
$rperf diff --text --hide '^<C method>$' --fail-above "$percent" \
  --base "$profiles"/base.*.pb.gz --target "$profiles"/target.*.pb.gz
