#!/bin/sh
# Exit code 0 if all that a container needs can be run.
#
#     health.sh [--thorough QUICKSTART | --served]
#
# With the folder of the example, a small table is augmented and its system tuned, too, by the
# embedded decoder and by Moses, if it is here. With --served, a server in this container is asked.
set -eu

if [ "${1:-}" = --served ]; then
    exec python -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:8080/health", timeout=20)'
fi
moses=${MOSES_HOME:-/opt/moses}/bin/moses
mert-tune --help > /dev/null
augment-phrase-table --help > /dev/null
decoders=embedded
if [ -x "$moses" ]; then
    "$moses" -version > /dev/null
    decoders="embedded moses"
fi
[ "${1:-}" = --thorough ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python "$2/make.py" --directory "$work/data"
cd "$work/data"
augment-phrase-table phrase-table.gz augmented.gz --updates 20 --shortlist 100 \
    --ini moses.ini --ini-out augmented.ini
for decoder in $decoders; do
    mert-tune augmented.ini --dev dev.en --dev-reference dev.fr --work-dir "$decoder" \
        --decoder "$decoder" --max-iterations 1
done
chmod -R a+rX "${NUMBA_CACHE_DIR:-$work}"
