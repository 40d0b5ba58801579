# Builds the extension in release mode, with line tables (the profile `checkout`)
# and what specs and benchmarks ask of it (the feature `measure`), into lib/rperf,
# when it is missing or older than what it is made from. Needs $RUBY.
# EXTENSION_PROFILE names another profile, and EXTENSION_SOURCES another checkout
# with the same sources: so copies can share what doesn't depend on Ruby.

# Edition 2024 needs it; the same number stands in Cargo.toml.
RUST_NEEDED=1.88
case $(uname -s) in
  Darwin) EXTENSION="$ROOT/lib/rperf/rperf.bundle" CARGO_OUTPUT=librperf.dylib ;;
  *) EXTENSION="$ROOT/lib/rperf/rperf.so" CARGO_OUTPUT=librperf.so ;;
esac
# The status of a command whose set-up fails because the compiler or linker does.
EXTENSION_UNBUILT=3
# Names the Ruby that the extension was built for.
EXTENSION_RUBY="$ROOT/tmp/extension-ruby"

extension_stale() {
  [ -f "$EXTENSION" ] && [ -f "$EXTENSION_RUBY" ] || return 0
  [ "$(ruby_identity)" = "$(cat "$EXTENSION_RUBY")" ] || return 0
  [ -n "$(find "$ROOT/Cargo.toml" "$ROOT/Cargo.lock" "$ROOT/crates" "$ROOT/ext" "$ROOT/docs/guide" \
    -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' -o -name '*.proto' -o -name '*.md' \) -newer "$EXTENSION" 2>/dev/null | head -n 1)" ]
}

# The file's date, size and inode: an upgrade in place counts as another Ruby. What a build is told
# to take Ruby for (docs/internals/ruby-versions.md) makes it another one, too.
ruby_identity() {
  ls -lLi "$RUBY"
  [ -z "${RPERF_SIMULATED_RUBY:-}${RPERF_SIMULATED_LAYOUT:-}" ] ||
    echo "simulated: ${RPERF_SIMULATED_RUBY:-} ${RPERF_SIMULATED_LAYOUT:-}"
}

check_rust() {
  local version
  if ! have cargo || ! have rustc; then
    die "needs Rust $RUST_NEEDED or newer (cargo and rustc in PATH); see https://rustup.rs"
  fi
  version=$(rustc --version | awk '{ print $2 }')
  [ "$(printf '%s\n' "$RUST_NEEDED" "${version%%-*}" | sort -V | head -n 1)" = "$RUST_NEEDED" ] ||
    die "needs Rust $RUST_NEEDED or newer, found $version; see https://rustup.rs"
}

# rb-sys reads Ruby's headers with libclang.
check_libclang() {
  local file
  [ -z "${LIBCLANG_PATH:-}" ] || return 0
  for file in /usr/lib/llvm-*/lib/libclang{.so,-[0-9]}* /usr/lib/*/libclang{.so,-[0-9]}* \
    /usr/lib{,64}/libclang{.so,-[0-9]}* /opt/homebrew/opt/llvm/lib/libclang.dylib \
    /usr/local/opt/llvm/lib/libclang.dylib /Library/Developer/CommandLineTools/usr/lib/libclang.dylib \
    /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib/libclang.dylib; do
    [ ! -e "$file" ] || return 0
  done
  install_system_packages libclang-dev
  is_debian || die "needs libclang to build the extension; install LLVM's libclang (or set LIBCLANG_PATH)"
}

setup_extension() {
  local target="${CARGO_TARGET_DIR:-$ROOT/target}" started new="$EXTENSION.new"
  local profile="${EXTENSION_PROFILE:-checkout}"
  local manifest=(--manifest-path "${EXTENSION_SOURCES:-$ROOT}/Cargo.toml") build=(build) link=() run=()
  check_rust
  check_libclang
  have cc || install_system_packages gcc libc6-dev
  [ "$(uname -s)" != Darwin ] || build=(rustc) link=(-- -C "link-arg=-Wl,-undefined,dynamic_lookup")
  telling "fetching the Rust crates" quietly \
    cargo fetch --quiet "${manifest[@]}" --target "$(rustc -vV | awk '/^host:/ { print $2 }')" || {
    tail -n 5 "$LOG" >&2
    die "the Rust crates can't be fetched: check the network, then run this again (log: $LOG)"
  }
  say "building the extension in release mode (about a minute the first time)"
  # A terminal sees cargo's progress; a log gets errors and warnings only.
  [ -t 2 ] || build+=(--quiet) run=(telling "building the extension")
  # What is changed while cargo runs is newer than this.
  mkdir -p "$ROOT/tmp" "$ROOT/lib/rperf"
  started=$(mktemp "$ROOT/tmp/started.XXXXXX")
  RUBY="$RUBY" ${run[@]+"${run[@]}"} cargo "${build[@]}" "${manifest[@]}" --package rperf --profile "$profile" --lib \
    --features measure --target-dir "$target" ${link[@]+"${link[@]}"} >&2 ||
    {
      rm -f "$started"
      say "the extension could not be built"
      exit "$EXTENSION_UNBUILT"
    }
  # Renamed into place: a program that has the old one loaded keeps it whole.
  if ! cp "$target/$profile/$CARGO_OUTPUT" "$new" || ! touch -r "$started" "$new" || ! mv -f "$new" "$EXTENSION"; then
    die "can't write $EXTENSION"
  fi
  rm -f "$started"
  ruby_identity >"$EXTENSION_RUBY"
}
