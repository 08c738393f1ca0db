//! Tests of clients that hold, await and release places.

use futures_util::FutureExt;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn client(number: u8) -> Client {
    Client::Token([number; 16])
}

fn takes(places: &SharedPlaces, of: u8, units: u64) -> Option<Place> {
    client(of).during(|| places.now(units))
}

/// Enters those who wait.
fn waits(
    places: &SharedPlaces,
    of: u8,
    units: u64,
) -> Result<impl Future<Output = Result<Place, Busy>> + use<>, Busy> {
    client(of).during(|| places.turn(units)).map(Box::pin)
}

#[test]
fn one_client_leaves_a_part_to_newcomers() {
    let places = SharedPlaces::new(80, 0, Share::LeavesRest);
    let most = (1..).map_while(|_| takes(&places, 1, 1)).collect::<Vec<_>>();
    assert_eq!(most.len(), 80);
    let second = (1..).map_while(|_| takes(&places, 2, 1)).collect::<Vec<_>>();
    assert_eq!(second.len(), 16);
    drop((most, second));
    assert!(takes(&places, 2, 60).is_some());
}

#[test]
fn the_last_place_is_for_whoever_has_none() {
    let places = SharedPlaces::new(4, 0, Share::LeavesRest);
    let held = (1..).map_while(|_| takes(&places, 1, 1)).collect::<Vec<_>>();
    assert_eq!(held.len(), 4);
    let other = takes(&places, 2, 1);
    assert!(other.is_some());
    assert!(takes(&places, 3, 1).is_none());
    drop(other);
    assert!(takes(&places, 3, 1).is_some());
}

#[test]
fn a_client_that_waits_is_served_before_one_that_holds() {
    let places = SharedPlaces::new(2, 100, Share::All);
    let (first, second) = (takes(&places, 1, 1), takes(&places, 1, 1));
    let many: Vec<_> = (0..50).map(|_| waits(&places, 1, 1).unwrap()).collect();
    let other = waits(&places, 2, 1).unwrap();
    drop(first);
    let place = other.now_or_never().unwrap().unwrap();
    drop(second);
    let granted = many.into_iter().filter_map(FutureExt::now_or_never).collect::<Vec<_>>();
    assert_eq!(granted.len(), 1);
    drop((place, granted));
}

#[test]
fn clients_take_turns_whoever_comes_back_at_once() {
    let places = SharedPlaces::new(1, 100, Share::All);
    let mut held = takes(&places, 1, 1);
    let mut other = Some(waits(&places, 2, 1).unwrap());
    // It has the smaller number, and is known no more once it holds nothing and waits for nothing.
    drop(held.take());
    let again = waits(&places, 1, 1).unwrap();
    let place = other.take().unwrap().now_or_never().unwrap().unwrap();
    let third = waits(&places, 2, 1).unwrap();
    drop(place);
    let place = again.now_or_never().unwrap().unwrap();
    drop(place);
    assert!(third.now_or_never().unwrap().is_ok());
}

#[test]
fn a_newcomer_takes_the_place_of_the_last_who_came_of_many() {
    let places = SharedPlaces::new(1, 3, Share::All);
    let held = takes(&places, 1, 1);
    let mut many: Vec<_> = (0..3).map(|_| waits(&places, 1, 1).unwrap()).collect();
    assert!(waits(&places, 1, 1).is_err());
    let other = waits(&places, 2, 1).unwrap();
    let displaced = many.pop().unwrap().now_or_never();
    assert!(matches!(displaced, Some(Err(Busy))));
    assert!(waits(&places, 2, 1).is_err());
    drop(held);
    drop(many);
    assert!(other.now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_wait_ends_in_time_and_leaves_its_place() {
    let places = SharedPlaces::new(1, 1, Share::All);
    let held = takes(&places, 1, 1);
    assert!(matches!(client(2).scope(places.wait(1, Duration::ZERO)).await, Err(Busy)));
    assert_eq!(places.waiting(), 0);
    drop(held);
    assert!(client(2).scope(places.wait(1, LONG)).await.is_ok());
}

#[test]
fn whoever_left_is_passed_over() {
    let places = SharedPlaces::new(1, 9, Share::All);
    let held = takes(&places, 1, 1);
    let (left, waiting) = (waits(&places, 2, 1).unwrap(), waits(&places, 3, 1).unwrap());
    drop(left);
    drop(held);
    drop(waiting.now_or_never().unwrap().unwrap());
    assert!(places.0.state.lock().clients.is_empty());
    assert_eq!(places.0.state.lock().used, 0);
}

#[test]
fn more_than_there_is_counts_as_all_of_it() {
    let places = SharedPlaces::new(10, 9, Share::All);
    let all = takes(&places, 1, 1000).unwrap();
    assert!(takes(&places, 2, 1).is_none());
    drop(all);
    let mut some = takes(&places, 1, 4).unwrap();
    some.merge(takes(&places, 1, 6).unwrap());
    assert!(takes(&places, 2, 1).is_none());
    drop(some);
    assert!(takes(&places, 2, 10).is_some());
}

#[test]
fn one_client_has_exactly_its_bound_however_small_that_is() {
    for bound in 0..200 {
        let places = SharedPlaces::new(bound, 0, Share::LeavesRest);
        let held = (0..=bound).map_while(|_| takes(&places, 1, 1)).collect::<Vec<_>>();
        assert_eq!(held.len() as u64, bound);
        assert!(takes(&places, 2, 1).is_some() || bound == 0);
    }
}

#[test]
fn a_client_with_one_unit_leaves_the_others_to_others() {
    let places = SharedPlaces::new(2, 9, Share::One);
    let held = takes(&places, 1, 1).unwrap();
    assert!(takes(&places, 1, 1).is_none());
    let waiting = waits(&places, 1, 1).unwrap();
    let other = waits(&places, 2, 1).unwrap();
    let other = other.now_or_never().unwrap().unwrap();
    drop(held);
    assert!(waiting.now_or_never().unwrap().is_ok());
    drop(other);
}
