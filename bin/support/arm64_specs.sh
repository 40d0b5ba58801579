# `bin/test --arm64`: the specs on Rubies for arm64. Sourced after arm64.sh, checks.sh and ruby_versions.sh.

ARM64_RUBIES="3.4 4.0"
# Seconds that a process of specs may take, where RPERF_TEST_LIMIT doesn't say: the emulator is slow.
ARM64_LIMIT=7200

# test_on_arm64 [SPEC_FILE...]: those files, or all specs, on each Ruby.
test_on_arm64() {
  local refused version
  refused=$(arm64_refused)
  [ -z "$refused" ] || { echo "bin/test --arm64 $refused" >&2 && exit 1; }
  check_rust
  load_stamp
  check_needs " ruby gems extension "
  setup ruby gems
  setup_arm64
  for version in $ARM64_RUBIES; do
    find_native_ruby "$version"
    if [ -z "$NATIVE_RUBY" ]; then
      printf '\nnot tested on Ruby %s for arm64, which a Ruby %s for this system would build: %s\n' \
        "$version" "$version" "$WITHOUT"
      continue
    fi
    arm64_ruby "$version" "$NATIVE_RUBY"
    check "build for arm64, Ruby $version" build_for_arm64 "$version"
    check "RSpec on arm64, Ruby $version" specs_on_arm64 "$version" "$@"
  done
}

# find_native_ruby VERSION: sets NATIVE_RUBY, or leaves it empty, and WITHOUT says why.
find_native_ruby() {
  NATIVE_RUBY=$RUBY
  ! is_version "$RUBY" "$1" || return 0
  find_other_ruby "$1"
  NATIVE_RUBY=$OTHER_RUBY
}

# build_for_arm64 VERSION: a copy of this checkout with the extension and the command for arm64. Needs ARM64_RUBY,
# which rb-sys asks about itself.
build_for_arm64() {
  local copy="arm64-$1" target="${CARGO_TARGET_DIR:-$ROOT/target}/arm64" profile=further started
  make_copy "$copy" || return 1
  copy=$(copy_for "$copy")
  mkdir -p "$copy/lib/rperf/bin" "$copy/tmp"
  started=$(mktemp "$ROOT/tmp/started.XXXXXX")
  RUBY=$ARM64_RUBY in_arm64 cargo zigbuild --quiet --profile "$profile" --target "$ARM64_TARGET.$GLIBC" \
    --target-dir "$target" --package rperf-command --package rperf --features rperf/measure || return 1
  target="$target/$ARM64_TARGET"
  put rperf-command "$copy/lib/rperf/bin/rperf-command"
  put "$CARGO_OUTPUT" "$copy/lib/rperf/rperf.so"
  rm -f "$started"
}

# specs_on_arm64 VERSION [SPEC_FILE...]: in the copy, whose set-up takes what was built for it.
specs_on_arm64() {
  local copy
  copy=$(copy_for "arm64-$1")
  shift
  RPERF_RUBY=$ARM64_RUBY RPERF_EMULATED=1 RPERF_TEST_LIMIT="${RPERF_TEST_LIMIT:-$ARM64_LIMIT}" \
    in_arm64 bash "$copy/bin/support/arm64_copy.sh" ruby bin/support/specs.rb "$@"
}
