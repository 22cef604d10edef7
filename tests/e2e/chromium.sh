#!/bin/sh
# Prints where Chromium or Chrome is. `chromium.sh --install` first brings Debian's, where there is none.
set -eu
find_it() {
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" && return
  done
  return 1
}
install_it() {
  as_root=
  [ "$(id -u)" = 0 ] || as_root=sudo
  command -v apt-get >/dev/null && { [ -z "$as_root" ] || command -v sudo >/dev/null; } || return 1
  echo "No Chromium here: installing Debian's for the tests in a browser." >&2
  $as_root apt-get install -y -qq --no-install-recommends chromium >&2 ||
    { $as_root apt-get update -qq >&2 && $as_root apt-get install -y -qq --no-install-recommends chromium >&2; }
}
find_it && exit
[ "${1:-}" = --install ] && install_it && find_it && exit
echo "The tests in a browser need Chromium or Chrome. On Debian: sudo apt-get install chromium" >&2
exit 1
