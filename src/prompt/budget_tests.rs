//! What a budget takes: as little as suffices, always the first things, never more of a larger one.

use proptest::prelude::*;

use super::*;

fn line(left_out: &LeftOut) -> Cost {
    Cost::of_bytes(left_out.line(1000).len())
}

fn step(kind: Kind, tokens: u64) -> Step {
    Step { kind, saves: Cost::of_tokens(tokens), instead: Cost::default(), again: false }
}

#[test]
fn what_fits_stays_whole() {
    let steps = [step(Kind::Trajectory, 10)];
    let cut = fit(Cost::of_tokens(100), &steps, 100, line).unwrap();
    assert_eq!((cut.steps, cut.left_out.total(), cut.cost), (0, 0, Cost::of_tokens(100)));
}

#[test]
fn what_is_needed_is_the_least_that_it_takes() {
    // The line is longer than all that could go.
    let refused = fit(Cost::of_tokens(10), &[step(Kind::Request, 5)], 9, line).unwrap_err();
    assert_eq!(refused, TooSmall { needed: 10, max_tokens: 9 });
}

#[test]
fn the_line_that_tells_of_it_is_part_of_the_prompt() {
    let steps = [step(Kind::Image, 10), step(Kind::Request, 10), step(Kind::Request, 80)];
    let cut = fit(Cost::of_tokens(200), &steps, 190, line).unwrap();
    assert_eq!(cut.steps, 3, "{cut:?}");
    assert_eq!(cut.left_out.line(190), "[Left out to stay within 190 tokens: 1 image, 2 requests]");
    assert_eq!(cut.cost, Cost::of_tokens(100) + line(&cut.left_out));
    let refused = fit(Cost::of_tokens(200), &steps, 100, line).unwrap_err();
    assert_eq!(refused, TooSmall { needed: cut.cost.tokens(), max_tokens: 100 });
}

#[test]
fn a_screenshot_that_went_is_no_image_that_went() {
    let gone = Step { again: true, ..step(Kind::Screenshot, 100) };
    let cut = fit(Cost::of_tokens(300), &[step(Kind::Image, 50), gone], 200, line).unwrap();
    assert_eq!(cut.left_out.line(200), "[Left out to stay within 200 tokens: 1 screenshot]");
    assert_eq!(cut.left_out.total(), 1);
}

proptest! {
    #[test]
    fn a_larger_budget_takes_no_more(
        saves in prop::collection::vec(0_u64..60, 0..40), rest in 0_u64..100, budgets in (0_u64..900, 0_u64..900),
    ) {
        let steps: Vec<_> = saves.iter().map(|tokens| step(Kind::Trajectory, *tokens)).collect();
        let cost = Cost::of_tokens(rest + saves.iter().sum::<u64>());
        let (small, large) = (budgets.0.min(budgets.1), budgets.0.max(budgets.1));
        let (less, more) = (fit(cost, &steps, small, line), fit(cost, &steps, large, line));
        for (cut, budget) in [(&less, small), (&more, large)] {
            if let Ok(cut) = cut {
                prop_assert!(cut.cost.tokens() <= budget);
                prop_assert_eq!(cut.left_out.total(), cut.steps as u64);
            }
        }
        match (less, more) {
            (Ok(less), Ok(more)) => prop_assert!(more.steps <= less.steps),
            (Ok(_), Err(error)) => prop_assert!(false, "{error}"),
            (Err(_), _) => {}
        }
    }
}
