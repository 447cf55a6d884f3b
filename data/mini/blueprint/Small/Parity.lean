import Mathlib.Algebra.Ring.Parity
import Mathlib.Tactic.Ring

/-! # Even and odd natural numbers -/

namespace Small

/-- The double of a natural number $n$ is $n + n$. -/
def double (n : ℕ) : ℕ := n + n -- not `2 * n`

@[simp] lemma double_zero : double 0 = 0 := rfl

/-- The double of a sum is the sum of the doubles. -/
lemma double_add (a b : ℕ) : double (a + b) = double a + double b := by
  unfold double
  ring

alias double_sum := double_add

lemma double_strictMono : StrictMono double := fun a b h => by
  unfold double
  omega

/-- Every natural number is $2k$ or $2k + 1$. -/
theorem even_or_odd (n : ℕ) : (∃ k, n = 2 * k) ∨ ∃ k, n = 2 * k + 1 := by
  omega

theorem not_even_and_odd (n : ℕ) : ¬((∃ k, n = 2 * k) ∧ ∃ k, n = 2 * k + 1) := by
  rintro ⟨⟨k, hk⟩, l, hl⟩
  omega

private lemma double_eq (n : ℕ) : double n = 2 * n := by
  unfold double
  omega

namespace Parity

variable {n : ℕ}

/-- The square of an even number is even. -/
theorem even_sq (h : Even n) : Even (n ^ 2) := by
  obtain ⟨k, rfl⟩ := h
  exact ⟨2 * k ^ 2, by ring⟩

theorem odd_sq (h : Odd n) : n ^ 2 % 4 = 1 := by
  obtain ⟨k, rfl⟩ := h
  ring_nf
  omega

theorem even_two_mul : ∀ n : ℕ, Even (2 * n) := fun n => ⟨n, by ring⟩

end Parity

end Small
