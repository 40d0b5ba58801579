# Rubies for other systems than this one, which run here all the same: SYSTEM is arm64 (arm64.sh) or musl
# (musl.sh). Each of these files has functions of its own:
#
#   SYSTEM_refused                the line that says why its programs don't run here; nothing if they do
#   setup_SYSTEM                  fetches and builds libraries and compilers
#   in_SYSTEM CMD...              CMD, and what it starts, may be the system's programs
#   SYSTEM_configuration VERSION  arguments of Ruby's `configure`, a line each
#   SYSTEM_libraries              what its Rubies load, apart from their own
#   SYSTEM_target                 the system, as Rust names it
#   cargo_for_SYSTEM ARGS...      cargo, which builds for it
#
# Sourced after setup.sh and cross.sh.

# find_cross_ruby SYSTEM VERSION: sets CROSS_RUBY.
find_cross_ruby() {
  local directory
  directory=$(find "$CROSS" -maxdepth 1 -name "ruby-$2.*-$1" | sort -V | tail -n 1)
  # Without a directory /bin/ruby would be the system's own.
  CROSS_RUBY=${directory:+$directory/bin/ruby}
  [ -x "$CROSS_RUBY" ]
}

# cross_ruby SYSTEM VERSION NATIVE: sets CROSS_RUBY, which is built on first use. NATIVE is a Ruby of that
# version for this system, which does what needs a Ruby as one is built.
cross_ruby() {
  find_cross_ruby "$1" "$2" || with_lock "$CROSS" build_cross_ruby "$@" || exit 1
  find_cross_ruby "$1" "$2"
}

build_cross_ruby() {
  local system=$1 version=$2 native=$3 work="$CROSS/$1-ruby.$$" prefix arguments library libraries=()
  ! find_cross_ruby "$system" "$version" || return 0
  say "building Ruby $version for $system, once; this takes 5 to 20 minutes (log: $LOG)"
  rm -rf "$CROSS/$system-ruby".*
  step "fetching the source of Ruby $version" ruby_source "$version" "$work/src" || return 1
  cd "$work/src" || return 1
  prefix="$CROSS/ruby-$version.$(awk '$2 == "RUBY_VERSION_TEENY" { print $3 }' version.h)-$system"
  drop_unused_ruby_parts
  # 4.0 loads RubyGems only if a Ruby of the same build has compiled its own code before, as none has here.
  sed -i '/^Init_builtin_features/,/^}/{/^#/d;s/ load_with/ rb_load_with/}' builtin.c || return 1
  [ -d .bundle/gems ] || adopt_extensions "$work" || return 1
  make_configure "in_$system" || return 1
  rm -rf "$prefix.partial"
  mapfile -t arguments < <("${system}_configuration" "$version")
  # YJIT's library needs an unwinder.
  step "configuring it" "in_$system" ./configure -q --build=x86_64-linux-gnu --with-baseruby="$native" \
    --prefix="$prefix.partial" --enable-shared --enable-load-relative --disable-install-doc \
    --disable-install-static-library debugflags= CXX=false LIBS=-lunwind --enable-yjit "${arguments[@]}" || return 1
  step "compiling it" "in_$system" make -j"$(getconf _NPROCESSORS_ONLN)" V=0 || return 1
  # The gems that it comes with are there, and not to be fetched.
  step "installing it into $prefix" "in_$system" make -o update-gems -o extract-gems -o prepare-gems install-nodoc V=0 ||
    return 1
  [ -d .bundle/gems ] || copy_gems "$native" "$prefix.partial" || return 1
  for library in $("${system}_libraries"); do libraries+=("-r$library"); done
  step "trying it" "in_$system" "$prefix.partial/bin/ruby" --yjit "${libraries[@]}" -rrubygems -rlogger \
    -e 'exit RubyVM::YJIT.enabled?' || return 1
  rm -rf "$prefix"
  mv "$prefix.partial" "$prefix" || return 1
  cd "$ROOT" && rm -rf "$work"
}

# zjit_of VERSION: the argument of `configure`, for versions that have it.
zjit_of() { [ "$1" = 3.4 ] || echo --enable-zjit; }

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

# write_command FILE CMD...: a command that runs CMD with its own arguments behind.
write_command() {
  local file=$1
  shift
  mkdir -p "${file%/*}"
  # shellcheck disable=SC2016
  { printf '#!/bin/sh\nexec' && printf ' %q' "$@" && printf ' "$@"\n'; } >"$file.$$"
  chmod +x "$file.$$"
  mv "$file.$$" "$file"
}
