# Finds a Ruby >= 3.4 that can build extensions, or builds one from Debian's
# source package into the cache. Sets RUBY.

RUBY_BUILD_PACKAGES="gcc make libc6-dev xz-utils dpkg-dev libssl-dev libyaml-dev zlib1g-dev libffi-dev libgmp-dev"
# Bundled gems that the project has no use for and that take long to build.
RUBY_UNUSED_GEMS='rbs|typeprof|repl_type_completor|nkf|syslog|debug'

# setup_ruby PARTS: what else is set up can begin while a Ruby is built.
setup_ruby() { find_ruby || build_ruby "$1"; }

# fitting_ruby CANDIDATE: prints the path of the Ruby behind it (a version
# manager's shim names another file) if it fits; fails with 4 if only its headers
# are missing.
fitting_ruby() {
  [ -x "$1" ] && env -u RUBYOPT -u RUBYLIB "$1" -rrbconfig -e '
    exit 1 if RUBY_ENGINE != "ruby" || (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 4]) < 0
    exit 4 unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))
    puts RbConfig.ruby' 2>/dev/null
}

ruby_candidates() {
  local directory
  [ -z "${RPERF_RUBY:-}" ] || echo "$RPERF_RUBY"
  type -ap ruby || true
  rubies_with_versions
  while read -r directory; do
    # The newest of each first; *.partial is a build that was cut short.
    find "$directory" -maxdepth 1 -mindepth 1 ! -name '*.partial' 2>/dev/null | sort -rV | sed 's|$|/bin/ruby|' || true
  done < <(ruby_directories)
  # That of the last set-up, which may have had another cache.
  [ -z "$RECORDED_RUBY" ] || echo "$RECORDED_RUBY"
}

# In PATH, by names as distributions have them (Debian's ruby3.4), the newest first.
rubies_with_versions() {
  local directory
  tr : '\n' <<<"$PATH" | while IFS= read -r directory; do
    find "${directory:-.}/" -maxdepth 1 -name 'ruby[0-9].[0-9]*' 2>/dev/null | sort -rV || true
  done
}

# Where version managers have their Rubies, each in a directory of its own: rbenv, mise, asdf, rvm, chruby with
# ruby-install; and we.
ruby_directories() {
  local data="${XDG_DATA_HOME:-$USER_HOME/.local/share}"
  printf '%s\n' "${RBENV_ROOT:-$USER_HOME/.rbenv}/versions" "${MISE_DATA_DIR:-$data/mise}/installs/ruby" \
    "${ASDF_DATA_DIR:-$USER_HOME/.asdf}/installs/ruby" "$USER_HOME/.rvm/rubies" /usr/local/rvm/rubies \
    "$USER_HOME/.rubies" /opt/rubies "$CACHE"
}

find_ruby() {
  local candidate
  if [ -n "${RPERF_RUBY:-}" ] && [ -z "$(fitting_ruby "$RPERF_RUBY")" ]; then
    die "RPERF_RUBY=$RPERF_RUBY is no Ruby >= 3.4 with its headers"
  fi
  while read -r candidate; do
    RUBY=$(fitting_ruby "$candidate") || continue
    [ -z "$RUBY" ] || return 0
  done < <(ruby_candidates)
  RUBY=''
  return 1
}

# Says which Rubies would do if they had their headers.
name_headless_rubies() {
  local candidate status package
  while read -r candidate; do
    status=0
    fitting_ruby "$candidate" >/dev/null || status=$?
    [ "$status" -eq 4 ] || continue
    package=${candidate##*/}
    case $package in ruby[0-9]*) ;; *) package=ruby ;; esac
    say "$candidate would do, but its headers are missing$(! is_debian || echo "; to have them: sudo apt-get install $package-dev")"
  done < <(ruby_candidates | sort -u)
}

# Says that one is going to be built, and why.
announce_ruby() {
  if ! has_debian_suites; then
    name_headless_rubies
    die "needs Ruby >= 3.4 with its headers in PATH (or RPERF_RUBY=/path/to/ruby); install one with your system's packages, rbenv, mise or asdf"
  fi
  say "no Ruby >= 3.4 found, neither in PATH nor of a version manager nor in $CACHE"
  name_headless_rubies
  say "building one there, once; this takes 5 to 10 minutes (log: $LOG; RPERF_RUBY=/path/to/ruby chooses another)"
}

build_ruby() {
  local work="$CACHE/build.$$" version prefix cargo=''
  # Much of what follows keeps one core busy only.
  case $1 in
    *" extension "*)
      say "compiling what needs no Ruby meanwhile"
      # By exec, so that it ends with us: bash has what runs in the background ignore Ctrl-C.
      (compile_without_ruby >>"$LOG" 2>&1 </dev/null) &
      cargo=$!
      # shellcheck disable=SC2064
      trap "kill $cargo 2>/dev/null" EXIT
      ;;
  esac
  # A build that was killed may have left processes: never reuse its directory.
  rm -rf "$CACHE"/build.* "$CACHE"/ruby-*.partial
  mkdir -p "$work/src"
  cd "$work" || exit 1
  version=$(fetch_source private_sources) || version=$(fetch_source private_apt) ||
    die "no source package of Ruby 3.4 could be fetched: check the network, or install Ruby >= 3.4 by hand and put it in PATH"
  version=${version%%-*}
  prefix="$CACHE/ruby-$version"
  tar xf ruby3.4_*.orig.tar.xz -C src --strip-components=1 || die "can't unpack Ruby's source; see $LOG"
  cd src || exit 1
  drop_unused_ruby_parts
  step "configuring Ruby $version" ./configure -q --prefix="$prefix.partial" --enable-shared --enable-yjit \
    --disable-install-doc --disable-install-static-library --enable-load-relative debugflags= || exit 1
  step "compiling Ruby $version" make -j"$(getconf _NPROCESSORS_ONLN)" V=0 || exit 1
  step "installing Ruby $version into $prefix" make install-nodoc V=0 || exit 1
  # The rename makes it visible only when it is whole; --enable-load-relative allows it.
  rm -rf "$prefix"
  mv "$prefix.partial" "$prefix" || exit 1
  cd "$ROOT" || exit 1
  rm -rf "$work"
  RUBY=$(fitting_ruby "$prefix/bin/ruby") || die "the Ruby built in $prefix doesn't work; see $LOG"
  # Who tells must not be ended as it begins: with a trap for the end, bash complains.
  [ -z "$cargo" ] || ! kill -0 "$cargo" 2>/dev/null || telling "compiling what needs no Ruby" wait_for "$cargo"
  trap - EXIT
}

# fetch_source LISTS: by private_sources or private_apt; prints the version.
fetch_source() {
  "$1" || return
  say "fetching Ruby's source"
  telling "fetching it" download_source ruby3.4
}

# What failed there is tried again, and told, when Ruby is there.
wait_for() { wait "$1" || true; }

drop_unused_ruby_parts() {
  local gem
  rm -rf ext/-test- spec/ruby/optional/capi/ext
  for gem in ${RUBY_UNUSED_GEMS//|/ }; do
    rm -rf .bundle/gems/"$gem"-[0-9]* .bundle/specifications/"$gem"-[0-9]*
  done
  sed -i -E "/^($RUBY_UNUSED_GEMS) /d" gems/bundled_gems
}
