# What the set-up needs of the system and can't make: named, or installed, all at
# once and before anything begins.

# check_needs PARTS: installs the packages that are missing, or ends with one line
# that names all of it.
check_needs() {
  local packages='' rust=''
  if [ -z "$RUBY" ] && ! find_ruby; then
    announce_ruby
    packages=$RUBY_BUILD_PACKAGES
    rust=$(rust_obstacle) # YJIT is built with it
  fi
  case $1 in
    *" extension "*)
      # What is built needs nothing of it; without a Ruby that isn't known.
      if [ -n "$RUBY" ] && is_built; then packages='' && return; fi
      rust=$(rust_obstacle)
      have_libclang || packages="$packages libclang-dev"
      have cc || packages="$packages gcc libc6-dev"
      ;;
  esac
  # shellcheck disable=SC2086
  packages=$(missing_packages $packages)
  if [ -z "$rust" ]; then
    # shellcheck disable=SC2086
    [ -z "$packages" ] || with_lock "$CACHE" install_system_packages $packages || exit 1
  elif [ -z "$packages" ] || may_install; then
    die "$rust"
  else
    die "$rust; and needs root once: sudo apt-get install $packages"
  fi
}

# missing_packages PKG...: those that aren't installed, in a line.
missing_packages() {
  local pkg missing=''
  is_debian || return 0
  for pkg in "$@"; do
    case " $missing " in *" $pkg "*) continue ;; esac
    dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null | grep -q 'ok installed' || missing="$missing${missing:+ }$pkg"
  done
  echo "$missing"
}

may_install() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
