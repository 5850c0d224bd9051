"""A small synchronous grammar of English and French that knows its own word alignment.

It has what makes phrase tables interesting: agreement in gender and number, adjectives before and
after the noun, negation around the verb, object pronouns before it, elision and contraction,
words that are translated by their context, and a long tail of rare words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lexicon import (
    ABLE,
    ADJECTIVES,
    ADVERBS,
    AMBIGUOUS,
    ANIMATE,
    APOSTROPHE,
    INTRANSITIVE,
    KNOW_SOMEBODY,
    KNOW_SOMETHING,
    PLACES,
    PREPOSITIONS,
    SYLLABLES,
    THINGS,
    TRANSITIVE,
    TWO_SENSES,
    Adjective,
    Noun,
    Verb,
)

T = TypeVar("T")

VOWELS = "aeiouyhàâéèêëîïôûœ"


@dataclass(frozen=True)
class Pair:
    """A piece of a sentence in both languages, and the links between their words."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    links: frozenset[tuple[int, int]]


def pair(english: str, french: str) -> Pair:
    """Link every English word of a piece to every French one."""
    source, target = tuple(english.split()), tuple(french.split())
    links = frozenset((i, j) for i in range(len(source)) for j in range(len(target)))
    return Pair(source, target, links)


def join(parts: Sequence[Pair], french_order: Sequence[int] | None = None) -> Pair:
    """Put pieces one after the other; in French in another order, if one is given."""
    order = french_order if french_order is not None else range(len(parts))
    french_start, length = {}, 0
    for index in order:
        french_start[index] = length
        length += len(parts[index].french)
    links, english_start = set(), 0
    for index, part in enumerate(parts):
        links |= {(english_start + i, french_start[index] + j) for i, j in part.links}
        english_start += len(part.english)
    return Pair(
        tuple(word for part in parts for word in part.english),
        tuple(word for index in order for word in parts[index].french),
        frozenset(links),
    )


class Grammar:
    """Draws sentence pairs; frequent words are drawn more often than rare ones (Zipf)."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self._towns = self._names(400, "ville", "bourg")
        self._people = self._names(250, "o", "a")

    def sentence(self) -> Pair:
        """Draw a sentence."""
        kinds: list[tuple[Callable[[], Pair], int]] = [
            (self._transitive, 9),
            (self._intransitive, 5),
            (self._pronoun_object, 3),
            (self._person_in_town, 4),
            (self._ambiguous, 4),
            (self._knows, 3),
        ]
        functions, weights = zip(*kinds, strict=True)
        clause = self._random.choices(functions, weights)[0]()
        if self._chance(0.25):
            clause = join([clause, pair(*self._pick(ADVERBS))])
        if self._chance(0.25):
            conjunction = self._pick([pair("and", "et"), pair("but", "mais")])
            clause = join([clause, conjunction, self._random.choices(functions, weights)[0]()])
        return join([clause, pair(".", ".")])

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, items: Sequence[T]) -> T:
        weights = [(rank + 2) ** -1.2 for rank in range(len(items))]
        return self._random.choices(items, weights)[0]

    def _names(self, count: int, *endings: str) -> list[str]:
        names: set[str] = set()
        while len(names) < count:
            stem = "".join(self._random.choices(SYLLABLES.split(), k=2))
            names.add(stem + self._random.choice(endings))
        return self._random.sample(sorted(names), count)

    def _person(self, *, plural: bool) -> Pair:
        return self._noun_phrase(self._pick(ANIMATE), plural=plural, sense=0)

    def _thing(self) -> Pair:
        return self._noun_phrase(self._pick(THINGS), plural=self._chance(0.3))

    def _noun_phrase(
        self, noun: Noun, *, plural: bool = False, sense: int = 1, definite: bool | None = None
    ) -> Pair:
        """Build a noun with its determiner and adjectives, in the sense of people or things."""
        definite = self._chance(0.6) if definite is None else definite
        core = pair(
            noun.plural if plural else noun.english, noun.french_plural if plural else noun.french
        )
        chosen = self._adjectives(sense)
        parts, order = [core], [0]
        for adjective in chosen:
            form = adjective.forms[2 * plural + noun.feminine]
            parts.insert(0, pair(adjective.english, form))
            order = [index + 1 for index in order]
            order = [0, *order] if adjective.before else [*order, 0]
        core = join(parts, order)
        return join([self._determiner(noun, plural, definite, core), core])

    def _adjectives(self, sense: int) -> list[Adjective]:
        """Draw none, one or two; the first one stands nearest to the English noun."""
        all_of_them = [*ADJECTIVES, *(senses[sense] for senses in TWO_SENSES for _ in range(3))]
        before = [adjective for adjective in all_of_them if adjective.before]
        after = [adjective for adjective in all_of_them if not adjective.before]
        count = self._random.choices([0, 1, 2], [5, 4, 1])[0]
        if count == 2:
            return [self._pick(after), self._pick(before)]
        return [self._pick(after if self._chance(0.6) else before)] if count else []

    def _determiner(self, noun: Noun, plural: bool, definite: bool, core: Pair) -> Pair:
        elided = core.french[0][0] in VOWELS
        vowel = core.english[0][0] in "aeiou"
        if definite:
            if plural:
                return pair("the", "les")
            singular = "la" if noun.feminine else "le"
            return pair("the", "l" + APOSTROPHE if elided else singular)
        if plural:
            many = not elided and self._chance(0.5)
            return pair("many", "beaucoup de") if many else pair("some", "des")
        return pair("an" if vowel else "a", "une" if noun.feminine else "un")

    def _subject(self) -> tuple[Pair, bool]:
        if self._chance(0.15):
            english, french, plural = self._random.choice(
                [("he", "il", False), ("she", "elle", False), ("they", "ils", True)]
            )
            return pair(english, french), plural
        if self._chance(0.12):
            name = self._pick(self._people)
            return pair(name, name), False
        plural = self._chance(0.35)
        return self._person(plural=plural), plural

    def _verb(self, verb: Verb, plural: bool, clitic: Pair | None = None) -> Pair:
        """Build the verb, in one of five negated, with an object pronoun before it in French."""
        french = verb.plural if plural else verb.singular
        after = [clitic] if clitic else []
        if self._chance(0.2):
            does = "do" if plural else "does"
            first = clitic.french[0] if clitic else french
            ne = "n" + APOSTROPHE if first[0] in VOWELS else "ne"
            negation = Pair((does, "not"), (ne,), frozenset({(0, 0), (1, 0)}))
            core = pair(verb.base, french)
            order = [0, 2, 1] if clitic else [0, 1]
            negated = join([negation, core, *after], order)
            links = negated.links | {(1, len(negated.french))}  # `not` is `ne … pas`
            return Pair(negated.english, (*negated.french, "pas"), links)
        core = pair(verb.base if plural else verb.third, french)
        return join([core, *after], [1, 0]) if clitic else core

    def _place(self) -> Pair:
        place = self._pick(PLACES)
        english, french = self._pick(PREPOSITIONS)
        if not french.endswith(" de"):
            return join([pair(english, french), self._noun_phrase(place, definite=True)])
        if place.french[0] in VOWELS:  # de le jardin is du jardin
            article = "de l" + APOSTROPHE
        else:
            article = "de la" if place.feminine else "du"
        before = pair(english, french.removesuffix(" de"))
        return join([before, pair("the", article), pair(place.english, place.french)])

    def _with_place(self, clause: Pair, probability: float) -> Pair:
        return join([clause, self._place()]) if self._chance(probability) else clause

    def _transitive(self) -> Pair:
        subject, plural = self._subject()
        clause = join([subject, self._verb(self._pick(TRANSITIVE), plural), self._thing()])
        return self._with_place(clause, 0.35)

    def _intransitive(self) -> Pair:
        subject, plural = self._subject()
        clause = join([subject, self._verb(self._pick(INTRANSITIVE), plural)])
        return self._with_place(clause, 0.6)

    def _pronoun_object(self) -> Pair:
        subject, plural = self._subject()
        verb = self._pick(TRANSITIVE)
        elided = (verb.plural if plural else verb.singular)[0] in VOWELS
        english, french = self._random.choice([("him", "le"), ("her", "la"), ("them", "les")])
        if elided and english != "them":
            french = "l" + APOSTROPHE
        return join([subject, self._verb(verb, plural, pair(english, french))])

    def _person_in_town(self) -> Pair:
        name, town = self._pick(self._people), self._pick(self._towns)
        verb = self._random.choice(
            [("lives", "habite"), ("arrives", "arrive"), ("works", "travaille")]
        )
        return join([pair(name, name), pair(*verb), pair("in", "à"), pair(town, town)])

    def _knows(self) -> Pair:
        subject, plural = self._subject()
        if self._chance(0.5):
            return join([subject, self._verb(KNOW_SOMEBODY, plural), self._person(plural=False)])
        return join([subject, self._verb(KNOW_SOMETHING, plural), pair(*self._random.choice(ABLE))])

    def _ambiguous(self) -> Pair:
        """Build a sentence around a noun of two senses; what is done to it tells which."""
        sense = self._random.choice(list(AMBIGUOUS))
        subject, plural = self._subject()
        many = self._chance(0.25)
        noun = self._noun_phrase(AMBIGUOUS[sense], plural=many, sense=int(sense != "animal"))
        sleep, run, _, work, *_ = INTRANSITIVE
        buy, carry, draw, hide = (TRANSITIVE[n] for n in (4, 5, 8, 10))
        if sense == "animal":
            dark = pair("in the dark", "dans le noir")
            return join([noun, self._verb(self._pick(INTRANSITIVE), many), dark])
        if sense in ("club", "write"):
            return join([subject, self._verb(carry if sense == "club" else buy, plural), noun])
        if sense == "tree":
            leaf = self._noun_phrase(THINGS[12], definite=False)
            of = "d" + APOSTROPHE if leaf.french[0][0] in VOWELS else "de"
            return join([subject, self._verb(draw, plural), noun, pair("of", of), leaf])
        if sense == "car":
            hidden = [self._verb(hide, plural), self._thing()]
            return join([subject, *hidden, pair("in", "dans"), noun])
        verb, at = {
            "river": (sleep, pair("on", "sur")),
            "money": (work, pair("in", "dans")),
            "sheep": (run, pair("in", "dans")),
        }[sense]
        return join([subject, self._verb(verb, plural), at, noun])
