$( A small database of logic and groups for mirblab, written from the axioms; each proof was checked. It is under CC0
   1.0: to the extent possible under law, its authors have waived all rights to it. The names of its theorems are those
   that are usual in Metamath. Days of contribution order the theorems in time, so that later ones can be held out. $)

$c ( ) -> -. <-> /\ \/ A. E. = + 0 -u wff setvar class |- $.
$v ph ps ch th ta x y A B C D $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.  wth $f wff th $.  wta $f wff ta $.
vx $f setvar x $.  vy $f setvar y $.
cA $f class A $.  cB $f class B $.  cC $f class C $.  cD $f class D $.

$(
#*#*#*#*#*#*#*#*#*#*
  Propositional calculus: implication and negation
#*#*#*#*#*#*#*#*#*#*
$)
$( The negation of a formula is a formula. $)
wn $a wff -. ph $.
$( An implication is a formula. $)
wi $a wff ( ph -> ps ) $.
${
  ax-mp.1 $e |- ph $.
  ax-mp.2 $e |- ( ph -> ps ) $.
  $( Rule of detachment (modus ponens). $)
  ax-mp $a |- ps $.
$}
$( Axiom of simplification. $)
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
$( Axiom that distributes an antecedent over an implication. $)
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
$( Axiom of contraposition. $)
ax-3 $a |- ( ( -. ph -> -. ps ) -> ( ps -> ph ) ) $.
${
  mp2.1 $e |- ph $.
  mp2.2 $e |- ps $.
  mp2.3 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Two antecedents are detached. (Contributed by mirblab, 2-Jan-2025.) $)
  mp2 $p |- ch $=
    wps wch mp2.2 wph wps wch wi mp2.1 mp2.3 ax-mp ax-mp $.
$}
${
  a1i.1 $e |- ph $.
  $( An antecedent is added to what holds. (Contributed by mirblab, 3-Jan-2025.) $)
  a1i $p |- ( ps -> ph ) $=
    wph wps wph wi a1i.1 wph wps ax-1 ax-mp $.
$}
${
  a2i.1 $e |- ( ph -> ( ps -> ch ) ) $.
  $( An antecedent is distributed. (Contributed by mirblab, 4-Jan-2025.) $)
  a2i $p |- ( ( ph -> ps ) -> ( ph -> ch ) ) $=
    wph wps wch wi wi wph wps wi wph wch wi wi a2i.1 wph wps wch ax-2 ax-mp $.
$}
${
  mpd.1 $e |- ( ph -> ps ) $.
  mpd.2 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Detachment under an antecedent. (Contributed by mirblab, 5-Jan-2025.) $)
  mpd $p |- ( ph -> ch ) $=
    wph wps wi wph wch wi mpd.1 wph wps wch mpd.2 a2i ax-mp $.
$}
${
  syl.1 $e |- ( ph -> ps ) $.
  syl.2 $e |- ( ps -> ch ) $.
  $( Two implications are chained (syllogism). (Contributed by mirblab, 6-Jan-2025.) $)
  syl $p |- ( ph -> ch ) $=
    wph wps wch syl.1 wps wch wi wph syl.2 a1i mpd $.
$}
$( A formula implies itself. (Contributed by mirblab, 7-Jan-2025.) $)
id $p |- ( ph -> ph ) $=
  wph wph wph wi wph wph wph ax-1 wph wph wph wi ax-1 mpd $.
$( A formula implies itself under any antecedent. (Contributed by mirblab, 8-Jan-2025.) $)
idd $p |- ( ph -> ( ps -> ps ) ) $=
  wps wps wi wph wps id a1i $.
${
  a1d.1 $e |- ( ph -> ps ) $.
  $( An antecedent is added to a consequent. (Contributed by mirblab, 9-Jan-2025.) $)
  a1d $p |- ( ph -> ( ch -> ps ) ) $=
    wph wps wch wps wi a1d.1 wps wch ax-1 syl $.
$}
${
  a2d.1 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( An antecedent is distributed within a consequent. (Contributed by mirblab, 10-Jan-2025.) $)
  a2d $p |- ( ph -> ( ( ps -> ch ) -> ( ps -> th ) ) ) $=
    wph wps wch wth wi wi wps wch wi wps wth wi wi a2d.1 wps wch wth ax-2 syl $.
$}
${
  mpi.1 $e |- ps $.
  mpi.2 $e |- ( ph -> ( ps -> ch ) ) $.
  $( A second antecedent that holds is detached. (Contributed by mirblab, 11-Jan-2025.) $)
  mpi $p |- ( ph -> ch ) $=
    wph wps wch wps wph mpi.1 a1i mpi.2 mpd $.
$}
${
  com12.1 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Two antecedents are exchanged. (Contributed by mirblab, 12-Jan-2025.) $)
  com12 $p |- ( ps -> ( ph -> ch ) ) $=
    wps wph wps wi wph wch wi wps wph ax-1 wph wps wch com12.1 a2i syl $.
$}
${
  mpcom.1 $e |- ( ps -> ph ) $.
  mpcom.2 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Detachment where the second antecedent implies the first. (Contributed by mirblab, 13-Jan-2025.) $)
  mpcom $p |- ( ps -> ch ) $=
    wps wps wch wps id wps wph wps wch wi mpcom.1 mpcom.2 syl mpd $.
$}
${
  sylcom.1 $e |- ( ph -> ( ps -> ch ) ) $.
  sylcom.2 $e |- ( ps -> ( ch -> th ) ) $.
  $( A syllogism with a common antecedent. (Contributed by mirblab, 14-Jan-2025.) $)
  sylcom $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wi wps wth wi sylcom.1 wps wch wth sylcom.2 a2i syl $.
$}
${
  syl6.1 $e |- ( ph -> ( ps -> ch ) ) $.
  syl6.2 $e |- ( ch -> th ) $.
  $( The last consequent is replaced by what it implies. (Contributed by mirblab, 15-Jan-2025.) $)
  syl6 $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wth syl6.1 wch wth wi wps syl6.2 a1i sylcom $.
$}
${
  syl5.1 $e |- ( ph -> ps ) $.
  syl5.2 $e |- ( ch -> ( ps -> th ) ) $.
  $( The second antecedent is replaced by what implies it. (Contributed by mirblab, 16-Jan-2025.) $)
  syl5 $p |- ( ch -> ( ph -> th ) ) $=
    wph wch wth wph wps wch wth wi syl5.1 wch wps wth syl5.2 com12 syl com12 $.
$}
$( Detachment as a formula. (Contributed by mirblab, 17-Jan-2025.) $)
pm2.27 $p |- ( ph -> ( ( ph -> ps ) -> ps ) ) $=
  wph wps wi wph wps wph wps wi id com12 $.
${
  pm2.43i.1 $e |- ( ph -> ( ph -> ps ) ) $.
  $( A repeated antecedent is absorbed. (Contributed by mirblab, 18-Jan-2025.) $)
  pm2.43i $p |- ( ph -> ps ) $=
    wph wph wps wph id pm2.43i.1 mpd $.
$}
${
  syld.1 $e |- ( ph -> ( ps -> ch ) ) $.
  syld.2 $e |- ( ph -> ( ch -> th ) ) $.
  $( A syllogism under an antecedent. (Contributed by mirblab, 19-Jan-2025.) $)
  syld $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wi wps wth wi syld.1 wph wps wch wth wph wch wth wi wps syld.2 a1d a2d mpd $.
$}
$( An implication may be given a common antecedent. (Contributed by mirblab, 20-Jan-2025.) $)
imim2 $p |- ( ( ph -> ps ) -> ( ( ch -> ph ) -> ( ch -> ps ) ) ) $=
  wph wps wi wch wph wps wph wps wi wch ax-1 a2d $.
$( Transitivity of implication as a formula. (Contributed by mirblab, 21-Jan-2025.) $)
imim1 $p |- ( ( ph -> ps ) -> ( ( ps -> ch ) -> ( ph -> ch ) ) ) $=
  wps wch wi wph wps wi wph wch wi wps wch wph imim2 com12 $.
${
  imim2i.1 $e |- ( ph -> ps ) $.
  $( A common antecedent is added to both sides. (Contributed by mirblab, 22-Jan-2025.) $)
  imim2i $p |- ( ( ch -> ph ) -> ( ch -> ps ) ) $=
    wph wps wi wch wph wi wch wps wi wi imim2i.1 wph wps wch imim2 ax-mp $.
$}
${
  imim1i.1 $e |- ( ph -> ps ) $.
  $( A common consequent is added to both sides, which reverses them. (Contributed by mirblab, 23-Jan-2025.)
     $)
  imim1i $p |- ( ( ps -> ch ) -> ( ph -> ch ) ) $=
    wph wps wi wps wch wi wph wch wi wi imim1i.1 wph wps wch imim1 ax-mp $.
$}
${
  imim12i.1 $e |- ( ph -> ps ) $.
  imim12i.2 $e |- ( ch -> th ) $.
  $( Two implications are joined around a third. (Contributed by mirblab, 24-Jan-2025.) $)
  imim12i $p |- ( ( ps -> ch ) -> ( ph -> th ) ) $=
    wps wch wi wps wth wi wph wth wi wch wth wps imim12i.2 imim2i wph wps wth imim12i.1 imim1i syl $.
$}
$( The exchange of antecedents as a formula. (Contributed by mirblab, 25-Jan-2025.) $)
pm2.04 $p |- ( ( ph -> ( ps -> ch ) ) -> ( ps -> ( ph -> ch ) ) ) $=
  wps wph wps wi wph wps wch wi wi wph wch wi wps wph ax-1 wph wps wch ax-2 syl5 $.
${
  com23.1 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( The second and third antecedents are exchanged. (Contributed by mirblab, 26-Jan-2025.) $)
  com23 $p |- ( ph -> ( ch -> ( ps -> th ) ) ) $=
    wph wps wch wth wi wi wch wps wth wi wi com23.1 wps wch wth pm2.04 syl $.
$}
${
  com13.1 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( The first and third antecedents are exchanged. (Contributed by mirblab, 27-Jan-2025.) $)
  com13 $p |- ( ch -> ( ps -> ( ph -> th ) ) ) $=
    wps wch wph wth wi wps wph wch wth wph wps wch wth wi com13.1 com12 com23 com12 $.
$}
$( The absorption of an antecedent as a formula. (Contributed by mirblab, 28-Jan-2025.) $)
pm2.43 $p |- ( ( ph -> ( ph -> ps ) ) -> ( ph -> ps ) ) $=
  wph wph wps wi wi wph wph wi wph wps wi wph id wph wph wps ax-2 mpi $.
${
  pm2.43d.1 $e |- ( ph -> ( ps -> ( ps -> ch ) ) ) $.
  $( A repeated second antecedent is absorbed. (Contributed by mirblab, 29-Jan-2025.) $)
  pm2.43d $p |- ( ph -> ( ps -> ch ) ) $=
    wph wps wps wch wi wi wps wch wi pm2.43d.1 wps wch pm2.43 syl $.
$}
${
  mpdd.1 $e |- ( ph -> ( ps -> ch ) ) $.
  mpdd.2 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( Detachment under two antecedents. (Contributed by mirblab, 30-Jan-2025.) $)
  mpdd $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wi wps wth wi mpdd.1 wph wps wch wth mpdd.2 a2d mpd $.
$}
${
  mpid.1 $e |- ( ph -> ch ) $.
  mpid.2 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( A third antecedent that the first implies is detached. (Contributed by mirblab, 31-Jan-2025.) $)
  mpid $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wth wph wch wps mpid.1 a1d mpid.2 mpdd $.
$}
${
  mpii.1 $e |- ch $.
  mpii.2 $e |- ( ph -> ( ps -> ( ch -> th ) ) ) $.
  $( A third antecedent that holds is detached. (Contributed by mirblab, 1-Feb-2025.) $)
  mpii $p |- ( ph -> ( ps -> th ) ) $=
    wph wps wch wth wch wph mpii.1 a1i mpii.2 mpid $.
$}
${
  syl9.1 $e |- ( ph -> ( ps -> ch ) ) $.
  syl9.2 $e |- ( th -> ( ch -> ta ) ) $.
  $( A nested syllogism with different antecedents. (Contributed by mirblab, 2-Feb-2025.) $)
  syl9 $p |- ( ph -> ( th -> ( ps -> ta ) ) ) $=
    wph wps wch wi wth wps wta wi wi syl9.1 wth wps wch wi wps wta wi wth wch wta wi wps wch wi wps wta wi wi syl9.2
    wch wta wps imim2 syl com12 syl $.
$}
${
  con4i.1 $e |- ( -. ph -> -. ps ) $.
  $( Contraposition that removes two negations. (Contributed by mirblab, 3-Feb-2025.) $)
  con4i $p |- ( ps -> ph ) $=
    wph wn wps wn wi wps wph wi con4i.1 wph wps ax-3 ax-mp $.
$}
${
  con4d.1 $e |- ( ph -> ( -. ps -> -. ch ) ) $.
  $( Contraposition under an antecedent that removes two negations. (Contributed by mirblab, 4-Feb-2025.) $)
  con4d $p |- ( ph -> ( ch -> ps ) ) $=
    wph wps wn wch wn wi wch wps wi con4d.1 wps wch ax-3 syl $.
$}
$( From a contradiction anything follows. (Contributed by mirblab, 5-Feb-2025.) $)
pm2.21 $p |- ( -. ph -> ( ph -> ps ) ) $=
  wph wn wps wph wph wn wps wn ax-1 con4d $.
$( From a contradiction anything follows, antecedents exchanged. (Contributed by mirblab, 6-Feb-2025.) $)
pm2.24 $p |- ( ph -> ( -. ph -> ps ) ) $=
  wph wn wph wps wph wps pm2.21 com12 $.
${
  pm2.21i.1 $e |- -. ph $.
  $( What is false implies anything. (Contributed by mirblab, 7-Feb-2025.) $)
  pm2.21i $p |- ( ph -> ps ) $=
    wph wn wph wps wi pm2.21i.1 wph wps pm2.21 ax-mp $.
$}
${
  pm2.21d.1 $e |- ( ph -> -. ps ) $.
  $( What is false under an antecedent implies anything. (Contributed by mirblab, 8-Feb-2025.) $)
  pm2.21d $p |- ( ph -> ( ps -> ch ) ) $=
    wph wps wn wps wch wi pm2.21d.1 wps wch pm2.21 syl $.
$}
$( A formula that its own negation implies holds (Clavius). (Contributed by mirblab, 9-Feb-2025.) $)
pm2.18 $p |- ( ( -. ph -> ph ) -> ph ) $=
  wph wn wph wi wph wph wn wph wi wph wph wn wph wi wph wn wph wph wn wph wi wn wph wph wn wph wi wn pm2.21 a2i
  con4d pm2.43i $.
$( A double negation is removed. (Contributed by mirblab, 10-Feb-2025.) $)
notnotr $p |- ( -. -. ph -> ph ) $=
  wph wn wn wph wn wph wi wph wph wn wph pm2.21 wph pm2.18 syl $.
${
  con2d.1 $e |- ( ph -> ( ps -> -. ch ) ) $.
  $( Contraposition of a negated consequent under an antecedent. (Contributed by mirblab, 11-Feb-2025.) $)
  con2d $p |- ( ph -> ( ch -> -. ps ) ) $=
    wph wps wn wch wps wn wn wps wph wch wn wps notnotr con2d.1 syl5 con4d $.
$}
${
  con2i.1 $e |- ( ph -> -. ps ) $.
  $( Contraposition of a negated consequent. (Contributed by mirblab, 12-Feb-2025.) $)
  con2i $p |- ( ps -> -. ph ) $=
    wph wn wps wph wn wn wph wps wn wph notnotr con2i.1 syl con4i $.
$}
$( A double negation is added. (Contributed by mirblab, 13-Feb-2025.) $)
notnot $p |- ( ph -> -. -. ph ) $=
  wph wn wph wph wn id con2i $.
${
  con1d.1 $e |- ( ph -> ( -. ps -> ch ) ) $.
  $( Contraposition of a negated antecedent under an antecedent. (Contributed by mirblab, 14-Feb-2025.) $)
  con1d $p |- ( ph -> ( -. ch -> ps ) ) $=
    wph wps wch wn wph wps wn wch wch wn wn con1d.1 wch notnot syl6 con4d $.
$}
${
  con1i.1 $e |- ( -. ph -> ps ) $.
  $( Contraposition of a negated antecedent. (Contributed by mirblab, 15-Feb-2025.) $)
  con1i $p |- ( -. ps -> ph ) $=
    wph wps wn wph wn wps wps wn wn con1i.1 wps notnot syl con4i $.
$}
${
  con3d.1 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Contraposition under an antecedent. (Contributed by mirblab, 16-Feb-2025.) $)
  con3d $p |- ( ph -> ( -. ch -> -. ps ) ) $=
    wph wps wn wch wps wn wn wps wph wch wps notnotr con3d.1 syl5 con1d $.
$}
$( Contraposition as a formula. (Contributed by mirblab, 17-Feb-2025.) $)
con3 $p |- ( ( ph -> ps ) -> ( -. ps -> -. ph ) ) $=
  wph wps wi wph wps wph wps wi id con3d $.
${
  con3i.1 $e |- ( ph -> ps ) $.
  $( Contraposition. (Contributed by mirblab, 18-Feb-2025.) $)
  con3i $p |- ( -. ps -> -. ph ) $=
    wph wps wi wps wn wph wn wi con3i.1 wph wps con3 ax-mp $.
$}
${
  mto.1 $e |- -. ps $.
  mto.2 $e |- ( ph -> ps ) $.
  $( What implies a falsehood is false (modus tollens). (Contributed by mirblab, 19-Feb-2025.) $)
  mto $p |- -. ph $=
    wps wn wph wn mto.1 wph wps mto.2 con3i ax-mp $.
$}
${
  mt2.1 $e |- ps $.
  mt2.2 $e |- ( ph -> -. ps ) $.
  $( Modus tollens with a negated consequent. (Contributed by mirblab, 20-Feb-2025.) $)
  mt2 $p |- -. ph $=
    wps wph wn mt2.1 wph wps mt2.2 con2i ax-mp $.
$}
${
  nsyl.1 $e |- ( ph -> -. ps ) $.
  nsyl.2 $e |- ( ch -> ps ) $.
  $( A syllogism with a negated consequent. (Contributed by mirblab, 21-Feb-2025.) $)
  nsyl $p |- ( ph -> -. ch ) $=
    wph wps wn wch wn nsyl.1 wch wps nsyl.2 con3i syl $.
$}
$( What implies its own negation is false. (Contributed by mirblab, 22-Feb-2025.) $)
pm2.01 $p |- ( ( ph -> -. ph ) -> -. ph ) $=
  wph wph wn wi wph wn wn wph wn wi wph wn wph wn wn wph wph wn wph notnotr imim1i wph wn pm2.18 syl $.
${
  pm2.61i.1 $e |- ( ph -> ps ) $.
  pm2.61i.2 $e |- ( -. ph -> ps ) $.
  $( Proof by two cases. (Contributed by mirblab, 23-Feb-2025.) $)
  pm2.61i $p |- ps $=
    wps wn wps wi wps wps wn wph wn wps wph wps pm2.61i.1 con3i pm2.61i.2 syl wps pm2.18 ax-mp $.
$}
${
  pm2.61d.1 $e |- ( ph -> ( ps -> ch ) ) $.
  pm2.61d.2 $e |- ( ph -> ( -. ps -> ch ) ) $.
  $( Proof by two cases under an antecedent. (Contributed by mirblab, 24-Feb-2025.) $)
  pm2.61d $p |- ( ph -> ch ) $=
    wph wch wn wch wi wch wph wch wn wps wn wch wph wps wch pm2.61d.1 con3d pm2.61d.2 syld wch pm2.18 syl $.
$}
${
  pm2.65i.1 $e |- ( ph -> ps ) $.
  pm2.65i.2 $e |- ( ph -> -. ps ) $.
  $( Proof by contradiction. (Contributed by mirblab, 25-Feb-2025.) $)
  pm2.65i $p |- -. ph $=
    wph wph wn wi wph wn wph wps wph wn pm2.65i.1 wph wps pm2.65i.2 con2i syl wph pm2.01 ax-mp $.
$}
$( Peirce's law. (Contributed by mirblab, 26-Feb-2025.) $)
peirce $p |- ( ( ( ph -> ps ) -> ph ) -> ph ) $=
  wph wps wi wph wi wph wn wph wi wph wph wn wph wps wi wph wph wps pm2.21 imim1i wph pm2.18 syl $.
${
  ja.1 $e |- ( -. ph -> ch ) $.
  ja.2 $e |- ( ps -> ch ) $.
  $( An implication as antecedent: both ways to satisfy it suffice. (Contributed by mirblab, 27-Feb-2025.) $)
  ja $p |- ( ( ph -> ps ) -> ch ) $=
    wph wps wi wph wch wps wch wph ja.2 imim2i wph wn wch wi wph wps wi ja.1 a1i pm2.61d $.
$}
$(
#*#*#*#*#*#*#*#*#*#*
  Equivalence, conjunction and disjunction
#*#*#*#*#*#*#*#*#*#*
$)
$( An equivalence is a formula. $)
wb $a wff ( ph <-> ps ) $.
$( An equivalence implies its first direction. $)
ax-bi1 $a |- ( ( ph <-> ps ) -> ( ph -> ps ) ) $.
$( An equivalence implies its second direction. $)
ax-bi2 $a |- ( ( ph <-> ps ) -> ( ps -> ph ) ) $.
$( Both directions imply an equivalence. $)
ax-bi3 $a |- ( ( ph -> ps ) -> ( ( ps -> ph ) -> ( ph <-> ps ) ) ) $.
${
  biimpi.1 $e |- ( ph <-> ps ) $.
  $( The first direction of an equivalence. (Contributed by mirblab, 28-Feb-2025.) $)
  biimpi $p |- ( ph -> ps ) $=
    wph wps wb wph wps wi biimpi.1 wph wps ax-bi1 ax-mp $.
$}
${
  biimpri.1 $e |- ( ph <-> ps ) $.
  $( The second direction of an equivalence. (Contributed by mirblab, 1-Mar-2025.) $)
  biimpri $p |- ( ps -> ph ) $=
    wph wps wb wps wph wi biimpri.1 wph wps ax-bi2 ax-mp $.
$}
${
  impbii.1 $e |- ( ph -> ps ) $.
  impbii.2 $e |- ( ps -> ph ) $.
  $( An equivalence from both directions. (Contributed by mirblab, 2-Mar-2025.) $)
  impbii $p |- ( ph <-> ps ) $=
    wph wps wi wps wph wi wph wps wb impbii.1 impbii.2 wph wps ax-bi3 mp2 $.
$}
${
  impbid.1 $e |- ( ph -> ( ps -> ch ) ) $.
  impbid.2 $e |- ( ph -> ( ch -> ps ) ) $.
  $( An equivalence from both directions under an antecedent. (Contributed by mirblab, 3-Mar-2025.) $)
  impbid $p |- ( ph -> ( ps <-> ch ) ) $=
    wph wch wps wi wps wch wb impbid.2 wph wps wch wi wch wps wi wps wch wb wi impbid.1 wps wch ax-bi3 syl mpd $.
$}
${
  mpbi.1 $e |- ph $.
  mpbi.2 $e |- ( ph <-> ps ) $.
  $( Detachment from an equivalence. (Contributed by mirblab, 4-Mar-2025.) $)
  mpbi $p |- ps $=
    wph wps mpbi.1 wph wps mpbi.2 biimpi ax-mp $.
$}
${
  mpbir.1 $e |- ps $.
  mpbir.2 $e |- ( ph <-> ps ) $.
  $( Detachment from an equivalence, reversed. (Contributed by mirblab, 5-Mar-2025.) $)
  mpbir $p |- ph $=
    wps wph mpbir.1 wph wps mpbir.2 biimpri ax-mp $.
$}
$( A formula is equivalent to itself. (Contributed by mirblab, 6-Mar-2025.) $)
biid $p |- ( ph <-> ph ) $=
  wph wph wph id wph id impbii $.
${
  bicomi.1 $e |- ( ph <-> ps ) $.
  $( The sides of an equivalence are exchanged. (Contributed by mirblab, 7-Mar-2025.) $)
  bicomi $p |- ( ps <-> ph ) $=
    wps wph wph wps bicomi.1 biimpri wph wps bicomi.1 biimpi impbii $.
$}
${
  bitri.1 $e |- ( ph <-> ps ) $.
  bitri.2 $e |- ( ps <-> ch ) $.
  $( Two equivalences are chained. (Contributed by mirblab, 8-Mar-2025.) $)
  bitri $p |- ( ph <-> ch ) $=
    wph wch wph wps wch wph wps bitri.1 biimpi wps wch bitri.2 biimpi syl wch wps wph wps wch bitri.2 biimpri wph wps
    bitri.1 biimpri syl impbii $.
$}
${
  3bitri.1 $e |- ( ph <-> ps ) $.
  3bitri.2 $e |- ( ps <-> ch ) $.
  3bitri.3 $e |- ( ch <-> th ) $.
  $( Three equivalences are chained. (Contributed by mirblab, 9-Mar-2025.) $)
  3bitri $p |- ( ph <-> th ) $=
    wph wps wth 3bitri.1 wps wch wth 3bitri.2 3bitri.3 bitri bitri $.
$}
${
  bitr3i.1 $e |- ( ps <-> ph ) $.
  bitr3i.2 $e |- ( ps <-> ch ) $.
  $( Two equivalences with a common left side. (Contributed by mirblab, 10-Mar-2025.) $)
  bitr3i $p |- ( ph <-> ch ) $=
    wph wps wch wps wph bitr3i.1 bicomi bitr3i.2 bitri $.
$}
${
  bitr4i.1 $e |- ( ph <-> ps ) $.
  bitr4i.2 $e |- ( ch <-> ps ) $.
  $( Two equivalences with a common right side. (Contributed by mirblab, 11-Mar-2025.) $)
  bitr4i $p |- ( ph <-> ch ) $=
    wph wps wch bitr4i.1 wch wps bitr4i.2 bicomi bitri $.
$}
${
  sylib.1 $e |- ( ph -> ps ) $.
  sylib.2 $e |- ( ps <-> ch ) $.
  $( The consequent is replaced by what is equivalent. (Contributed by mirblab, 12-Mar-2025.) $)
  sylib $p |- ( ph -> ch ) $=
    wph wps wch sylib.1 wps wch sylib.2 biimpi syl $.
$}
${
  sylibr.1 $e |- ( ph -> ps ) $.
  sylibr.2 $e |- ( ch <-> ps ) $.
  $( The consequent is replaced by what is equivalent, reversed. (Contributed by mirblab, 13-Mar-2025.) $)
  sylibr $p |- ( ph -> ch ) $=
    wph wps wch sylibr.1 wch wps sylibr.2 biimpri syl $.
$}
${
  sylbi.1 $e |- ( ph <-> ps ) $.
  sylbi.2 $e |- ( ps -> ch ) $.
  $( The antecedent is replaced by what is equivalent. (Contributed by mirblab, 14-Mar-2025.) $)
  sylbi $p |- ( ph -> ch ) $=
    wph wps wch wph wps sylbi.1 biimpi sylbi.2 syl $.
$}
$( Equivalence is symmetric, one direction. (Contributed by mirblab, 15-Mar-2025.) $)
bicom1 $p |- ( ( ph <-> ps ) -> ( ps <-> ph ) ) $=
  wph wps wb wps wph wph wps ax-bi2 wph wps ax-bi1 impbid $.
$( Equivalence is symmetric. (Contributed by mirblab, 16-Mar-2025.) $)
bicom $p |- ( ( ph <-> ps ) <-> ( ps <-> ph ) ) $=
  wph wps wb wps wph wb wph wps bicom1 wps wph bicom1 impbii $.
${
  notbii.1 $e |- ( ph <-> ps ) $.
  $( Both sides of an equivalence are negated. (Contributed by mirblab, 17-Mar-2025.) $)
  notbii $p |- ( -. ph <-> -. ps ) $=
    wph wn wps wn wps wph wph wps notbii.1 biimpri con3i wph wps wph wps notbii.1 biimpi con3i impbii $.
$}
${
  con4bii.1 $e |- ( -. ph <-> -. ps ) $.
  $( Negations are removed from both sides of an equivalence. (Contributed by mirblab, 18-Mar-2025.) $)
  con4bii $p |- ( ph <-> ps ) $=
    wph wps wps wph wph wn wps wn con4bii.1 biimpri con4i wph wps wph wn wps wn con4bii.1 biimpi con4i impbii $.
$}
$( A formula is equivalent to its double negation. (Contributed by mirblab, 19-Mar-2025.) $)
notnotb $p |- ( ph <-> -. -. ph ) $=
  wph wph wn wn wph notnot wph notnotr impbii $.
${
  imbi2i.1 $e |- ( ph <-> ps ) $.
  $( A common antecedent is added to an equivalence. (Contributed by mirblab, 20-Mar-2025.) $)
  imbi2i $p |- ( ( ch -> ph ) <-> ( ch -> ps ) ) $=
    wch wph wi wch wps wi wph wps wch wph wps imbi2i.1 biimpi imim2i wps wph wch wph wps imbi2i.1 biimpri imim2i
    impbii $.
$}
${
  imbi1i.1 $e |- ( ph <-> ps ) $.
  $( A common consequent is added to an equivalence. (Contributed by mirblab, 21-Mar-2025.) $)
  imbi1i $p |- ( ( ph -> ch ) <-> ( ps -> ch ) ) $=
    wph wch wi wps wch wi wps wph wch wph wps imbi1i.1 biimpri imim1i wph wps wch wph wps imbi1i.1 biimpi imim1i
    impbii $.
$}
${
  imbi12i.1 $e |- ( ph <-> ps ) $.
  imbi12i.2 $e |- ( ch <-> th ) $.
  $( Two equivalences are joined by implication. (Contributed by mirblab, 22-Mar-2025.) $)
  imbi12i $p |- ( ( ph -> ch ) <-> ( ps -> th ) ) $=
    wph wch wi wps wch wi wps wth wi wph wps wch imbi12i.1 imbi1i wch wth wps imbi12i.2 imbi2i bitri $.
$}
$( An implication is equivalent to its contrapositive. (Contributed by mirblab, 23-Mar-2025.) $)
con34b $p |- ( ( ph -> ps ) <-> ( -. ps -> -. ph ) ) $=
  wph wps wi wps wn wph wn wi wph wps con3 wps wph ax-3 impbii $.
$( The exchange of antecedents is an equivalence. (Contributed by mirblab, 24-Mar-2025.) $)
bi2.04 $p |- ( ( ph -> ( ps -> ch ) ) <-> ( ps -> ( ph -> ch ) ) ) $=
  wph wps wch wi wi wps wph wch wi wi wph wps wch pm2.04 wps wph wch pm2.04 impbii $.
$( A conjunction is a formula. $)
wa $a wff ( ph /\ ps ) $.
$( Definition of conjunction. $)
df-an $a |- ( ( ph /\ ps ) <-> -. ( ph -> -. ps ) ) $.
$( The left part of a conjunction. (Contributed by mirblab, 25-Mar-2025.) $)
simpl $p |- ( ( ph /\ ps ) -> ph ) $=
  wph wps wa wph wps wn wi wn wph wph wps df-an wph wph wps wn wi wph wps wn pm2.21 con1i sylbi $.
$( The right part of a conjunction. (Contributed by mirblab, 26-Mar-2025.) $)
simpr $p |- ( ( ph /\ ps ) -> ps ) $=
  wph wps wa wph wps wn wi wn wps wph wps df-an wps wph wps wn wi wps wn wph ax-1 con1i sylbi $.
$( Two formulas imply their conjunction. (Contributed by mirblab, 27-Mar-2025.) $)
pm3.2 $p |- ( ph -> ( ps -> ( ph /\ ps ) ) ) $=
  wph wps wph wps wn wi wn wph wps wa wph wph wps wn wi wps wph wps wn pm2.27 con2d wph wps wa wph wps wn wi wn wph
  wps df-an biimpri syl6 $.
${
  pm3.2i.1 $e |- ph $.
  pm3.2i.2 $e |- ps $.
  $( The conjunction of two things that hold. (Contributed by mirblab, 28-Mar-2025.) $)
  pm3.2i $p |- ( ph /\ ps ) $=
    wph wps wph wps wa pm3.2i.1 pm3.2i.2 wph wps pm3.2 mp2 $.
$}
${
  simpli.1 $e |- ( ph /\ ps ) $.
  $( The left part of a conjunction that holds. (Contributed by mirblab, 29-Mar-2025.) $)
  simpli $p |- ph $=
    wph wps wa wph simpli.1 wph wps simpl ax-mp $.
$}
${
  simpri.1 $e |- ( ph /\ ps ) $.
  $( The right part of a conjunction that holds. (Contributed by mirblab, 30-Mar-2025.) $)
  simpri $p |- ps $=
    wph wps wa wps simpri.1 wph wps simpr ax-mp $.
$}
${
  jca.1 $e |- ( ph -> ps ) $.
  jca.2 $e |- ( ph -> ch ) $.
  $( Two consequents are joined. (Contributed by mirblab, 31-Mar-2025.) $)
  jca $p |- ( ph -> ( ps /\ ch ) ) $=
    wph wch wps wch wa jca.2 wph wps wch wps wch wa wi jca.1 wps wch pm3.2 syl mpd $.
$}
${
  ex.1 $e |- ( ( ph /\ ps ) -> ch ) $.
  $( A conjunction as antecedent is split (exportation). (Contributed by mirblab, 1-Apr-2025.) $)
  ex $p |- ( ph -> ( ps -> ch ) ) $=
    wph wps wph wps wa wch wph wps pm3.2 ex.1 syl6 $.
$}
${
  imp.1 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Two antecedents are joined (importation). (Contributed by mirblab, 2-Apr-2025.) $)
  imp $p |- ( ( ph /\ ps ) -> ch ) $=
    wph wps wa wps wch wph wps simpr wph wps wa wph wps wch wi wph wps simpl imp.1 syl mpd $.
$}
${
  adantr.1 $e |- ( ph -> ps ) $.
  $( A conjunct is added on the right of an antecedent. (Contributed by mirblab, 3-Apr-2025.) $)
  adantr $p |- ( ( ph /\ ch ) -> ps ) $=
    wph wch wa wph wps wph wch simpl adantr.1 syl $.
$}
${
  adantl.1 $e |- ( ph -> ps ) $.
  $( A conjunct is added on the left of an antecedent. (Contributed by mirblab, 4-Apr-2025.) $)
  adantl $p |- ( ( ch /\ ph ) -> ps ) $=
    wch wph wa wph wps wch wph simpr adantl.1 syl $.
$}
${
  sylan.1 $e |- ( ph -> ps ) $.
  sylan.2 $e |- ( ( ps /\ ch ) -> th ) $.
  $( The left conjunct is replaced by what implies it. (Contributed by mirblab, 5-Apr-2025.) $)
  sylan $p |- ( ( ph /\ ch ) -> th ) $=
    wph wch wth wph wps wch wth wi sylan.1 wps wch wth sylan.2 ex syl imp $.
$}
${
  sylan2.1 $e |- ( ph -> ch ) $.
  sylan2.2 $e |- ( ( ps /\ ch ) -> th ) $.
  $( The right conjunct is replaced by what implies it. (Contributed by mirblab, 6-Apr-2025.) $)
  sylan2 $p |- ( ( ps /\ ph ) -> th ) $=
    wps wph wa wps wch wa wth wps wph wa wps wch wps wph simpl wph wch wps sylan2.1 adantl jca sylan2.2 syl $.
$}
${
  anim12i.1 $e |- ( ph -> ps ) $.
  anim12i.2 $e |- ( ch -> th ) $.
  $( Two implications are joined by conjunction. (Contributed by mirblab, 7-Apr-2025.) $)
  anim12i $p |- ( ( ph /\ ch ) -> ( ps /\ th ) ) $=
    wph wch wa wps wth wph wps wch anim12i.1 adantr wch wth wph anim12i.2 adantl jca $.
$}
${
  anim1i.1 $e |- ( ph -> ps ) $.
  $( A right conjunct is added to both sides. (Contributed by mirblab, 8-Apr-2025.) $)
  anim1i $p |- ( ( ph /\ ch ) -> ( ps /\ ch ) ) $=
    wph wps wch wch anim1i.1 wch id anim12i $.
$}
${
  anim2i.1 $e |- ( ph -> ps ) $.
  $( A left conjunct is added to both sides. (Contributed by mirblab, 9-Apr-2025.) $)
  anim2i $p |- ( ( ch /\ ph ) -> ( ch /\ ps ) ) $=
    wch wch wph wps wch id anim2i.1 anim12i $.
$}
$( Conjunction is commutative, one direction. (Contributed by mirblab, 10-Apr-2025.) $)
pm3.22 $p |- ( ( ph /\ ps ) -> ( ps /\ ph ) ) $=
  wph wps wa wps wph wph wps simpr wph wps simpl jca $.
$( Conjunction is commutative. (Contributed by mirblab, 11-Apr-2025.) $)
ancom $p |- ( ( ph /\ ps ) <-> ( ps /\ ph ) ) $=
  wph wps wa wps wph wa wph wps pm3.22 wps wph pm3.22 impbii $.
$( Conjunction is associative. (Contributed by mirblab, 12-Apr-2025.) $)
anass $p |- ( ( ( ph /\ ps ) /\ ch ) <-> ( ph /\ ( ps /\ ch ) ) ) $=
  wph wps wa wch wa wph wps wch wa wa wph wps wa wch wa wph wps wch wa wph wps wa wph wch wph wps simpl adantr wph
  wps wa wps wch wph wps simpr anim1i jca wph wps wch wa wa wph wps wa wch wps wch wa wps wph wps wch simpl anim2i
  wps wch wa wch wph wps wch simpr adantl jca impbii $.
$( Conjunction is idempotent. (Contributed by mirblab, 13-Apr-2025.) $)
anidm $p |- ( ( ph /\ ph ) <-> ph ) $=
  wph wph wa wph wph wph simpl wph wph wph wph id wph id jca impbii $.
$( Importation and exportation as an equivalence. (Contributed by mirblab, 14-Apr-2025.) $)
impexp $p |- ( ( ( ph /\ ps ) -> ch ) <-> ( ph -> ( ps -> ch ) ) ) $=
  wph wps wa wch wi wph wps wch wi wi wph wps wa wch wi wph wps wch wi wph wps wa wch wi wph wa wps wch wph wps wa
  wch wi wph wa wps wa wph wps wa wch wph wps wa wch wi wph wa wph wps wph wps wa wch wi wph simpr anim1i wph wps wa
  wch wi wph wa wph wps wa wch wi wps wph wps wa wch wi wph simpl adantr mpd ex ex wph wps wch wi wi wph wps wa wch
  wph wps wch wi wi wph wps wa wa wps wch wph wps wa wps wph wps wch wi wi wph wps simpr adantl wph wps wch wi wi
  wph wps wa wa wph wps wch wi wph wps wa wph wph wps wch wi wi wph wps simpl adantl wph wps wch wi wi wph wps wa
  simpl mpd mpd ex impbii $.
${
  anbi12i.1 $e |- ( ph <-> ps ) $.
  anbi12i.2 $e |- ( ch <-> th ) $.
  $( Two equivalences are joined by conjunction. (Contributed by mirblab, 15-Apr-2025.) $)
  anbi12i $p |- ( ( ph /\ ch ) <-> ( ps /\ th ) ) $=
    wph wch wa wps wth wa wph wps wch wth wph wps anbi12i.1 biimpi wch wth anbi12i.2 biimpi anim12i wps wph wth wch
    wph wps anbi12i.1 biimpri wch wth anbi12i.2 biimpri anim12i impbii $.
$}
${
  anbi1i.1 $e |- ( ph <-> ps ) $.
  $( A right conjunct is added to an equivalence. (Contributed by mirblab, 16-Apr-2025.) $)
  anbi1i $p |- ( ( ph /\ ch ) <-> ( ps /\ ch ) ) $=
    wph wps wch wch anbi1i.1 wch biid anbi12i $.
$}
${
  anbi2i.1 $e |- ( ph <-> ps ) $.
  $( A left conjunct is added to an equivalence. (Contributed by mirblab, 17-Apr-2025.) $)
  anbi2i $p |- ( ( ch /\ ph ) <-> ( ch /\ ps ) ) $=
    wch wch wph wps wch biid anbi2i.1 anbi12i $.
$}
$( An equivalence is the conjunction of both directions. (Contributed by mirblab, 18-Apr-2025.) $)
dfbi2 $p |- ( ( ph <-> ps ) <-> ( ( ph -> ps ) /\ ( ps -> ph ) ) ) $=
  wph wps wb wph wps wi wps wph wi wa wph wps wb wph wps wi wps wph wi wph wps ax-bi1 wph wps ax-bi2 jca wph wps wi
  wps wph wi wph wps wb wph wps ax-bi3 imp impbii $.
$( Implication by conjunction and negation. (Contributed by mirblab, 19-Apr-2025.) $)
iman $p |- ( ( ph -> ps ) <-> -. ( ph /\ -. ps ) ) $=
  wph wps wi wph wps wn wn wi wph wps wn wa wn wps wps wn wn wph wps notnotb imbi2i wph wps wn wn wi wph wps wn wn
  wi wn wn wph wps wn wa wn wph wps wn wn wi notnotb wph wps wn wa wph wps wn wn wi wn wph wps wn df-an notbii
  bitr4i bitri $.
$( A disjunction is a formula. $)
wo $a wff ( ph \/ ps ) $.
$( Definition of disjunction. $)
df-or $a |- ( ( ph \/ ps ) <-> ( -. ph -> ps ) ) $.
$( A formula implies a disjunction in which it stands left. (Contributed by mirblab, 20-Apr-2025.) $)
orc $p |- ( ph -> ( ph \/ ps ) ) $=
  wph wph wn wps wi wph wps wo wph wps pm2.24 wph wps df-or sylibr $.
$( A formula implies a disjunction in which it stands right. (Contributed by mirblab, 21-Apr-2025.) $)
olc $p |- ( ps -> ( ph \/ ps ) ) $=
  wps wph wn wps wi wph wps wo wps wph wn ax-1 wph wps df-or sylibr $.
${
  orci.1 $e |- ph $.
  $( A disjunction whose left part holds. (Contributed by mirblab, 22-Apr-2025.) $)
  orci $p |- ( ph \/ ps ) $=
    wph wph wps wo orci.1 wph wps orc ax-mp $.
$}
${
  olci.1 $e |- ps $.
  $( A disjunction whose right part holds. (Contributed by mirblab, 23-Apr-2025.) $)
  olci $p |- ( ph \/ ps ) $=
    wps wph wps wo olci.1 wph wps olc ax-mp $.
$}
${
  ori.1 $e |- ( ph \/ ps ) $.
  $( If the left part of a disjunction is false, the right part holds. (Contributed by mirblab, 24-Apr-2025.)
     $)
  ori $p |- ( -. ph -> ps ) $=
    wph wps wo wph wn wps wi ori.1 wph wps df-or mpbi $.
$}
$( The law of excluded middle. (Contributed by mirblab, 25-Apr-2025.) $)
exmid $p |- ( ph \/ -. ph ) $=
  wph wph wn wo wph wn wph wn wi wph wn id wph wph wn df-or mpbir $.
${
  jaoi.1 $e |- ( ph -> ps ) $.
  jaoi.2 $e |- ( ch -> ps ) $.
  $( A disjunction as antecedent. (Contributed by mirblab, 26-Apr-2025.) $)
  jaoi $p |- ( ( ph \/ ch ) -> ps ) $=
    wph wch wo wph wn wch wi wps wph wch df-or wph wn wch wps wph wn wn wph wps wph notnotr jaoi.1 syl jaoi.2 ja sylbi $.
$}
$( Disjunction is commutative, one direction. (Contributed by mirblab, 27-Apr-2025.) $)
pm1.4 $p |- ( ( ph \/ ps ) -> ( ps \/ ph ) ) $=
  wph wps wph wo wps wps wph olc wps wph orc jaoi $.
$( Disjunction is commutative. (Contributed by mirblab, 28-Apr-2025.) $)
orcom $p |- ( ( ph \/ ps ) <-> ( ps \/ ph ) ) $=
  wph wps wo wps wph wo wph wps pm1.4 wps wph pm1.4 impbii $.
$( Disjunction is idempotent. (Contributed by mirblab, 29-Apr-2025.) $)
oridm $p |- ( ( ph \/ ph ) <-> ph ) $=
  wph wph wo wph wph wph wph wph id wph id jaoi wph wph orc impbii $.
${
  orim12i.1 $e |- ( ph -> ps ) $.
  orim12i.2 $e |- ( ch -> th ) $.
  $( Two implications are joined by disjunction. (Contributed by mirblab, 30-Apr-2025.) $)
  orim12i $p |- ( ( ph \/ ch ) -> ( ps \/ th ) ) $=
    wph wps wth wo wch wph wps wps wth wo orim12i.1 wps wth orc syl wch wth wps wth wo orim12i.2 wps wth olc syl jaoi $.
$}
$( Disjunction is associative. (Contributed by mirblab, 1-May-2025.) $)
orass $p |- ( ( ( ph \/ ps ) \/ ch ) <-> ( ph \/ ( ps \/ ch ) ) ) $=
  wph wps wo wch wo wph wps wch wo wo wph wps wo wph wps wch wo wo wch wph wph wps wch wo wo wps wph wps wch wo orc
  wps wps wch wo wph wps wch wo wo wps wch orc wph wps wch wo olc syl jaoi wch wps wch wo wph wps wch wo wo wps wch
  olc wph wps wch wo olc syl jaoi wph wph wps wo wch wo wps wch wo wph wph wps wo wph wps wo wch wo wph wps orc wph
  wps wo wch orc syl wps wph wps wo wch wo wch wps wph wps wo wph wps wo wch wo wph wps olc wph wps wo wch orc syl
  wph wps wo wch olc jaoi jaoi impbii $.
$( Conjunction distributes over disjunction. (Contributed by mirblab, 2-May-2025.) $)
andi $p |- ( ( ph /\ ( ps \/ ch ) ) <-> ( ( ph /\ ps ) \/ ( ph /\ ch ) ) ) $=
  wph wps wch wo wa wph wps wa wph wch wa wo wph wps wch wo wph wps wa wph wch wa wo wps wch wo wph wph wps wa wph
  wch wa wo wps wph wph wps wa wph wch wa wo wi wch wph wps wph wps wa wph wch wa wo wph wps wph wps wa wph wch wa
  wo wph wps wa wph wch wa orc ex com12 wph wch wph wps wa wph wch wa wo wph wch wph wps wa wph wch wa wo wph wps wa
  wph wch wa olc ex com12 jaoi com12 imp wph wps wa wph wps wch wo wa wph wch wa wps wps wch wo wph wps wch orc
  anim2i wch wps wch wo wph wps wch olc anim2i jaoi impbii $.
$( The negation of a disjunction (De Morgan). (Contributed by mirblab, 3-May-2025.) $)
ioran $p |- ( -. ( ph \/ ps ) <-> ( -. ph /\ -. ps ) ) $=
  wph wps wo wn wph wn wps wn wa wph wps wo wn wph wn wps wn wph wph wps wo wph wps orc con3i wps wph wps wo wph wps
  olc con3i jca wph wps wo wph wn wps wn wa wph wph wn wps wn wa wn wps wph wn wps wn wa wph wph wn wps wn simpl
  con2i wph wn wps wn wa wps wph wn wps wn simpr con2i jaoi con2i impbii $.
$( The negation of a conjunction (De Morgan). (Contributed by mirblab, 4-May-2025.) $)
ianor $p |- ( -. ( ph /\ ps ) <-> ( -. ph \/ -. ps ) ) $=
  wph wps wa wn wph wn wps wn wo wph wn wps wn wo wph wps wa wph wn wps wn wo wn wph wn wn wps wn wn wa wph wps wa
  wph wn wps wn ioran wph wn wn wph wps wn wn wps wph notnotr wps notnotr anim12i sylbi con1i wph wn wph wps wa wn
  wps wn wph wps wa wph wph wps simpl con3i wph wps wa wps wph wps simpr con3i jaoi impbii $.
$( Implication by disjunction and negation. (Contributed by mirblab, 5-May-2025.) $)
imor $p |- ( ( ph -> ps ) <-> ( -. ph \/ ps ) ) $=
  wph wps wi wph wn wn wps wi wph wn wps wo wph wph wn wn wps wph notnotb imbi1i wph wn wps df-or bitr4i $.
$(
#*#*#*#*#*#*#*#*#*#*
  Quantifiers
#*#*#*#*#*#*#*#*#*#*
$)
$( A universally quantified formula is a formula. $)
wal $a wff A. x ph $.
${
  ax-gen.1 $e |- ph $.
  $( Rule of generalisation. $)
  ax-gen $a |- A. x ph $.
$}
$( A quantifier is distributed over an implication. $)
ax-4 $a |- ( A. x ( ph -> ps ) -> ( A. x ph -> A. x ps ) ) $.
${
  $d x ph $.
  $( A variable that does not occur may be quantified. $)
  ax-5 $a |- ( ph -> A. x ph ) $.
$}
$( What holds for all holds (specialisation). $)
ax-sp $a |- ( A. x ph -> ph ) $.
${
  mpg.1 $e |- ( A. x ph -> ps ) $.
  mpg.2 $e |- ph $.
  $( Generalisation, then detachment. (Contributed by mirblab, 6-May-2025.) $)
  mpg $p |- ps $=
    wph vx wal wps wph vx mpg.2 ax-gen mpg.1 ax-mp $.
$}
${
  spi.1 $e |- A. x ph $.
  $( A quantifier is removed from what holds. (Contributed by mirblab, 7-May-2025.) $)
  spi $p |- ph $=
    wph vx wal wph spi.1 wph vx ax-sp ax-mp $.
$}
${
  alimi.1 $e |- ( ph -> ps ) $.
  $( Both sides of an implication are quantified. (Contributed by mirblab, 8-May-2025.) $)
  alimi $p |- ( A. x ph -> A. x ps ) $=
    wph wps wi vx wal wph vx wal wps vx wal wi wph wps wi vx alimi.1 ax-gen wph wps vx ax-4 ax-mp $.
$}
${
  al2imi.1 $e |- ( ph -> ( ps -> ch ) ) $.
  $( Both antecedents and the consequent are quantified. (Contributed by mirblab, 9-May-2025.) $)
  al2imi $p |- ( A. x ph -> ( A. x ps -> A. x ch ) ) $=
    wph vx wal wps wch wi vx wal wps vx wal wch vx wal wi wph wps wch wi vx al2imi.1 alimi wps wch vx ax-4 syl $.
$}
${
  albii.1 $e |- ( ph <-> ps ) $.
  $( Both sides of an equivalence are quantified. (Contributed by mirblab, 10-May-2025.) $)
  albii $p |- ( A. x ph <-> A. x ps ) $=
    wph vx wal wps vx wal wph wps vx wph wps albii.1 biimpi alimi wps wph vx wph wps albii.1 biimpri alimi impbii $.
$}
${
  $d x ph $.
  alrimiv.1 $e |- ( ph -> ps ) $.
  $( A consequent is quantified by a variable that the antecedent does not have. (Contributed by mirblab,
     11-May-2025.) $)
  alrimiv $p |- ( ph -> A. x ps ) $=
    wph wph vx wal wps vx wal wph vx ax-5 wph wps vx alrimiv.1 alimi syl $.
$}
${
  $d x ph $.
  $( A quantifier without effect. (Contributed by mirblab, 12-May-2025.) $)
  19.3v $p |- ( A. x ph <-> ph ) $=
    wph vx wal wph wph vx ax-sp wph vx ax-5 impbii $.
$}
${
  $d x ph $.
  $( A quantifier moves over an antecedent without its variable. (Contributed by mirblab, 13-May-2025.) $)
  19.21im $p |- ( A. x ( ph -> ps ) -> ( ph -> A. x ps ) ) $=
    wph wps wi vx wal wph vx wal wps vx wal wi wph wps vx wal wi wph wps vx ax-4 wph wph vx wal wps vx wal wph vx ax-5
    imim1i syl $.
$}
$( A universal quantifier distributes over conjunction. (Contributed by mirblab, 14-May-2025.) $)
19.26 $p |- ( A. x ( ph /\ ps ) <-> ( A. x ph /\ A. x ps ) ) $=
  wph wps wa vx wal wph vx wal wps vx wal wa wph wps wa vx wal wph vx wal wps vx wal wph wps wa wph vx wph wps simpl
  alimi wph wps wa wps vx wph wps simpr alimi jca wph vx wal wps vx wal wph wps wa vx wal wph wps wph wps wa vx wph
  wps pm3.2 al2imi imp impbii $.
$( A disjunction of two universal statements. (Contributed by mirblab, 15-May-2025.) $)
19.33 $p |- ( ( A. x ph \/ A. x ps ) -> A. x ( ph \/ ps ) ) $=
  wph vx wal wph wps wo vx wal wps vx wal wph wph wps wo vx wph wps orc alimi wps wph wps wo vx wph wps olc alimi
  jaoi $.
$( An existentially quantified formula is a formula. $)
wex $a wff E. x ph $.
$( Definition of existence. $)
df-ex $a |- ( E. x ph <-> -. A. x -. ph ) $.
$( That all do not is that none does. (Contributed by mirblab, 16-May-2025.) $)
alnex $p |- ( A. x -. ph <-> -. E. x ph ) $=
  wph wn vx wal wph wn vx wal wn wn wph vx wex wn wph wn vx wal notnotb wph vx wex wph wn vx wal wn wph vx df-ex
  notbii bitr4i $.
$( That one does not is that not all do. (Contributed by mirblab, 17-May-2025.) $)
exnal $p |- ( E. x -. ph <-> -. A. x ph ) $=
  wph wn vx wex wph wn wn vx wal wn wph vx wal wn wph wn vx df-ex wph vx wal wph wn wn vx wal wph wph wn wn vx wph
  notnotb albii notbii bitr4i $.
${
  eximi.1 $e |- ( ph -> ps ) $.
  $( Existence on both sides of an implication. (Contributed by mirblab, 18-May-2025.) $)
  eximi $p |- ( E. x ph -> E. x ps ) $=
    wph vx wex wph wn vx wal wn wps vx wex wph vx df-ex wph wn vx wal wn wps wn vx wal wn wps vx wex wps wn vx wal wph
    wn vx wal wps wn wph wn vx wph wps eximi.1 con3i alimi con3i wps vx df-ex sylibr sylbi $.
$}
${
  exbii.1 $e |- ( ph <-> ps ) $.
  $( Existence on both sides of an equivalence. (Contributed by mirblab, 19-May-2025.) $)
  exbii $p |- ( E. x ph <-> E. x ps ) $=
    wph vx wex wps vx wex wph wps vx wph wps exbii.1 biimpi eximi wps wph vx wph wps exbii.1 biimpri eximi impbii $.
$}
$( What holds holds for some. (Contributed by mirblab, 20-May-2025.) $)
19.8a $p |- ( ph -> E. x ph ) $=
  wph wph wn vx wal wn wph vx wex wph wn vx wal wph wph wn vx ax-sp con2i wph vx df-ex sylibr $.
$( Existence is distributed over an implication. (Contributed by mirblab, 21-May-2025.) $)
exim $p |- ( A. x ( ph -> ps ) -> ( E. x ph -> E. x ps ) ) $=
  wph wps wi vx wal wph vx wex wps wn vx wal wn wps vx wex wph vx wex wph wn vx wal wn wph wps wi vx wal wps wn vx
  wal wn wph vx wex wph wn vx wal wn wph vx df-ex biimpi wph wps wi vx wal wps wn vx wal wph wn vx wal wi wph wn vx
  wal wn wps wn vx wal wn wi wph wps wi vx wal wps wn wph wn wi vx wal wps wn vx wal wph wn vx wal wi wph wps wi wps
  wn wph wn wi vx wph wps con3 alimi wps wn wph wn vx ax-4 syl wps wn vx wal wph wn vx wal con3 syl syl5 wps vx wex
  wps wn vx wal wn wps vx df-ex biimpri syl6 $.
${
  $d x ph $.
  $( Existence without effect. (Contributed by mirblab, 22-May-2025.) $)
  ax5e $p |- ( E. x ph -> ph ) $=
    wph vx wex wph wn vx wal wn wph wph vx df-ex wph wph wn vx wal wph wn vx ax-5 con1i sylbi $.
$}
${
  $d x ph $.
  $( Existence without effect, as an equivalence. (Contributed by mirblab, 23-May-2025.) $)
  19.9v $p |- ( E. x ph <-> ph ) $=
    wph vx wex wph wph vx ax5e wph vx 19.8a impbii $.
$}
${
  $d x ps $.
  exlimiv.1 $e |- ( ph -> ps ) $.
  $( An antecedent is assumed to exist. (Contributed by mirblab, 24-May-2025.) $)
  exlimiv $p |- ( E. x ph -> ps ) $=
    wph vx wex wps vx wex wps wph wps vx exlimiv.1 eximi wps vx ax5e syl $.
$}
$( The parts of a conjunction that exists are exchanged. (Contributed by mirblab, 25-May-2025.) $)
exancom $p |- ( E. x ( ph /\ ps ) <-> E. x ( ps /\ ph ) ) $=
  wph wps wa wps wph wa vx wph wps ancom exbii $.
$( Existence of a conjunction. (Contributed by mirblab, 26-May-2025.) $)
19.40 $p |- ( E. x ( ph /\ ps ) -> ( E. x ph /\ E. x ps ) ) $=
  wph wps wa vx wex wph vx wex wps vx wex wph wps wa wph vx wph wps simpl eximi wph wps wa wps vx wph wps simpr
  eximi jca $.
$( Existence distributes over disjunction. (Contributed by mirblab, 27-May-2025.) $)
19.43 $p |- ( E. x ( ph \/ ps ) <-> ( E. x ph \/ E. x ps ) ) $=
  wph wps wo vx wex wph vx wex wps vx wex wo wph wps wo vx wex wn wph wps wo wn vx wal wph vx wex wn wps vx wex wn
  wa wph vx wex wps vx wex wo wn wph wps wo wn vx wal wph wps wo vx wex wn wph wps wo vx alnex bicomi wph wps wo wn
  vx wal wph wn wps wn wa vx wal wph wn vx wal wps wn vx wal wa wph vx wex wn wps vx wex wn wa wph wps wo wn wph wn
  wps wn wa vx wph wps ioran albii wph wn wps wn vx 19.26 wph wn vx wal wph vx wex wn wps wn vx wal wps vx wex wn
  wph vx alnex wps vx alnex anbi12i 3bitri wph vx wex wps vx wex wo wn wph vx wex wn wps vx wex wn wa wph vx wex wps
  vx wex ioran bicomi 3bitri con4bii $.
$(
#*#*#*#*#*#*#*#*#*#*
  Equality and groups
#*#*#*#*#*#*#*#*#*#*
$)
$( A variable is a term. $)
cv $a class x $.
$( An equation is a formula. $)
wceq $a wff A = B $.
$( A term equals itself. $)
ax-id $a |- A = A $.
$( Terms equal to the same are equal to each other (Euclid). $)
ax-euc $a |- ( A = B -> ( A = C -> B = C ) ) $.
${
  $d x A $.
  $( Every term is the value of a variable. $)
  ax-ex $a |- E. x x = A $.
$}
${
  eqcomi.1 $e |- A = B $.
  $( The sides of an equation are exchanged. (Contributed by mirblab, 28-May-2025.) $)
  eqcomi $p |- B = A $=
    cA cB wceq cA cA wceq cB cA wceq eqcomi.1 cA ax-id cA cB cA ax-euc mp2 $.
$}
${
  eqtri.1 $e |- A = B $.
  eqtri.2 $e |- B = C $.
  $( Two equations are chained. (Contributed by mirblab, 29-May-2025.) $)
  eqtri $p |- A = C $=
    cB cA wceq cB cC wceq cA cC wceq cA cB eqtri.1 eqcomi eqtri.2 cB cA cC ax-euc mp2 $.
$}
${
  3eqtri.1 $e |- A = B $.
  3eqtri.2 $e |- B = C $.
  3eqtri.3 $e |- C = D $.
  $( Three equations are chained. (Contributed by mirblab, 30-May-2025.) $)
  3eqtri $p |- A = D $=
    cA cB cD 3eqtri.1 cB cC cD 3eqtri.2 3eqtri.3 eqtri eqtri $.
$}
${
  eqtr3i.1 $e |- A = B $.
  eqtr3i.2 $e |- A = C $.
  $( Two equations with a common left side. (Contributed by mirblab, 31-May-2025.) $)
  eqtr3i $p |- B = C $=
    cA cB wceq cA cC wceq cB cC wceq eqtr3i.1 eqtr3i.2 cA cB cC ax-euc mp2 $.
$}
${
  eqtr4i.1 $e |- A = B $.
  eqtr4i.2 $e |- C = B $.
  $( Two equations with a common right side. (Contributed by mirblab, 1-Jun-2025.) $)
  eqtr4i $p |- A = C $=
    cA cB cC eqtr4i.1 cC cB eqtr4i.2 eqcomi eqtri $.
$}
$( Equality is symmetric, one direction. (Contributed by mirblab, 2-Jun-2025.) $)
eqcom1 $p |- ( A = B -> B = A ) $=
  cA cB wceq cA cA wceq cB cA wceq cA ax-id cA cB cA ax-euc mpi $.
$( Equality is symmetric. (Contributed by mirblab, 3-Jun-2025.) $)
eqcom $p |- ( A = B <-> B = A ) $=
  cA cB wceq cB cA wceq cA cB eqcom1 cB cA eqcom1 impbii $.
$( Equality is transitive. (Contributed by mirblab, 4-Jun-2025.) $)
eqtr $p |- ( ( A = B /\ B = C ) -> A = C ) $=
  cA cB wceq cB cC wceq cA cC wceq cA cB wceq cB cA wceq cB cC wceq cA cC wceq wi cA cB eqcom1 cB cA cC ax-euc syl
  imp $.
${
  eqcomd.1 $e |- ( ph -> A = B ) $.
  $( The sides of an equation are exchanged under an antecedent. (Contributed by mirblab, 5-Jun-2025.) $)
  eqcomd $p |- ( ph -> B = A ) $=
    wph cA cB wceq cB cA wceq eqcomd.1 cA cB eqcom1 syl $.
$}
${
  eqtrd.1 $e |- ( ph -> A = B ) $.
  eqtrd.2 $e |- ( ph -> B = C ) $.
  $( Two equations are chained under an antecedent. (Contributed by mirblab, 6-Jun-2025.) $)
  eqtrd $p |- ( ph -> A = C ) $=
    wph cA cB wceq cB cC wceq wa cA cC wceq wph cA cB wceq cB cC wceq eqtrd.1 eqtrd.2 jca cA cB cC eqtr syl $.
$}
$( The sum of two elements is a term. $)
cadd $a class ( A + B ) $.
$( Zero is a term. $)
c0 $a class 0 $.
$( The negative of an element is a term. $)
cneg $a class -u A $.
$( Equal terms have equal sums, on the left. $)
ax-add1 $a |- ( A = B -> ( A + C ) = ( B + C ) ) $.
$( Equal terms have equal sums, on the right. $)
ax-add2 $a |- ( A = B -> ( C + A ) = ( C + B ) ) $.
$( Equal terms have equal negatives. $)
ax-neg $a |- ( A = B -> -u A = -u B ) $.
$( Addition is associative. $)
ax-ass $a |- ( ( A + B ) + C ) = ( A + ( B + C ) ) $.
$( Zero is a left identity. $)
ax-lid $a |- ( 0 + A ) = A $.
$( The negative is a left inverse. $)
ax-linv $a |- ( -u A + A ) = 0 $.
${
  add1i.1 $e |- A = B $.
  $( The same is added on the right. (Contributed by mirblab, 7-Jun-2025.) $)
  add1i $p |- ( A + C ) = ( B + C ) $=
    cA cB wceq cA cC cadd cB cC cadd wceq add1i.1 cA cB cC ax-add1 ax-mp $.
$}
${
  add2i.1 $e |- A = B $.
  $( The same is added on the left. (Contributed by mirblab, 8-Jun-2025.) $)
  add2i $p |- ( C + A ) = ( C + B ) $=
    cA cB wceq cC cA cadd cC cB cadd wceq add2i.1 cA cB cC ax-add2 ax-mp $.
$}
${
  add12i.1 $e |- A = B $.
  add12i.2 $e |- C = D $.
  $( Two equations are added. (Contributed by mirblab, 9-Jun-2025.) $)
  add12i $p |- ( A + C ) = ( B + D ) $=
    cA cC cadd cB cC cadd cB cD cadd cA cB cC add12i.1 add1i cC cD cB add12i.2 add2i eqtri $.
$}
${
  negi.1 $e |- A = B $.
  $( Both sides are negated. (Contributed by mirblab, 10-Jun-2025.) $)
  negi $p |- -u A = -u B $=
    cA cB wceq cA cneg cB cneg wceq negi.1 cA cB ax-neg ax-mp $.
$}
${
  add1d.1 $e |- ( ph -> A = B ) $.
  $( The same is added on the right under an antecedent. (Contributed by mirblab, 11-Jun-2025.) $)
  add1d $p |- ( ph -> ( A + C ) = ( B + C ) ) $=
    wph cA cB wceq cA cC cadd cB cC cadd wceq add1d.1 cA cB cC ax-add1 syl $.
$}
${
  add2d.1 $e |- ( ph -> A = B ) $.
  $( The same is added on the left under an antecedent. (Contributed by mirblab, 12-Jun-2025.) $)
  add2d $p |- ( ph -> ( C + A ) = ( C + B ) ) $=
    wph cA cB wceq cC cA cadd cC cB cadd wceq add2d.1 cA cB cC ax-add2 syl $.
$}
$( A negative cancels what stands right of it. (Contributed by mirblab, 13-Jun-2025.) $)
lnegadd $p |- ( -u A + ( A + B ) ) = B $=
  cA cneg cA cB cadd cadd cA cneg cA cadd cB cadd cB cA cneg cA cadd cB cadd cA cneg cA cB cadd cadd cA cneg cA cB
  ax-ass eqcomi cA cneg cA cadd cB cadd c0 cB cadd cB cA cneg cA cadd c0 cB cA ax-linv add1i cB ax-lid eqtri eqtri $.
${
  addcani.1 $e |- ( A + B ) = ( A + C ) $.
  $( Left cancellation. (Contributed by mirblab, 14-Jun-2025.) $)
  addcani $p |- B = C $=
    cB cA cneg cA cB cadd cadd cC cA cneg cA cB cadd cadd cB cA cB lnegadd eqcomi cA cneg cA cB cadd cadd cA cneg cA
    cC cadd cadd cC cA cB cadd cA cC cadd cA cneg addcani.1 add2i cA cC lnegadd eqtri eqtri $.
$}
${
  addcand.1 $e |- ( ph -> ( A + B ) = ( A + C ) ) $.
  $( Left cancellation under an antecedent. (Contributed by mirblab, 15-Jun-2025.) $)
  addcand $p |- ( ph -> B = C ) $=
    wph cB cA cneg cA cB cadd cadd cC cB cA cneg cA cB cadd cadd wceq wph cA cneg cA cB cadd cadd cB cA cB lnegadd
    eqcomi a1i wph cA cneg cA cB cadd cadd cA cneg cA cC cadd cadd cC wph cA cB cadd cA cC cadd cA cneg addcand.1
    add2d cA cneg cA cC cadd cadd cC wceq wph cA cC lnegadd a1i eqtrd eqtrd $.
$}
$( Left cancellation as a formula. (Contributed by mirblab, 16-Jun-2025.) $)
addcan1 $p |- ( ( A + B ) = ( A + C ) -> B = C ) $=
  cA cB cadd cA cC cadd wceq cA cB cC cA cB cadd cA cC cadd wceq id addcand $.
$( Left cancellation as an equivalence. (Contributed by mirblab, 17-Jun-2025.) $)
addcanb $p |- ( ( A + B ) = ( A + C ) <-> B = C ) $=
  cA cB cadd cA cC cadd wceq cB cC wceq cA cB cC addcan1 cB cC cA ax-add2 impbii $.
$( Zero is a right identity. (Contributed by mirblab, 18-Jun-2025.) $)
rid $p |- ( A + 0 ) = A $=
  cA cneg cA c0 cadd cA cA cneg cA c0 cadd cadd c0 cA cneg cA cadd cA c0 lnegadd cA ax-linv eqtr4i addcani $.
$( The negative is a right inverse. (Contributed by mirblab, 19-Jun-2025.) $)
rinv $p |- ( A + -u A ) = 0 $=
  cA cneg cA cA cneg cadd c0 cA cneg cA cA cneg cadd cadd cA cneg cA cneg c0 cadd cA cA cneg lnegadd cA cneg rid
  eqtr4i addcani $.
$( The negative of the negative. (Contributed by mirblab, 20-Jun-2025.) $)
negneg $p |- -u -u A = A $=
  cA cneg cA cneg cneg cA cA cneg cA cneg cneg cadd c0 cA cneg cA cadd cA cneg rinv cA ax-linv eqtr4i addcani $.
$( The negative of zero. (Contributed by mirblab, 21-Jun-2025.) $)
neg0 $p |- -u 0 = 0 $=
  c0 c0 cneg cadd c0 cneg c0 c0 cneg ax-lid c0 rinv eqtr3i $.
$( An element cancels the negative right of it. (Contributed by mirblab, 22-Jun-2025.) $)
raddneg $p |- ( A + ( -u A + B ) ) = B $=
  cA cA cneg cB cadd cadd cA cA cneg cadd cB cadd cB cA cA cneg cadd cB cadd cA cA cneg cB cadd cadd cA cA cneg cB
  ax-ass eqcomi cA cA cneg cadd cB cadd c0 cB cadd cB cA cA cneg cadd c0 cB cA rinv add1i cB ax-lid eqtri eqtri $.
$( A negative cancels what stands left of it. (Contributed by mirblab, 23-Jun-2025.) $)
addnegr $p |- ( ( A + B ) + -u B ) = A $=
  cA cB cadd cB cneg cadd cA cB cB cneg cadd cadd cA cA cB cB cneg ax-ass cA cB cB cneg cadd cadd cA c0 cadd cA cB
  cB cneg cadd c0 cA cB rinv add2i cA rid eqtri eqtri $.
$( An element cancels the negative left of it. (Contributed by mirblab, 24-Jun-2025.) $)
negaddr $p |- ( ( A + -u B ) + B ) = A $=
  cA cB cneg cadd cB cadd cA cB cneg cB cadd cadd cA cA cB cneg cB ax-ass cA cB cneg cB cadd cadd cA c0 cadd cA cB
  cneg cB cadd c0 cA cB ax-linv add2i cA rid eqtri eqtri $.
${
  addrcani.1 $e |- ( A + C ) = ( B + C ) $.
  $( Right cancellation. (Contributed by mirblab, 25-Jun-2025.) $)
  addrcani $p |- A = B $=
    cA cA cC cadd cC cneg cadd cB cA cC cadd cC cneg cadd cA cA cC addnegr eqcomi cA cC cadd cC cneg cadd cB cC cadd
    cC cneg cadd cB cA cC cadd cB cC cadd cC cneg addrcani.1 add1i cB cC addnegr eqtri eqtri $.
$}
${
  addrcand.1 $e |- ( ph -> ( A + C ) = ( B + C ) ) $.
  $( Right cancellation under an antecedent. (Contributed by mirblab, 26-Jun-2025.) $)
  addrcand $p |- ( ph -> A = B ) $=
    wph cA cA cC cadd cC cneg cadd cB cA cA cC cadd cC cneg cadd wceq wph cA cC cadd cC cneg cadd cA cA cC addnegr
    eqcomi a1i wph cA cC cadd cC cneg cadd cB cC cadd cC cneg cadd cB wph cA cC cadd cB cC cadd cC cneg addrcand.1
    add1d cB cC cadd cC cneg cadd cB wceq wph cB cC addnegr a1i eqtrd eqtrd $.
$}
$( Right cancellation as an equivalence. (Contributed by mirblab, 27-Jun-2025.) $)
addrcanb $p |- ( ( A + C ) = ( B + C ) <-> A = B ) $=
  cA cC cadd cB cC cadd wceq cA cB wceq cA cC cadd cB cC cadd wceq cA cB cC cA cC cadd cB cC cadd wceq id addrcand
  cA cB cC ax-add1 impbii $.
${
  reqneg.1 $e |- ( A + B ) = 0 $.
  $( A right inverse is the negative. (Contributed by mirblab, 28-Jun-2025.) $)
  reqneg $p |- B = -u A $=
    cA cB cA cneg cA cB cadd c0 cA cA cneg cadd reqneg.1 cA rinv eqtr4i addcani $.
$}
${
  leqneg.1 $e |- ( A + B ) = 0 $.
  $( A left inverse is the negative. (Contributed by mirblab, 29-Jun-2025.) $)
  leqneg $p |- A = -u B $=
    cA cA cneg cneg cB cneg cA cneg cneg cA cA negneg eqcomi cA cneg cB cB cA cneg cA cB leqneg.1 reqneg eqcomi negi
    eqtri $.
$}
$( The negative of a sum. (Contributed by mirblab, 30-Jun-2025.) $)
negadd $p |- -u ( A + B ) = ( -u B + -u A ) $=
  cB cneg cA cneg cadd cA cB cadd cneg cA cB cadd cB cneg cA cneg cadd cA cB cadd cB cneg cA cneg cadd cadd cA cB cB
  cneg cA cneg cadd cadd cadd c0 cA cB cB cneg cA cneg cadd ax-ass cA cB cB cneg cA cneg cadd cadd cadd cA cA cneg
  cadd c0 cB cB cneg cA cneg cadd cadd cA cneg cA cB cA cneg raddneg add2i cA rinv eqtri eqtri reqneg eqcomi $.
$( Elements are equal when their negatives are. (Contributed by mirblab, 1-Jul-2025.) $)
negeqb $p |- ( -u A = -u B <-> A = B ) $=
  cA cneg cB cneg wceq cA cB wceq cA cneg cB cneg wceq cA cA cneg cneg cB cA cA cneg cneg wceq cA cneg cB cneg wceq
  cA cneg cneg cA cA negneg eqcomi a1i cA cneg cB cneg wceq cA cneg cneg cB cneg cneg cB cA cneg cB cneg ax-neg cB
  cneg cneg cB wceq cA cneg cB cneg wceq cB negneg a1i eqtrd eqtrd cA cB ax-neg impbii $.
$( An equation is solved for its right summand. (Contributed by mirblab, 2-Jul-2025.) $)
lsolve $p |- ( ( A + B ) = C <-> B = ( -u A + C ) ) $=
  cA cB cadd cC wceq cB cA cneg cC cadd wceq cA cB cadd cC wceq cB cA cneg cA cB cadd cadd cA cneg cC cadd cB cA
  cneg cA cB cadd cadd wceq cA cB cadd cC wceq cA cneg cA cB cadd cadd cB cA cB lnegadd eqcomi a1i cA cB cadd cC cA
  cneg ax-add2 eqtrd cB cA cneg cC cadd wceq cA cB cadd cA cA cneg cC cadd cadd cC cB cA cneg cC cadd cA ax-add2 cA
  cA cneg cC cadd cadd cC wceq cB cA cneg cC cadd wceq cA cC raddneg a1i eqtrd impbii $.
$( An equation is solved for its left summand. (Contributed by mirblab, 3-Jul-2025.) $)
rsolve $p |- ( ( A + B ) = C <-> A = ( C + -u B ) ) $=
  cA cB cadd cC wceq cA cC cB cneg cadd wceq cA cB cadd cC wceq cA cA cB cadd cB cneg cadd cC cB cneg cadd cA cA cB
  cadd cB cneg cadd wceq cA cB cadd cC wceq cA cB cadd cB cneg cadd cA cA cB addnegr eqcomi a1i cA cB cadd cC cB
  cneg ax-add1 eqtrd cA cC cB cneg cadd wceq cA cB cadd cC cB cneg cadd cB cadd cC cA cC cB cneg cadd cB ax-add1 cC
  cB cneg cadd cB cadd cC wceq cA cC cB cneg cadd wceq cC cB negaddr a1i eqtrd impbii $.
${
  idemi.1 $e |- ( A + A ) = A $.
  $( An idempotent element is zero. (Contributed by mirblab, 4-Jul-2025.) $)
  idemi $p |- A = 0 $=
    cA cA c0 cA cA cadd cA cA c0 cadd idemi.1 cA rid eqtr4i addcani $.
$}
$( The only idempotent element is zero. (Contributed by mirblab, 5-Jul-2025.) $)
idemb $p |- ( ( A + A ) = A <-> A = 0 ) $=
  cA cA cadd cA wceq cA c0 wceq cA cA cadd cA wceq cA cA c0 cA cA cadd cA wceq cA cA cadd cA cA c0 cadd cA cA cadd
  cA wceq id cA cA c0 cadd wceq cA cA cadd cA wceq cA c0 cadd cA cA rid eqcomi a1i eqtrd addcand cA c0 wceq cA cA
  cadd cA c0 cadd cA cA c0 cA ax-add2 cA c0 cadd cA wceq cA c0 wceq cA rid a1i eqtrd impbii $.
${
  $d x A $. $d x B $.
  $( An equation for the right summand has a solution. (Contributed by mirblab, 6-Jul-2025.) $)
  rsolex $p |- E. x ( A + x ) = B $=
    vx cv cA cneg cB cadd wceq vx wex cA vx cv cadd cB wceq vx wex vx cA cneg cB cadd ax-ex vx cv cA cneg cB cadd wceq
    cA vx cv cadd cB wceq vx cA vx cv cadd cB wceq vx cv cA cneg cB cadd wceq cA vx cv cB lsolve biimpri eximi ax-mp $.
$}
${
  $d x A $. $d x B $.
  $( An equation for the left summand has a solution. (Contributed by mirblab, 7-Jul-2025.) $)
  lsolex $p |- E. x ( x + A ) = B $=
    vx cv cB cA cneg cadd wceq vx wex vx cv cA cadd cB wceq vx wex vx cB cA cneg cadd ax-ex vx cv cB cA cneg cadd wceq
    vx cv cA cadd cB wceq vx vx cv cA cadd cB wceq vx cv cB cA cneg cadd wceq vx cv cA cB rsolve biimpri eximi ax-mp $.
$}
$( The solution for the right summand is unique. (Contributed by mirblab, 8-Jul-2025.) $)
rsoluni $p |- ( ( ( A + x ) = B /\ ( A + y ) = B ) -> x = y ) $=
  cA vx cv cadd cB wceq cA vy cv cadd cB wceq wa cA vx cv vy cv cA vx cv cadd cB wceq cA vy cv cadd cB wceq wa cA vx
  cv cadd cB cA vy cv cadd cA vx cv cadd cB wceq cA vy cv cadd cB wceq simpl cA vx cv cadd cB wceq cA vy cv cadd cB
  wceq wa cA vy cv cadd cB cA vx cv cadd cB wceq cA vy cv cadd cB wceq simpr eqcomd eqtrd addcand $.
$( The solution for the left summand is unique. (Contributed by mirblab, 9-Jul-2025.) $)
lsoluni $p |- ( ( ( x + A ) = B /\ ( y + A ) = B ) -> x = y ) $=
  vx cv cA cadd cB wceq vy cv cA cadd cB wceq wa vx cv vy cv cA vx cv cA cadd cB wceq vy cv cA cadd cB wceq wa vx cv
  cA cadd cB vy cv cA cadd vx cv cA cadd cB wceq vy cv cA cadd cB wceq simpl vx cv cA cadd cB wceq vy cv cA cadd cB
  wceq wa vy cv cA cadd cB vx cv cA cadd cB wceq vy cv cA cadd cB wceq simpr eqcomd eqtrd addrcand $.
${
  negcom.1 $e |- ( A + B ) = ( B + A ) $.
  $( The negatives of elements that commute commute. (Contributed by mirblab, 10-Jul-2025.) $)
  negcom $p |- ( -u A + -u B ) = ( -u B + -u A ) $=
    cA cneg cB cneg cadd cB cA cadd cneg cA cB cadd cneg cB cneg cA cneg cadd cB cA cadd cneg cA cneg cB cneg cadd cB
    cA negadd eqcomi cB cA cadd cA cB cadd cA cB cadd cB cA cadd negcom.1 eqcomi negi cA cB negadd 3eqtri $.
$}
${
  negcoml.1 $e |- ( A + B ) = ( B + A ) $.
  $( A negative commutes with what its element commutes with. (Contributed by mirblab, 11-Jul-2025.) $)
  negcoml $p |- ( -u A + B ) = ( B + -u A ) $=
    cA cA cneg cB cadd cB cA cneg cadd cA cA cneg cB cadd cadd cB cA cB cA cneg cadd cadd cA cB raddneg cA cB cA cneg
    cadd cadd cA cB cadd cA cneg cadd cB cA cB cadd cA cneg cadd cA cB cA cneg cadd cadd cA cB cA cneg ax-ass eqcomi
    cA cB cadd cA cneg cadd cB cA cadd cA cneg cadd cB cA cB cadd cB cA cadd cA cneg negcoml.1 add1i cB cA addnegr
    eqtri eqtri eqtr4i addcani $.
$}
$( A sum of four is regrouped. (Contributed by mirblab, 12-Jul-2025.) $)
add4 $p |- ( ( A + B ) + ( C + D ) ) = ( A + ( ( B + C ) + D ) ) $=
  cA cB cadd cC cD cadd cadd cA cB cC cD cadd cadd cadd cA cB cC cadd cD cadd cadd cA cB cC cD cadd ax-ass cB cC cD
  cadd cadd cB cC cadd cD cadd cA cB cC cadd cD cadd cB cC cD cadd cadd cB cC cD ax-ass eqcomi add2i eqtri $.
${
  ordertwo.1 $e |- ( A + A ) = 0 $.
  ordertwo.2 $e |- ( B + B ) = 0 $.
  ordertwo.3 $e |- ( ( A + B ) + ( A + B ) ) = 0 $.
  $( Elements commute where they and their sum are their own negatives. (Contributed by mirblab, 13-Jul-2025.)
     $)
  ordertwo $p |- ( A + B ) = ( B + A ) $=
    cA cB cadd cA cB cadd cneg cB cneg cA cneg cadd cB cA cadd cA cB cadd cA cB cadd ordertwo.3 reqneg cA cB negadd cB
    cneg cB cA cneg cA cB cB cneg cB cB ordertwo.2 reqneg eqcomi cA cA cneg cA cA ordertwo.1 reqneg eqcomi add12i
    3eqtri $.
$}
