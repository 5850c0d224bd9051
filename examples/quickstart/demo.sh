#!/usr/bin/env bash
# The whole story on a small example, in about five minutes on two cores.
#
#     examples/quickstart/demo.sh [DIRECTORY FOR THE RESULTS]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/data
run=${1:-$here/run}

# Say what comes next, in lines of at most 78 characters.
say() {
    echo
    echo "== $1"
    shift
    echo "$*" | fold -s -w 78
    echo
}

# Show a command, with short names of the folders, and run it.
try() {
    local shown="$*"
    shown=${shown//$data/data}
    shown=${shown//$run/run}
    echo "\$ $shown" | fold -s -w 76 | sed '2,$s/^/    /; $!s/$/\\/'
    "$@"
}

python "$here/make.py" --directory "$data"
rm -rf "$run"
mkdir -p "$run"

say "A network for the phrase table" \
    "The corpus is generated: simple English sentences and their French translations, with the" \
    "phrase table that was extracted from them. A network is trained on its phrase pairs for less" \
    "than a minute. The held-out loss, in nats per word on phrases that it has not seen, should fall."
try augment-phrase-table "$data/phrase-table.gz" "$run/phrase-table.gz" \
    --shortlist 250 --minutes 0.6 --evaluate-every 250 \
    --ini "$data/moses.ini" --ini-out "$run/rnn+wp.ini"

say "The new columns" \
    "The last two scores of each line are new: p(target | source) of the network, and exp(-k) for k" \
    "words that it does not know. Nothing else in a line has changed."
gzip -dc "$run/phrase-table.gz" | grep '^the black dog |||' | head -n 3 | cut -c 1-78

say "Could Moses read it?"
try moses-feature table check "$run/phrase-table.gz" --ini "$run/rnn+wp.ini"

say "What the table and the network prefer (the paper's Table 2)" \
    "For long source phrases, frequent ones and rare ones: the table counts, the network has learnt" \
    "what translations look like."
try moses-feature table favourites "$run/phrase-table.gz" --count 4
try moses-feature table favourites "$run/phrase-table.gz" --frequency rare --count 3

say "A report" \
    "The same as a page, with all pairs in one plot, what the network writes by itself, and maps."
try moses-feature table report "$run/phrase-table.gz" "$run/phrase-table.model" \
    --output "$run/report.html"

say "A neural language model beside it (CSLM)" \
    "Trained on the French side. Perplexity says among how many words it hesitates, in the mean."
try moses-feature model train-cslm "$data/train.fr" "$run/french.cslm" \
    --shortlist 250 --epochs 10 --learning-rate 0.003 --self-normalisation 0.1
moses-feature model score "$run/french.cslm" < "$data/dev.fr" > "$run/dev.scores"

say "A network that reads the sentence (RNNsearch)" \
    "It is trained on the sentence pairs, and scores whole translations. By itself it translates, too:"
try moses-feature model train-rnnsearch "$data/train.en" "$data/train.fr" "$run/en-fr.search" \
    --hidden 64 --embedding 32 --alignment-units 32 --maxout 32 --shortlist 250 \
    --batch-size 20 --learning-rate 0.005 --dropout 0.1 --epochs 9
head -n 2 "$data/test.en"
head -n 2 "$data/test.en" | moses-feature model translate "$run/en-fr.search"

say "Five systems, as in the paper's Table 1 and beyond" \
    "Without the unknown word penalty (its weight is 0), with it, both with the language model, and" \
    "with RNNsearch as one more feature of the n-best lists."
try moses-feature system add "$data/moses.ini" "$run/rnn.ini" \
    --table "$run/phrase-table.gz" --weight 0.1 --weight 0
for system in rnn rnn+wp; do
    try moses-feature system add "$run/$system.ini" "$run/cslm+$system.ini" --model "$run/french.cslm"
done

say "Which one translates best?" \
    "Each system is tuned three times, since tuning is random; BLEU is shown with the standard" \
    "deviation. A difference counts if both p-values are small. On this generated language the" \
    "baseline is nearly perfect already: do not expect the paper's differences." \
    "(Shown here: where it stands. All that mert-compare says is in run/table1.log.)"
try mert-compare Baseline="$data/moses.ini" RNN="$run/rnn.ini" \
    CSLM+RNN="$run/cslm+rnn.ini" CSLM+RNN+WP="$run/cslm+rnn+wp.ini" \
    CSLM+RNN+search="$run/cslm+rnn.ini" \
    --rescore CSLM+RNN+search:RNNsearch0="$run/en-fr.search" \
    --dev "$data/dev.en" --dev-reference "$data/dev.fr" \
    --test "$data/test.en" --test-reference "$data/test.fr" \
    --work-dir "$run/table1" --jobs 2 --max-iterations 3 \
    2> >(tee "$run/table1.log" | grep --line-buffered -E '^[^:]+, run [0-9]+ of|^tuning ended')

say "What to look at" \
    "$run/table1/comparison.html in a browser: the table, all runs, weights and learning curves." \
    "$run/report.html: what the network makes of the phrase table." \
    "$run/table1/RNN/average.ini: a system with tuned weights." \
    "The next step is your own table: see docs/how-to/augmenting.md."
