#!/bin/sh
# Checks that `mvn` is there, from which the tests get the weights of E5-small-v2, and installs Debian's if it is not.
set -eu
command -v mvn >/dev/null && exit
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
if command -v apt-get >/dev/null && { [ -z "$as_root" ] || command -v sudo >/dev/null; }; then
  echo "Maven is not installed: installing Debian's for the tests with E5-small-v2." >&2
  $as_root apt-get install -y -qq --no-install-recommends maven >&2 ||
    { $as_root apt-get update -qq >&2 && $as_root apt-get install -y -qq --no-install-recommends maven >&2; }
  exit
fi
echo "The tests with E5-small-v2 need Maven. On Debian: sudo apt-get install maven" >&2
exit 1
