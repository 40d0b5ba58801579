# The parts of bin/test, and the bookkeeping around them. Run in $ROOT.

CHECKS_PASSED=0
CHECKS_FAILED=()
# What each took: its seconds, and its name.
CHECK_TIMES=()
FAILURES="$ROOT/tmp/failures"

# check NAME CMD...: runs it, notes how it went, and goes on. RPERF_FAILURES names a file for what the end of
# the run shall repeat, because the check itself may be thousands of lines further up.
check() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  mkdir -p "$FAILURES"
  rm -f "$FAILURES/$name"
  if (RPERF_FAILURES="$FAILURES/$name" "$@") </dev/null; then
    CHECKS_PASSED=$((CHECKS_PASSED + 1))
    printf -- '-- %s: ok (%d s)\n' "$name" $((SECONDS - started))
  else
    CHECKS_FAILED+=("$name")
    printf -- '-- %s: FAILED (%d s)\n' "$name" $((SECONDS - started))
  fi
  CHECK_TIMES+=("$((SECONDS - started)) $name")
}

# begin_check NAME CMD...: runs it beside what follows, until end_check, which
# shows what it has said. One at a time.
begin_check() {
  BEGUN_NAME=$1 BEGUN_LOG="$ROOT/tmp/begun.log"
  shift
  mkdir -p "$ROOT/tmp"
  rm -f "$BEGUN_LOG.seconds"
  timed "$BEGUN_LOG.seconds" "$@" </dev/null >"$BEGUN_LOG" 2>&1 &
  BEGUN_PID=$!
}

# timed FILE CMD...: FILE has its seconds afterwards.
timed() {
  local file=$1 started=$SECONDS status=0
  shift
  ("$@") || status=$?
  echo $((SECONDS - started)) >"$file"
  return "$status"
}

end_check() {
  local status=ok seconds
  wait "$BEGUN_PID" || status=FAILED
  seconds=$(cat "$BEGUN_LOG.seconds" 2>/dev/null) || seconds=0
  printf '\n== %s\n' "$BEGUN_NAME"
  cat "$BEGUN_LOG"
  if [ "$status" = ok ]; then
    CHECKS_PASSED=$((CHECKS_PASSED + 1))
  else
    CHECKS_FAILED+=("$BEGUN_NAME")
  fi
  printf -- '-- %s: %s (%d s, beside others)\n' "$BEGUN_NAME" "$status" "$seconds"
  CHECK_TIMES+=("$seconds $BEGUN_NAME, beside others")
  rm -f "$BEGUN_LOG" "$BEGUN_LOG.seconds"
}

summary() {
  local name
  printf '\n%7s  check\n' s
  printf '%s\n' ${CHECK_TIMES[@]+"${CHECK_TIMES[@]}"} | sort -rn | awk 'NF { s = $1; $1 = ""; printf "%7d %s\n", s, $0 }'
  printf '%7d  all, with the set-up\n\n' "$SECONDS"
  for name in ${CHECKS_FAILED[@]+"${CHECKS_FAILED[@]}"}; do
    printf 'failed: %s\n' "$name"
    [ ! -e "$FAILURES/$name" ] || cat "$FAILURES/$name"
  done
  printf 'checks: %d passed, %d failed\n' "$CHECKS_PASSED" "${#CHECKS_FAILED[@]}"
  [ ${#CHECKS_FAILED[@]} -eq 0 ]
}

rust_files() { find crates ext -name '*.rs' -not -path '*/target/*'; }

# code_of FILE: a Rust file without the tests at its end.
code_of() {
  awk '/^#\[cfg\(.*test/ { held = $0; next }
    held != "" { if (/^(pub )?mod .*\{$/) exit; print held; held = "" }
    { print }' "$1"
}

# Code that looks for two words in a row, which would be a sentence of ours: in a text, as a whole, or as
# the pattern of a match. A constant in place of the words isn't seen. What others have written (Ruby's
# "(eval at") is in the list.
decides_by_sentences() {
  local file found
  local words='[[:alpha:]]{2,} [[:alpha:]]{2,}'
  local looks='(contains|starts_with|ends_with|strip_prefix|strip_suffix|split_once|find)\("|[!=]= "'
  found=$(
    while read -r file; do
      [ "$file" != crates/rperf-model/src/frames/code_path.rs ] || continue
      code_of "$file" | grep -v assert |
        grep -nE "($looks)[^\"]*$words|^ *(\| )?\"[^\"]*$words[^\"]*\"( \||,? =>| if )" | sed "s|^|$file:|"
    done < <(rust_files | grep -v '/tests[./]\|_tests[./]\|test_support')
  ) || true
  [ -z "$found" ] || { printf '%s\n' "$found" 'decide by a type, not by the text of a message' && false; }
}

# Each argument of a function has a name of its own: clippy counts a tuple as one.
arguments_have_names() {
  ! git -C "$ROOT" grep -nE '(^ +|fn .*)\([a-z_]+, [a-z_]+\): \(' -- '*.rs' ||
    { echo 'an argument is no tuple that is taken apart' && false; }
}

# Doc comments whose first words name nothing are printed.
comments_name_subjects() {
  rust_files | xargs awk '
    FNR == 1 { in_comment = 0 }
    /^[[:space:]]*\/\/[\/!]/ {
      if (!in_comment && $0 ~ /^[[:space:]]*\/\/[\/!] (The same|Of|Those|As|Not|It|One|That|This|These|Such|They)([^[:alnum:]_]|$)/) {
        printf "%s:%d: a doc comment names its subject first: %s\n", FILENAME, FNR, $0
        found = 1
      }
      in_comment = 1
      next
    }
    { in_comment = 0 }
    END { exit found }'
}

# Uses of the one word of docs/internals/words.md that slips in most are printed.
directories_are_directories() {
  ! git -C "$ROOT" grep -niw 'folders\?' -- ':!docs/internals/words.md' ':!bin/support/checks.sh' ||
    { echo 'the word is "directory"' && false; }
}

# A crate's root is its table of contents: what belongs together has a directory there.
roots_have_rooms() {
  local root most count bad=0
  for root in crates/*/src ext/*/src; do
    case $root in
      crates/rperf-sampling/* | crates/rperf-tracing/*) most=15 ;;
      *) most=25 ;;
    esac
    count=$(find "$root" -maxdepth 1 -name '*.rs' | wc -l)
    [ "$count" -le "$most" ] || { echo "$root: $count files; $most at most" && bad=1; }
  done
  [ "$bad" -eq 0 ]
}

# Each shipped crate asks for what clippy.toml disallows.
crates_ask_for_disallowed_methods() {
  local file bad=0
  for file in crates/*/src/lib.rs crates/rperf-command/src/main.rs ext/rperf/src/lib.rs; do
    [ "$file" != crates/rperf-fuzz/src/lib.rs ] || continue
    grep -qxF '#![cfg_attr(not(test), warn(clippy::disallowed_methods))]' "$file" ||
      { echo "$file: needs #![cfg_attr(not(test), warn(clippy::disallowed_methods))], as the others" && bad=1; }
  done
  [ "$bad" -eq 0 ]
}

# Every Rust file opens by saying what it is, and stays readable in one sitting.
house_rules() {
  local file first lines bad=0
  while read -r file; do
    IFS= read -r first <"$file" || first=
    case $first in
      '//! '*) ;;
      *) echo "$file: the first line must be a //! comment that says what the file is" && bad=1 ;;
    esac
    lines=$(code_of "$file" | wc -l)
    [ "$lines" -le 500 ] || { echo "$file: $lines lines before its tests; split it (500 at most)" && bad=1; }
  done < <(rust_files)
  comments_name_subjects || bad=1
  directories_are_directories || bad=1
  decides_by_sentences || bad=1
  arguments_have_names || bad=1
  roots_have_rooms || bad=1
  crates_ask_for_disallowed_methods || bad=1
  [ "$bad" -eq 0 ]
}

# Dependencies point one way, and only the extension knows Ruby.
layering() {
  local crate bad=0
  for crate in crates/*/; do
    crate=$(basename "$crate")
    case $crate in
      rperf-model | rperf-sql) depends_only "$crate" '' ;;
      rperf-report | rperf-vm) depends_only "$crate" rperf-model ;;
      rperf-accounts) depends_only "$crate" 'rperf-model rperf-sql rperf-vm' ;;
      rperf-sampling | rperf-tracing) depends_only "$crate" 'rperf-model rperf-vm' ;;
      rperf-format) depends_only "$crate" 'rperf-model rperf-report' ;;
      rperf-push) depends_only "$crate" 'rperf-model rperf-report rperf-format' ;;
      rperf-session) depends_only "$crate" 'rperf-model rperf-format rperf-report' ;;
      rperf-protocol) depends_only "$crate" 'rperf-model rperf-format rperf-report' ;;
      rperf-heap) depends_only "$crate" 'rperf-model rperf-format rperf-report rperf-protocol' ;;
      rperf-port) depends_only "$crate" 'rperf-model rperf-format rperf-report rperf-session rperf-protocol' ;;
      rperf-watch) depends_only "$crate" 'rperf-heap rperf-model rperf-format rperf-report rperf-session rperf-protocol' ;;
      rperf-top) depends_only "$crate" 'rperf-heap rperf-model rperf-format rperf-report rperf-session rperf-protocol rperf-watch' ;;
      rperf-fuzz)
        depends_only "$crate" 'rperf-heap rperf-model rperf-format rperf-report rperf-session rperf-sql rperf-protocol rperf-watch'
        ;;
      rperf-cli)
        depends_only "$crate" 'rperf-heap rperf-model rperf-format rperf-report rperf-session rperf-protocol rperf-watch rperf-push rperf-top'
        ;;
      rperf-command)
        depends_only "$crate" 'rperf-cli rperf-heap rperf-model rperf-format rperf-report rperf-session rperf-protocol rperf-watch rperf-push rperf-top'
        ;;
      *) echo "$crate: say in bin/support/checks.sh and docs/internals/architecture.md what it may depend on" && false ;;
    esac || bad=1
  done
  programs_load_no_command || bad=1
  ships_no_measures || bad=1
  [ "$bad" -eq 0 ]
}

# The extension has nothing that only the command needs.
programs_load_no_command() {
  local tree
  tree=$(cargo tree --package rperf --edges normal --prefix none --format '{lib}') || return 1
  ! grep -xE 'rperf_(cli|heap|top|watch)|clap.*|ratatui.*|crossterm' <<<"$(sort -u <<<"$tree")" ||
    { echo "ext/rperf must not depend on these: only the command needs them" && false; }
}

# What `gem install` builds is without the feature `measure`: spec/checks/native_methods_spec.rb says what that has.
ships_no_measures() {
  local tree
  tree=$(cargo tree --package rperf --prefix none --format '{lib} {f}') || return 1
  ! grep -w measure <<<"$tree" || { echo "the feature measure is for checkouts only" && false; }
}

# depends_only CRATE "ALLOWED...": of our own crates; and none that links Ruby.
depends_only() {
  local name bad=0 tree
  tree=$(cargo tree --package "$1" --edges normal,build --prefix none --format '{lib}') || return 1
  for name in $(sort -u <<<"$tree"); do
    name=${name//_/-}
    case $name in
      "$1") ;;
      magnus | rb-sys*) echo "$1 depends on $name: only ext/rperf knows Ruby" && bad=1 ;;
      rperf-*)
        case " $2 " in *" $name "*) ;; *) echo "$1 must not depend on $name" && bad=1 ;; esac
        ;;
    esac
  done
  return "$bad"
}

# The files of a crate and those of lib/ use each other one way, too.
run_imports() { "$RUBY" bin/support/imports.rb; }

run_clippy() {
  have cargo-clippy || { echo "no clippy; run: rustup component add clippy rustfmt" && return 1; }
  cargo clippy --quiet --workspace --all-targets -- -D warnings &&
    cargo clippy --quiet --package rperf --features measure -- -D warnings
}

# The examples of gvl.rs that must not compile fail for the reasons they name: only an unstable
# rustdoc compares the codes, so this one passes for such.
misuse_does_not_compile() {
  RUSTDOC="$ROOT/bin/support/unstable_rustdoc" cargo test --quiet --package rperf-vm --doc gvl
}

# What the program does on Linux alone is of no use there.
compiles_for_macos() {
  local target=aarch64-apple-darwin
  # Nobody's toolchain but that of a CI is changed unasked.
  if ! has_std "$target" && { [ -z "${CI:-}" ] || ! with_lock "$CROSS" setup_rust_target "$target"; }; then
    echo "not checked: no standard library of Rust for $target; 'rustup target add $target' brings it"
    return 0
  fi
  CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS="-A dead_code" cargo check --quiet --target "$target"
}

run_cargo_doc() { RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items; }

run_rubocop() {
  if [ ! -x "$SETUP_BIN/rubocop" ]; then
    echo "RuboCop could not be fetched: not checked"
    return 0
  fi
  rubocop --format simple
}

# What users get is stripped. The limits are 1 % above 7,469,976 and 9,338,456. Platform gems have all crates as one,
# which once took 7,575,528 to 6,442,728, and refuse 6,500,000 (bin/support/package/check.rb).
sizes() {
  local bad=0
  has_size "the extension" "$EXTENSION" 7545000 || bad=1
  has_size "the command" "$COMMAND" 9432000 || bad=1
  return "$bad"
}

# has_size NAME FILE LIMIT: in bytes, without symbols.
has_size() {
  local stripped="$ROOT/tmp/stripped" bytes
  strip -o "$stripped" "$2" || return 1
  bytes=$(wc -c <"$stripped")
  rm -f "$stripped"
  awk -v name="$1" -v bytes="$bytes" 'BEGIN { printf "%s: %.1f MB without symbols\n", name, bytes / 1e6 }'
  [ "$bytes" -le "$3" ] || { echo "$3 bytes at most: find what has made it larger" && return 1; }
}

# run_rspec [FILE...]: all specs, or those of these files.
run_rspec() { "$RUBY" bin/support/specs.rb "$@"; }

# run_examples [RESULTS]: every example ends by itself and gives a profile with
# samples in it. RESULTS is a file to which a line for each is added, as specs.rb does.
run_examples() {
  local file report status bad=0
  for file in examples/*.rb; do
    if report=$(bin/rperf stat ruby "$file" 2>&1 >/dev/null) && grep -q 'samples' <<<"$report"; then
      status=passed && echo "$file: ok"
    else
      status=failed && printf '%s: failed\n%s\n' "$file" "$report" && bad=1
    fi
    [ -z "${1:-}" ] || printf '%s\t%s\t\n' "$status" "$file" >>"$1"
  done
  return "$bad"
}

# Graphviz draws call graphs. Without it the graphs are tested, but not the pictures.
graphviz_ready() {
  ! have dot || return 0
  [ "$(id -u)" -eq 0 ] && is_debian && (install_system_packages graphviz)
}

run_benchmarks() { bin/bench all --smoke; }

# run_trace_func_test SOURCE: a directory with the source of the Ruby that runs this.
run_trace_func_test() { bin/env ruby bin/support/ruby_tests/trace_func.rb "$1"; }
