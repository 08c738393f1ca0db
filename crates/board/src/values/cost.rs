//! Costs of agents' steps, and their sums.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// The units in one: a cost is counted in billionths.
const UNITS: f64 = 1e9;

/// The largest budget.
const BUDGET_MAX: f64 = 1e9;

/// The largest cost that an item counts for, either way.
const COST_MAX: f64 = 1e15;

/// A sum of costs, in fixed point: the order of additions does not change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(i128);

impl Cost {
    /// Returns the nearest cost, within 1e15 either way.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a float that fits, and NaN is 0")]
    pub fn of(amount: f64) -> Self {
        Self((amount.clamp(-COST_MAX, COST_MAX) * UNITS).round() as i128)
    }

    /// Returns the nearest number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest is asked for")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNITS
    }
}

/// A limit of a sum of costs, from 0 to 1e9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Budget(i64);

impl Budget {
    /// Returns the nearest budget, if the amount is within bounds.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a float that fits")]
    pub fn of(amount: f64) -> Option<Self> {
        (0.0..=BUDGET_MAX).contains(&amount).then(|| Self((amount * UNITS).round() as i64))
    }

    /// Returns true if a stored budget is within bounds.
    pub(crate) fn is_sound(self) -> bool {
        (Cost::default()..=Cost::of(BUDGET_MAX)).contains(&self.cost())
    }

    /// Returns the costs that do not pass the budget at most.
    #[must_use]
    pub fn cost(self) -> Cost {
        Cost(self.0.into())
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_costs_is_exact() {
        let dimes: Cost = std::iter::repeat_n(Cost::of(0.1), 10).sum();
        assert_eq!((dimes, dimes.to_f64()), (Cost::of(1.0), 1.0));
        assert_eq!(dimes - Cost::of(1.0), Cost::default());
        assert_eq!(Cost::of(f64::NAN), Cost::default());
        assert_eq!(Cost::of(f64::INFINITY), Cost::of(1e300));
    }

    #[test]
    fn a_budget_is_within_bounds() {
        assert_eq!(Budget::of(12.5).unwrap().cost(), Cost::of(12.5));
        assert_eq!(Budget::of(1e9).unwrap().cost(), Cost::of(1e9));
        for amount in [-1e-300, 1e9 + 1e-6, f64::NAN, f64::INFINITY] {
            assert_eq!(Budget::of(amount), None);
        }
        assert!(!Budget(-1).is_sound() && !Budget(i64::MAX).is_sound());
    }

    #[test]
    fn a_stored_cost_comes_back() {
        for amount in [0.0, 0.1, 1e-9, 123.456, 1e9, -1e15] {
            let text = serde_json::to_string(&Cost::of(amount)).unwrap();
            assert_eq!(serde_json::from_str::<Cost>(&text).unwrap(), Cost::of(amount));
        }
    }
}
