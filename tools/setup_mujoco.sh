#!/bin/sh
# Brings what the simulated arm needs: MuJoCo's shared library into third_party/mujoco/lib, and on Debian the packages
# for headless OpenGL. Quiet and quick when everything is there. Exit code 3 when something can't be had.
set -eu

VERSION=3.17.0
cd "$(dirname "$0")/.."
LIB_DIR=third_party/mujoco/lib
LIB=$LIB_DIR/libmujoco.so.$VERSION
PACKAGES="libegl1 libegl-mesa0 libgl1-mesa-dri"

say() { printf '%s\n' "setup_mujoco: $*" >&2; }
die() { say "$*"; exit 3; }

case $(uname -s) in
Linux) ;;
Darwin)
    die "macOS: pip install mujoco==$VERSION, copy mujoco/libmujoco.$VERSION.dylib to $LIB_DIR/libmujoco.dylib, and
build with --features so101-sim/mujoco (physics; rendering there needs mujoco-rs/renderer-winit-fallback, untested)" ;;
*)
    die "Windows: build with --features mujoco-rs/auto-download-mujoco and MUJOCO_DOWNLOAD_DIR set, and put mujoco.dll
beside the program (physics only, untested)" ;;
esac

# The wheel for each machine, and the library in it.
case $(uname -m) in
x86_64)
    PLATFORM=manylinux_2_28_x86_64
    WHEEL_SHA=42371356efe53a5f5f73ed03fcb967bdf04048017f80e2fca01e71a360e42da2
    LIB_SHA=23496b023ee80fb61ab71167e94bc649f9941710fde96b18bb8204fb332523ad ;;
aarch64 | arm64)
    PLATFORM=manylinux_2_28_aarch64
    WHEEL_SHA=525e09a00ecd964f06582773d9eeb03bb0e5a1675edf296a6868024759b3b235
    LIB_SHA=e2edd0204fb9229f75f332a4fcd1a32345bb9f90651dc0fddfa20ec0670db789 ;;
*) die "MuJoCo has no library for $(uname -m): only x86_64 and aarch64" ;;
esac

same() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$2" ]; }

# MuJoCo: the wheel is a zip; Python is only needed to fetch and unpack it.
if ! same "$LIB" $LIB_SHA; then
    command -v python3 >/dev/null || die "python3 is missing: apt-get install python3 python3-pip"
    python3 -m pip --version >/dev/null 2>&1 || die "pip is missing: apt-get install python3-pip"
    mkdir -p $LIB_DIR
    tmp=$(mktemp -d third_party/mujoco/.tmp.XXXXXX)
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 130' INT TERM
    say "fetching MuJoCo $VERSION ($PLATFORM, 26 MB)"
    # --python-version only selects which of the wheels is meant; all of them hold the same library.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --python-version 3.12 --platform $PLATFORM --dest "$tmp" "mujoco==$VERSION" ||
        die "pip could not download mujoco==$VERSION: check the network and pip's index"
    set -- "$tmp"/mujoco-*.whl
    same "$1" $WHEEL_SHA || die "the wheel $(basename "$1") is not the pinned one (sha256 differs): not used"
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
        "$1" "mujoco/libmujoco.so.$VERSION" "$tmp"
    same "$tmp/mujoco/libmujoco.so.$VERSION" $LIB_SHA || die "the library in the wheel is not the pinned one"
    mv "$tmp/mujoco/libmujoco.so.$VERSION" "$LIB"
fi
[ "$(readlink $LIB_DIR/libmujoco.so 2>/dev/null)" = "libmujoco.so.$VERSION" ] ||
    ln -sf "libmujoco.so.$VERSION" $LIB_DIR/libmujoco.so

# Runs apt-get as root, by itself or through sudo.
apt() {
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif ! command -v sudo >/dev/null; then
        return 1
    elif [ -t 0 ]; then
        as_root=sudo
    else
        # Without a terminal nobody can type a password.
        as_root='sudo -n'
    fi
    # shellcheck disable=SC2086 # as_root is empty or words of a command
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >&2
}

# Headless OpenGL. Elsewhere than on Debian: tell, and let the rest go on (physics works without).
if command -v dpkg-query >/dev/null; then
    missing=
    for package in $PACKAGES; do
        status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        say "installing$missing"
        # shellcheck disable=SC2086 # a list of words
        { apt update && apt install -y --no-install-recommends $missing; } ||
            die "headless OpenGL could not be installed: have root run 'apt-get install$missing'"
    fi
elif ! ldconfig -p 2>/dev/null | grep -q 'libEGL\.so\.1'; then
    say "no libEGL.so.1: install your distribution's EGL and Mesa software driver for the cameras (Debian: $PACKAGES)"
fi
