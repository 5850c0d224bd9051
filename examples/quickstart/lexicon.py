"""The words of the quickstart's two languages: nouns, adjectives, verbs, adverbs, names."""

from __future__ import annotations

from dataclasses import dataclass

APOSTROPHE = "&apos;"  # as Moses' tokenizer escapes it


@dataclass(frozen=True)
class Noun:
    """A noun in both languages, singular and plural; its French gender."""

    english: str
    plural: str
    french: str
    french_plural: str
    feminine: bool


@dataclass(frozen=True)
class Adjective:
    """An adjective and its French forms; `before` if it stands before the French noun."""

    english: str
    forms: tuple[str, ...]  # masculine, feminine, masculine plural, feminine plural
    before: bool


@dataclass(frozen=True)
class Verb:
    """A verb in the third person present, singular and plural."""

    third: str
    base: str
    singular: str
    plural: str


def nouns(text: str) -> list[Noun]:
    """Read nouns, `english french gender`; a plural that is not regular follows a slash."""
    found = []
    for entry in text.strip().split(","):
        english, french, gender = entry.split()
        one, _, many = english.partition("/")
        french_one, _, french_many = french.partition("/")
        plural = french_many or french_plural(french_one)
        found.append(Noun(one, many or english_plural(one), french_one, plural, gender == "f"))
    return found


def english_plural(noun: str) -> str:
    """Return the regular plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def french_plural(noun: str) -> str:
    """Return the regular plural of a French noun or adjective."""
    if noun.endswith(("s", "x", "z")):
        return noun
    if noun.endswith(("eau", "eu")):
        return f"{noun}x"
    return f"{noun[:-2]}aux" if noun.endswith("al") else f"{noun}s"


def adjectives(text: str, before: bool = False) -> list[Adjective]:
    """Read adjectives, `english masculine feminine`."""
    found = []
    for entry in text.strip().split(","):
        english, masculine, feminine = entry.split()
        forms = masculine, feminine, french_plural(masculine), french_plural(feminine)
        found.append(Adjective(english, forms, before))
    return found


def verbs(text: str) -> list[Verb]:
    """Read verbs, `third base singular plural`; an underscore is a space."""
    return [Verb(*entry.replace("_", " ").split("|")) for entry in "".join(text.split()).split(",")]


# In each list, a word is drawn less often than the one before it: the last ones are rare.
ANIMATE = nouns("""
dog chien m, cat chat m, man/men homme m, woman/women femme f, child/children enfant m,
girl fille f, boy garçon m, horse cheval m, bird oiseau m, teacher professeur m, doctor médecin m,
farmer fermier m, nurse infirmière f, singer chanteuse f, mouse/mice souris f, cow vache f,
student étudiant m, neighbour voisin m, queen reine f, king roi m, sailor marin m,
baker boulanger m, sheep/sheep mouton m, goat chèvre f, wolf/wolves loup m, fox renard m,
bear ours m, duck canard m, hen poule f, frog grenouille f, ant fourmi f, bee abeille f,
fly mouche f, rabbit lapin m, pig cochon m, donkey âne m, monkey singe m, lion lion m,
owl hibou/hiboux m, turtle tortue f, whale baleine f, shark requin m, snake serpent m,
spider araignée f, butterfly papillon m, soldier soldat m, judge juge m, lawyer avocat m,
writer écrivain m, painter peintre m, actress actrice f, dancer danseuse f, waitress serveuse f,
cook cuisinier m, butcher boucher m, fisherman/fishermen pêcheur m, shepherd berger m,
hunter chasseur m, miner mineur m, smith forgeron m, weaver tisserand m, witch sorcière f,
wizard sorcier m, prince prince m, princess princesse f, knight chevalier m, monk moine m,
nun nonne f, priest prêtre m, thief/thieves voleur m, guard garde m, spy espion m, cousin cousin m,
aunt tante f, uncle oncle m, brother frère m, sister sœur f, daughter fille f, son fils m,
guest invité m, stranger inconnu m, orphan orphelin m, twin jumeau m, giant géant m, dwarf nain m
""")
THINGS = nouns("""
book livre m, letter lettre f, house maison f, car voiture f, apple pomme f, bread pain m,
table table f, chair chaise f, window fenêtre f, door porte f, key clé f, hat chapeau m,
tree arbre m, flower fleur f, boat bateau m, bicycle vélo m, picture image f, bag sac m,
coat manteau m, knife/knives couteau m, bottle bouteille f, shoe chaussure f, newspaper journal m,
guitar guitare f, lamp lampe f, bed lit m, spoon cuillère f, fork fourchette f, plate assiette f,
glass verre m, cup tasse f, clock horloge f, ring bague f, shirt chemise f, dress robe f,
skirt jupe f, sock chaussette f, glove gant m, scarf/scarves écharpe f, belt ceinture f,
umbrella parapluie m, candle bougie f, box boîte f, basket panier m, bucket seau m, broom balai m,
hammer marteau m, nail clou m, saw scie f, ladder échelle f, rope corde f, wheel roue f,
cart charrette f, drum tambour m, violin violon m, flute flûte f, trumpet trompette f,
bell cloche f, stone pierre f, feather plume f, shell coquillage m, leaf/leaves feuille f,
branch branche f, root racine f, pear poire f, plum prune f, cherry cerise f, lemon citron m,
grape raisin m, nut noix f, onion oignon m, carrot carotte f,
potato/potatoes pomme-de-terre/pommes-de-terre f, egg œuf m, cheese fromage m, cake gâteau m,
soup soupe f, pie tarte f, pillow oreiller m, blanket couverture f, curtain rideau m,
mirror miroir m, carpet tapis m, shelf/shelves étagère f, drawer tiroir m, desk bureau m,
map carte f, stamp timbre m, coin pièce f, sword épée f, shield bouclier m, crown couronne f,
mask masque m, doll poupée f, toy jouet m, kite cerf-volant/cerfs-volants m, sled traîneau m,
tent tente f, engine moteur m, screw vis f
""")
PLACES = nouns("""
garden jardin m, kitchen cuisine f, street rue f, park parc m, school école f, church église f,
village village m, river rivière f, field champ m, forest forêt f, market marché m, station gare f,
bridge pont m, beach plage f, mountain montagne f, valley vallée f, island île f, castle château m,
tower tour f, prison prison f, library bibliothèque f, museum musée m, theatre théâtre m,
hospital hôpital m, factory usine f, shop magasin m, inn auberge f, stable écurie f, barn grange f,
mill moulin m, well puits m, cave grotte f, desert désert m, swamp marais m, lake lac m,
harbour port m, meadow prairie f, cellar cave f, attic grenier m, yard cour f, workshop atelier m,
bakery boulangerie f, office bureau m, hut cabane f
""")
ADJECTIVES = [
    *adjectives(
        """
        small petit petite, big grand grande, pretty joli jolie, bad mauvais mauvaise,
        young jeune jeune, good bon bonne, beautiful beau belle, new nouveau nouvelle,
        fat gros grosse, short petit petite
        """,
        before=True,
    ),
    *adjectives("""
        black noir noire, white blanc blanche, green vert verte, red rouge rouge, blue bleu bleue,
        heavy lourd lourde, expensive cher chère, happy heureux heureuse, tired fatigué fatiguée,
        strange étrange étrange, yellow jaune jaune, grey gris grise, round rond ronde,
        empty vide vide, clean propre propre, dirty sale sale, broken cassé cassée,
        wet mouillé mouillée, dry sec sèche, cold froid froide, warm chaud chaude,
        strong fort forte, weak faible faible, blind aveugle aveugle, deaf sourd sourde,
        quiet silencieux silencieuse, proud fier fière, jealous jaloux jalouse,
        careful prudent prudente, famous célèbre célèbre, foreign étranger étrangère,
        secret secret secrète, sacred sacré sacrée, hidden caché cachée, golden doré dorée,
        smooth lisse lisse, rough rugueux rugueuse, sharp tranchant tranchante, hollow creux creuse
    """),
]
# One English adjective, two French ones: the first for people and animals, the second for things.
TWO_SENSES = [
    (
        Adjective("old", ("vieux", "vieille", "vieux", "vieilles"), before=True),
        adjectives("old ancien ancienne")[0],
    ),
    (adjectives("light maigre maigre")[0], adjectives("light léger légère")[0]),
    (adjectives("bright doué douée")[0], adjectives("bright clair claire")[0]),
    (adjectives("soft doux douce")[0], adjectives("soft mou molle")[0]),
    (adjectives("poor pauvre pauvre")[0], adjectives("poor médiocre médiocre")[0]),
    (adjectives("cheap avare avare")[0], adjectives("cheap bon-marché bon-marché")[0]),
]
TRANSITIVE = verbs("""
sees|see|voit|voient, likes|like|aime|aiment, looks_for|look_for|cherche|cherchent,
finds|find|trouve|trouvent, buys|buy|achète|achètent, carries|carry|porte|portent,
sells|sell|vend|vendent, watches|watch|regarde|regardent, draws|draw|dessine|dessinent,
loses|lose|perd|perdent, hides|hide|cache|cachent, waits_for|wait_for|attend|attendent,
takes|take|prend|prennent, holds|hold|tient|tiennent, opens|open|ouvre|ouvrent,
breaks|break|casse|cassent, washes|wash|lave|lavent, pushes|push|pousse|poussent,
pulls|pull|tire|tirent, throws|throw|jette|jettent, steals|steal|vole|volent,
borrows|borrow|emprunte|empruntent, gives_away|give_away|donne|donnent,
picks_up|pick_up|ramasse|ramassent, throws_away|throw_away|abandonne|abandonnent,
cleans|clean|nettoie|nettoient, repairs|repair|répare|réparent, paints|paint|peint|peignent,
touches|touch|touche|touchent, measures|measure|mesure|mesurent, burns|burn|brûle|brûlent,
sinks|sink|coule|coulent, buries|bury|enterre|enterrent, wraps|wrap|emballe|emballent,
weighs|weigh|pèse|pèsent, admires|admire|admire|admirent
""")
INTRANSITIVE = verbs("""
sleeps|sleep|dort|dorment, runs|run|court|courent, sings|sing|chante|chantent,
works|work|travaille|travaillent, plays|play|joue|jouent, arrives|arrive|arrive|arrivent,
laughs|laugh|rit|rient, dances|dance|danse|dansent, waits|wait|attend|attendent,
falls|fall|tombe|tombent, cries|cry|pleure|pleurent, travels|travel|voyage|voyagent,
hides|hide|se_cache|se_cachent, gets_up|get_up|se_lève|se_lèvent, swims|swim|nage|nagent,
eats|eat|mange|mangent, drinks|drink|boit|boivent, jumps|jump|saute|sautent,
smiles|smile|sourit|sourient, trembles|tremble|tremble|tremblent, prays|pray|prie|prient,
shouts|shout|crie|crient, whispers|whisper|chuchote|chuchotent, dreams|dream|rêve|rêvent,
fishes|fish|pêche|pêchent
""")
# The same English verb, two French ones: one with a noun, one with what somebody can do.
KNOW_SOMEBODY, KNOW_SOMETHING = verbs("knows|know|connaît|connaissent, knows|know|sait|savent")
ABLE = [
    ("how to swim", "nager"),
    ("how to read", "lire"),
    ("how to drive", "conduire"),
    ("the answer", "la réponse"),
]
# The same English noun, two French ones, told apart by what is done to it or where it is.
AMBIGUOUS = {
    "river": nouns("bank rive f")[0],
    "money": nouns("bank banque f")[0],
    "animal": nouns("bat chauve-souris/chauves-souris f")[0],
    "club": nouns("bat batte f")[0],
    "tree": nouns("trunk tronc m")[0],
    "car": nouns("trunk coffre m")[0],
    "write": nouns("pen stylo m")[0],
    "sheep": nouns("pen enclos m")[0],
}
ADVERBS = [
    ("today", f"aujourd{APOSTROPHE}hui"),
    ("often", "souvent"),
    ("at night", "la nuit"),
    ("every day", "tous les jours"),
    ("in the morning", "le matin"),
    ("slowly", "lentement"),
    ("again", "encore"),
    ("without a word", "sans un mot"),
    ("in the rain", "sous la pluie"),
    ("of course", "bien sûr"),
    ("as usual", f"comme d{APOSTROPHE} habitude"),
    ("for the first time", "pour la première fois"),
]
PREPOSITIONS = [
    ("in", "dans"),
    ("near", "près de"),
    ("behind", "derrière"),
    ("in front of", "devant"),
    ("far from", "loin de"),
    ("on the other side of", f"de l{APOSTROPHE} autre côté de"),
]
SYLLABLES = "bar bel cor dam fen gal hav jor kel lin mar nol pel quin ros sal tor val win zel"
