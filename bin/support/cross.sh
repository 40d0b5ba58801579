# Builds for other systems than this one: zig links against an old glibc (or musl),
# rustup brings Rust's standard library for the other CPU, and a configured source has
# Ruby's headers. All of it is kept in the cache.
# Sourced after setup.sh.

CROSS="$CACHE/cross"
TOOLS="$CACHE/tools"
ZIG_VERSION=0.17.1
ZIG_HASH=ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
ZIGBUILD_VERSION=0.24.1
# What programs of Linux are linked against: CentOS 7 and everything newer has it.
GLIBC=2.17

# setup_zig: puts zig and cargo-zigbuild into PATH.
setup_zig() {
  local zig="$TOOLS/zig-$ZIG_VERSION" zigbuild="$TOOLS/cargo-zigbuild-$ZIGBUILD_VERSION"
  mkdir -p "$TOOLS"
  [ -x "$zig/ziglang/zig" ] || with_lock "$TOOLS" fetch_zig "$zig" || exit 1
  [ -x "$zigbuild/bin/cargo-zigbuild" ] || with_lock "$TOOLS" cargo_install cargo-zigbuild "$ZIGBUILD_VERSION" || exit 1
  export PATH="$zig/ziglang:$zigbuild/bin:$PATH"
}

# fetch_zig DIRECTORY: the compiler is in a package of Python's.
fetch_zig() {
  [ ! -x "$1/ziglang/zig" ] || return 0
  python3 -m pip --version >/dev/null 2>&1 || install_system_packages python3 python3-pip
  rm -rf "$1.partial"
  printf 'ziglang==%s --hash=sha256:%s\n' "$ZIG_VERSION" "$ZIG_HASH" >"$TOOLS/zig.txt"
  step "fetching zig $ZIG_VERSION" python3 -m pip install --quiet --no-deps --require-hashes \
    --target "$1.partial" -r "$TOOLS/zig.txt" || return 1
  mv "$1.partial" "$1"
}

# cargo_install CRATE VERSION [ARGS...]: into a directory of its own under $TOOLS.
cargo_install() {
  local crate=$1 version=$2 root="$TOOLS/$1-$2"
  shift 2
  [ ! -x "$root/bin/$crate" ] || return 0
  step "building $crate $version" cargo install --quiet --locked --root "$root.partial" "$crate@$version" "$@" || return 1
  rm -rf "$root"
  mv "$root.partial" "$root"
}

has_std() { [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]; }

# setup_rust_target TARGET: its standard library, which rustup brings. Fails without it.
setup_rust_target() {
  has_std "$1" || { have rustup && step "fetching Rust's standard library for $1" rustup target add "$1"; } || return 1
  has_std "$1"
}

# source_archive VERSION: an archive in ../shared/ruby-VERSION, or nothing.
source_archive() {
  find "$ROOT/../shared/ruby-$1" -maxdepth 1 -name "ruby-$1*-src.tar.xz" 2>/dev/null | sort -V | tail -n 1 || true
}

# ruby_source VERSION DIRECTORY: the source of that Ruby: of the directory that RPERF_RUBY_SOURCE_4_0 (or
# another version) names, of an archive, or of Debian's package.
ruby_source() {
  local archive variable
  variable=$(version_variable RPERF_RUBY_SOURCE "$1")
  mkdir -p "$2"
  [ -z "${!variable:-}" ] || { cp -R "${!variable}/." "$2" || return 1; return; }
  archive=$(source_archive "$1")
  if [ -z "$archive" ]; then
    { private_sources || private_apt; } && (cd "$2" && download_source "ruby$1" >/dev/null) || {
      echo "no source of Ruby $1 here, nor in Debian's packages: $variable=/path/to/source names one" >>"$LOG"
      return 1
    }
    archive=$(find "$2" -maxdepth 1 -name '*.orig.tar.*z' | head -n 1)
  fi
  tar -xf "$archive" -C "$2" --strip-components=1
}

# source_identity VERSION: another one for another source, wherever it is.
source_identity() {
  local archive variable
  variable=$(version_variable RPERF_RUBY_SOURCE "$1")
  archive=$(source_archive "$1")
  if [ -n "${!variable:-}" ]; then
    cat "${!variable}/version.h" "${!variable}/configure.ac"
  elif [ -n "$archive" ]; then
    cat "$archive"
  fi | cksum
}

# zig_target PLATFORM: as zig names it.
zig_target() {
  case $1 in
    *-gnu) echo "$1.$GLIBC" ;;
    *) echo "$1" ;;
  esac
}

# ruby_headers VERSION RUBY PLATFORM: prints the directory with the headers of VERSION for PLATFORM, as
# `include` and `arch`; RUBY is one of that version, which runs here. Only what the configuration finds is
# needed of them, so nothing is compiled.
ruby_headers() {
  local directory
  directory="$CROSS/headers-$1-$3-$({ source_identity "$1" && echo "$ZIG_VERSION $GLIBC"; } | cksum | cut -d' ' -f1)"
  [ -f "$directory/arch/ruby/config.h" ] || with_lock "$CROSS" configure_headers "$1" "$2" "$3" "$directory" >&2 || return 1
  echo "$directory"
}

configure_headers() {
  local work="$CROSS/configure.$$" directory=$4
  [ ! -f "$directory/arch/ruby/config.h" ] || return 0
  rm -rf "$CROSS"/configure.* "$directory" "$directory.partial"
  step "fetching the source of Ruby $1" ruby_source "$1" "$work" || return 1
  cd "$work" || return 1
  make_configure || return 1
  step "configuring Ruby $1 for $3" ./configure -q --host="$3" --with-baseruby="$2" --enable-shared \
    --disable-install-doc --disable-yjit CC="zig cc -target $(zig_target "$3")" AR="zig ar" RANLIB="zig ranlib" \
    LD="zig ld" NM=nm STRIP=true || return 1
  mkdir -p "$directory.partial/arch"
  cp -R include "$directory.partial/include" && cp -R .ext/include/*-linux*/ruby "$directory.partial/arch/" || return 1
  cd "$ROOT" && rm -rf "$work"
  mv "$directory.partial" "$directory"
}

# make_configure [CMD...]: in the directory of a source: one that is no release's has no `configure`. CMD is what
# programs run by.
make_configure() {
  [ ! -x configure ] || return 0
  "$@" sh -c 'command -v autoconf && [ -f /usr/share/misc/config.sub ]' >/dev/null ||
    install_system_packages autoconf autotools-dev
  step "making its configure" "$@" sh -c 'cp /usr/share/misc/config.guess /usr/share/misc/config.sub tool/ && autoconf'
}
