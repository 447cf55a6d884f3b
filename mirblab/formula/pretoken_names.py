"""pretoken_names: which commands and signs PyA0's tokenizer knows, and which of them it takes for the same."""

from __future__ import annotations

# Commands that are their own symbol, by what they mean.
KNOWN = frozenset(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi omicron pi
    varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Nu Xi Pi Sigma
    Upsilon Phi Chi Psi Omega varGamma varDelta varPhi varPsi aleph beth ell hbar imath jmath wp mho Re amalg wr top
    Pr infty empty emptyset varnothing partial nabla angle measuredangle triangle triangledown triangleleft
    triangleright langle rangle bot perp parallel nparallel

    sum prod coprod int iint iiint iiiint oint smallint bigcap bigcup bigsqcup biguplus bigvee bigwedge bigcirc
    bigodot bigoplus bigotimes bigtriangleup bigtriangledown lim varinjlim varprojlim inf sup liminf limsup varlimsup
    max min arccos arcsin arctan cos cosh cot coth csc sec sin sinh tan tanh exp ln log arg deg det dim gcd hom ker
    lcm sign mod

    pm oplus uplus times otimes ltimes rtimes odot ominus ast circ cap cup sqcap sqcup curlywedge vee wedge lor land
    lnot neg setminus smallsetminus backslash prime frac binom root forall exists nexists dashv propto Join bowtie

    in ni owns subset subseteq subsetneq subsetneqq supset supseteq supsetneq supsetneqq nsubseteq nsupseteq Subset
    Supset sqsubset sqsubseteq sqsupset sqsupseteq varsubsetneq varsubsetneqq mid nmid vert Vert arrowvert
    le leqslant lt ll lneq lesssim lessdot nless ge geq geqslant gt gg gtrsim gtrless gtreqqless ne neq equiv cong
    ncong sim nsim simeq backsimeq thicksim approx approxeq asymp between frown smallfrown prec preceq preccurlyeq
    precsim npreceq succ succeq succcurlyeq succsim triangleq trianglelefteq trianglerighteq unlhd unrhd

    to gets mapsto longmapsto iff implies impliedby leadsto leftarrow rightarrow leftrightarrow longleftarrow
    longrightarrow longleftrightarrow Leftarrow Rightarrow Leftrightarrow Longleftarrow Longrightarrow
    Longleftrightarrow uparrow downarrow updownarrow Uparrow Downarrow Updownarrow nearrow nwarrow searrow swarrow
    nleftarrow nrightarrow nleftrightarrow hookleftarrow hookrightarrow xleftarrow xrightarrow rightarrowtail
    rightsquigarrow rightrightarrows rightleftharpoons leftharpoonup leftharpoondown rightharpoonup
    rightharpoondown upharpoonright curvearrowleft curvearrowright circlearrowleft looparrowright multimap

    dots ldots cdots vdots ddots iddots dotsb dotsc dotsm dotso ddot dddot quad qquad enspace atop And
    """.split()
)

# Commands that it takes for another one.
MERGED = dict(
    pair.split("=")
    for pair in """
    dfrac=frac tfrac=frac cfrac=frac div=frac above=frac dbinom=binom tbinom=binom choose=binom brack=binom sqrt=root
    bmod=mod pmod=mod pod=mod cdot=times leq=le leqq=le nleq=nle ngeq=nge doteq=equal notin=ni mp=pm lg=log sgn=sign
    lvert=vert rvert=vert lVert=Vert rVert=Vert vec=rvect overrightarrow=rvect overleftarrow=lvect
    """.split()
)

# Commands that stay as they are written, backslash included: they shape a formula but are no symbols.
SHAPES = frozenset(
    "over of overset underset stackrel underbrace overbrace lbrace rbrace lbrack rbrack lfloor rfloor lceil rceil "
    "qvar".split()
)

# Function names that count also without a backslash, longest first so that "arcsin" is not "arc sin".
FUNCTIONS = (
    "arccos arcsin arctan sinh cosh tanh sign sin cos tan cot sec csc log exp max min sup inf gcd lcm mod det dim ker "
    "deg arg hom sgn ln lg"
).split()

SIGNS = {
    "+": "plus", "-": "minus", "*": "ast", "/": "frac", "=": "equal", "<": "lt", ">": "gt", "!": "fact",
    ",": "comma", ";": "semicolon", ":": "colon", "|": "vert", "^": "supscript", "_": "subscript", "'": "prime",
    "...": "dots", ":=": "equal", "＝": "equal", "\\|": "Vert", "\\%": "percent", "\\&": "And", "\\>": "gt",
    "α": "alpha", "β": "beta", "π": "pi", "φ": "phi", "ε": "epsilon", "∞": "infty", "∑": "sum", "∫": "int",
    "→": "to", "∀": "forall", "∃": "exists", "±": "pm",
}  # fmt: skip

# What it leaves apart, or drops, although the meaning is the same; merged on request.
ALSO = dict(
    pair.split("=")
    for pair in """
    leqslant=le geq=ge geqslant=ge geqq=ge neq=ne rightarrow=to longrightarrow=to gets=leftarrow longleftarrow=leftarrow
    longmapsto=mapsto Rightarrow=implies Longrightarrow=implies Leftrightarrow=iff Longleftrightarrow=iff
    leftrightarrow=iff ldots=dots cdots=dots dotsb=dots dotsc=dots dotsm=dots dotso=dots varepsilon=epsilon
    varphi=phi vartheta=theta varrho=rho varkappa=kappa varsigma=sigma varpi=pi varnothing=emptyset empty=emptyset
    land=wedge lor=vee lnot=neg coloneqq=equal mid=vert smallsetminus=setminus backslash=setminus over=frac
    preceq=preccurlyeq succeq=succcurlyeq owns=ni bot=perp
    """.split()
)
ALSO |= {"lbrace": "\\{", "rbrace": "\\}", "lbrack": "[", "rbrack": "]"}

# Names that are nothing but style, size, space or font.
SILENT = frozenset(
    """
    left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm displaystyle textstyle
    scriptstyle scriptscriptstyle limits nolimits quad qquad enspace null nonumber notag hfill hfil mathstrut strut
    mathord mathop mathbin mathrel mathopen mathclose mathpunct mathinner begin end mathrm mathbf mathit mathsf mathtt
    boldsymbol bm bold pmb rm bf it sf tt cal frak Bbb operatorname textrm textbf textit textsf texttt textup
    """.split()
)
