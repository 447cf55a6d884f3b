import Mathlib.Algebra.BigOperators.Intervals
import Architect

open Finset

namespace Small

section Sums

variable (n m : ℕ) {f g : ℕ → ℕ}

/-- The sum of the first $n$ odd numbers is the square of $n$: a square grows by one hook after the other. -/
@[simp, blueprint "thm:odd-sum"
  (title := "Sum of the first $n$ odd numbers")
  (statement := /-- The sum of the first $n$ odd numbers is the square of $n$. \uses{def:double} -/)
  (proof := /-- By induction on $n$. -/)
  (latexEnv := "theorem")]
theorem sum_odd : ∑ i ∈ range n, (2 * i + 1) = n ^ 2 := by
  induction n with
  | zero => simp
  | succ n ih => rw [sum_range_succ, ih]; ring

@[blueprint "lem:sum-order"
  (statement := /-- Sums over the same range keep the order of their summands, and are
  equal when all of their summands are. -/)]
theorem sum_le_sum_range (h : ∀ i < n, f i ≤ g i) : ∑ i ∈ range n, f i ≤ ∑ i ∈ range n, g i :=
  sum_le_sum fun i hi => h i (mem_range.mp hi)

@[blueprint "lem:sum-order"]
theorem sum_congr_range (h : ∀ i < n, f i = g i) : ∑ i ∈ range n, f i = ∑ i ∈ range n, g i :=
  sum_congr rfl fun i hi => h i (mem_range.mp hi)

theorem sum_const_range : ∑ _i ∈ range n, m = n * m := by
  simp

end Sums

section Groups

variable {G H : Type*} [Group G] [Group H] (φ : G →* H) (a b : G)

@[blueprint
  (statement := /-- A homomorphism of groups sends the inverse of an element to the inverse of its image. -/)]
theorem map_inverse : φ a⁻¹ = (φ a)⁻¹ :=
  map_inv φ a

variable [Finite G] (hab : a * b = b * a)

omit [Finite G] in
include hab in
@[blueprint "lem:commuting-inverse"
  (statement := /-- If two elements of a group commute, then so do the first one and the inverse of the second. -/)]
lemma commuting_inverse : a * b⁻¹ = b⁻¹ * a := by
  rw [eq_inv_mul_iff_mul_eq, ← mul_assoc, ← hab, mul_assoc, mul_inv_cancel, mul_one]

theorem exists_pow_eq_one : ∃ n, 0 < n ∧ a ^ n = 1 := by
  exact ⟨orderOf a, orderOf_pos a, pow_orderOf_eq_one a⟩

instance : Inhabited (G →* G) := ⟨1⟩

end Groups

end Small
