# `bin/test --arm64` and `bin/test --musl`: the specs on Rubies for another system than this one.
# Sourced after checks.sh, ruby_versions.sh and cross_ruby.sh.

CROSS_RUBIES="3.4 4.0"

# test_on SYSTEM [SPEC_FILE...]: those files, or all specs, on each Ruby.
test_on() {
  local system=$1 refused version
  shift
  # shellcheck source=/dev/null
  . "$ROOT/bin/support/$system.sh"
  refused=$("${system}_refused")
  [ -z "$refused" ] || { echo "bin/test --$system $refused" >&2 && exit 1; }
  check_rust
  load_stamp
  check_needs " ruby gems extension "
  setup ruby gems
  "setup_$system"
  for version in $CROSS_RUBIES; do
    find_native_ruby "$version"
    if [ -z "$NATIVE_RUBY" ]; then
      check "Ruby $version for $system" without_native_ruby "$version"
      continue
    fi
    cross_ruby "$system" "$version" "$NATIVE_RUBY"
    check "build for $system, Ruby $version" build_for "$system" "$version"
    check "RSpec on $system, Ruby $version" specs_on "$system" "$version" "$@"
  done
}

# without_native_ruby VERSION: what hasn't run hasn't passed.
without_native_ruby() {
  echo "it is built with a Ruby $1 for this system, and there is none: $WITHOUT"
  return 1
}

# build_for SYSTEM VERSION: a copy of this checkout with the extension and the command. Needs CROSS_RUBY, which
# rb-sys asks about itself.
build_for() {
  local copy="$1-$2" target="${CARGO_TARGET_DIR:-$ROOT/target}/$1" profile=further started
  make_copy "$copy" || return 1
  copy=$(copy_for "$copy")
  mkdir -p "$copy/lib/rperf/bin" "$copy/tmp"
  # Of an earlier run: nothing runs with it if this build fails.
  rm -f "$copy/lib/rperf/rperf.so"
  started=$(mktemp "$ROOT/tmp/started.XXXXXX")
  RUBY=$CROSS_RUBY "cargo_for_$1" zigbuild --quiet --profile "$profile" --target-dir "$target" \
    --package rperf-command --package rperf --features rperf/measure || { rm -f "$started" && return 1; }
  target="$target/$("${1}_target")"
  put rperf-command "$copy/lib/rperf/bin/rperf-command"
  put "$CARGO_OUTPUT" "$copy/lib/rperf/rperf.so"
  rm -f "$started"
}

# specs_on SYSTEM VERSION [SPEC_FILE...]: in the copy, whose set-up takes what was built for it.
specs_on() {
  local system=$1 copy
  copy=$(copy_for "$1-$2")
  shift 2
  [ -f "$copy/lib/rperf/rperf.so" ] || { echo "nothing was built to run them with" && return 1; }
  RPERF_RUBY=$CROSS_RUBY "in_$system" bash "$copy/bin/support/cross_copy.sh" ruby bin/support/specs.rb "$@"
}
