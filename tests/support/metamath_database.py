"""A Metamath database in two files, which has every trap."""

from __future__ import annotations

LOGIC = """
$( A logic. $[ not-read.mm $] $)
$c ( ) -> wff |- $.
$v ph ps ch $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
$( Implication is a formula. $)
wi $a wff ( ph -> ps ) $.
$( Axiom _Simp_ of this small logic. $)
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
${
  mp.1 $e |- ph $.
  mp.2 $e |- ( ph -> ps ) $.
  $( Rule of detachment, which drops what holds. (Contributed by NM, 5-Aug-1993.) $)
  ax-mp $a |- ps $.
$}
"""

MAIN = """
$[ logic.mm $] $[ logic.mm $]
$(
#*#*#*#*#*#*#*#*#*#*
  First things
#*#*#*#*#*#*#*#*#*#*
$)
${
  a1i.1 $e |- ph $.
  $( Inference that adds an antecedent to what holds, see ~ ax-1 . (Contributed by NM, 5-Aug-1993.)
     (Proof shortened by A (B) C, 1-Jan-2000.) $)
  a1i $p |- ( ps -> ph ) $= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $.
    $( [5-Aug-1993] $)
  $( Lemma for a1i and a few other things. $)
  a1ic $p |- ( ps -> ph ) $=
    ( wi ax-1 ax-mp ) AB $( a comment inside $) ADCABEF $.
$}
${
  $v x $.
  $( Short one. $)
  two.1 $e |- ps $.
  $( Two antecedents are added to a thing that holds, twice. $)
  two $p |- ( ph -> ( ch -> ps ) ) $= ( wi a1i ) CBDABCEFE $.
$}
$( Unfinished business with many words in it. $)
open $p |- ( ph -> ph ) $= wph ? ax-mp $.
$( Old version of the same that has many words. $)
twoOLD $p |- ( ph -> ( ph -> ph ) ) $= wph wph ax-1 $.
$(
=-=-=-=-=-=-=-=-=-=-=-=-=-=-=
  Mathbox for Somebody
=-=-=-=-=-=-=-=-=-=-=-=-=-=-=
$)
$( A mathbox has this theorem with many words. $)
mb $p |- ( ch -> ( ps -> ch ) ) $= wch wps ax-1 $.
"""
