#!/bin/sh
# Copy Moses out of the file system of an image that holds it: binaries, scripts, and the shared
# libraries that this system has not. Out of an empty image comes nothing.
#
#     collect-moses.sh ROOT DESTINATION [DIRECTORY IN ROOT]
set -eu

root=$1
destination=$2
if [ -n "${3:-}" ]; then
    set -- "$3"
else
    set -- /opt/moses /opt/bin/moses /mosesdecoder /home/moses/mosesdecoder
fi

[ -d "$root" ] || { echo "$root: expected a directory" >&2 && exit 1; }
mkdir -p "$destination/lib"
home=
for directory in "$@"; do
    if [ -x "$root$directory/bin/moses" ]; then
        home=$root$directory
        break
    fi
done
if [ -z "$home" ]; then
    if [ -n "$(find "$root" -mindepth 1 -type f 2>/dev/null | head -n 1)" ]; then
        echo "no bin/moses in the image: looked in $*; MOSES_DIR says where it is (no links to" \
            "absolute paths)" >&2
        exit 1
    fi
    echo "an empty image: without Moses" >&2
    exit 0
fi

cp -RL "$home/bin" "$destination/"
if [ -d "$home/scripts" ]; then
    cp -R "$home/scripts/" "$destination/scripts"
else
    echo "no scripts beside bin in the image: Moses alone" >&2
fi

missing_libraries() {
    LD_LIBRARY_PATH="$destination/lib" \
        find "$destination/bin" "$destination/lib" -type f -exec ldd {} + 2>/dev/null |
        awk '/not found/ { print $1 }' | sort -u
}

missing=$(missing_libraries)
before=
while [ -n "$missing" ] && [ "$missing" != "$before" ]; do # a library may need another one
    for library in $missing; do
        found=$(find "$root" -name "$library" -not -path "$root/proc/*" 2>/dev/null | head -n 1)
        if [ -n "$found" ]; then
            cp -L "$found" "$destination/lib/$library"
        fi
    done
    before=$missing
    missing=$(missing_libraries)
done
if ! LD_LIBRARY_PATH="$destination/lib" "$destination/bin/moses" -version; then
    echo "Moses of ${home#"$root"} does not run here; libraries that are missing: ${missing:-none}" >&2
    exit 1
fi
