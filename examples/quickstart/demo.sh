#!/usr/bin/env bash
# The main job on a small example; with --all, also a network that reads whole sentences.
#
#     examples/quickstart/demo.sh [--all] [DIRECTORY FOR THE RESULTS]
set -euo pipefail

all=no
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi

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

# Tune and compare systems; show where it stands, and keep all else in a log.
compare() {
    try mert-compare "$@" --dev "$data/dev.en" --dev-reference "$data/dev.fr" \
        --test "$data/test.en" --test-reference "$data/test.fr" \
        --work-dir "$run/table1" --max-iterations 5 --pop-limit 200 --nbest-size 50 \
        2> >(tee -a "$run/table1.log" | grep --line-buffered -E \
            '^[^:]+, run [0-9]+ of|^tuning ended|^compiling|the search|translating the test set')
}

echo "data/ and run/ stand for the folders $data and $run;"
echo "the commands are those of the environment that runs this (.venv/bin after make demo)."
python "$here/make.py" --directory "$data"
rm -rf "$run"
mkdir -p "$run"

say "1. A phrase-based system from two texts" \
    "The corpus is generated: 3,000 English sentences with many rare words, their French" \
    "translations, and word alignments with the errors of a statistical aligner. A phrase table is" \
    "extracted from them, and a language model is estimated. (If you have a phrase table, begin with" \
    "the next step.)"
try moses-feature system build "$data/train.en" "$data/train.fr" "$run/system" \
    --alignment "$data/aligned.grow-diag-final-and" --phrase-length 5 --order 3 --reordering none

say "2. A network for the phrase table" \
    "A network is trained on the phrase pairs for 1,500 updates: the held-out loss, in nats per" \
    "word of phrases that it has not seen, should fall. Then a quarter of the text is held out, and a" \
    "system is built of the rest, which translates these sentences into lists. The network is" \
    "refined on the lists: BLEU, as the system with this network expects it, should rise. At last" \
    "it scores the table."
# The decoder is compiled when it is first used: on the other core, while the network is trained.
head -n 1 "$data/dev.en" | mert-decode "$run/system/moses.ini" >"$run/first.out" 2>&1 &
try moses-feature model train "$run/system/phrase-table.gz" "$run/network" \
    --sizes "hidden=64 embedding=48 maxout=48 rank=48" --shortlist 2000 --dropout 0.1 \
    --learning-rate 0.005 --cooldown 0.5 --updates 1500 --evaluate-every 500 --threads 1
wait
try augment-phrase-table "$run/system/phrase-table.gz" "$run/phrase-table.gz" \
    --model "$run/network" --system "$run/system" --ini-out "$run/rnn+wp.ini"

say "3. The new columns" \
    "The last two scores of each line are new: p(target | source) of the network, and exp(-k) for k" \
    "words that it does not know. Nothing else in a line has changed. Two of these four pairs are" \
    "errors of the aligner: one has lost 'petits', one 'dort'. The table, which has seen each pair" \
    "once or twice, hardly tells them apart (third score); the network does (fifth score)."
gzip -dc "$run/phrase-table.gz" | grep -E '^(the woman sleeps|small cats see) \|\|\|' |
    awk -F ' [|][|][|] ' '{ print $1 " ||| " $2 " ||| " $3 }'
try moses-feature doctor "$run/phrase-table.gz"

say "4. What the table and the network prefer (the paper's Table 2)" \
    "The table's relative frequency and the network's probability of the same targets. Rare phrases" \
    "have several targets that the table has seen once each. The last column is what the network" \
    "draws by itself; refined for BLEU, it only has to tell the targets of the table apart."
try moses-feature table report "$run/phrase-table.gz" "$run/phrase-table.model" --output "$run/phrases.txt"
sed -n '/rare/,$p' "$run/phrases.txt" | awk -v RS= -v ORS='\n\n' 'NR <= 3'

say "5. Does it translate better? (the paper's Table 1)" \
    "The weights of both systems are tuned three times, since tuning is random. BLEU is that of a" \
    "test set that nothing was tuned on, with the standard deviation over the runs; a difference" \
    "counts if p is small (below 0.05). (The unknown word penalty has the weight 0 here: it is not" \
    "used. All that mert-compare says is in run/table1.log.)"
try moses-feature system add "$run/system/moses.ini" "$run/rnn.ini" \
    --table "$run/phrase-table.gz" --weight 0.1 --weight 0
compare Baseline="$run/system/moses.ini" RNN="$run/rnn.ini"

say "6. A sentence through the tuned system" "The first one of the test set:"
head -n 1 "$data/test.en"
head -n 1 "$data/test.en" | try moses-feature translate "$run/table1/RNN/seed-1" --tokens

say "7. The table as a page" \
    "All pairs in one plot, where table and network disagree, what the network writes by itself."
try moses-feature table report "$run/phrase-table.gz" "$run/phrase-table.model" \
    --output "$run/report.html"

if [ $all = yes ]; then
    say "8. Beyond the table: a network that reads the sentence (RNNsearch)" \
        "It is trained on the sentence pairs, and scores whole translations: a feature of the n-best" \
        "lists of the system with the new column. Its search was tuned above; what is tuned now is the" \
        "order of its lists. (What was tuned before is only repeated.)"
    try moses-feature model train-sentences "$data/train.en" "$data/train.fr" "$run/en-fr.rnnsearch" \
        --sizes "hidden=64 embedding=32 alignment=32 maxout=32" --shortlist 2000 \
        --batch-size 20 --learning-rate 0.005 --dropout 0.1 --cooldown 0.3 --updates 900
    compare Baseline="$run/system/moses.ini" RNN="$run/rnn.ini" RNN+RNNsearch="$run/rnn.ini" \
        --rescore RNN+RNNsearch:RNNsearch0="$run/en-fr.rnnsearch"
    echo "A sentence through the whole of it (write your own one to the same command):"
    head -n 1 "$data/test.en" | try moses-feature translate "$run/table1/RNN+RNNsearch/seed-1" --tokens
fi

say "What to look at" \
    "$run/table1/comparison.html in a browser: Table 1, all runs, weights, learning curves, and the" \
    "sentences that changed." \
    "$run/report.html: what the network makes of the phrase table."
say "The same with your own table" "About an hour of training, for a table of a million lines:"
[ $all = yes ] || echo "(make demo-all adds RNNsearch, a network that reads whole sentences.)"
cat <<'END'
  augment-phrase-table phrase-table.gz augmented.gz --minutes 60 \
      --source train.en --target train.fr --alignment aligned.grow-diag-final-and \
      --ini moses.ini --ini-out moses.augmented.ini
  mert-compare baseline=moses.ini rnn=moses.augmented.ini --work-dir table1 \
      --dev dev.en --dev-reference dev.fr --test test.en --test-reference test.fr

docs/tutorial.md tells the whole story, and at each step how to do it with your own table.
END
