import Mathlib.Algebra.Order.Ring.Int

namespace Small

/-- A closed interval of integers. -/
structure Interval where
  /-- The left end. -/
  left : ℤ
  /-- The right end. -/
  right : ℤ
  /-- The left end is at most the right one. -/
  ordered : left ≤ right

namespace Interval

/-- The length of an interval: the right end minus the left one. -/
def length (I : Interval) : ℤ := I.right - I.left

theorem length_nonneg (I : Interval) : 0 ≤ I.length :=
  sub_nonneg.mpr I.ordered

/-- The interval that reaches one further on both sides. -/
def widened (I : Interval) : Interval where
  left := I.left - 1
  right := I.right + 1
  ordered := by
    have := I.ordered
    omega

end Interval

end Small
