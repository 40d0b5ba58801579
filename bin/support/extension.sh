# Builds the extension, and the command beside it, in release mode with line tables
# (the profile `checkout`) into lib/rperf, when one of them is missing or older than
# what it is made from. The extension has what specs and benchmarks ask of it (the
# feature `measure`), and needs $RUBY; the command is the same for all Rubies.
# bin/rperf (QUICK_BUILD) is content with the profile `quick`, as long as nothing
# else is built: bin/test and benchmarks want the real one.
# EXTENSION_PROFILE names another profile, and EXTENSION_SOURCES another checkout
# with the same sources: so copies can share what doesn't depend on Ruby.

# Edition 2024 needs it; the same number stands in Cargo.toml.
RUST_NEEDED=1.88
case $(uname -s) in
  Darwin) EXTENSION="$ROOT/lib/rperf/rperf.bundle" CARGO_OUTPUT=librperf.dylib ;;
  *) EXTENSION="$ROOT/lib/rperf/rperf.so" CARGO_OUTPUT=librperf.so ;;
esac
COMMAND="$ROOT/lib/rperf/bin/rperf-command"
# As cargo has both: what they share is built once.
BOTH_PACKAGES=(--package rperf-command --package rperf --features rperf/measure)
# The status of a command whose set-up fails because the compiler or linker does.
EXTENSION_UNBUILT=3
# Names the Ruby that the extension was built for.
EXTENSION_RUBY="$ROOT/tmp/extension-ruby"

# Is there if the profile was `quick`.
QUICKLY_BUILT="$ROOT/tmp/quickly-built"

is_built() { ! extension_stale && ! command_stale; }

# What was built quickly isn't what specs and benchmarks are for.
too_quickly_built() { [ -z "${QUICK_BUILD:-}" ] && [ -f "$QUICKLY_BUILT" ]; }

cargo_target() { printf '%s' "${CARGO_TARGET_DIR:-$ROOT/target}"; }

build_profile() {
  if [ -n "${EXTENSION_PROFILE:-}" ]; then
    echo "$EXTENSION_PROFILE"
  elif [ -n "${QUICK_BUILD:-}" ] && [ ! -d "$(cargo_target)/checkout" ]; then
    echo quick
  else
    echo checkout
  fi
}

extension_stale() {
  ! too_quickly_built || return 0
  [ -f "$EXTENSION" ] && [ -f "$EXTENSION_RUBY" ] || return 0
  [ "$(ruby_identity)" = "$(cat "$EXTENSION_RUBY")" ] || return 0
  has_newer_source "$EXTENSION" "$ROOT/ext"
}

command_stale() { too_quickly_built || [ ! -f "$COMMAND" ] || has_newer_source "$COMMAND" "$ROOT/docs/guide"; }

# has_newer_source FILE DIRECTORY: in it, or in what both are made from.
has_newer_source() {
  [ -n "$(find "$ROOT/Cargo.toml" "$ROOT/Cargo.lock" "$ROOT/crates" "$2" \
    -type f ! -path "$ROOT/crates/*/tests/*" ! -path "$ROOT/crates/*/benches/*" \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' -o -name '*.proto' -o -name '*.md' \) -newer "$1" 2>/dev/null | head -n 1)" ]
}

# The file's date, size and inode: an upgrade in place counts as another Ruby. What a build is told
# to take Ruby for (docs/internals/ruby-versions.md) makes it another one, too.
ruby_identity() {
  ls -lLi "$RUBY"
  [ -z "${RPERF_SIMULATED_RUBY:-}${RPERF_SIMULATED_LAYOUT:-}" ] ||
    echo "simulated: ${RPERF_SIMULATED_RUBY:-} ${RPERF_SIMULATED_LAYOUT:-}"
}

check_rust() {
  local obstacle
  obstacle=$(rust_obstacle)
  [ -z "$obstacle" ] || die "$obstacle"
}

# Prints why this Rust won't do, if it won't.
rust_obstacle() {
  local version
  if ! have cargo || ! have rustc; then
    echo "needs Rust $RUST_NEEDED or newer (cargo and rustc in PATH); see https://rustup.rs"
    return
  fi
  version=$(rustc --version | awk '{ print $2 }')
  [ "$(printf '%s\n' "$RUST_NEEDED" "${version%%-*}" | sort -V | head -n 1)" = "$RUST_NEEDED" ] ||
    echo "needs Rust $RUST_NEEDED or newer, found $version; see https://rustup.rs"
}

# rb-sys reads Ruby's headers with libclang.
have_libclang() {
  local file
  [ -z "${LIBCLANG_PATH:-}" ] || return 0
  for file in /usr/lib/llvm-*/lib/libclang{.so,-[0-9]}* /usr/lib/*/libclang{.so,-[0-9]}* \
    /usr/lib{,64}/libclang{.so,-[0-9]}* /opt/homebrew/opt/llvm/lib/libclang.dylib \
    /usr/local/opt/llvm/lib/libclang.dylib /Library/Developer/CommandLineTools/usr/lib/libclang.dylib \
    /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib/libclang.dylib; do
    [ ! -e "$file" ] || return 0
  done
  return 1
}

# with_musl CMD...: where Rust's own system has musl, libraries don't have it inside, as Ruby brings it.
with_musl() {
  case $(rustc -vV | awk '/^host:/ { print $2 }') in
    *-musl) RUSTFLAGS="-C target-feature=-crt-static${RUSTFLAGS:+ $RUSTFLAGS}" "$@" ;;
    *) "$@" ;;
  esac
}

# compile_without_ruby: all that the build of both needs but Ruby's headers, by the same call, so that nothing is built
# twice. It fails where rb-sys asks Ruby, and goes on with the rest. Becomes cargo.
compile_without_ruby() {
  printf '\n== compiling what needs no Ruby: that of rb-sys fails\n'
  cd "${EXTENSION_SOURCES:-$ROOT}" && RUBY=/nonexistent exec cargo build --quiet --locked --keep-going \
    --profile "$(build_profile)" --target-dir "$(cargo_target)" "${BOTH_PACKAGES[@]}"
}

setup_extension() {
  local target profile
  target=$(cargo_target) profile=$(build_profile)
  local manifest=(--manifest-path "${EXTENSION_SOURCES:-$ROOT}/Cargo.toml") started
  have_libclang || die "needs libclang to build the extension; install LLVM's libclang (or set LIBCLANG_PATH)"
  telling "fetching the Rust crates" quietly \
    cargo fetch --quiet "${manifest[@]}" --target "$(rustc -vV | awk '/^host:/ { print $2 }')" || {
    tail -n 5 "$LOG" >&2
    die "the Rust crates can't be fetched: check the network, then run this again (log: $LOG)"
  }
  local wants_command=no wants_extension=no
  ! command_stale || wants_command=yes
  ! extension_stale || wants_extension=yes
  mkdir -p "$ROOT/tmp" "${COMMAND%/*}"
  started=$(mktemp "$ROOT/tmp/started.XXXXXX")
  if [ "$(uname -s)" = Darwin ]; then
    [ "$wants_command" = no ] || build "the command" build --package rperf-command
    [ "$wants_extension" = no ] || build "the extension" rustc --package rperf --lib --features measure \
      -- -C "link-arg=-Wl,-undefined,dynamic_lookup"
  elif [ -n "${EXTENSION_PROFILE:-}" ] && [ "$wants_command" = no ]; then
    build "the extension" build --package rperf --features measure
  else
    build "the command and the extension" build "${BOTH_PACKAGES[@]}"
  fi
  rm -f "$QUICKLY_BUILT"
  [ "$profile" != quick ] || touch "$QUICKLY_BUILT"
  [ "$wants_command" = no ] || put rperf-command "$COMMAND"
  [ "$wants_extension" = no ] || { put "$CARGO_OUTPUT" "$EXTENSION" && ruby_identity >"$EXTENSION_RUBY"; }
  rm -f "$started"
}

# build NAME SUBCOMMAND ARGS...: by cargo.
build() {
  local name=$1 subcommand=$2 quiet=() run=()
  shift 2
  say "building $name ($profile; one to five minutes the first time)"
  # A terminal sees cargo's progress; a log gets errors and warnings only.
  [ -t 2 ] || quiet=(--quiet) run=(telling "building $name")
  RUBY="$RUBY" with_musl ${run[@]+"${run[@]}"} cargo "$subcommand" ${quiet[@]+"${quiet[@]}"} "${manifest[@]}" \
    --profile "$profile" --target-dir "$target" "$@" >&2 || {
    rm -f "$started"
    say "$name could not be built"
    exit "$EXTENSION_UNBUILT"
  }
}

# put OUTPUT FILE: what cargo has made becomes FILE, renamed into place: a program that has the old one
# loaded, or runs it, keeps it whole. What was changed while cargo ran is newer than FILE.
put() {
  if ! cp "$target/$profile/$1" "$2.new" || ! touch -r "$started" "$2.new" || ! mv -f "$2.new" "$2"; then
    die "can't write $2"
  fi
}
