#!/usr/bin/env bash
# The whole story on the quickstart example, in less than five minutes on two cores: make the
# data, train a network on the phrase table, write its scores into the table, rewrite moses.ini,
# check the result, show what the network prefers, train a neural language model, and compare the
# four systems of the paper's Table 1, each tuned three times with the embedded decoder.
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
    --shortlist 250 --minutes 1 --evaluate-every 250 \
    --ini "$data/moses.ini" --ini-out "$run/rnn+wp.ini"

echo "== The same without the unknown word penalty"
moses-feature ini add "$data/moses.ini" "$run/rnn.ini" --table "$run/phrase-table.gz" \
    --weight 0.1 --weight 0

echo "== Check"
moses-feature check "$run/phrase-table.gz" --ini "$run/rnn+wp.ini"

echo "== Lines of the new table"
gzip -dc "$run/phrase-table.gz" | grep '^the black dog |||' | head -n 3

echo "== What the table and the network prefer (Table 2 of the paper)"
moses-feature favourites "$run/phrase-table.gz" --count 6
moses-feature favourites "$run/phrase-table.gz" --kind rare --count 4

echo "== Train a neural language model (CSLM), and use it beside the other one"
moses-feature cslm train "$data/train.fr" "$run/french.cslm" \
    --shortlist 250 --epochs 10 --learning-rate 0.003 --self-normalisation 0.1
moses-feature cslm score "$run/french.cslm" < "$data/dev.fr" > "$run/dev.scores"
for system in rnn rnn+wp; do
    moses-feature ini add "$run/$system.ini" "$run/cslm+$system.ini" --cslm "$run/french.cslm"
done

echo "== Tune each system three times and compare them (Table 1 of the paper)"
mert-compare Baseline="$data/moses.ini" RNN="$run/rnn.ini" \
    CSLM+RNN="$run/cslm+rnn.ini" CSLM+RNN+WP="$run/cslm+rnn+wp.ini" \
    --dev "$data/dev.en" --dev-reference "$data/dev.fr" \
    --test "$data/test.en" --test-reference "$data/test.fr" \
    --work-dir "$run/table1" --jobs 2 --max-iterations 6 2> "$run/table1.log"

echo "== Results in $run; the log of the tuning in $run/table1.log"
ls "$run"
