#!/usr/bin/env bash
# The main job on the quickstart example, in about three minutes on two cores:
# make the data, train a network on the phrase table, write its scores into the table,
# rewrite moses.ini, check the result, and show what the network prefers.
#
#     examples/quickstart/demo.sh [DIRECTORY FOR THE RESULTS]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/data
run=${1:-$here/run}

python "$here/make.py" --directory "$data"
rm -rf "$run"
mkdir -p "$run"

echo "== Train on the table, score it, rewrite the ini"
augment-phrase-table "$data/phrase-table.gz" "$run/phrase-table.gz" \
    --shortlist 250 --minutes 2 --evaluate-every 250 \
    --ini "$data/moses.ini" --ini-out "$run/moses.ini"

echo "== Check"
moses-feature check "$run/phrase-table.gz" --ini "$run/moses.ini"

echo "== Lines of the new table"
gzip -dc "$run/phrase-table.gz" | grep '^the black dog |||' | head -n 3

echo "== What the table and the network prefer (Table 2 of the paper)"
moses-feature favourites "$run/phrase-table.gz" --count 6
moses-feature favourites "$run/phrase-table.gz" --kind rare --count 4

echo "== Results in $run"
ls "$run"
