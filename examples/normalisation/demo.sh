#!/usr/bin/env bash
# Old spelling into new by a phrase-based model of letters, in less than five minutes on two cores.
#
#     examples/normalisation/demo.sh [DIRECTORY FOR THE RESULTS]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/data
run=${1:-$here/run}

python "$here/make.py" --directory "$data"
rm -rf "$run"
mkdir -p "$run"

moses-feature system build "$data/train.old" "$data/train.new" "$run/system" \
    --alignment "$data/aligned" --phrase-length 10 --order 6 --reordering none --distortion-limit 0

paste "$data/test.old" "$data/test.new" | head -n 4

moses-feature doctor "$run/system/moses.ini" --source "$data/dev.old" --reference "$data/dev.new"
augment-phrase-table "$run/system/phrase-table.gz" "$run/phrase-table.gz" \
    --preset characters --shortlist 100 --minutes 1 \
    --ini "$run/system/moses.ini" --ini-out "$run/rnn.ini"
moses-feature model train-cslm "$data/train.new" "$run/new.cslm" \
    --preset characters --shortlist 100 --epochs 6 --self-normalisation 0.1
moses-feature system add "$run/system/moses.ini" "$run/cslm.ini" --model "$run/new.cslm"

mert-compare --metric accuracy baseline="$run/system/moses.ini" rnn="$run/rnn.ini" cslm="$run/cslm.ini" \
    --dev "$data/dev.old" --dev-reference "$data/dev.new" \
    --test "$data/test.old" --test-reference "$data/test.new" --work-dir "$run/table1"
