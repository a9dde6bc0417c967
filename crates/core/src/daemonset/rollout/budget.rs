//! How many nodes a rollout may update at once (rules 5.1.2 and 5.1.3).

use super::super::view::Strategy;
use crate::int_or_percent::IntOrPercent;

/// The limits of a rollout, scaled to the number of nodes that should run a pod now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Budget {
    /// How many nodes may be without an available pod.
    pub(in super::super) unavailable: i64,
    /// How many nodes may have a new pod beside an old one.
    pub(in super::super) surge: i64,
}

impl Budget {
    /// `None` if nothing is rolled out: the strategy is `OnDelete`, or a limit cannot be read.
    pub(in super::super) fn of(strategy: Strategy, desired: i64) -> Option<Self> {
        let Strategy::RollingUpdate {
            max_unavailable,
            max_surge,
        } = strategy
        else {
            return None;
        };
        let (unavailable, surge) = max_unavailable.zip(max_surge)?;
        let unavailable = unavailable.of_rounded_up(desired);
        let surge = surge.of_rounded_up(desired);
        let both_zero = unavailable == 0 && surge == 0 && desired > 0;
        Some(Self {
            unavailable: if both_zero { 1 } else { unavailable },
            surge,
        })
    }
}

impl Budget {
    /// With `--assist`, where pods are deleted for the strategy `OnDelete` (R11). `None` for other strategies, or if the
    /// limit cannot be read.
    pub(in super::super) fn assisted(strategy: Strategy, desired: i64) -> Option<Self> {
        let Strategy::OnDelete { max_unavailable } = strategy else {
            return None;
        };
        let surge = Some(IntOrPercent::Int(0));
        let rolling = Strategy::RollingUpdate {
            max_unavailable,
            max_surge: surge,
        };
        Self::of(rolling, desired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(unavailable: &Value, surge: &Value, desired: i64, expected: Option<(i64, i64)>) {
        let limits = json!({"maxUnavailable": unavailable, "maxSurge": surge});
        let strategy = Strategy::parse(&json!({"rollingUpdate": limits}));
        let found = Budget::of(strategy, desired).map(|b| (b.unavailable, b.surge));
        assert_eq!(found, expected, "{limits} of {desired}");
    }

    #[test]
    fn s5_1_2_shares_of_the_desired_number_are_rounded_up() {
        check(&json!(3), &json!(0), 10, Some((3, 0)));
        check(&json!("25%"), &json!(0), 10, Some((3, 0)));
        check(&json!(0), &json!("1%"), 10, Some((0, 1)));
        check(&json!(0), &json!("50%"), 0, Some((0, 0)));
        check(&json!(7), &json!(0), 3, Some((7, 0)));
        check(&Value::Null, &Value::Null, 3, Some((1, 0)));
    }

    #[test]
    fn s5_1_2_a_limit_that_cannot_be_read_stops_the_rollout() {
        check(&json!("many"), &json!(0), 10, None);
        check(&json!(1), &json!("5"), 10, None);
    }

    #[test]
    fn s5_1_3_two_zeros_behave_as_one_unavailable() {
        check(&json!(0), &json!(0), 10, Some((1, 0)));
        check(&json!("0%"), &json!("0%"), 10, Some((1, 0)));
        check(&json!(0), &json!(0), 0, Some((0, 0)));
    }

    #[test]
    fn r11_with_assist_the_budget_of_on_delete_is_max_unavailable_or_one() {
        let budget = |strategy: Value| {
            let budget = Budget::assisted(Strategy::parse(&strategy), 10);
            budget.map(|b| (b.unavailable, b.surge))
        };
        let on_delete = |limits: Value| json!({"type": "OnDelete", "rollingUpdate": limits});
        assert_eq!(budget(json!({"type": "OnDelete"})), Some((1, 0)));
        assert_eq!(
            budget(on_delete(json!({"maxUnavailable": "25%"}))),
            Some((3, 0))
        );
        assert_eq!(
            budget(on_delete(json!({"maxUnavailable": 0, "maxSurge": 2}))),
            Some((1, 0))
        );
        assert_eq!(budget(on_delete(json!({"maxUnavailable": "many"}))), None);
        assert_eq!(budget(json!({"type": "RollingUpdate"})), None);
    }

    #[test]
    fn s5_1_1_on_delete_rolls_nothing_out() {
        let strategy = Strategy::parse(&json!({"type": "OnDelete",
            "rollingUpdate": {"maxUnavailable": 5, "maxSurge": 5}}));
        assert_eq!(Budget::of(strategy, 10), None);
        assert!(!strategy.surges());
    }
}
