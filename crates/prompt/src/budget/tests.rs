//! Tests of the budget: it leaves out the fewest parts that suffice, the first of the list first.

use proptest::prelude::*;

use super::*;

/// Quarters of a token.
fn quarters(count: usize) -> Cost {
    Cost::of_thousandths(250 * count as u64)
}

fn line(left_out: &LeftOut) -> Cost {
    quarters(left_out.line(1000).len())
}

fn step(kind: Kind, tokens: u64) -> Step {
    Step { kind, saves: Cost::of_tokens(tokens), instead: Cost::default(), again: false }
}

/// What is shown of a prompt of this cost from which these steps may go; how many of them are taken.
fn fit(cost: Cost, steps: &[Step], max_tokens: u64) -> Result<(usize, Cut), TooSmall> {
    let rest = steps.iter().fold(cost, |rest, step| rest - step.saves + step.instead);
    let mut all = LeftOut::default();
    steps.iter().for_each(|step| all.add(step));
    let mut fitting = Fitting::new(rest, all, line(&all), max_tokens);
    let kept = steps.iter().rev().take_while(|step| fitting.keep(**step)).count();
    let cut = fitting.fit(line)?;
    assert!(cut.kept <= kept);
    Ok((steps.len() - cut.kept, cut))
}

/// The same from the first step on, each of which is weighed.
fn naive(cost: Cost, steps: &[Step], max_tokens: u64) -> Result<(usize, LeftOut, Cost), u64> {
    let (mut rest, mut left_out, mut needed) = (cost, LeftOut::default(), cost.tokens());
    if needed <= max_tokens {
        return Ok((0, left_out, cost));
    }
    for (taken, step) in (1..).zip(steps) {
        left_out.add(step);
        rest = rest - step.saves + step.instead;
        let cost = rest + line(&left_out);
        if cost.tokens() <= max_tokens {
            return Ok((taken, left_out, cost));
        }
        needed = needed.min(cost.tokens());
    }
    Err(needed)
}

#[test]
fn what_fits_stays_whole() {
    let steps = [step(Kind::Trajectory, 10)];
    let (taken, cut) = fit(Cost::of_tokens(100), &steps, 100).unwrap();
    assert_eq!((taken, cut.left_out.total(), cut.cost), (0, 0, Cost::of_tokens(100)));
}

#[test]
fn what_is_needed_is_the_least_that_it_takes() {
    // The line is longer than all that could go.
    let refused = fit(Cost::of_tokens(10), &[step(Kind::Request, 5)], 9).unwrap_err();
    assert_eq!(refused, TooSmall { needed: 10, max_tokens: 9 });
}

#[test]
fn the_line_that_tells_of_it_is_part_of_the_prompt() {
    let steps = [step(Kind::Image, 10), step(Kind::Request, 10), step(Kind::Request, 80)];
    let (taken, cut) = fit(Cost::of_tokens(200), &steps, 190).unwrap();
    assert_eq!(taken, 3, "{cut:?}");
    assert_eq!(cut.left_out.line(190), "[Left out to stay within 190 tokens: 1 image, 2 requests]");
    assert_eq!(cut.cost, Cost::of_tokens(100) + line(&cut.left_out));
    let refused = fit(Cost::of_tokens(200), &steps, 100).unwrap_err();
    assert_eq!(refused, TooSmall { needed: cut.cost.tokens(), max_tokens: 100 });
}

#[test]
fn a_screenshot_that_went_is_no_image_that_went() {
    let gone = Step { again: true, ..step(Kind::Screenshot, 100) };
    let (_, cut) = fit(Cost::of_tokens(300), &[step(Kind::Image, 50), gone], 200).unwrap();
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
        let (less, more) = (fit(cost, &steps, small), fit(cost, &steps, large));
        for (cut, budget) in [(&less, small), (&more, large)] {
            if let Ok((taken, cut)) = cut {
                prop_assert!(cut.cost.tokens() <= budget);
                prop_assert_eq!(cut.left_out.total(), *taken as u64);
            }
        }
        match (less, more) {
            (Ok((less, _)), Ok((more, _))) => prop_assert!(more <= less),
            (Ok(_), Err(error)) => prop_assert!(false, "{error}"),
            (Err(_), _) => {}
        }
    }

    #[test]
    fn what_goes_is_what_weighing_each_step_would_take(
        images in prop::collection::vec((0_u64..40, 0_u64..40), 0..8),
        others in prop::collection::vec((0..5_usize, 0_u64..200), 0..60),
        rest in 0_u64..200,
        max_tokens in 0_u64..700,
    ) {
        let kinds =
            [Kind::Trajectory, Kind::MemoryStep, Kind::Request, Kind::Question, Kind::Screenshot];
        let mut steps: Vec<Step> = Vec::new();
        for (instead, more) in &images {
            let (instead, saves) = (Cost::of_tokens(*instead), Cost::of_tokens(instead + more));
            steps.push(Step { saves, instead, ..step(Kind::Image, 0) });
        }
        let mut others = others;
        others.sort_by_key(|(kind, _)| *kind);
        let bytes = |(kind, bytes): &(usize, u64)| Step {
            saves: quarters(usize::try_from(*bytes).unwrap()),
            ..step(kinds[*kind], 0)
        };
        steps.extend(others.iter().map(bytes));
        steps.extend(images.iter().map(|(instead, _)| {
            Step { again: true, ..step(Kind::Screenshot, *instead) }
        }));
        let all: Cost = steps.iter().map(|step| step.saves - step.instead).sum();
        let cost = Cost::of_tokens(rest) + all;
        match (naive(cost, &steps, max_tokens), fit(cost, &steps, max_tokens)) {
            (Ok((taken, left_out, cost)), Ok((own, cut))) => {
                prop_assert_eq!((taken, left_out, cost), (own, cut.left_out, cut.cost));
            }
            (Err(needed), Err(error)) => prop_assert_eq!(needed, error.needed),
            (naive, own) => prop_assert!(false, "{naive:?} {own:?}"),
        }
    }
}
