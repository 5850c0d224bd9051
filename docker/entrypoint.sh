#!/bin/sh
# What a container runs: `augment`, `tune`, `compare` or `serve`, with THREADS threads (all cores by
# default), and with real Moses if the image has one; any other command as it is.
set -eu

threads=${THREADS:-$(nproc)}
case $threads in
    '' | *[!0-9]*)
        echo "THREADS: expected a number, found $threads" >&2
        exit 2
        ;;
esac
moses=${MOSES_HOME:-/opt/moses}/bin/moses
# Compiled code is read as pickles: only from a folder that nobody else can write.
private=$(mktemp -d)
[ ! -d "${NUMBA_CACHE_DIR:-}" ] || cp -R "$NUMBA_CACHE_DIR/." "$private"
NUMBA_CACHE_DIR=$private
XDG_CACHE_HOME=$private
export NUMBA_CACHE_DIR XDG_CACHE_HOME

tuning_options() {
    if [ -x "$moses" ]; then
        echo "translating with $moses, $threads threads (--decoder embedded for the other one)" >&2
        echo "--decoder moses --jobs $threads"
    else
        echo "translating with the embedded decoder, $threads processes" >&2
        echo "--jobs $threads"
    fi
}

moses_version() {
    [ -x "$moses" ] && echo "$moses" || echo "none, the embedded decoder translates"
}

command=${1:-help}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2046 # tuning_options are several
case $command in
    augment) exec augment-phrase-table --threads "$threads" "$@" ;;
    tune) exec mert-tune $(tuning_options) "$@" ;;
    compare) exec mert-compare $(tuning_options) "$@" ;;
    serve) exec moses-feature serve --host 0.0.0.0 --jobs "$threads" "$@" ;;
    help | --help | -h)
        echo "augment, tune, compare or serve and their options; --help after one of them shows these"
        echo "any other command is run as it is, such as: moses-feature doctor augmented.gz"
        echo "THREADS in the environment: how many, $threads now; Moses: $(moses_version)"
        ;;
    *)
        if [ "${command#-}" != "$command" ] || ! command -v "$command" > /dev/null; then
            echo "no command $command; augment, tune, compare, serve, help, or one of moses-feature" >&2
            exit 127
        fi
        exec "$command" "$@"
        ;;
esac
