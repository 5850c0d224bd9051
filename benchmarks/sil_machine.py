"""A phrase-based system of sil-machine (Thot) from the same texts, as a peer of `system build`.

    python benchmarks/sil_machine.py train.en train.fr test.en test.fr FOLDER

Needs `pip install 'sil-machine[thot]'` beside this package. Its trainer holds 1,000 sentence pairs
of the text out and tunes on them; it has a trigram model and links of HMM. Prints BLEU of the test
set, as `mert-compare` has it, and seconds; FOLDER keeps the model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import sacrebleu
from machine.corpora import TextFileTextCorpus
from machine.tokenization import WHITESPACE_TOKENIZER
from machine.translation.thot import ThotSmtModel, ThotSmtModelTrainer, ThotSmtParameters

LINKS = "hmm"
"""Its kind of word alignment."""


def parameters_in(folder: Path) -> ThotSmtParameters:
    """Return the parameters of a model whose files are in a folder."""
    return ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "tm/src_trg"),
        language_model_filename_prefix=str(folder / "lm/trg.lm"),
    )


def main() -> None:
    """Build, tune and translate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("source", "target", "test", "reference", "folder"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    for name in ("tm", "lm"):
        (given.folder / name).mkdir(parents=True, exist_ok=True)
    texts = TextFileTextCorpus(given.source), TextFileTextCorpus(given.target)
    begun = time.perf_counter()
    parameters = parameters_in(given.folder)
    with ThotSmtModelTrainer(LINKS, texts[0].align_rows(texts[1]), parameters) as trainer:
        trainer.train()
        trainer.save()
        parameters = trainer.parameters
    trained = time.perf_counter()
    sentences = given.test.read_text().splitlines()
    with ThotSmtModel(LINKS, parameters, WHITESPACE_TOKENIZER) as model:
        found = [
            " ".join(result.target_tokens)
            for result in model.translate_batch([line.split() for line in sentences])
        ]
    translated = time.perf_counter()
    (given.folder / "translations").write_text("".join(f"{line}\n" for line in found))
    references = given.reference.read_text().splitlines()
    bleu = sacrebleu.corpus_bleu(found, [references], smooth_method="none", tokenize="none")
    print(f"BLEU {bleu.score:.2f}")
    print(f"training and tuning {trained - begun:.0f} s, translating {translated - trained:.0f} s")


if __name__ == "__main__":
    main()
