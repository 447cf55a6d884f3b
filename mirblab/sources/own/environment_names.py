"""environment_names: what the name of an environment, and the words that it prints, mean in several languages."""

from __future__ import annotations

import re
import unicodedata

_STEPS = re.compile(r"\\begin\s*\{(?:enumerate|itemize|description)\}")  # of a proof, not one of its own
_PROOF_NAME = re.compile(r"[a-z]*proof(?:of|\*)?|pf|prf|bew(?:eis)?|d[eé]m(?:onstration)?", re.IGNORECASE)
# What \newtheorem prints above a proof, and above what proves an exercise.
_PROOF_PRINTED = re.compile(
    r"(?:(?:sketch|idea|outline) of (?:the )?)?proof(?: sketch| idea| outline| of\b.*)?"
    r"|beweis(?:skizze|idee)?|preuve|d[ée]monstration|dimostrazione"
    r"|demostraci[óo]n|demonstra[çc][ãa]o|bewijs|dow[óo]d|доказательство"
)
_SOLUTION_PRINTED = re.compile(
    r"solution|answer|l(?:ö|oe?)sung|corrig[ée]|correction|antwort|r[ée]ponse|soluzione|soluci[óo]n|solu[çc][ãa]o|решение"
)
_SOLUTION_NAME = re.compile(rf"[a-z]*(?:{_SOLUTION_PRINTED.pattern})(?:of|\*)?", re.IGNORECASE)
_PROOF_TEXT = re.compile(r"\b(?:[Pp]roof|PROOF|Beweis)\b|\\proofname")
# They stand between an exercise and its solution.
HINTS = frozenset("hint hints indication indications tipp suggerimento sugerencia".split())
# Statements in other languages, without accents: read where the package that defines them is not in the folder, too.
FOREIGN_STATEMENTS = frozenset(
    """theoreme lemme corollaire propriete exemple remarque exercice probleme
    satz hilfssatz korollar folgerung beispiel bemerkung aufgabe ubung uebung
    teorema lema corolario proposicion definicion ejemplo ejercicio observacion
    proposizione corollario definizione esempio esercizio osservazione
    proposicao definicao exemplo exercicio observacao
    proposicio corollari definicio exercici observacio
    stelling gevolg voorbeeld opmerking opgave""".split()
)
# Rarely proved: a proof after one of these belongs to the statement before it, and none of them asks for premises.
RARELY_PROVED = HINTS.union(
    """remark remarks rem rmk note notes notation convention definition defn dfn definitions example examples eg egs ex
    exer exercise exercises question ques problem problems conjecture hypothesis assumption setup axiom axioms
    algorithm solution joke listing warning goal construction aside discussion extract motivation recall reminder
    strategy tip vocabulary bemerkung bemerkungen beispiel beispiele aufgabe aufgaben ubung ubungen ubungsaufgabe
    definitionen erinnerung frage fragen vermutung annahme bezeichnung bezeichnungen konvention hinweis warnung
    konstruktion remarque remarques exemple exemples exercice exercices hypothese avertissement osservazione
    osservazioni esempio esempi esercizio esercizi definizione definizioni notazione congettura domanda observacion
    observaciones ejemplo ejemplos ejercicio ejercicios definicion definiciones notacion conjetura pregunta
    observacao exemplo exemplos exercicio exercicios definicao definicoes notacao opmerking voorbeeld voorbeelden
    opgave definitie замечание пример примеры упражнение определение задача uebung uebungen exercici definicio
    observacio""".split()
)


def strip_accents(word: str) -> str:
    """Return a word in small letters without accents, as authors write it in the name of an environment."""
    return "".join(sign for sign in unicodedata.normalize("NFD", word.casefold()) if not unicodedata.combining(sign))


def is_rarely_proved(kind: str) -> bool:
    """Return whether statements of a kind have seldom a proof, such as a remark, an example or an exercise."""
    return bool(RARELY_PROVED & set(strip_accents(kind).rstrip("*").split()))


def classify_words(words: str) -> str:
    """Return the environment that one with the printed *words* is read as, `proof` or `solution`, or ""."""
    words = words.strip(" .:")
    return "proof" if _PROOF_PRINTED.fullmatch(words) else "solution" if _SOLUTION_PRINTED.fullmatch(words) else ""


def classify_environment(name: str, body: str) -> str:
    """Return what an environment with a *name* and a *body* is read as, `proof` or `solution`, or ""."""
    is_proof = _PROOF_NAME.fullmatch(name) and not _STEPS.search(body)
    if not is_proof and _SOLUTION_NAME.fullmatch(name):
        return "solution"
    return "proof" if is_proof or _PROOF_TEXT.search(body) else ""
