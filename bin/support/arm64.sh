# arm64 on x86-64, for `bin/test --arm64`: libraries, an emulator and compilers, all in the cache.
# Nothing is installed on the system, and none of it runs as root: docs/internals/arm64.md says how.
# Sourced after setup.sh, cross.sh and cross_ruby.sh.

ARM64="$CROSS/arm64"
ARM64_TARGET=aarch64-unknown-linux-gnu
# Its own C library is the newest of them, so all can be of one release, whatever the system has.
ARM64_DEBS="libc6 libgcc-s1 libcrypt1 libssl3t64 libssl-dev libzstd1 zlib1g zlib1g-dev libyaml-0-2 libyaml-dev
  libffi8 libffi-dev libgmp10 libgmp-dev"
ARM64_RELEASE=trixie
# The version of that C library.
ARM64_GLIBC=2.41
# Seconds that a process of specs may take, where RPERF_TEST_LIMIT doesn't say: the emulator is slow.
ARM64_LIMIT=7200
# For the system's own CPU. autoconf is for a source of Ruby that has no `configure` yet.
ARM64_TOOL_DEBS="binutils-aarch64-linux-gnu autoconf autotools-dev m4 libsigsegv2"

# arm64_refused: the line that says why arm64 can't be emulated here; nothing if it can.
arm64_refused() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "emulates arm64 on Linux on x86-64 only, and this is $(uname -sm)"
  elif ! has_debian_suites; then
    echo "takes libraries for arm64 from Debian's packages, and this system isn't Debian"
  elif ! have unshare || ! unshare --user --map-root-user --mount --pid --fork true 2>/dev/null; then
    echo "needs user namespaces, which this system doesn't allow"
  elif ! unshare --user --map-root-user --mount mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null; then
    echo "needs binfmt_misc in user namespaces: Linux 6.7 or newer, with /proc/sys/fs/binfmt_misc"
  else
    # These separate what the kernel is told.
    case $CROSS in *[[:space:]:,]*) echo "can't work in a cache whose path has a blank, a colon or a comma: $CROSS" ;; esac
  fi
}

# in_arm64 CMD...: CMD, and what it starts, may be programs for arm64.
in_arm64() {
  RPERF_EMULATED=1 RPERF_TEST_LIMIT="${RPERF_TEST_LIMIT:-$ARM64_LIMIT}" \
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
  write_command "$ARM64/bin/arm64-cc" "$(type -P zig)" cc -target "aarch64-linux-gnu.$ARM64_GLIBC" -fno-sanitize=undefined \
    -idirafter "$ARM64/include" -idirafter "$ARM64/include/aarch64-linux-gnu" "-L$libraries"
  # GNU's would have the LLVM of the system look into what newer ones have made.
  write_command "$ARM64/bin/arm64-ar" "$(type -P zig)" ar
  write_command "$ARM64/bin/arm64-ranlib" "$(type -P zig)" ranlib
  write_command "$ARM64/bin/arm64-rustc" "$(type -P rustc)" "--target=$ARM64_TARGET"
}

arm64_configuration() {
  local variable
  printf '%s\n' --host=aarch64-unknown-linux-gnu CC=arm64-cc RUSTC=arm64-rustc AR=arm64-ar RANLIB=arm64-ranlib
  for variable in NM LD OBJCOPY OBJDUMP STRIP; do
    echo "$variable=aarch64-linux-gnu-$(tr '[:upper:]' '[:lower:]' <<<"$variable")"
  done
  zjit_of "$1"
}

arm64_libraries() { echo fiddle openssl psych zlib; }

arm64_target() { echo "$ARM64_TARGET"; }
cargo_for_arm64() { in_arm64 cargo "$@" --target "$ARM64_TARGET.$GLIBC"; }
