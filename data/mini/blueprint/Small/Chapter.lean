import VersoManual
import VersoBlueprint
import Small.Parity

open Verso.Genre Manual
open Informal

#doc (Manual) "Squares" =>

A theorem says what holds, and
theorem upon theorem makes a chapter. None of this is Lean.

:::group "squares"
What squares leave as a remainder.
:::

:::lemma_ "lem:even-square" (lean := "Small.Parity.even_sq") (parent := "squares")
If a number can be divided by two, its square can be, too.
:::

:::theorem "thm:odd-square" (parent := "squares")
  (lean := "Small.Parity.odd_sq")
The square of an *odd* number leaves the remainder $`1` when it is divided by $`4`, unlike that in
{uses "lem:even-square"}[].
:::

:::proof "thm:odd-square"
Write it as $`4k(k + 1) + 1`, by `Small.double_zero`.
:::

:::theorem "thm:double-order"
Of two different numbers the larger one has the larger double.
:::

```lean "thm:double-order"
namespace Small
theorem double_lt {a b : ℕ} (h : a < b) : double a < double b :=
  double_strictMono h
end Small
```
