# Checkers for bin/test: docs/internals/checkers.md. Each first has to find a fault that is planted
# (checkers/planted.rs), and says so where what it needs isn't there. Run in $ROOT.

CHECKERS="$ROOT/bin/support/checkers"

not_checked() { echo "not checked: $*"; }

host() { rustc -vV | awk '/^host:/ { print $2 }'; }

# packages NAME...: as options of cargo.
packages() { printf -- '--package %s ' "$@"; }

# finds_planted FAULT REPORT CMD...: the command fails with this fault of planted.rs and prints a line that matches
# REPORT, an extended regular expression; without a fault it doesn't fail.
finds_planted() {
  local fault=$1 report=$2 log="$ROOT/tmp/planted.log"
  shift 2
  mkdir -p "$ROOT/tmp"
  "$@" 0 >"$log" 2>&1 || { cat "$log" && echo "it fails without a fault" && return 1; }
  ! "$@" "$fault" >"$log" 2>&1 || { cat "$log" && echo "it doesn't find fault $fault of planted.rs" && return 1; }
  grep -Eq -- "$report" "$log" ||
    { cat "$log" && echo "it fails with fault $fault of planted.rs, and reports no '$report'" && return 1; }
  echo "finds fault $fault of planted.rs"
}

# Memory that is freed or that nobody has written, in the tests of what has unsafe code, and of the port.
check_with_valgrind() {
  have valgrind || { not_checked "no valgrind" && return 0; }
  local valgrind="valgrind --quiet --error-exitcode=99 --fair-sched=yes --num-callers=20"
  valgrind="$valgrind --suppressions=$CHECKERS/valgrind.supp"
  rustc --edition 2024 -g -o "$ROOT/tmp/planted" "$CHECKERS/planted.rs" || return 1
  # shellcheck disable=SC2086
  finds_planted 1 'Invalid read of size 1' $valgrind "$ROOT/tmp/planted" || return 1
  # shellcheck disable=SC2086
  finds_planted 3 'jump or move depends on uninitialised value' $valgrind "$ROOT/tmp/planted" || return 1
  export "CARGO_TARGET_$(host | tr 'a-z-' 'A-Z_')_RUNNER=$valgrind"
  # It is slow: few cases for each property.
  export PROPTEST_CASES=8 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
  # shellcheck disable=SC2046
  cargo test --quiet $(packages rperf-vm rperf-sampling rperf-tracing rperf-port) --lib -- \
    --test-threads=1 $(awk '!/^#/ && NF { print "--skip", $1 }' "$CHECKERS/valgrind_skips.txt")
}

# Undefined behaviour, in parts of rperf-vm (checkers/miri_modules.txt).
check_with_miri() {
  cargo +nightly miri --version >/dev/null 2>&1 ||
    { not_checked "no miri; 'rustup toolchain install nightly --component miri --component rust-src' brings it" && return 0; }
  local sysroot
  # Addresses are kept as numbers, as the VM's are; and an abandoned session is never freed.
  export CARGO_TARGET_DIR="$ROOT/target/miri"
  export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks"
  export PROPTEST_CASES=2 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
  mkdir -p "$CARGO_TARGET_DIR"
  sysroot=$(cargo +nightly miri setup --print-sysroot 2>/dev/null) || return 1
  planted_in_miri() { rustup run nightly miri --sysroot "$sysroot" --edition 2024 "$CHECKERS/planted.rs" -- "$1"; }
  finds_planted 1 'Undefined Behavior: .*has been freed' planted_in_miri &&
    finds_planted 3 'Undefined Behavior: .*uninitialized' planted_in_miri || return 1
  # shellcheck disable=SC2046
  cargo +nightly miri test --quiet --package rperf-vm --lib -- $(grep -v '^#' "$CHECKERS/miri_modules.txt")
}

# The extension, built with AddressSanitizer, in a Ruby that has the runtime of it loaded before: 1,000 sessions, after
# which LeakSanitizer says what has been lost.
check_with_sanitizer() {
  SANITIZER=$(gcc -print-file-name=libasan.so 2>/dev/null) && [ -f "$SANITIZER" ] ||
    { not_checked "no libasan of gcc" && return 0; }
  SANITIZED=$(copy_for sanitized)
  local target="$ROOT/target/sanitized" flags="-Zsanitizer=address -Cforce-frame-pointers=yes"
  make_copy sanitized || return 1
  # A compiler that is stable has it, too, and only a target that is named leaves build scripts without it.
  # shellcheck disable=SC2086
  RUSTC_BOOTSTRAP=1 rustc --edition 2024 -g --crate-type cdylib -A dead_code $flags -o "$SANITIZED/planted.so" \
    "$CHECKERS/planted.rs" || return 1
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" cargo build --quiet --profile further --package rperf --features measure \
    --target "$(host)" --target-dir "$target" || return 1
  cp "$target/$(host)/further/$CARGO_OUTPUT" "$SANITIZED/${EXTENSION#"$ROOT"/}" || return 1
  grep -q __asan_report "$SANITIZED/${EXTENSION#"$ROOT"/}" || { echo "the extension is built without it" && return 1; }
  finds_planted 1 'ERROR: AddressSanitizer: heap-use-after-free' call_planted &&
    finds_planted 2 'ERROR: LeakSanitizer: detected memory leaks' call_planted &&
    [ -n "$(lost planted.rs)" ] || return 1
  loses_nothing
}

# sanitized CMD...: with the sanitizer. Its reports go into files.
sanitized() {
  local options="detect_leaks=1:exitcode=99:log_path=$SANITIZED/tmp/report:suppressions=$CHECKERS/asan.supp"
  # The handlers of faults are rperf's and Ruby's. Ruby looks for its stack: there must be no second one.
  options="$options:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:use_sigaltstack=0"
  options="$options:detect_stack_use_after_return=0"
  rm -f "$SANITIZED"/tmp/report.* && mkdir -p "$SANITIZED/tmp"
  (cd "$SANITIZED" && ASAN_OPTIONS="$options" LD_PRELOAD="$SANITIZER" "$@")
}

call_planted() {
  local call='Fiddle::Function.new(Fiddle.dlopen(ARGV[0])["plant"], [Fiddle::TYPE_INT], Fiddle::TYPE_VOID).call(ARGV[1].to_i)'
  sanitized env RUBY_FREE_AT_EXIT=1 "$RUBY" -W0 -r fiddle -e "$call" "$SANITIZED/planted.so" "$1"
  local status=$?
  find "$SANITIZED/tmp" -name 'report.*' -exec cat {} +
  return "$status"
}

# What Ruby itself keeps to its end doesn't count.
loses_nothing() {
  sanitized env RUBY_FREE_AT_EXIT=1 "$RUBY" -W0 -Ilib bin/support/checkers/sessions.rb 1000 ||
    [ $? -eq 99 ] || return 1
  nothing_reported || return 1
  [ -z "$(lost '(crates|ext)/rperf')" ] || { lost '(crates|ext)/rperf' && return 1; }
  echo "1,000 sessions lose nothing"
}

# lost WHOSE: of the reports, what was lost again and again by code in files of this expression.
lost() { find "$SANITIZED/tmp" -name 'report.*' -exec awk -v whose="$1" -f "$CHECKERS/leaks.awk" {} +; }

nothing_reported() {
  local reports
  reports=$(find "$SANITIZED/tmp" -name 'report.*' -exec grep -l 'ERROR: AddressSanitizer' {} +)
  [ -z "$reports" ] || { xargs head -n 40 <<<"$reports" && return 1; }
}

# Licences, sources and known faults of what rperf depends on: deny.toml.
check_with_cargo_deny() {
  have cargo-deny || { not_checked "no cargo-deny; 'cargo install cargo-deny --locked' brings it" && return 0; }
  local planted="$ROOT/tmp/deny.toml" database="$ROOT/tmp/advisories" address=https://advisories.example/planted
  plant_advisory "$database" || return 1
  # Git goes to the planted database for this address. Cargo may have no configuration for git that is in the way.
  export GIT_CONFIG_COUNT=1 "GIT_CONFIG_KEY_0=url.file://$database.insteadOf" GIT_CONFIG_VALUE_0="$address"
  denies licenses 's/^allow = \[.*/allow = ["MIT"]/' && denies bans 's/crate = "openssl-sys"/crate = "libc"/' &&
    denies sources 's/^unknown-registry = .*/&\nallow-registry = []/' &&
    denies advisories "s|^\[advisories\]|&\ndb-path = \"$database.fetched\"\ndb-urls = [\"$address\"]|" || return 1
  cargo deny check bans licenses sources || return 1
  # The database comes from the network, and what is new in it is no fault of a change.
  [ "$LONG" = yes ] || return 0
  cargo deny --log-level off fetch db >/dev/null 2>&1 ||
    { not_checked "known faults: their database can't be fetched" && return 0; }
  cargo deny check advisories
}

# denies WHAT CHANGE: cargo-deny finds something where deny.toml is changed so that there is something.
denies() {
  local planted="$ROOT/tmp/deny.toml"
  sed "$2" deny.toml >"$planted"
  ! cmp -s deny.toml "$planted" || { echo "nothing was planted for $1" && return 1; }
  ! cargo deny --config "$planted" check "$1" >"$planted.log" 2>&1 || { echo "it finds nothing planted in $1" && return 1; }
  grep -q '^error\[' "$planted.log" || { cat "$planted.log" && return 1; }
  echo "finds what is planted in $1"
}

# plant_advisory DIRECTORY: a database that knows a fault of libc.
plant_advisory() {
  rm -rf "$1" "$1.fetched" && mkdir -p "$1/crates/libc" || return 1
  printf '%s\n' '```toml' '[advisory]' 'id = "RUSTSEC-2020-0001"' 'package = "libc"' 'date = "2020-01-01"' \
    '[versions]' 'patched = []' '```' '# Planted' 'Not true.' >"$1/crates/libc/RUSTSEC-2020-0001.md"
  git -C "$1" init --quiet --initial-branch main && git -C "$1" add . &&
    git -C "$1" -c user.name=planted -c user.email=planted@example.org commit --quiet -m planted
}
