# arm64 on x86-64, for `bin/test --arm64`: libraries, an emulator and Rubies for arm64, all in the cache.
# Nothing is installed on the system, and none of it runs as root: docs/internals/arm64.md says how.
# Sourced after setup.sh and cross.sh.

ARM64="$CROSS/arm64"
ARM64_TARGET=aarch64-unknown-linux-gnu
# Its own C library is the newest of them, so all can be of one release, whatever the system has.
ARM64_DEBS="libc6 libgcc-s1 libcrypt1 libssl3t64 libssl-dev libzstd1 zlib1g zlib1g-dev libyaml-0-2 libyaml-dev
  libffi8 libffi-dev libgmp10 libgmp-dev"
ARM64_RELEASE=trixie
# The version of that C library.
ARM64_GLIBC=2.41
# For the system's own CPU. autoconf is for a source of Ruby that has no `configure` yet.
ARM64_TOOL_DEBS="binutils-aarch64-linux-gnu autoconf autotools-dev m4 libsigsegv2"

# arm64_refused: the line that says why arm64 can't be emulated here; nothing if it can.
arm64_refused() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "emulates arm64 on Linux on x86-64 only, and this is $(uname -sm)"
  elif ! is_debian; then
    echo "takes libraries for arm64 from Debian's packages, and there is no apt-get here"
  elif ! have unshare || ! unshare --user --map-root-user --mount --pid --fork true 2>/dev/null; then
    echo "needs user namespaces, which this system doesn't allow"
  elif ! unshare --user --map-root-user --mount mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null; then
    echo "needs binfmt_misc in user namespaces: Linux 6.7 or newer, with /proc/sys/fs/binfmt_misc"
  fi
}

# in_arm64 CMD...: CMD, and what it starts, may be programs for arm64.
in_arm64() {
  unshare --user --map-root-user --mount --pid --fork --kill-child \
    bash "$ROOT/bin/support/arm64_namespace.sh" "$ARM64" "$@"
}

# setup_arm64: libraries, emulator and compilers.
setup_arm64() {
  setup_zig
  setup_rust_target "$ARM64_TARGET" ||
    die "needs Rust's standard library for $ARM64_TARGET, which rustup couldn't fetch (log: $LOG)"
  [ -f "$ARM64/complete" ] || with_lock "$CROSS" fetch_arm64 || exit 1
  # Their versions may have changed.
  write_arm64_compilers
}

# The system's release: what is built for a newer one may not run here.
debian_release() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

# Lists of packages for both CPUs.
arm64_apt() {
  APT_STATE="$CROSS/apt"
  make_apt_state "$(apt_sources amd64,arm64 "$(debian_release)" "$ARM64_RELEASE" | sort -u)" amd64 arm64
}

fetch_arm64() {
  local new="$ARM64.partial" package arm64=() tools=()
  [ ! -f "$ARM64/complete" ] || return 0
  arm64_apt || die "Debian's package lists can't be read: check the network (log: $LOG)"
  for package in $ARM64_DEBS; do arm64+=("$package:arm64/$ARM64_RELEASE"); done
  for package in $ARM64_TOOL_DEBS; do tools+=("$package/$(debian_release)"); done
  rm -rf "$new"
  step "fetching libraries for arm64" unpack_debs "$new/system" "${arm64[@]}" "${tools[@]}" &&
    step "fetching QEMU" unpack_debs "$new/qemu" "qemu-user/$ARM64_RELEASE" ||
    die "packages for arm64 can't be fetched: check the network (log: $LOG)"
  # In their places the system's compiler would find the headers of the other CPU.
  mv "$new/system/usr/include" "$new/include" || return 1
  mkdir -p "$new/bin"
  mv "$new/qemu/usr/bin/qemu-aarch64" "$new/bin/" || return 1
  rm -rf "$new/qemu" "$ARM64"
  touch "$new/complete"
  mv "$new" "$ARM64"
}

# The compilers that the Rubies are built with, and with which specs build extensions.
write_arm64_compilers() {
  local libraries="$ARM64/system/usr/lib/aarch64-linux-gnu"
  # Sanitizers are its default where nothing is optimised. The C library's headers are zig's own.
  write_command arm64-cc "$(type -P zig)" cc -target "aarch64-linux-gnu.$ARM64_GLIBC" -fno-sanitize=undefined \
    -idirafter "$ARM64/include" -idirafter "$ARM64/include/aarch64-linux-gnu" "-L$libraries"
  # GNU's would have the LLVM of the system look into what newer ones have made.
  write_command arm64-ar "$(type -P zig)" ar
  write_command arm64-ranlib "$(type -P zig)" ranlib
  write_command arm64-rustc "$(type -P rustc)" "--target=$ARM64_TARGET"
}

# write_command NAME CMD...: a command that runs CMD with its own arguments behind.
write_command() {
  local file="$ARM64/bin/$1"
  shift
  # shellcheck disable=SC2016
  { printf '#!/bin/sh\nexec' && printf ' %q' "$@" && printf ' "$@"\n'; } >"$file.$$"
  chmod +x "$file.$$"
  mv "$file.$$" "$file"
}

# arm64_ruby VERSION NATIVE: sets ARM64_RUBY, which is built on first use. NATIVE is a Ruby of that version
# for this system, which does what needs a Ruby as one is built.
arm64_ruby() {
  find_arm64_ruby "$1" || with_lock "$CROSS" build_arm64_ruby "$1" "$2" || exit 1
  find_arm64_ruby "$1"
}

find_arm64_ruby() {
  ARM64_RUBY=$(find "$CROSS" -maxdepth 1 -name "ruby-$1.*-arm64" | sort -V | tail -n 1)/bin/ruby
  [ -x "$ARM64_RUBY" ]
}

build_arm64_ruby() {
  local version=$1 native=$2 work="$CROSS/arm64-ruby.$$" prefix
  ! find_arm64_ruby "$version" || return 0
  say "building Ruby $version for arm64, once; this takes 10 to 20 minutes (log: $LOG)"
  rm -rf "$CROSS"/arm64-ruby.*
  step "fetching the source of Ruby $version" ruby_source "$version" "$work/src" || return 1
  cd "$work/src" || return 1
  prefix="$CROSS/ruby-$version.$(awk '$2 == "RUBY_VERSION_TEENY" { print $3 }' version.h)-arm64"
  drop_unused_ruby_parts
  # 4.0 loads RubyGems only if a Ruby of the same build has compiled its own code before, as none has here.
  sed -i '/^Init_builtin_features/,/^}/{/^#/d;s/ load_with/ rb_load_with/}' builtin.c || return 1
  [ -d .bundle/gems ] || adopt_extensions "$work" || return 1
  make_configure in_arm64 || return 1
  rm -rf "$prefix.partial"
  # YJIT's library needs an unwinder.
  # shellcheck disable=SC2046
  step "configuring it" in_arm64 ./configure -q --build=x86_64-linux-gnu --host=aarch64-unknown-linux-gnu \
    --with-baseruby="$native" --prefix="$prefix.partial" $(jits "$version") --enable-shared --enable-load-relative \
    --disable-install-doc --disable-install-static-library debugflags= CC=arm64-cc CXX=false RUSTC=arm64-rustc \
    LIBS=-lunwind AR=arm64-ar RANLIB=arm64-ranlib $(binutils NM LD OBJCOPY OBJDUMP STRIP) || return 1
  step "compiling it" in_arm64 make -j"$(getconf _NPROCESSORS_ONLN)" V=0 || return 1
  # The gems that it comes with are there, and not to be fetched.
  step "installing it into $prefix" in_arm64 make -o update-gems -o extract-gems -o prepare-gems install-nodoc V=0 ||
    return 1
  [ -d .bundle/gems ] || copy_gems "$native" "$prefix.partial" || return 1
  step "trying it" in_arm64 "$prefix.partial/bin/ruby" --yjit -rfiddle -ropenssl -rpsych -rzlib \
    -rrubygems -rlogger -e 'exit RubyVM::YJIT.enabled?' || return 1
  rm -rf "$prefix"
  mv "$prefix.partial" "$prefix" || return 1
  cd "$ROOT" && rm -rf "$work"
}

jits() {
  echo --enable-yjit
  [ "$1" = 3.4 ] || echo --enable-zjit
}

# binutils VARIABLE...: as arguments of configure.
binutils() {
  local variable
  for variable in "$@"; do echo "$variable=aarch64-linux-gnu-$(tr '[:upper:]' '[:lower:]' <<<"$variable")"; done
}

# adopt_extensions DIRECTORY: a source from Ruby's repository has no bundled gems. Those that are compiled come
# from the source of 3.4, which has them, as parts of this Ruby; the installation wants manual pages.
adopt_extensions() {
  local other="$1/3.4"
  step "fetching the source of its gems" ruby_source 3.4 "$other" || return 1
  [ -d man ] || cp -R "$other/man" . || return 1
  [ -d ext/fiddle ] || cp -R "$other/ext/fiddle" ext/ || return 1
  cp -R "$other"/.bundle/gems/bigdecimal-*/ext/bigdecimal ext/ || return 1
  cp -R "$other"/.bundle/gems/bigdecimal-*/lib ext/bigdecimal/
}

# copy_gems NATIVE PREFIX: gems in Ruby that the other Ruby has.
copy_gems() {
  local from to
  from=$("$1" -e 'print Gem.default_dir')
  to=$(echo "$2"/lib/ruby/gems/*)
  cp -Rn "$from/gems" "$from/specifications" "$to/" || return 1
  find "$to/gems" -name '*.so' -delete
}
