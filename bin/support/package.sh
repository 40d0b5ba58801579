# The parts of bin/package. Run in $ROOT.

ABOUT_VERSION=0.9.3
CYCLONEDX_VERSION=0.5.9
# Bytes of a platform's gem.
LARGEST_GEM=10000000

# target_of PLATFORM: as Rust names it.
target_of() { echo "${1/-linux-/-unknown-linux-}"; }

# package_platform PLATFORM: builds, checks and packs.
package_platform() {
  local platform=$1 target cpu=${1%%-*} libc=$GLIBC versions=() rubies=() version name work="$ROOT/tmp/package/$1"
  target=$(target_of "$platform")
  setup_zig
  setup_rust_target "$target" || die "no standard library of Rust for $target: run 'rustup target add $target'"
  setup_list_makers
  name=$(package_name "$platform")
  rm -rf "$work" "pkg/$name".*
  mkdir -p "$work/debug" "$work/lib/bin"
  case $platform in
    *-musl)
      libc="$work/musl.S"
      names_of_musl "$cpu" >"$libc" || die "zig has no list of musl's names"
      ;;
  esac
  # Their directories are known to rust_flags then. A build fetches only what it compiles; the lists ask for the crates
  # of other systems, too.
  step "fetching the crates" cargo fetch --locked || exit 1
  for version in $OTHER_RUBIES; do
    packaged_ruby "$version" || continue
    build_library "$platform" "$version" "$PACKAGED_RUBY" "$work/lib/$version/rperf.so"
    versions+=("$version") rubies+=("$PACKAGED_RUBY")
  done
  build_package "the command for $platform" "$platform" --package rperf-command
  take_built "$target" rperf-command "$work/lib/bin/rperf-command"
  list_crates "$target" "$work" "$name"
  add_other_licences "$platform" "$work"
  list_tools "$platform" "${rubies[@]}" >"pkg/$name.tools.txt"
  check_names "$work"
  "$RUBY" bin/support/package/check.rb "$cpu" "$libc" "$work"/lib/*/* || die "these files can't be packaged"
  pack "$platform" "$work" "${versions[@]}"
  check_size "pkg/$name.gem"
  [ "$platform" != "$(uname -m)-linux-gnu" ] || try_gem "pkg/$name.gem" "${rubies[@]}"
  (cd "$work/debug" && deterministic_tar .) | xz -6 -T1 >"pkg/$name.debug.tar.xz"
}

# names_of_musl CPU: what zig links with, in the assembler's language.
names_of_musl() {
  zig cc -E -Wno-unused-command-line-argument -x assembler-with-cpp -DPTR64 "-DARCH_$1" "-DFAMILY_${1%%_*}" \
    "$TOOLS/zig-$ZIG_VERSION/ziglang/lib/libc/musl/libc.S"
}

# packaged_ruby VERSION: sets PACKAGED_RUBY to a Ruby of that version, which runs here. Fails for one
# that isn't released, without --dev.
packaged_ruby() {
  find_native_ruby "$1"
  PACKAGED_RUBY=$NATIVE_RUBY
  if [ -z "$PACKAGED_RUBY" ]; then
    if [ "$DEV" = no ] && [ "$1" = "${OTHER_RUBIES##* }" ]; then
      say "there is no Ruby $1 here: the gem is for earlier ones"
      return 1
    fi
    die "no Ruby $1 to build for: ${WITHOUT:-$(version_variable RPERF_RUBY "$1")=/path/to/ruby names one}"
  fi
  [ "$DEV" = no ] && is_unreleased "$PACKAGED_RUBY" || return 0
  say "Ruby $1 isn't released: the gem is for earlier ones (--dev takes it, too)"
  return 1
}

# build_library PLATFORM VERSION RUBY FILE: the extension. RUBY tells its own settings; of another platform
# than this one only headers differ.
build_library() {
  local platform=$1 ruby=$3 name="the extension for Ruby $2 on $1" headers
  if [ "$platform" = "$(uname -m)-linux-gnu" ]; then
    RUBY="$ruby" build_package "$name" "$platform" --package rperf
  else
    headers=$(ruby_headers "$2" "$ruby" "$platform") || exit 1
    RUBY="$ruby" RBCONFIG_rubyhdrdir="$headers/include" RBCONFIG_rubyarchhdrdir="$headers/arch" \
      build_package "$name" "$platform" --package rperf
  fi
  take_built "$(target_of "$platform")" librperf.so "$4"
}

# build_package NAME PLATFORM ARGS...: by cargo. What zig compiles of the C library and links in has no debug
# information, because that would name zig's directory; its cache has none that was compiled otherwise.
build_package() {
  local name=$1 platform=$2 target
  shift 2
  target=$(target_of "$platform")
  case $platform in *-gnu) target="$target.$GLIBC" ;; esac
  step "building $name" env "RUSTFLAGS=$(rust_flags "$platform")" CCC_OVERRIDE_OPTIONS='#+-g0' \
    ZIG_GLOBAL_CACHE_DIR="$TOOLS/zig-$ZIG_VERSION-parts" cargo zigbuild --locked --profile packaged \
    --target "$target" --target-dir "$ROOT/target/package" "$@" || exit 1
}

# rust_flags PLATFORM: paths of this machine don't go into the files. The source of Rust's library, which not every
# system has, is named as where there is none.
rust_flags() {
  local sysroot commit
  sysroot=$(rustc --print sysroot) commit=$(rustc -vV | awk '/^commit-hash:/ { print $2 }')
  crate_prefixes "${CARGO_HOME:-$USER_HOME/.cargo}"
  printf -- '--remap-path-prefix=%s=%s ' "$sysroot" /rust "$sysroot/lib/rustlib/src/rust" "/rustc/$commit"
  printf -- '--remap-path-prefix=%s=/rperf' "$ROOT"
  # Without it, a library for musl would have the C library inside.
  case $1 in *-musl) printf ' -C target-feature=-crt-static' ;; esac
}

# crate_prefixes CARGO_HOME: replaces the directories of crates, each of which is named after where they come from.
crate_prefixes() {
  local directory
  for directory in "$1"/registry/src/*/; do printf -- '--remap-path-prefix=%s=/crates/ ' "$directory"; done
}

# take_built TARGET OUTPUT FILE: the debug information goes into a file of its own, whose name FILE keeps.
take_built() {
  local output="$ROOT/target/package/$1/packaged/$2" debug
  debug="$work/debug/${3#"$work"/}.debug"
  mkdir -p "${3%/*}" "${debug%/*}"
  case $1/$2 in
    *-musl/rperf-command)
      # musl is inside, and zig has compiled that with debug information that names its directory.
      rust_objcopy --strip-all "$output" "$3" && chmod 755 "$3" || exit 1
      return
      ;;
  esac
  rust_objcopy --only-keep-debug "$output" "$debug" &&
    rust_objcopy --strip-all --add-gnu-debuglink="$debug" "$output" "$3" && chmod 755 "$3" || exit 1
}

# rust_objcopy ARGS...: knows all CPUs. Where Rust comes by rustup, it looks for its library in the wrong directory.
rust_objcopy() {
  local sysroot
  sysroot=$(rustc --print sysroot)
  LD_LIBRARY_PATH="$sysroot/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    "$sysroot/lib/rustlib/$(rustc -vV | awk '/^host:/ { print $2 }')/bin/rust-objcopy" "$@"
}

# check_names DIRECTORY: native files and their debug information name no directories of this machine.
check_names() {
  local found status=0 names=(-e "$CACHE/" -e "${CARGO_HOME:-$USER_HOME/.cargo}/" -e "$(rustc --print sysroot)/")
  # All files name the checkout so.
  [ "$ROOT" = /rperf ] || names+=(-e "$ROOT/")
  found=$(grep -rlF "${names[@]}" "$1/lib" "$1/debug") || status=$?
  [ "$status" -ne 1 ] || return 0
  die "these name directories of this machine, or can't be read: ${found//$'\n'/ }"
}

# What lists crates and licences.
setup_list_makers() {
  with_lock "$TOOLS" cargo_install cargo-about "$ABOUT_VERSION" --features cli || exit 1
  with_lock "$TOOLS" cargo_install cargo-cyclonedx "$CYCLONEDX_VERSION" || exit 1
  PATH="$TOOLS/cargo-about-$ABOUT_VERSION/bin:$TOOLS/cargo-cyclonedx-$CYCLONEDX_VERSION/bin:$PATH"
}

# list_crates TARGET DIRECTORY NAME: the crates that are in the library and the command, in two lists that
# tools read, and their licences, which the gem has.
list_crates() {
  local copy="$2/sources" file
  step "listing licences" cargo about generate --locked --offline --workspace --fail --target "$1" \
    --config bin/support/package/about.toml --output-file "$2/LICENSES-THIRD-PARTY.md" bin/support/package/about.hbs || exit 1
  # It writes beside each crate.
  mkdir -p "$copy"
  cp -R Cargo.toml Cargo.lock crates ext "$copy/"
  (cd "$copy" && SOURCE_DATE_EPOCH=$(cd "$ROOT" && source_date) step "listing crates" cargo cyclonedx --format json \
    --describe binaries --no-build-deps --target "$1" --spec-version 1.5) || exit 1
  for file in rperf/rperf_cdylib:library rperf-command/rperf-command_bin:command; do
    sed "s|file://$copy|file:///rperf|g" "$copy"/*/"${file%:*}.cdx.json" >"pkg/$3.${file#*:}.cdx.json"
  done
  rm -rf "$copy"
}

# add_other_licences PLATFORM DIRECTORY: of what Rust and zig link in beside the crates.
add_other_licences() {
  local zig="$TOOLS/zig-$ZIG_VERSION/ziglang" rust list="$2/LICENSES-THIRD-PARTY.md"
  rust="$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html"
  {
    add_licence "zig's compiler-rt" "$zig/LICENSE" && add_licence "LLVM's libunwind" "$zig/lib/libunwind/LICENSE.TXT" &&
      case $1 in
        *-musl) add_licence musl "$zig/lib/libc/musl/COPYRIGHT" ;;
        # Its start of a program.
        *) add_licence "the GNU C Library" "$zig/lib/libc/glibc/LICENSES" ;;
      esac
  } >>"$list" && cp "$rust" "$2/LICENSES-RUST.html" || die "licences of Rust or zig aren't where they were"
}

# add_licence NAME FILE
add_licence() { printf '## %s\n\n````text\n' "$1" && cat "$2" && printf '````\n\n'; }

# list_tools PLATFORM RUBY...: what has built the gem. With the same of them, another build is equal.
list_tools() {
  local ruby libc="glibc $GLIBC"
  case $1 in *-musl) libc="musl of zig" ;; esac
  shift
  rustc -vV && cargo --version || exit 1
  printf '%s\n' "cargo-zigbuild $ZIGBUILD_VERSION" "zig $ZIG_VERSION" "cargo-about $ABOUT_VERSION" \
    "cargo-cyclonedx $CYCLONEDX_VERSION" "$libc"
  for ruby in "$@"; do "$ruby" -e 'puts RUBY_DESCRIPTION' || exit 1; done
  "$RUBY" -e 'puts "RubyGems #{Gem::VERSION}"'
  tar --version | sed -n 1p && xz --version | sed -n 1p || exit 1
}

# package_name PLATFORM: of the gem's file, without its ending.
package_name() {
  "$RUBY" -e 'spec = Gem::Specification.load("rperf.gemspec"); spec.platform = ARGV[0]; print spec.full_name' "$1"
}

# pack PLATFORM DIRECTORY VERSION...: the gem with what is in DIRECTORY.
pack() {
  step "packing the gem for $1" env "SOURCE_DATE_EPOCH=$(source_date)" "$RUBY" bin/support/package/pack.rb "$@" || exit 1
}

# try_gem GEM RUBY...: of this system, on each.
try_gem() {
  local gem=$1 ruby
  shift
  for ruby in "$@"; do
    step "trying the gem on $ruby" env -u RUBYOPT -u RUBYLIB bash bin/support/package/try_commands.sh "$ruby" "$gem" || exit 1
  done
}

check_size() {
  local size
  size=$(wc -c <"$1")
  [ "$size" -le "$LARGEST_GEM" ] || die "$1 has $size bytes; $LARGEST_GEM is the limit"
}

package_source() { pack ruby ""; }

# source_date: of the last change, so that two builds of the same source are equal.
source_date() { git log -1 --format=%ct 2>/dev/null || stat -c %Y lib/rperf/version.rb; }

# deterministic_tar PATH: the same bytes for the same files.
deterministic_tar() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$(cd "$ROOT" && source_date)" -cf - "$1"
}

# write_sums: of this version's files, whatever else is there.
write_sums() {
  local name
  name=$(package_name ruby)
  (cd pkg && find . -maxdepth 1 \( -name "$name.gem" -o -name "$name-*" \) -printf '%f\0' | LC_ALL=C sort -z |
    xargs -0 sha256sum -- >SHA256SUMS)
}
