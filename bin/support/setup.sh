# Sourced by every script under bin/, which has set $ROOT: `setup PART...` sees
# to it that the parts named are there, in the order ruby, gems, extension. When
# nothing is missing it costs some tens of milliseconds.
#
# Sets RUBY, GEM_ROOT, GEMS_WITHOUT and GEM_DEFAULT_DIR, and puts that Ruby first in PATH.

for part in common debian needs ruby gems extension; do
  # shellcheck source=/dev/null
  . "$ROOT/bin/support/$part.sh"
done
unset part

# What was found, for this checkout.
SETUP_STAMP="$ROOT/tmp/setup.env"
# Comes first in PATH: rspec, rubocop, and `ruby` where it has another name.
SETUP_BIN="$ROOT/tmp/bin"

setup() {
  local part parts=" $* "
  load_stamp
  for part in ruby gems; do
    case $parts in *" $part "*) part_ready "$part" || setup_found=no ;; esac
  done
  if [ "$setup_found" = no ] || { case $parts in *" extension "*) ;; *) false ;; esac && ! is_built; }; then
    check_needs "$parts"
  fi
  if [ "$setup_found" = no ]; then
    with_lock "$CACHE" find_or_install "$parts" || exit 1
    load_stamp
    [ "$setup_found" = yes ] || die "the set-up left no usable Ruby; see $LOG"
  fi
  case $parts in
    *" extension "*) is_built || with_lock "$ROOT/tmp" setup_extension_once || exit $? ;;
  esac
  put_ruby_first
}

part_ready() {
  case $1 in
    ruby) [ -x "$RUBY" ] ;;
    gems) [ "$GEM_ROOT" = bundler ] || { [ "$GEM_ROOT" = "$(debian_gems_directory)" ] && [ -f "$GEM_ROOT/complete" ]; } ;;
  esac
}

# Runs under the lock, in a subshell; its result is the stamp.
find_or_install() {
  load_stamp # another set-up may have been here while this one waited
  part_ready ruby || setup_ruby "$1"
  GEM_DEFAULT_DIR=$("$RUBY" -e 'print Gem.default_dir')
  case $1 in
    *" gems "*)
      part_ready gems || setup_gems
      write_gem_commands "$SETUP_BIN"
      ;;
  esac
  mkdir -p "$SETUP_BIN"
  ln -sfn "$RUBY" "$SETUP_BIN/ruby"
  {
    printf 'STAMP_KEY=%q\n' "$(stamp_key)"
    printf 'STAMP_PATH_RUBY=%q\n' "$(type -P ruby)"
    printf 'RUBY=%q\nGEM_ROOT=%q\nGEMS_WITHOUT=%q\nGEM_DEFAULT_DIR=%q\n' \
      "$RUBY" "$GEM_ROOT" "$GEMS_WITHOUT" "$GEM_DEFAULT_DIR"
  } >"$SETUP_STAMP.new"
  mv "$SETUP_STAMP.new" "$SETUP_STAMP"
}

setup_extension_once() { is_built || setup_extension; }

# load_stamp: what was found last time, if it still holds.
load_stamp() {
  RUBY='' GEM_ROOT='' GEMS_WITHOUT='' GEM_DEFAULT_DIR='' STAMP_KEY='' STAMP_PATH_RUBY=''
  # shellcheck source=/dev/null
  [ ! -f "$SETUP_STAMP" ] || . "$SETUP_STAMP"
  RECORDED_RUBY=$RUBY
  setup_found=yes
  [ -n "$STAMP_KEY" ] && [ -x "$RUBY" ] && [ "$STAMP_KEY" = "$(stamp_key)" ] && path_ruby_known && return
  RUBY='' GEM_ROOT='' GEMS_WITHOUT='' GEM_DEFAULT_DIR='' setup_found=no
}

# Another `ruby` in PATH than last time is a reason to look again; our own isn't.
path_ruby_known() {
  case $(type -P ruby) in
    "$STAMP_PATH_RUBY" | "$RUBY" | "$SETUP_BIN/ruby") ;;
    *) return 1 ;;
  esac
}

stamp_key() {
  local files=("$ROOT"/bin/support/*.sh)
  [ ! -f "$ROOT/Gemfile" ] || files+=("$ROOT/Gemfile")
  { cat "${files[@]}" && printf '%s\n' "$ROOT" "$CACHE" "${RPERF_RUBY:-}"; } | cksum
}

# put_ruby_first: `ruby` in PATH is the project's. A PATH that is right already
# is left alone, so that nothing else is shadowed.
put_ruby_first() {
  case $(type -P ruby) in "$RUBY" | "$SETUP_BIN/ruby") return ;; esac
  case ${RUBY##*/} in
    ruby) PATH="${RUBY%/*}:$PATH" ;;
    *) PATH="$SETUP_BIN:${RUBY%/*}:$PATH" ;;
  esac
  export PATH
}
