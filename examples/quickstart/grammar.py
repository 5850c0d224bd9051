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

T = TypeVar("T")

APOSTROPHE = "&apos;"  # as Moses' tokenizer escapes it
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


@dataclass(frozen=True)
class Noun:
    """A noun in both languages, singular and plural; its French gender."""

    english: str
    plural: str
    french: str
    french_plural: str
    feminine: bool = False


@dataclass(frozen=True)
class Adjective:
    """An adjective, its French forms, and whether it stands before the noun."""

    english: str
    forms: tuple[str, str, str, str]  # masculine, feminine, masculine plural, feminine plural
    before: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb in the third person present; in English also the base form."""

    base: str
    third: str
    singular: str
    plural: str


def nouns(text: str) -> list[Noun]:
    """Read nouns: english french gender, regular plurals unless given after a slash."""
    result = []
    for line in text.strip().splitlines():
        english, french, gender = line.split()
        singular, _, plural = english.partition("/")
        french_singular, _, french_plural = french.partition("/")
        result.append(
            Noun(
                singular,
                plural or f"{singular}s",
                french_singular,
                french_plural or f"{french_singular}s",
                gender == "f",
            )
        )
    return result


ANIMATE = nouns("""
dog chien m
cat chat m
man/men homme m
woman/women femme f
child/children enfant m
girl fille f
boy garçon m
horse cheval/chevaux m
bird oiseau/oiseaux m
teacher professeur m
doctor médecin m
farmer fermier m
nurse infirmière f
singer chanteuse f
mouse/mice souris/souris f
cow vache f
student étudiant m
neighbour voisin m
queen reine f
king roi m
sailor marin m
baker boulanger m
""")
THINGS = nouns("""
book livre m
letter lettre f
house maison f
car voiture f
apple pomme f
bread pain m
table table f
chair chaise f
window fenêtre f
door porte f
key clé f
hat chapeau/chapeaux m
tree arbre m
flower fleur f
boat bateau/bateaux m
bicycle vélo m
picture image f
bag sac m
coat manteau/manteaux m
knife/knives couteau/couteaux m
bottle bouteille f
shoe chaussure f
newspaper journal/journaux m
guitar guitare f
""")
PLACES = nouns("""
garden jardin m
kitchen cuisine f
street rue f
park parc m
school école f
church église f
village village m
river rivière f
field champ m
forest forêt f
market marché m
station gare f
""")
ADJECTIVES = [
    Adjective("small", ("petit", "petite", "petits", "petites"), before=True),
    Adjective("big", ("grand", "grande", "grands", "grandes"), before=True),
    Adjective("pretty", ("joli", "jolie", "jolis", "jolies"), before=True),
    Adjective("bad", ("mauvais", "mauvaise", "mauvais", "mauvaises"), before=True),
    Adjective("black", ("noir", "noire", "noirs", "noires")),
    Adjective("white", ("blanc", "blanche", "blancs", "blanches")),
    Adjective("green", ("vert", "verte", "verts", "vertes")),
    Adjective("red", ("rouge", "rouge", "rouges", "rouges")),
    Adjective("blue", ("bleu", "bleue", "bleus", "bleues")),
    Adjective("heavy", ("lourd", "lourde", "lourds", "lourdes")),
    Adjective("expensive", ("cher", "chère", "chers", "chères")),
    Adjective("happy", ("heureux", "heureuse", "heureux", "heureuses")),
    Adjective("tired", ("fatigué", "fatiguée", "fatigués", "fatiguées")),
    Adjective("strange", ("étrange", "étrange", "étranges", "étranges")),
]
TRANSITIVE = [
    Verb("see", "sees", "voit", "voient"),
    Verb("like", "likes", "aime", "aiment"),
    Verb("look for", "looks for", "cherche", "cherchent"),
    Verb("find", "finds", "trouve", "trouvent"),
    Verb("buy", "buys", "achète", "achètent"),
    Verb("carry", "carries", "porte", "portent"),
    Verb("sell", "sells", "vend", "vendent"),
    Verb("watch", "watches", "regarde", "regardent"),
    Verb("draw", "draws", "dessine", "dessinent"),
    Verb("lose", "loses", "perd", "perdent"),
    Verb("hide", "hides", "cache", "cachent"),
    Verb("wait for", "waits for", "attend", "attendent"),
]
INTRANSITIVE = [
    Verb("sleep", "sleeps", "dort", "dorment"),
    Verb("run", "runs", "court", "courent"),
    Verb("sing", "sings", "chante", "chantent"),
    Verb("work", "works", "travaille", "travaillent"),
    Verb("play", "plays", "joue", "jouent"),
    Verb("arrive", "arrives", "arrive", "arrivent"),
    Verb("laugh", "laughs", "rit", "rient"),
    Verb("dance", "dances", "danse", "dansent"),
]
# The same English verb, two French ones: one for people, one for things.
MEET = Verb("know", "knows", "connaît", "connaissent")
LEARN = Verb("know", "knows", "sait", "savent")
DRIVE = Verb("drive", "drives", "conduit", "conduisent")
# The same English noun, two French ones, told apart by what is done to it or where it is.
AMBIGUOUS = [
    ("bank/banks", [("river", "rive/rives", "f"), ("money", "banque/banques", "f")]),
    ("bat/bats", [("animal", "chauve-souris/chauves-souris", "f"), ("club", "batte/battes", "f")]),
    ("trunk/trunks", [("tree", "tronc/troncs", "m"), ("car", "coffre/coffres", "m")]),
    ("pen/pens", [("write", "stylo/stylos", "m"), ("sheep", "enclos/enclos", "m")]),
]
ADVERBS = [
    ("today", "aujourd" + APOSTROPHE + "hui"),
    ("often", "souvent"),
    ("at night", "la nuit"),
    ("every day", "tous les jours"),
    ("in the morning", "le matin"),
    ("slowly", "lentement"),
    ("again", "encore"),
]
SYLLABLES = [
    "bar",
    "bel",
    "cor",
    "dam",
    "fen",
    "gal",
    "hav",
    "jor",
    "kel",
    "lin",
    "mar",
    "nol",
    "pel",
    "quin",
    "ros",
    "sal",
    "tor",
    "val",
    "win",
    "zel",
]


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
        if self._chance(0.2):
            english, french = self._pick(ADVERBS)
            clause = join([clause, pair(english, french)])
        if self._chance(0.12):
            conjunction = self._pick([pair("and", "et"), pair("but", "mais")])
            clause = join([clause, conjunction, self._intransitive()])
        return join([clause, pair(".", ".")])

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, items: Sequence[T]) -> T:
        weights = [1 / (rank + 2) for rank in range(len(items))]
        return self._random.choices(items, weights)[0]

    def _names(self, count: int, *endings: str) -> list[str]:
        names: set[str] = set()
        while len(names) < count:
            stem = "".join(self._random.choices(SYLLABLES, k=2))
            names.add(stem + self._random.choice(endings))
        return self._random.sample(sorted(names), count)

    def _noun_phrase(
        self,
        noun: Noun,
        plural: bool = False,
        adjectives: bool = True,
        definite: bool | None = None,
    ) -> Pair:
        if definite is None:
            definite = self._chance(0.6)
        parts = [
            pair(
                noun.plural if plural else noun.english,
                noun.french_plural if plural else noun.french,
            )
        ]
        order = [0]
        form = 2 * plural + noun.feminine
        count = self._random.choices([0, 1, 2], [6, 4, 1])[0] if adjectives else 0
        before = [adjective for adjective in ADJECTIVES if adjective.before]
        after = [adjective for adjective in ADJECTIVES if not adjective.before]
        chosen = [self._pick(after)] if count and self._chance(0.6) else []
        if count > len(chosen):
            chosen.insert(0, self._pick(before))
        for adjective in reversed(chosen):
            parts.insert(0, pair(adjective.english, adjective.forms[form]))
            order = [index + 1 for index in order]
            order = [0, *order] if adjective.before else [*order, 0]
        core = join(parts, order)
        return join([self._determiner(noun, plural, definite, core), core])

    def _determiner(self, noun: Noun, plural: bool, definite: bool, core: Pair) -> Pair:
        elided = core.french[0][0] in VOWELS
        vowel = core.english[0][0] in "aeiou"
        if definite:
            if plural:
                return pair("the", "les")
            singular = "la" if noun.feminine else "le"
            return pair("the", "l" + APOSTROPHE if elided else singular)
        if plural:
            return pair(
                *self._random.choice([("some", "des"), ("many", "beaucoup de")])
                if not elided
                else ("some", "des")
            )
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
        return self._noun_phrase(self._pick(ANIMATE), plural), plural

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
        english, french = self._pick([("in", "dans"), ("near", "près de"), ("behind", "derrière")])
        if french == "près de":
            return join([pair("near", "près"), self._of(place)])
        return join([pair(english, french), self._noun_phrase(place, definite=True)])

    def _of(self, place: Noun) -> Pair:
        """Build `the X` after `près`: de la, de l', or du for de le."""
        core = pair(place.english, place.french)
        if place.french[0] in VOWELS:
            article = "de l" + APOSTROPHE
        else:
            article = "de la" if place.feminine else "du"
        return join([pair("the", article), core])

    def _with_place(self, clause: Pair, probability: float) -> Pair:
        return join([clause, self._place()]) if self._chance(probability) else clause

    def _transitive(self) -> Pair:
        subject, plural = self._subject()
        thing = self._noun_phrase(self._pick(THINGS), self._chance(0.3))
        clause = join([subject, self._verb(self._pick(TRANSITIVE), plural), thing])
        return self._with_place(clause, 0.35)

    def _intransitive(self) -> Pair:
        subject, plural = self._subject()
        clause = join([subject, self._verb(self._pick(INTRANSITIVE), plural)])
        return self._with_place(clause, 0.6)

    def _pronoun_object(self) -> Pair:
        subject, plural = self._subject()
        verb = self._pick(TRANSITIVE)
        singular = verb.plural if plural else verb.singular
        elided = "l" + APOSTROPHE if singular[0] in VOWELS else None
        english, french = self._random.choice([("him", "le"), ("her", "la"), ("them", "les")])
        if elided and english != "them":
            french = elided
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
            return join([subject, self._verb(MEET, plural), self._noun_phrase(self._pick(ANIMATE))])
        manner = self._random.choice(
            [
                ("how to swim", "nager"),
                ("how to read", "lire"),
                ("how to drive", "conduire"),
                ("the answer", "la réponse"),
            ]
        )
        return join([subject, self._verb(LEARN, plural), pair(*manner)])

    def _ambiguous(self) -> Pair:
        english, senses = self._random.choice(AMBIGUOUS)
        sense, french, gender = self._random.choice(senses)
        noun = nouns(f"{english} {french} {gender}")[0]
        subject, plural = self._subject()
        many = self._chance(0.25)
        thing = self._noun_phrase(noun, many, adjectives=self._chance(0.3))
        sleep, run, _, work, *_ = INTRANSITIVE
        buy, carry, draw, hide = (TRANSITIVE[n] for n in (4, 5, 8, 10))
        contexts = {
            "river": lambda: [subject, self._verb(sleep, plural), pair("on", "sur"), thing],
            "money": lambda: [subject, self._verb(work, plural), pair("in", "dans"), thing],
            "animal": lambda: [
                thing,
                self._verb(self._pick(INTRANSITIVE), many),
                pair("in the dark", "dans le noir"),
            ],
            "club": lambda: [subject, self._verb(carry, plural), thing],
            "tree": lambda: [
                subject,
                self._verb(draw, plural),
                thing,
                pair("of", "de"),
                self._noun_phrase(THINGS[12], definite=False),
            ],
            "car": lambda: [
                subject,
                self._verb(hide, plural),
                self._noun_phrase(self._pick(THINGS)),
                pair("in", "dans"),
                thing,
            ],
            "write": lambda: [subject, self._verb(buy, plural), thing],
            "sheep": lambda: [subject, self._verb(run, plural), pair("in", "dans"), thing],
        }
        return join(contexts[sense]())
