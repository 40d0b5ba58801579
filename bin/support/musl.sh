# musl beside glibc, for `bin/test --musl`: that C library, others built for it, and compilers, all in the cache.
# Its programs name the dynamic linker in the cache, so they run like any other.
# Sourced after setup.sh, cross.sh and cross_ruby.sh.

MUSL="$CROSS/musl"
MUSL_TARGET=x86_64-unknown-linux-musl
# Of Debian's packages. Its musl is of the version that zig has the headers of.
MUSL_RELEASE=trixie
MUSL_LINKER="$MUSL/lib/ld-musl-x86_64.so.1"

# musl_refused: the line that says why nothing runs with musl here; nothing if it does.
musl_refused() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "builds for musl on Linux on x86-64 only, and this is $(uname -sm)"
  elif ! has_debian_suites; then
    echo "takes musl from Debian's packages, and this system isn't Debian"
  else
    case $CROSS in *[[:space:]]*) echo "can't build in a cache whose path has a blank: $CROSS" ;; esac
  fi
}

# in_musl CMD...: CMD finds its compilers.
in_musl() { PATH="$MUSL/bin:$PATH" "$@"; }

# setup_musl: libraries and compilers.
setup_musl() {
  setup_zig
  setup_rust_target "$MUSL_TARGET" ||
    die "needs Rust's standard library for $MUSL_TARGET, which rustup couldn't fetch (log: $LOG)"
  [ -f "$MUSL/complete" ] || with_lock "$CROSS" make_musl || exit 1
  # Their versions may have changed.
  write_musl_compilers
}

make_musl() {
  [ ! -f "$MUSL/complete" ] || return 0
  # autoconf is for a source of Ruby that has no `configure` yet.
  install_system_packages make perl autoconf autotools-dev
  rm -rf "$MUSL"
  mkdir -p "$MUSL/lib" "$MUSL/include"
  musl_apt || die "Debian's package lists can't be read: check the network (log: $LOG)"
  step "fetching musl" unpack_debs "$MUSL/system" "musl/$MUSL_RELEASE" &&
    mv "$MUSL/system/usr/lib/x86_64-linux-musl/libc.so" "$MUSL_LINKER" || return 1
  rm -rf "$MUSL/system"
  write_musl_compilers
  build_for_musl zlib make_zlib && build_for_musl libyaml make_libyaml && build_for_musl openssl make_openssl || return 1
  touch "$MUSL/complete"
}

# Lists of packages.
musl_apt() {
  APT_STATE="$CROSS/apt-musl"
  make_apt_state "$(apt_sources amd64 "$MUSL_RELEASE")" amd64
}

# build_for_musl PACKAGE FUNCTION: from Debian's source.
build_for_musl() {
  local work="$MUSL/$1"
  rm -rf "$work"
  mkdir -p "$work/source"
  cd "$work" || return 1
  musl_apt && step "fetching the source of $1" download_source "$1" || return 1
  tar -xf "$(find . -name "$1_*.orig.tar.?z" | head -n 1)" -C source --strip-components=1 && cd source || return 1
  step "building $1 for musl" in_musl env CC=musl-cc AR=musl-ar RANLIB=musl-ranlib CFLAGS='-O2 -fPIC' \
    bash -euo pipefail -c "$(declare -f "$2") && $2 \"\$1\"" "$2" "$MUSL" || return 1
  cd "$ROOT" && rm -rf "$work"
}

# Static libraries in the directory $1, for extensions of Ruby.
make_zlib() {
  ./configure --static --prefix="$1"
  make -j"$(getconf _NPROCESSORS_ONLN)" libz.a
  cp libz.a "$1/lib/"
  cp zlib.h zconf.h "$1/include/"
}

# It has no `configure` as it comes.
make_libyaml() {
  local version file
  version=$(sed -n 's/^m4_define(\[YAML_[A-Z]*\], *\([0-9]*\))/\1/p' configure.ac | head -n 3 | paste -sd ' ')
  read -r major minor patch <<<"$version"
  for file in src/*.c; do
    # shellcheck disable=SC2086
    $CC $CFLAGS -Iinclude -DYAML_VERSION_MAJOR="$major" -DYAML_VERSION_MINOR="$minor" -DYAML_VERSION_PATCH="$patch" \
      -DYAML_VERSION_STRING="\"$major.$minor.$patch\"" -c "$file" -o "${file%.c}.o"
  done
  $AR rc "$1/lib/libyaml.a" src/*.o
  cp include/yaml.h "$1/include/"
}

make_openssl() {
  ./Configure linux-x86_64 no-shared no-apps no-tests no-docs no-module --prefix="$1" --libdir=lib
  make -j"$(getconf _NPROCESSORS_ONLN)" build_libs
  make install_dev
}

# The compilers that the Rubies are built with, and with which specs build extensions.
write_musl_compilers() {
  # Sanitizers are its default where nothing is optimised, and a program without dynamic libraries.
  write_command "$MUSL/bin/musl-cc" "$(type -P zig)" cc -target x86_64-linux-musl -dynamic -fno-sanitize=undefined \
    "-Wl,-dynamic-linker,$MUSL_LINKER" -idirafter "$MUSL/include" "-L$MUSL/lib"
  write_command "$MUSL/bin/musl-ar" "$(type -P zig)" ar
  write_command "$MUSL/bin/musl-ranlib" "$(type -P zig)" ranlib
  write_command "$MUSL/bin/musl-rustc" "$(type -P rustc)" "--target=$MUSL_TARGET"
}

# binutils read what is built for musl, too.
musl_configuration() {
  printf '%s\n' --host=x86_64-linux-musl CC=musl-cc RUSTC=musl-rustc AR=musl-ar RANLIB=musl-ranlib
  printf '%s\n' NM=nm LD=ld OBJCOPY=objcopy OBJDUMP=objdump STRIP=strip
  zjit_of "$1"
}

musl_libraries() { echo openssl psych zlib; }

musl_target() { echo "$MUSL_TARGET"; }
# Without the first flag the C library would be inside.
cargo_for_musl() {
  RUSTFLAGS="-C target-feature=-crt-static -C link-arg=-Wl,-dynamic-linker,$MUSL_LINKER" \
    in_musl cargo "$@" --target "$MUSL_TARGET"
}
